"""What a run says, over HTTP: read by viewers of its namespace, added to by its holder alone."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from horarium.features.tenants import service as tenant_service
from horarium.platform.caller import Caller
from horarium.platform.ids import id_text, new_id
from horarium.platform.wire import Role
from horarium.testing import Accepted, TestService


@pytest.fixture
def answer() -> Accepted:
    return Accepted(reference="brooms", queued=True)


@pytest.fixture
def run(http: httpx.Client, horarium: TestService) -> dict[str, Any]:
    """Claimed by a worker."""
    action = {"workflow_type": "sweep", "task_queue": "brooms"}
    horarium.create(schedule_id="s", spec={"intervals": [{"every": "PT1H"}]}, action=action)
    horarium.advance(hours=1)
    [claimed] = http.post("/api/queues/brooms/claim").json()["runs"]
    found: dict[str, Any] = claimed
    return found


def path(run: dict[str, Any]) -> str:
    return f"/api/runs/{run['run_id']}/logs"


def add(http: httpx.Client, run: dict[str, Any], *lines: Any, **fields: Any) -> httpx.Response:
    body = {"lease_epoch": run["lease_epoch"], "lines": lines, **fields}
    return http.post(path(run), content=json.dumps(body))


@pytest.mark.both_databases
def test_a_worker_adds_lines_and_whoever_reads_goes_on_where_it_was(http: httpx.Client, run: dict[str, Any]) -> None:
    assert http.get(path(run)).json() == {"run_id": run["run_id"], "lines": [], "next_after": 0, "ended": False}
    at = "2026-03-01T00:30:00Z"
    assert add(http, run, "one", {"text": "two", "stream": "stderr", "at": at}).json()["kept"] == 2
    first = http.get(path(run)).json()
    assert [(line["number"], line["stream"], line["text"]) for line in first["lines"]] == [
        (1, "log", "one"),
        (2, "stderr", "two"),
    ]
    assert [line["at"] for line in first["lines"]] == ["2026-03-01T01:00:00Z", at]
    add(http, run, "a\nb\u0000", dropped=4)
    second = http.get(path(run), params={"after": first["next_after"]}).json()
    assert [(line["number"], line["text"]) for line in second["lines"]] == [(7, "a"), (8, "b\ufffd")]
    done = {"state": "succeeded", "lease_epoch": run["lease_epoch"]}
    http.post(f"/api/runs/{run['run_id']}/report", json=done).raise_for_status()
    assert http.get(path(run), params={"after": 8}).json() == {
        "run_id": run["run_id"],
        "lines": [],
        "next_after": 8,
        "ended": True,
    }


def test_only_the_holder_is_heard(http: httpx.Client, run: dict[str, Any]) -> None:
    wrong = add(http, {**run, "lease_epoch": run["lease_epoch"] + 1}, "mine")
    assert (wrong.status_code, wrong.json()["reason"]) == (409, "lease_lost")
    http.post(f"/api/runs/{run['run_id']}/terminate").raise_for_status()
    assert add(http, run, "too late").status_code == 409
    assert http.get(path(run)).json()["lines"] == []


def test_the_lines_of_others_are_nobodys_business(http: httpx.Client, horarium: TestService, run: Any) -> None:
    admin = Caller("root", Role.ADMIN, everywhere=True)
    tenant_service.create_namespace(horarium.resources, admin, "acme")
    add(http, run, "secret")
    for role in Role:
        issued = tenant_service.issue_token(
            horarium.resources, Caller("root", Role.ADMIN, "acme"), name=role, role=role
        )
        theirs = horarium.http(token=issued.secret)
        assert theirs.get(path(run)).status_code == 404
        assert add(theirs, run, "mine").status_code in (403, 404)
    viewer = tenant_service.issue_token(
        horarium.resources, Caller("root", Role.ADMIN), name="v", role=Role.VIEWER
    ).secret
    assert len(horarium.http(token=viewer).get(path(run)).json()["lines"]) == 1
    assert add(horarium.http(token=viewer), run, "mine").status_code == 403
    for unknown in (id_text(new_id()), "x", "0" * 26):
        assert http.get(f"/api/runs/{unknown}/logs").status_code in (404, 422)


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"lines": "text"}, "lines"),
    ({"lines": ["x"] * 5_001}, "lines"),
    ({"lines": [7]}, "lines[0]"),
    ({"lines": ["a", {"text": None}]}, "lines[1]"),
    ({"lines": [{"text": "a", "stream": "sideways"}]}, "lines[0].stream"),
    ({"lines": [{"text": "a", "stream": ["log"]}]}, "lines[0].stream"),
    ({"lines": [{"text": "a", "at": "soon"}]}, "lines[0].at"),
    ({"lines": [{"text": "a", "at": 7}]}, "lines[0].at"),
    ({"lines": [{"text": "a", "level": "high"}]}, "lines[0].level"),
    ({"lines": ["a"], "dropped": -1}, "dropped"),
    ({"lines": ["a"], "lease_epoch": "one"}, "lease_epoch"),
]


def test_what_is_no_line_is_named(http: httpx.Client, run: dict[str, Any]) -> None:
    """In one world, since nothing of it is kept."""
    for fields, where in WRONG:
        answer = http.post(path(run), json={"lease_epoch": run["lease_epoch"], **fields})
        assert (answer.status_code, list(answer.json()["errors"])) == (422, [where])
    for after in ("-1", "x", str(2**63), "9" * 400):
        assert http.get(path(run), params={"after": after}).status_code == 422
    assert http.get(path(run)).json()["lines"] == []


def test_a_megabyte_of_lines_is_cut_to_the_last(http: httpx.Client, run: dict[str, Any]) -> None:
    assert add(http, run, *(f"{number:04} {'x' * 150}" for number in range(5_000))).status_code == 200
    kept = http.get(path(run)).json()["lines"]
    assert kept[-1]["text"].startswith("4999 ")
    assert kept[-1]["number"] == 5_000
    assert 200 < len(kept) < 400
