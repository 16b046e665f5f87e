"""Uses a generated client as a program would; run by the Python of its own environment, in the folder with the client.

python driver.py models|life <url> <token>
"""

from __future__ import annotations

import importlib
import json
import pkgutil
import sys
import typing
from typing import Any

SCHEDULE: dict[str, Any] = {
    "schedule_id": "made-by-a-machine",
    "cron_expressions": ["0 3 * * *"],
    "workflow_type": "report",
    "labels": {"team": "x"},
}


def operation(name: str) -> Any:
    """The module of an operation, whatever its tag is."""
    import ours.api

    found = [
        each.name for each in pkgutil.walk_packages(ours.api.__path__, "ours.api.") if each.name.endswith(f".{name}")
    ]
    assert len(found) == 1, f"{name}: {found}"
    return importlib.import_module(found[0])


def call(client: Any, name: str, body: dict[str, Any] | None = None, **names: str) -> Any:
    module = operation(name)
    if body is not None:
        kinds = typing.get_args(typing.get_type_hints(module.sync_detailed)["body"])
        kind = kinds[0] if kinds else typing.get_type_hints(module.sync_detailed)["body"]
        names["body"] = kind.from_dict(body)
    answer = module.sync_detailed(client=client, **names)
    return {"status": answer.status_code, "kind": type(answer.parsed).__name__, **_shown(answer.parsed)}


def _shown(parsed: Any) -> dict[str, Any]:
    """Attributes by name, so that a value that came only as an extra key is not one of them."""
    wanted = ("schedule_id", "outcome", "status", "next_fire_at", "version", "run_id", "fires_count", "schedules")
    found = {name: getattr(parsed, name) for name in wanted if hasattr(parsed, name)}
    if "schedules" in found:
        found["schedules"] = [{"kind": type(each).__name__, **_shown(each)} for each in found["schedules"]]
    return {("state" if name == "status" else name): value for name, value in found.items()}


def life(url: str, token: str) -> list[Any]:
    from ours import AuthenticatedClient

    name = SCHEDULE["schedule_id"]
    with AuthenticatedClient(base_url=url, token=token) as client:
        return [
            call(client, "create_schedule", SCHEDULE),
            call(client, "list_schedules"),
            call(client, "describe_schedule", schedule_id=name),
            call(client, "trigger_schedule", {}, schedule_id=name),
            call(client, "pause_schedule", {"note": "for now"}, schedule_id=name),
            call(client, "delete_schedule", schedule_id=name),
            call(client, "describe_schedule", schedule_id=name),
        ]


def models(_url: str, _token: str) -> dict[str, list[str]]:
    module = importlib.import_module("models")
    return {name: sorted(getattr(module, name).model_fields) for name in ("Schedule", "WriteResult", "Triggered")}


if __name__ == "__main__":
    sys.path.insert(0, ".")
    print(json.dumps({"life": life, "models": models}[sys.argv[1]](*sys.argv[2:]), default=str))
