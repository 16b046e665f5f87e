"""The plain cron scheduler's own paths: upsert, pause, get, delete, runs, and the run launcher."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from horarium.testing import TestService, service

DEPLOYED: dict[str, Any] = {
    "schedule_id": "sched-1",
    "workflow_id": "report",
    "version": 3,
    "user_id": "u1",
    "cron_expr": "0 2 * * *",
    "timezone": "America/New_York",
    "start_at": None,
    "jitter_ms": 0,
}
START: dict[str, Any] = {
    "workflow_id": "report",
    "version": 3,
    "user_id": "u1",
    "scheduled_for": "2026-03-01T02:00:00Z",
    "idempotency_key": "abc",
}


def upsert(http: httpx.Client, **changes: Any) -> dict[str, Any]:
    answer = http.post("/schedules/upsert", json={**DEPLOYED, **changes})
    assert answer.status_code in (200, 201), answer.text
    done: dict[str, Any] = answer.json()
    return done


def get(http: httpx.Client, schedule_id: str = "sched-1") -> dict[str, Any]:
    found: dict[str, Any] = http.get(f"/schedules/{schedule_id}").json()
    return found


def test_an_upsert_answers_the_id_and_the_next_time(http: httpx.Client) -> None:
    done = upsert(http)
    assert (done["schedule_id"], done["next_run_at"], done["outcome"]) == ("sched-1", "2026-03-01T07:00:00Z", "created")


def test_a_schedule_is_shown_in_the_words_of_this_surface(http: httpx.Client) -> None:
    upsert(http)
    assert get(http) == {
        "schedule_id": "sched-1",
        "workflow_id": "report",
        "version": 3,
        "user_id": "u1",
        "cron_expr": "0 2 * * *",
        "timezone": "America/New_York",
        "start_at": None,
        "end_at": None,
        "next_run_at": "2026-03-01T07:00:00Z",
        "paused": False,
        "status": "active",
        "jitter_ms": 0,
        "overlap_policy": "skip",
        "catchup_policy": "none",
        "updated_at": "2026-03-01T00:00:00Z",
        "preview": [
            "2026-03-01T07:00:00Z",
            "2026-03-02T07:00:00Z",
            "2026-03-03T07:00:00Z",
            "2026-03-04T07:00:00Z",
            "2026-03-05T07:00:00Z",
        ],
    }


@pytest.mark.parametrize(
    ("overlap", "catchup"),
    [("allow", "fire_immediately"), ("queue", "spread"), ("skip", "none")],
)
def test_policies_keep_their_names(http: httpx.Client, overlap: str, catchup: str) -> None:
    upsert(http, overlap_policy=overlap, catchup_policy=catchup)
    shown = get(http)
    assert (shown["overlap_policy"], shown["catchup_policy"]) == (overlap, catchup)


def test_what_was_missed_is_skipped_here_by_default(http: httpx.Client, horarium: TestService) -> None:
    upsert(http)
    assert http.get("/api/schedules/sched-1").json()["catchup_policy"] == "skip"
    horarium.sleep(days=3)
    horarium.settle()
    assert horarium.runs("sched-1") == []


def test_the_operator_s_own_default_wins(database_url: str) -> None:
    knobs = {"default_catchup_policy": "fire_all", "default_overlap_policy": "queue"}
    with service(at="2026-03-01T00:00:00Z", database=database_url, settings=knobs) as horarium:
        http = horarium.http()
        upsert(http)
        shown = get(http)
        assert (shown["catchup_policy"], shown["overlap_policy"]) == ("fire_immediately", "queue")


def test_an_equal_deployment_changes_nothing_and_undoes_no_pause(http: httpx.Client, horarium: TestService) -> None:
    upsert(http)
    http.post("/schedules/pause", json={"schedule_id": "sched-1", "paused": True})
    before = horarium.history("sched-1")
    assert upsert(http)["outcome"] == "unchanged"
    assert get(http)["paused"] is True
    assert horarium.history("sched-1") == before


def test_a_deployment_without_an_id_is_the_same_schedule_each_time(http: httpx.Client) -> None:
    body = {name: value for name, value in DEPLOYED.items() if name != "schedule_id"}
    first, again = (http.post("/schedules/upsert", json={**body, "version": n}).json() for n in (3, 4))
    other = http.post("/schedules/upsert", json={**body, "cron_expr": "0 3 * * *"}).json()
    assert (again["schedule_id"], again["outcome"]) == (first["schedule_id"], "updated")
    assert other["schedule_id"] != first["schedule_id"]
    assert len(http.get("/api/schedules").json()["schedules"]) == 2


def test_who_a_schedule_belongs_to_comes_from_the_credential(http: httpx.Client, horarium: TestService) -> None:
    secret = http.post("/api/tokens", json={"name": "eve", "role": "owner"}).json()["secret"]
    upsert(horarium.http(token=secret), user_id="somebody else")
    assert get(http)["user_id"] == "eve"


def test_pause_and_resume_by_one_path(http: httpx.Client) -> None:
    upsert(http)
    paused = http.post("/schedules/pause", json={"schedule_id": "sched-1", "paused": True}).json()
    assert (paused["paused"], paused["next_run_at"]) == (True, "2026-03-01T07:00:00Z")
    assert get(http)["next_run_at"] == paused["next_run_at"]
    resumed = http.post("/schedules/pause", json={"schedule_id": "sched-1", "paused": False}).json()
    assert (resumed["paused"], resumed["next_run_at"]) == (False, "2026-03-01T07:00:00Z")


WRONG = [
    ("/schedules/pause", {"paused": True}, "schedule_id"),
    ("/schedules/pause", {"schedule_id": "sched-1"}, "paused"),
    ("/schedules/pause", {"schedule_id": "sched-1", "paused": "yes"}, "paused"),
    ("/schedules/upsert", {**DEPLOYED, "cron_expr": "61 * * * *"}, "cron_expr"),
    ("/schedules/upsert", {**DEPLOYED, "timezone": "Mars/Base"}, "timezone"),
    ("/schedules/upsert", {**DEPLOYED, "jitter_ms": -1}, "jitter_ms"),
    ("/schedules/upsert", {**DEPLOYED, "colour": "red"}, "colour"),
    ("/run-launcher/start", {"workflow_id": "x"}, "idempotency_key"),
    ("/run-launcher/start", {**START, "scheduled_for": "soon"}, "scheduled_for"),
    ("/run-launcher/start", {**START, "idempotency_key": "x" * 256}, "idempotency_key"),
    ("/run-launcher/start", {**START, "colour": "red"}, "colour"),
]


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
def test_what_is_wrong_is_named(http: httpx.Client) -> None:
    upsert(http)
    for path, body, field in WRONG:
        answer = http.post(path, json=body)
        assert (answer.status_code, list(answer.json()["errors"])) == (422, [field]), (path, body, field)


def test_a_deleted_schedule_is_gone(http: httpx.Client) -> None:
    upsert(http)
    assert http.delete("/schedules/sched-1").json() == {"schedule_id": "sched-1", "outcome": "deleted"}
    assert http.get("/schedules/sched-1").json()["reason"] == "schedule_not_found"


def test_the_last_runs_are_shown_with_skips_among_them(http: httpx.Client, horarium: TestService) -> None:
    upsert(http, cron_expr="*/30 * * * *", timezone="UTC")
    horarium.advance(minutes=61)
    rows = http.get("/schedules/sched-1/runs").json()["runs"]
    assert [(row["run_at"], row["status"], row["reason"]) for row in rows] == [
        ("2026-03-01T01:00:00Z", "SKIPPED", "overlap_policy_skip"),
        ("2026-03-01T00:30:00Z", "STARTED", None),
    ]
    assert len(rows[1]["idempotency_key"]) == 64
    assert len(http.get("/schedules/sched-1/runs", params={"limit": 1}).json()["runs"]) == 1


# ── the run launcher ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("path", ["/run-launcher/start", "/api/run-launcher/start"])
@pytest.mark.parametrize("headers", [{}, {"Idempotency-Key": "abc"}], ids=["body", "header"])
def test_a_repeated_key_starts_one_run(
    http: httpx.Client, horarium: TestService, path: str, headers: dict[str, str]
) -> None:
    first = http.post(path, json=START, headers=headers)
    again = http.post(path, json=START, headers=headers)
    assert (first.status_code, first.json()["outcome"], first.json()["started"]) == (201, "started", True)
    assert (again.json()["outcome"], again.json()["run_id"]) == ("already_started", first.json()["run_id"])
    [run] = horarium.runs()
    assert (run.workflow_type, run.origin.value) == ("report", "api")
    assert http.get(f"/api/runs/{first.json()['run_id']}").json()["nominal"] == "2026-03-01T02:00:00Z"


@pytest.mark.parametrize("path", ["/run-launcher/start", "/api/run-launcher/start"])
@pytest.mark.parametrize("given", [{}, {"scheduled_for": None}], ids=["missing", "null"])
def test_without_a_time_a_run_is_for_now(
    http: httpx.Client, horarium: TestService, path: str, given: dict[str, Any]
) -> None:
    """Whatever the clock shows: it seldom stands on a whole second."""
    horarium.advance(seconds=7.25)
    answer = http.post(path, json={"workflow_id": "report", "idempotency_key": "k", **given})
    assert answer.status_code == 201, answer.text
    run = http.get(f"/api/runs/{answer.json()['run_id']}").json()
    assert (run["nominal"], run["state"]) == ("2026-03-01T00:00:07.250000Z", "ready")


def test_a_time_may_have_a_fraction(http: httpx.Client) -> None:
    answer = http.post("/run-launcher/start", json={**START, "scheduled_for": "2026-03-01T02:00:00.5Z"})
    assert answer.status_code == 201, answer.text


@pytest.mark.parametrize("headers", [{}, {"Idempotency-Key": "abc"}], ids=["body", "header"])
def test_a_run_that_a_program_started_is_counted_once(http: httpx.Client, headers: dict[str, str]) -> None:
    for _ in range(3):
        http.post("/run-launcher/start", json=START, headers=headers)
    assert 'horarium_runs_emitted_total{origin="api"} 1.0' in http.get("/metrics").text


def test_a_key_that_started_something_else_is_refused(http: httpx.Client) -> None:
    http.post("/run-launcher/start", json=START)
    answer = http.post("/run-launcher/start", json={**START, "workflow_id": "other"})
    assert (answer.status_code, answer.json()["reason"]) == (422, "idempotency_key_reused")


@pytest.mark.both_databases
def test_many_at_once_start_one_run(horarium: TestService) -> None:
    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(lambda _: horarium.http().post("/run-launcher/start", json=START), range(12)))
    assert {answer.status_code for answer in answers} == {200, 201}
    assert len({answer.json()["run_id"] for answer in answers}) == 1 == len(horarium.runs())
