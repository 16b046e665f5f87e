"""The schedule row with its four policy bundles: zones, missed runs, limits, and approvals that nothing gets round."""

from __future__ import annotations

from typing import Any

import pytest
from seeds.door import Door, begins, runs_stay_open

from horarium.testing import RunFailed, TestService, Unreachable, service

ROW: dict[str, Any] = {
    "schedule_id": "row",
    "workflow_id": "weekly-digest",
    "cron_expr": "0 8 * * *",
    "timezone": "UTC",
    "inputs_template": {"audience": "tech"},
    "global_model_id": "model-1",
    "is_active": True,
}
AGENT = {"assignee_type": "agent", "assignee_id": "agent-1"}


@pytest.fixture(autouse=True)
def agent(door: Door) -> None:
    """Whom the rows name; a team may be called as its agent is."""
    door.post("/api/agents", {"id": "agent-1"}, status=201)
    door.post("/api/teams", {"team_id": "agent-1", "members": ["agent-1"]}, status=201)


def row(**changes: Any) -> dict[str, Any]:
    return {**ROW, **changes}


# ── the row ──────────────────────────────────────────────────────────────────────────────────────────


def test_a_row_is_written_with_the_names_of_its_columns(door: Door) -> None:
    body = row(
        **AGENT,
        approval_policy={"requiresApproval": True, "mode": "sensitive_actions", "gates": ["publish"]},
        retry_policy={"maxRetries": 2, "backoffMs": 500, "retryOn": ["timeout", "rate_limit"]},
        failure_policy={"mode": "fallback", "fallbackAssigneeId": "agent-2"},
        queue_policy={"mode": "serial", "maxConcurrency": 1, "priority": 5},
    )
    assert door.post("/api/schedules/upsert", body, status=201)["outcome"] == "created"
    found = door.describe("row")
    assert found["action"]["workflow_id"] == "weekly-digest"
    assert (found["action"]["input"], found["action"]["global_model_id"]) == ({"audience": "tech"}, "model-1")
    assert (found["assignee_type"], found["assignee_id"]) == ("agent", "agent-1")
    assert found["approval_policy"]["gates"] == ["publish"]
    retry = found["retry_policy"]
    assert (retry["max_retries"], retry["backoff_ms"], retry["retry_on"]) == (2, 500, ["timeout", "rate_limit"])
    assert found["failure_policy"] == {"mode": "fallback", "fallback_assignee_id": "agent-2"}
    assert (found["overlap_policy"], found["max_concurrency"], found["priority"]) == ("skip", 1, 5)


def test_an_upsert_of_the_same_row_changes_nothing(door: Door) -> None:
    door.post("/api/schedules/upsert", ROW)
    again = door.post("/api/schedules/upsert", ROW)
    assert (again["outcome"], again["version"]) == ("unchanged", 1)
    moved = door.post("/api/schedules/upsert", row(cron_expr="0 9 * * *"))
    assert (moved["outcome"], moved["next_fire_at"]) == ("updated", "2026-04-10T09:00:00Z")


def test_a_row_that_is_not_active_does_not_fire(door: Door, horarium: TestService) -> None:
    door.create(row(is_active=False))
    horarium.advance(days=2)
    assert (door.runs("row"), door.describe("row")["status"]) == ([], "paused")
    door.patch("/api/schedules/row", {"is_active": True})
    horarium.advance(days=1)
    assert len(door.runs("row")) == 1


def test_a_workflow_has_the_schedules_that_name_it(door: Door) -> None:
    door.create(ROW)
    door.create(row(schedule_id="other", workflow_id="something-else"))
    found = door.get("/api/schedules", workflow_type="weekly-digest")["schedules"]
    assert [each["schedule_id"] for each in found] == ["row"]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"cron_expr": "0 8 * *"}, "cron_expr"),
        ({"cron_expr": "0 8 * * * * *"}, "cron_expr"),
        ({"cron_expr": "0 25 * * *"}, "cron_expr"),
        ({"timezone": "Mars/Olympus"}, "timezone"),
        ({"assignee_type": "robot", "assignee_id": "x"}, "assignee_type"),
        ({"retry_policy": {"maxRetries": -1}}, "retry_policy"),
        ({"failure_policy": {"mode": "shrug"}}, "failure_policy"),
        ({"queue_policy": {"mode": "sideways"}}, "queue_policy"),
        ({"approval_policy": {"mode": "never"}}, "approval_policy"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_a_bad_row_is_refused_by_the_name_of_its_column(door: Door, change: dict[str, Any], field: str) -> None:
    """Six fields are no error here: the first one is for seconds."""
    refused = door.post("/api/schedules", row(**change), status=422)
    assert any(field in name for name in refused["errors"]), refused


@pytest.mark.parametrize(
    ("given", "overlap", "catchup"),
    [
        ({"queue_policy": {}}, "allow_all", "skip"),
        ({"queuePolicy": {"priority": 5}}, "allow_all", "skip"),
        ({"queue_policy": {"mode": "serial"}}, "skip", "skip"),
        ({"queue_policy": {"onMissed": "run_once"}}, "allow_all", "fire_once"),
        ({"queue_policy": {"maxConcurrency": 2}, "catchup_policy": "fire_all"}, "allow_all", "fire_all"),
        ({"queue_policy": None}, "skip", "fire_once"),
        ({}, "skip", "fire_once"),
    ],
    ids=["empty", "something else", "mode", "onMissed", "another name", "null", "none"],
)
def test_a_row_with_a_queue_policy_is_parallel_and_skips_what_it_missed(
    door: Door, given: dict[str, Any], overlap: str, catchup: str
) -> None:
    door.create(row(**given))
    found = door.describe("row")
    assert (found["overlap_policy"], found["catchup_policy"]) == (overlap, catchup)
    door.patch("/api/schedules/row", {"queue_policy": {"priority": 7}})
    kept = door.describe("row")
    assert (kept["overlap_policy"], kept["catchup_policy"], kept["priority"]) == (overlap, catchup, 7)


CALL: dict[str, Any] = {"p_workflow_id": "weekly-digest", "p_cron_expr": "0 8 * * *"}


def test_a_call_with_parameter_names_is_parallel_and_skips_what_it_missed(door: Door) -> None:
    door.post("/api/schedules/upsert", {**CALL, "schedule_id": "called"}, status=201)
    door.post("/api/schedules", row(schedule_id="native"), status=201)
    found, native = door.describe("called"), door.describe("native")
    assert (found["overlap_policy"], found["catchup_policy"]) == ("allow_all", "skip")
    assert (found["queue_policy"], found["effective_overlap_policy"]) == (
        {"mode": "allow_all", "on_missed": "skip"},
        "allow_all",
    )
    assert found["failure_policy"] == {"mode": "isolate", "fallback_assignee_id": None}
    assert native["queue_policy"] == {"mode": "skip", "on_missed": "fire_once"}
    # Another write changes a stored schedule by what it gives alone.
    door.patch("/api/schedules/native", {"p_cron_expr": "0 9 * * *"})
    assert door.describe("native")["overlap_policy"] == "skip"
    door.post("/api/schedules/upsert", {**CALL, "schedule_id": "called", "p_queue_policy": {"mode": "serial"}})
    assert door.describe("called")["queue_policy"] == {"mode": "skip", "on_missed": "skip"}


def test_a_call_without_an_id_finds_the_schedule_that_it_created(door: Door) -> None:
    made = door.post("/api/schedules/upsert", CALL, status=201)["schedule_id"]
    assert door.post("/api/schedules/upsert", CALL, status=200)["schedule_id"] == made
    assert door.post("/api/schedules/upsert", {**CALL, "p_cron_expr": "0 9 * * *"}, status=201)["schedule_id"] != made
    assert door.describe(made)["overlap_policy"] == "allow_all"


def test_a_run_tells_the_queue_policy_that_applied(door: Door) -> None:
    door.put("/api/workflows/weekly-digest", {"nodes": [{"id": "a", "action": {"workflow_type": "x"}}]}, status=201)
    given = {"workflow_id": "weekly-digest", **AGENT, "approval_policy": {"requires_approval": False}}
    door.post("/api/assignments", {"assignment_id": "a", **given, "queue_policy": {"mode": "queue"}}, status=201)
    door.post("/api/schedules", row(workflow_assignment_id="a"), status=201)
    found = door.describe("row")
    assert (found["overlap_policy"], found["effective_overlap_policy"]) == ("skip", "buffer_all")
    door.post("/api/schedules/row/trigger")
    [run] = door.get("/api/runs?schedule_id=row")["runs"]
    policies = run["policies"]
    assert (policies["queue_policy"]["mode"], policies["queue_policy"]["on_missed"]) == ("buffer_all", "fire_once")
    assert policies["origins"]["queue_policy.mode"] == "assignment"
    door.put("/api/assignments/a", given)  # a later edit leaves the run as it was created
    assert door.get(f"/api/runs/{run['run_id']}")["policies"]["queue_policy"]["mode"] == "buffer_all"


@pytest.mark.parametrize("knobs", [{"default_catchup_policy": "fire_all"}], ids=["chosen"])
def test_what_the_operator_chose_stands_for_rows_too(knobs: dict[str, Any]) -> None:
    with service(settings=knobs) as horarium:
        door = Door(horarium)
        door.create(row(queue_policy={}))
        found = door.describe("row")
        assert (found["overlap_policy"], found["catchup_policy"]) == ("allow_all", "fire_all")


# ── zones ────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("start", "zone", "expected"),
    [
        ("2026-01-15T00:00:00Z", "UTC", "08:00"),
        ("2026-07-15T00:00:00Z", "UTC", "08:00"),
        ("2026-01-15T00:00:00Z", "Europe/Istanbul", "05:00"),
        ("2026-07-15T00:00:00Z", "Europe/Istanbul", "05:00"),
        ("2026-01-15T00:00:00Z", "America/New_York", "13:00"),
        ("2026-07-15T00:00:00Z", "America/New_York", "12:00"),
    ],
    ids=lambda value: str(value)[:16],
)
def test_eight_in_the_morning_is_that_of_the_zone(door: Door, zone: str, expected: str) -> None:
    door.create(row(timezone=zone))
    assert door.describe("row")["next_fire_at"][11:16] == expected


# ── missed runs ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("policy", "days", "missed"),
    [
        ({"onMissed": "skip"}, [], [(4, "missed")]),
        ({"onMissed": "run_once"}, ["10"], []),
        ({"onMissed": "backfill"}, ["10", "11", "12", "13"], []),
        ({"onMissed": "backfill", "maxBackfill": 2}, ["12", "13"], [(2, "catchup_cap")]),
    ],
    ids=["skip", "run_once", "backfill", "backfill with a cap"],
)
def test_missed_runs_are_made_up_for_as_the_row_says(
    door: Door, horarium: TestService, policy: dict[str, Any], days: list[str], missed: list[tuple[int, str]]
) -> None:
    door.create(row(queue_policy={"mode": "parallel", **policy}))
    horarium.settle()
    horarium.sleep(days=4, hours=1)
    horarium.settle()
    assert [nominal[8:10] for nominal in door.nominals("row")] == days
    events = [event["payload"] for event in door.events("row", "ScheduleMissed")]
    assert [(event["count"], event["reason"]) for event in events] == missed
    # Whatever was missed, the next tick is the next future occurrence.
    assert door.describe("row")["next_fire_at"] == "2026-04-14T08:00:00Z"
    assert horarium.verify() == []


def test_a_paused_window_is_not_made_up_for(door: Door, horarium: TestService) -> None:
    """A pause is no downtime, whatever the policy for missed runs says."""
    door.create(row(queue_policy={"onMissed": "backfill"}))
    door.post("/api/schedules/row/pause")
    horarium.advance(days=3)
    door.post("/api/schedules/row/resume")
    horarium.settle()
    assert door.runs("row") == []


# ── limits ───────────────────────────────────────────────────────────────────────────────────────────


@runs_stay_open
@pytest.mark.parametrize(
    ("policy", "running", "reason"),
    [
        ({"mode": "serial"}, 1, "overlap_policy_skip"),
        ({"mode": "parallel"}, 3, None),
        ({"mode": "parallel", "maxConcurrency": 2}, 2, "max_concurrent_reached"),
    ],
    ids=["serial", "parallel", "parallel with a cap"],
)
def test_the_queue_policy_says_whether_runs_may_overlap(
    door: Door, horarium: TestService, policy: dict[str, Any], running: int, reason: str | None
) -> None:
    door.create(row(cron_expr="0 * * * *", queue_policy=policy, timeout_seconds=86_400))
    horarium.advance(hours=3)
    assert [run["state"] for run in door.runs("row")] == ["running"] * running
    assert door.describe("row")["last_skip_reason"] == reason


@pytest.mark.parametrize("answer", [RunFailed("it timed out", error_class="timeout")], ids=["failing"])
@pytest.mark.parametrize(
    ("policy", "attempts"),
    [
        (None, 2),
        ({"maxRetries": 0}, 1),
        ({"maxRetries": 3, "backoffMs": 10}, 4),
        ({"maxRetries": 3, "retryOn": ["rate_limit"]}, 1),
    ],
    ids=["default", "none", "three", "only for another cause"],
)
def test_the_retry_policy_says_how_often_a_failure_is_tried_again(
    door: Door, horarium: TestService, policy: dict[str, Any] | None, attempts: int
) -> None:
    door.create(row() if policy is None else row(retry_policy=policy))
    horarium.advance(hours=10)
    [run] = door.runs("row")
    assert (run["state"], len(horarium.launcher.deliveries)) == ("failed", attempts)
    # The engine adds its jitter by hash, and each attempt has a key of its own.
    assert len({request.key for request in horarium.launcher.deliveries}) == attempts


@pytest.mark.parametrize(
    ("limit", "reason"),
    [({"max_daily_battles": 2}, "daily_limit_reached"), ({"spending_limit_credits": 5}, "budget_exceeded")],
    ids=["battles a day", "credits a day"],
)
@runs_stay_open
def test_a_limit_of_the_day_holds_until_the_day_ends(
    door: Door, horarium: TestService, limit: dict[str, int], reason: str
) -> None:
    door.create(row(cron_expr="0 */6 * * *", budget=limit, queue_policy={"mode": "parallel"}))
    for _ in range(6):
        horarium.advance(hours=6)
        for run in door.runs("row"):
            if run["state"] == "running":
                token = horarium.launcher.deliveries[-1].report_token
                said = {"state": "succeeded", "cost": 3, "report_token": token}
                door.post(f"/api/runs/{run['run_id']}/report", said)
    assert [nominal[8:13] for nominal in door.nominals("row")] == ["10T06", "10T12", "11T00", "11T06"]
    assert door.events("row", "ScheduleTriggerSkipped")[0]["payload"]["reason"] == reason


# ── approvals ────────────────────────────────────────────────────────────────────────────────────────


def _by_the_clock(door: Door, horarium: TestService) -> None:
    horarium.advance(days=1)


def _by_hand(door: Door, horarium: TestService) -> None:
    door.post("/api/schedules/row/trigger")


def _by_backfill(door: Door, horarium: TestService) -> None:
    door.post("/api/schedules/row/backfill", {"start_time": "2026-04-09T00:00:00Z", "end_time": "2026-04-10T00:00:00Z"})


def _after_a_downtime(door: Door, horarium: TestService) -> None:
    horarium.settle()
    horarium.sleep(days=1)


WAYS = {
    "by the clock": _by_the_clock,
    "by hand": _by_hand,
    "by backfill": _by_backfill,
    "after a downtime": _after_a_downtime,
}


@pytest.mark.parametrize("way", WAYS)
def test_no_way_leads_past_an_approval(door: Door, horarium: TestService, way: str) -> None:
    door.create(row(approval_policy={"requiresApproval": True}))
    WAYS[way](door, horarium)
    horarium.advance(hours=1)
    [run] = door.runs("row")
    assert (run["state"], run["approval"]["needed"]) == ("awaiting_approval", True)
    assert horarium.launcher.deliveries == []


@pytest.mark.parametrize(
    ("fields", "waits"),
    [
        (AGENT, True),
        ({**AGENT, "assignee_type": "team"}, True),
        ({}, False),
        ({**AGENT, "approval_policy": {"requiresApproval": False}}, False),
    ],
    ids=["an agent", "a team", "nobody", "an agent of whom none is asked"],
)
def test_with_an_assignee_approval_is_the_default(
    door: Door, horarium: TestService, fields: dict[str, Any], waits: bool
) -> None:
    """Elsewhere every schedule needs one; here it is the default where somebody acts on his own account."""
    door.create(row(**fields))
    horarium.advance(days=1)
    assert [run["state"] for run in door.runs("row")] == ["awaiting_approval" if waits else "succeeded"]


def test_an_approval_that_nobody_gives_expires_after_a_day(door: Door, horarium: TestService) -> None:
    door.create(row(cron_expr="0 8 10 * *", approval_policy={"requiresApproval": True}))
    horarium.advance(days=3)
    assert [run["state"] for run in door.runs("row")] == ["expired"]
    assert horarium.launcher.deliveries == []


def test_a_run_that_waits_for_its_approval_is_busy(door: Door, horarium: TestService) -> None:
    door.create(row(cron_expr="0 * * * *", approval_policy={"requiresApproval": True}))
    horarium.advance(hours=2)
    assert [run["state"] for run in door.runs("row")] == ["awaiting_approval"]
    assert door.describe("row")["last_skip_reason"] == "overlap_policy_skip"


# ── audit ────────────────────────────────────────────────────────────────────────────────────────────


def test_a_dispatched_run_leaves_its_trace_everywhere(door: Door, horarium: TestService) -> None:
    door.create(ROW)
    horarium.advance(days=1)
    [run] = door.runs("row")
    found = door.describe("row")
    assert (found["last_dispatch_status"], found["last_run_id"]) == ("dispatched", run["run_id"])
    assert found["last_run_at"] == found["last_completed_at"] == "2026-04-10T08:00:00Z"
    events = [event["event_type"] for event in door.get(f"/api/runs/{run['run_id']}/events")["events"]]
    assert events[0] == "ScheduleTriggered"
    assert events[-1] == "run.completed"


@runs_stay_open
def test_the_last_dispatch_says_skipped_overlap(door: Door, horarium: TestService) -> None:
    door.create(row(cron_expr="0 * * * *", timeout_seconds=86_400))
    horarium.advance(hours=2)
    assert door.describe("row")["last_dispatch_status"] == "skipped_overlap"


def test_the_last_dispatch_says_paused(door: Door) -> None:
    door.create(ROW)
    door.post("/api/schedules/row/pause")
    assert door.describe("row")["last_dispatch_status"] == "paused"


@pytest.mark.parametrize("answer", [Unreachable("connection refused")], ids=["unreachable"])
def test_the_last_dispatch_says_dispatch_failed_and_why(door: Door, horarium: TestService) -> None:
    door.create(ROW)
    horarium.advance(days=1)
    found = door.describe("row")
    assert found["last_dispatch_status"] == "dispatch_failed"
    assert "connection refused" in found["last_error_message"]
    assert found["last_error_at"].startswith("2026-04-10T08:0")


@begins("2026-04-11T00:00:00Z")
def test_the_history_of_runs_has_status_cost_and_approval(door: Door, horarium: TestService) -> None:
    door.create(ROW)
    horarium.advance(days=3)
    runs = door.get("/api/schedules/row/runs", page_size=2)["runs"]
    assert [run["nominal"][8:10] for run in runs] == ["13", "12"]
    assert all({"state", "cost", "approval", "error"} <= run.keys() for run in runs)
    assert "result" in door.get(f"/api/runs/{runs[0]['run_id']}")
