"""Runs over HTTP: seen, stopped, claimed from a queue and reported on."""

from __future__ import annotations

import httpx
import pytest
from run_rows import add_run

from horarium.core.document.states import FINAL, RunState
from horarium.platform.ids import id_text, new_id
from horarium.testing import Accepted, TestService


@pytest.fixture(autouse=True)
def hourly(horarium: TestService) -> None:
    horarium.create(
        schedule_id="hourly",
        cron_expressions=["0 * * * *"],
        action={"workflow_type": "sweep", "task_queue": "brooms", "input": [1]},
        overlap_policy="allow_all",
        labels={"team": "night"},
    )


def test_a_run_tells_where_it_comes_from(http: httpx.Client, horarium: TestService) -> None:
    horarium.advance(hours=1)
    [run] = http.get("/api/schedules/hourly/runs").json()["runs"]
    wanted = {
        "schedule_id": "hourly",
        "namespace": "default",
        "workflow_instance_id": "schedule:hourly:1772326800",
        "nominal": "2026-03-01T01:00:00Z",
        "due": "2026-03-01T01:00:00Z",
        "origin": "scheduled",
        "attempt": 0,
        "revision": 1,
        "trigger_number": 1,
        "labels": {"team": "night"},
        "cost": 0,
    }
    assert {name: run[name] for name in wanted} == wanted
    whole = http.get(f"/api/runs/{run['run_id'].lower()}").json()
    assert whole == {**run, "inputs": [1], "result": None, "memo": {}, "search_attributes": {}, "user_id": "test"}
    events = http.get(f"/api/runs/{run['run_id']}/events").json()["events"]
    assert [event["event_type"] for event in events[:2]] == ["ScheduleTriggered", "run.created"]
    assert [event["sequence"] for event in events] == list(range(1, len(events) + 1))


@pytest.mark.archived
def test_runs_come_newest_first_page_by_page(http: httpx.Client, horarium: TestService) -> None:
    horarium.advance(hours=5)
    first = http.get("/api/runs", params={"page_size": 3}).json()
    rest = http.get("/api/runs", params={"page_size": 3, "next_page_token": first["next_page_token"]}).json()
    hours = [run["nominal"][11:13] for page in (first, rest) for run in page["runs"]]
    assert hours == ["05", "04", "03", "02", "01"]
    assert rest["next_page_token"] is None


@pytest.mark.archived
def test_runs_are_filtered_by_state_and_origin(http: httpx.Client, horarium: TestService) -> None:
    horarium.advance(hours=2)
    horarium.finish(horarium.runs()[-1])
    assert len(http.get("/api/runs", params={"state": "succeeded"}).json()["runs"]) == 1
    assert len(http.get("/api/runs", params={"state": "SUCCESS"}).json()["runs"]) == 1
    assert http.get("/api/runs", params={"origin": "manual"}).json()["runs"] == []
    assert http.get("/api/runs", params={"state": "asleep"}).status_code == 422


@pytest.mark.archived
def test_the_group_unsuccessful_stands_for_every_failed_end(http: httpx.Client, horarium: TestService) -> None:
    for state in RunState:
        add_run(horarium.resources.database, state=state.value, finished_at=1 if state in FINAL else None)
    failed = {"failed", "timed_out", "launch_failed", "unknown"}
    for asked, expected in (("unsuccessful", failed), (["UNSUCCESSFUL", "succeeded"], {*failed, "succeeded"})):
        found = http.get("/api/runs", params={"state": asked, "page_size": 3}).json()
        rest = http.get(
            "/api/runs", params={"state": asked, "page_size": 3, "next_page_token": found["next_page_token"]}
        ).json()
        assert {run["state"] for page in (found, rest) for run in page["runs"]} == expected


@pytest.mark.parametrize("name", ["nothing", id_text(new_id())], ids=["no-id", "unknown"])
def test_an_unknown_run_is_not_found(http: httpx.Client, name: str) -> None:
    answer = http.get(f"/api/runs/{name}")
    assert (answer.status_code, answer.json()["reason"]) == (404, "run_not_found")


@pytest.mark.archived
def test_a_ready_run_is_cancelled_and_a_final_one_stays(http: httpx.Client) -> None:
    run_id = http.post("/api/schedules/hourly/trigger").json()["run_id"]
    assert http.post(f"/api/runs/{run_id}/cancel").json()["outcome"] == "cancelled"
    assert http.post(f"/api/runs/{run_id}/cancel").json()["outcome"] == "unchanged"
    assert http.post(f"/api/runs/{run_id}/terminate").json()["state"] == "cancelled"


@pytest.mark.archived
def test_a_report_ends_a_run_once(http: httpx.Client, horarium: TestService) -> None:
    horarium.advance(hours=1)
    run_id = horarium.runs()[0].run_id
    shown = {"report_token": horarium.launcher.deliveries[-1].report_token}
    report = {"state": "succeeded", "result": {"rows": 3}, "cost": 0.25, "tokens": 7, **shown}
    assert http.post(f"/api/runs/{run_id}/report", json=report).json()["outcome"] == "recorded"
    assert http.post(f"/api/runs/{run_id}/report", json=report).json()["outcome"] == "unchanged"
    late = http.post(f"/api/runs/{run_id}/report", json={"state": "failed", "error": "no", **shown}).json()
    assert (late["outcome"], late["state"]) == ("late", "succeeded")
    run = http.get(f"/api/runs/{run_id}").json()
    assert (run["state"], run["status"], run["result"], run["cost"], run["tokens"]) == (
        "succeeded", "SUCCESS", {"rows": 3}, 0.25, 7,
    )  # fmt: skip


def test_a_bad_report_names_the_field(http: httpx.Client, horarium: TestService) -> None:
    horarium.advance(hours=1)
    run_id = horarium.runs()[0].run_id
    answer = http.post(f"/api/runs/{run_id}/report", json={"state": "splendid"})
    assert (answer.status_code, list(answer.json()["errors"])) == (422, ["state"])


@pytest.mark.both_databases
@pytest.mark.parametrize("answer", [Accepted(reference="brooms", queued=True)], ids=["queued"])
def test_a_worker_claims_from_its_queue_beats_and_reports(http: httpx.Client, horarium: TestService) -> None:
    horarium.advance(hours=1)
    [run] = http.post("/api/queues/brooms/claim", json={"worker": "w1", "limit": 5}).json()["runs"]
    assert (run["state"], run["action"]["workflow_type"]) == ("running", "sweep")
    assert http.post("/api/queues/brooms/claim").json()["runs"] == []
    beat = http.post(f"/api/runs/{run['run_id']}/heartbeat", json={"lease_epoch": run["lease_epoch"]}).json()
    assert beat["stop_requested"] is False
    lost = http.post(f"/api/runs/{run['run_id']}/heartbeat", json={"lease_epoch": run["lease_epoch"] + 1})
    assert (lost.status_code, lost.json()["reason"]) == (409, "lease_lost")
    done = {"state": "succeeded", "lease_epoch": run["lease_epoch"]}
    assert http.post(f"/api/runs/{run['run_id']}/report", json=done).json()["state"] == "succeeded"


@pytest.mark.parametrize("answer", [Accepted(reference="brooms", queued=True)], ids=["queued"])
def test_a_worker_that_says_what_it_knows_gets_nothing_else(http: httpx.Client, horarium: TestService) -> None:
    horarium.advance(hours=1)
    assert http.post("/api/queues/brooms/claim", json={"workflow_types": ["dust", "polish"]}).json()["runs"] == []
    assert [run.state.value for run in horarium.runs()] == ["queued"]
    [run] = http.post("/api/queues/brooms/claim", json={"workflow_types": ["dust", "sweep"]}).json()["runs"]
    assert run["workflow_type"] == "sweep"


def test_types_that_nobody_could_know_are_refused(http: httpx.Client) -> None:
    for types in ([], "sweep", {"sweep": 1}, [7], [""], ["x" * 257], ["a\x00b"], ["x"] * 101):
        answer = http.post("/api/queues/brooms/claim", json={"workflow_types": types})
        assert (answer.status_code, list(answer.json()["errors"])) == (422, ["workflow_types"])
    assert http.post("/api/queues/brooms/claim", content='{"workflow_types": ["\\ud800"]}').status_code == 400
