"""The table of defaults says what each interface makes of a field that a request leaves out."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, Final

import httpx
import pytest
from docs.pages import ROOT, section

from horarium.core.document.document import from_canonical
from horarium.core.document.reader import SHIPPED
from horarium.features.agents import service as agent_service
from horarium.features.schedules import lists
from horarium.testing import TestService, service

PAGE: Final = ROOT / "docs/reference/defaults.md"
NATIVE: Final = {"workflow_id": "w", "cron_expr": "0 2 * * *"}
PARAMETERS: Final = {f"p_{name}": value for name, value in NATIVE.items()}


def _native(http: httpx.Client, **more: Any) -> Any:
    return http.post("/api/schedules", json={**NATIVE, **more}).json()["schedule_id"]


def _parameters(http: httpx.Client, **more: Any) -> Any:
    prefixed = {f"p_{name}": value for name, value in more.items()}
    return http.post("/api/schedules", json={**PARAMETERS, **prefixed}).json()["schedule_id"]


def _trigger_path(http: httpx.Client, **more: Any) -> Any:
    named = {"schedule_id": f"trigger{len(more)}", "version": 1}
    return http.post("/schedules/upsert", json={**NATIVE, **named, **more}).json()["schedule_id"]


def _workspace_path(http: httpx.Client, **_: Any) -> Any:
    return http.post("/workspaces/ada/schedules", json={"cron_expr": "0 2 * * *", "prompt": "x"}).json()["id"]


INTERFACES: Final[dict[str, Callable[..., Any]]] = {
    "native": _native,
    "parameter names": _parameters,
    "trigger paths": _trigger_path,
    "workspace paths": _workspace_path,
}


@pytest.fixture(scope="module")
def horarium() -> Iterator[TestService]:
    with service(at="2026-03-01T00:00:00Z") as running:
        agent_service.put(running.resources, running.caller, "ada", {})
        yield running


def _found(horarium: TestService, schedule_id: str) -> dict[str, Any]:
    """The values that the schedule was created with, and those of its first run."""
    http = horarium.http()
    definition = from_canonical(lists.describe(horarium.resources, horarium.caller, schedule_id).document)
    started = http.post(f"/api/schedules/{schedule_id}/trigger").json()
    run = http.get(f"/api/runs/{started['run_id']}").json()
    policies = {name: run["policies"][name] for name in ("approval_policy", "retry_policy", "failure_policy")}
    values = {f"{name}.{field}": value for name, policy in policies.items() for field, value in policy.items()}
    return {
        **values,
        "approval_policy.requires_approval": run["state"] == "awaiting_approval",
        "overlap_policy": definition.overlap.policy,
        "catchup_policy": definition.catchup.policy,
        "max_catchup": definition.catchup.max_catchup,
        "misfire_grace_seconds": definition.catchup.misfire_grace_seconds,
        "max_concurrency": definition.overlap.max_concurrency,
        "priority": definition.priority,
        "spec.timezone": definition.spec.timezone or "UTC",
        "spec.jitter_seconds": definition.spec.jitter_ms // 1_000,
        "spec.dst_gap": definition.spec.dst_gap,
        "spec.dst_fold": definition.spec.dst_fold,
        "paused": http.get(f"/api/schedules/{schedule_id}").json()["paused"],
        "action.timeout_seconds": SHIPPED.timeout_of(definition.action),
    }


def _rows() -> tuple[list[str], list[list[str]]]:
    table = [
        [cell.strip() for cell in line.strip("|\n").split("|")]
        for line in section(PAGE, "Defaults").splitlines()
        if line.startswith("|")
    ]
    return table[0][1:], table[2:]


def test_the_table_has_a_column_for_each_interface() -> None:
    columns, rows = _rows()
    assert columns == list(INTERFACES)
    assert len(rows) == len({row[0] for row in rows})
    assert "overlap_policy" in rows[0][0]


@pytest.mark.parametrize("interface", INTERFACES)
def test_each_interface_has_the_defaults_of_its_column(horarium: TestService, interface: str) -> None:
    columns, rows = _rows()
    create, http = INTERFACES[interface], horarium.http()
    plain = _found(horarium, create(http))
    assigned = _found(horarium, create(http, assignee_id="ada"))
    wrong = []
    for name, *cells in rows:
        [(field, with_assignee)] = re.findall(r"^`([^`]+)`(, with an assignee)?$", name)
        value = (assigned if with_assignee else plain)[field]
        told = cells[columns.index(interface)].strip("`")
        if told != (value if isinstance(value, str) else json.dumps(value)):
            wrong.append((name, told, value))
    assert wrong == []
