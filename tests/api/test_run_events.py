"""Who did something to a run stands in its events: who started, stopped, and reported on it."""

from __future__ import annotations

import httpx
import pytest

from horarium.testing import TestService

SCHEDULE = {"schedule_id": "nightly", "spec": {"cron_expressions": ["0 2 * * *"]},
            "action": {"workflow_type": "report"}, "overlap_policy": "allow_all"}  # fmt: skip
KNOWN = ("principal", "request_id", "source", "reason")

pytestmark = pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)


@pytest.fixture
def ann(http: httpx.Client, horarium: TestService) -> httpx.Client:
    """An admin who is not the first one."""
    assert http.post("/api/schedules", json=SCHEDULE).status_code == 201
    secret = http.post("/api/tokens", json={"name": "t", "role": "admin", "subject": "ann"}).json()["secret"]
    return horarium.http(token=secret)


def trigger(http: httpx.Client) -> str:
    """Nobody has it yet."""
    answer = http.post("/api/schedules/nightly/trigger", headers={"X-Request-ID": "begin"})
    return str(answer.json()["run_id"])


def started(http: httpx.Client, horarium: TestService) -> str:
    run_id = trigger(http)
    horarium.settle()
    return run_id


def who(http: httpx.Client, run_id: str, event_type: str) -> dict[str, str]:
    events = http.get(f"/api/runs/{run_id}/events").json()["events"]
    (payload,) = [event["payload"] for event in events if event["event_type"] == event_type]
    return {name: payload[name] for name in KNOWN if name in payload}


def by(principal: str, request_id: str) -> dict[str, str]:
    return {"principal": principal, "request_id": request_id, "source": "api"}


def test_a_run_names_who_asked_for_it_and_who_wanted_it_stopped(ann: httpx.Client, horarium: TestService) -> None:
    run_id = started(ann, horarium)
    assert who(ann, run_id, "run.created") == by("ann", "begin")
    for request_id in ("first", "second"):
        ann.post(f"/api/runs/{run_id}/cancel", headers={"X-Request-ID": request_id})
    assert who(ann, run_id, "run.stop_requested") == by("ann", "first")
    ann.post(f"/api/runs/{run_id}/terminate", headers={"X-Request-ID": "end"})
    assert who(ann, run_id, "run.terminated") == by("ann", "end")
    again = ann.post(f"/api/runs/{run_id}/rerun", headers={"X-Request-ID": "again"}).json()["run_id"]
    assert who(ann, again, "run.created") == by("ann", "again")
    horarium.advance(days=1)
    by_itself = ann.get("/api/runs", params={"origin": "scheduled"}).json()["runs"][0]["run_id"]
    assert who(ann, by_itself, "run.created") == {}


def test_what_has_not_started_names_who_cancelled_it(ann: httpx.Client) -> None:
    run_id, other = trigger(ann), trigger(ann)
    ann.post(f"/api/runs/{run_id}/cancel", headers={"X-Request-ID": "end"})
    assert who(ann, run_id, "run.cancelled") == by("ann", "end")
    ann.delete("/api/schedules/nightly", headers={"X-Request-ID": "all"})
    assert who(ann, other, "run.cancelled") == by("ann", "all")


def test_a_report_names_its_reporter_and_a_target_is_its_run(ann: httpx.Client, horarium: TestService) -> None:
    run_id = started(ann, horarium)
    token = horarium.launcher.deliveries[-1].report_token
    headers = {"Authorization": f"Bearer {token}", "X-Request-ID": "report"}
    nobody = horarium.http(token=None)
    assert nobody.post(f"/api/runs/{run_id}/report", json={"state": "succeeded"}, headers=headers).status_code == 200
    assert who(ann, run_id, "run.completed") == by(f"run:{run_id}", "report")
    late = nobody.post(f"/api/runs/{run_id}/report", json={"state": "failed"}, headers=headers)
    assert late.json()["outcome"] == "late"
    assert who(ann, run_id, "run.late_report") == by(f"run:{run_id}", "report")


def test_a_run_of_no_schedule_names_who_started_it(ann: httpx.Client) -> None:
    body = {"workflow_id": "report", "idempotency_key": "k"}
    run_id = ann.post("/api/run-launcher/start", json=body, headers={"X-Request-ID": "begin"}).json()["run_id"]
    assert who(ann, run_id, "run.created") == by("ann", "begin")
