"""A value that is secret is looked for everywhere, as a thief would: it is at the target, and nowhere else."""

from __future__ import annotations

import io
import string
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from horarium.core.lifecycle.outcome import Outcome
from horarium.features.secrets import service as secret_service
from horarium.launchers.launcher import LaunchRequest
from horarium.platform.database import Connection
from horarium.platform.database.tables import metadata
from horarium.platform.http.routing import OPERATIONS
from horarium.testing import Finished, RunFailed, TestService, service

# The name of the event stream, which ends only when its reader leaves; what it tells stands in the database.
_STREAM = "/api/events"
HEADER, BEFORE, SET, ROTATED = "canary-header", "canary-before", "canary-set", "canary-rotated"
EVERYTHING = {HEADER, BEFORE, SET, ROTATED}


def echo(request: LaunchRequest) -> Outcome:
    """A target that repeats all that it hears, once as an error and once as a result."""
    heard = {"headers": request.action.target["headers"], "inputs": request.inputs}
    if request.attempt == 0:
        return RunFailed(f"HTTP 500: {heard}", result=heard)
    return Finished(heard)


def calls(**changes: Any) -> dict[str, Any]:
    return {
        "schedule_id": "calls",
        "cron_expressions": ["0 * * * *"],
        "action": {
            "url": "https://api.example.com/x",
            "headers": {"Authorization": f"Bearer {HEADER}-0001", "X-Mine": {"$secret": "mine"}},
            "input": {"deep": [{"$secret": "mine"}]},
        },
        "inputs_rotation": [{"a": {"$secret": "turn"}}, {"a": 2}],
        "retry_policy": {"max_retries": 1, "backoff_ms": 1000},
        **changes,
    }


def live(horarium: TestService) -> str:
    """Revisions, runs that fail, are tried again and end well, a rerun, a bundle, and somebody who errs."""
    http = horarium.http()
    secret_service.put(horarium.resources, horarium.caller, "mine", f"{SET}-0001")
    secret_service.put(horarium.resources, horarium.caller, "turn", f"{ROTATED}-0001")
    older = calls()
    older["action"]["headers"]["Authorization"] = f"Bearer {BEFORE}-0001"
    keyed = {"Idempotency-Key": "once"}
    answers = [
        http.post("/api/schedules", json=older, headers=keyed),
        http.post("/api/schedules", json=older, headers=keyed),
        http.patch("/api/schedules/calls", json={"labels": {"team": "red"}}),
    ]
    horarium.advance(hours=1, minutes=1)
    answers += [
        http.put("/api/schedules/calls", json=calls()),
        http.put("/api/schedules/calls", json=calls(timezone="No/Where")),
        http.post("/api/apply", json={"schedules": [calls(name="x")], "dry_run": True}),
        http.post("/api/schedules/calls/trigger", json={"inputs": {"own": {"$secret": "mine"}}}),
    ]
    horarium.advance(hours=1, minutes=1)
    run_id = horarium.runs("calls")[0].run_id
    answers.append(http.post(f"/api/runs/{run_id}/rerun"))
    horarium.advance(minutes=1)
    for each in answers:
        assert "canary" not in each.text, each.request.url
    return run_id


def dump(connection: Connection) -> str:
    return "\n".join(str(row) for table in metadata.sorted_tables for row in connection.execute(sa.select(table)))


def test_a_secret_value_is_found_nowhere_but_at_the_target(database_url: str, tmp_path: Path) -> None:
    log = io.StringIO()
    told = {"log_level": "debug"}
    with service(at="2026-03-01T00:30:00Z", answer=echo, database=database_url, log_to=log, settings=told) as horarium:
        run_id = live(horarium)
        heard = str([(each.action, each.inputs) for each in horarium.launcher.deliveries])
        assert [each for each in EVERYTHING if each not in heard] == []
        assert "canary" not in str(horarium.launcher.deliveries)
        assert {run.state.value for run in horarium.runs("calls")} == {"succeeded"}
        http = horarium.http()
        names = {"schedule_id": "calls", "run_id": run_id, "namespace": "default", "name": "mine"}
        asked = 0
        for method, path in OPERATIONS:
            wanted = {field for _, field, _, _ in string.Formatter().parse(path) if field}
            if method == "GET" and path != _STREAM and wanted <= names.keys():
                answer = http.get(
                    path.format(**names), params={"at": "2026-03-01T01:00:00Z"} if "explain" in path else {}
                )
                assert "canary" not in answer.text, path
                asked += answer.status_code == 200
        assert asked > 15
        assert "canary" not in horarium.resources.database.read(dump)
        for file in tmp_path.glob("horarium.db*"):
            assert b"canary" not in file.read_bytes()
        assert "canary" not in log.getvalue()
        assert horarium.verify() == []
