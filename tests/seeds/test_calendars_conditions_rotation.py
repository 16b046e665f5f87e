"""Calendars, conditions and rotation on top of cron: each of them gates or shapes what a matching time brings."""

from __future__ import annotations

from typing import Any

import pytest
from seeds.door import Door, begins, runs_stay_open

from horarium.core.document.calendar import BUILT_IN
from horarium.core.document.states import REASON_ALIASES, Reason
from horarium.testing import RunFailed, TestService

EXAMPLE_CONDITION = {"/prior_run_result/status": {"eq": "completed"}, "/last_24h_stats/failed": {"lt": 3}}
AUDIENCES = [
    {"audience": "tech", "tone": "punchy"},
    {"audience": "business", "tone": "measured"},
    {"audience": "research", "tone": "neutral"},
]


def write(door: Door, expr: str, **fields: Any) -> None:
    door.create(schedule_id="s", cron_expressions=[expr], workflow_type="post", **fields)


def reasons(door: Door) -> list[str]:
    return [event["payload"]["reason"] for event in door.events("s", "ScheduleTriggerSkipped")]


def preview(door: Door, rows: int) -> list[dict[str, Any]]:
    return door.get("/api/schedules/s/preview", n=rows)["rows"]


# ── the tick ─────────────────────────────────────────────────────────────────────────────────────────


@begins("2026-04-11T00:00:00Z")  # a Saturday
def test_a_skip_starts_nothing_and_leaves_the_last_run_alone(door: Door, horarium: TestService) -> None:
    write(door, "0 12 * * *", calendars=["weekends-only"])
    horarium.advance(days=1)
    before = door.describe("s")
    horarium.advance(days=2)
    after = door.describe("s")
    assert door.nominals("s") == ["2026-04-11T12:00:00Z", "2026-04-12T12:00:00Z"]
    assert before["last_run_at"] == "2026-04-11T12:00:00Z"
    assert (after["last_run_at"], after["last_skip_reason"]) == ("2026-04-12T12:00:00Z", "calendar")


@begins("2026-04-11T00:00:00Z")
def test_the_guards_ask_in_a_fixed_order(door: Door, horarium: TestService) -> None:
    """The calendar goes before the condition, the condition before the budget."""
    write(
        door,
        "0 12 * * *",
        calendars=["weekdays"],
        pre_dispatch_condition={"/last_24h_stats/total": {"gt": 0}},
        budget={"spending_limit_credits": 0},
    )
    horarium.advance(days=1)
    door.delete("/api/schedules/s/calendars")
    horarium.advance(days=1)
    door.delete("/api/schedules/s/condition")
    horarium.advance(days=1)
    assert reasons(door) == ["calendar", "condition_failed", "budget_exceeded"]


# ── calendars ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("kind", "days"), [("skip_dates", ["10", "12"]), ("only_dates", ["11"])])
def test_the_two_kinds_mean_the_opposite(door: Door, horarium: TestService, kind: str, days: list[str]) -> None:
    document = {"name": "mine", "kind": kind, "timezone": "UTC", "dates": ["2026-04-11"]}
    door.post("/api/calendars", document, status=201)
    write(door, "0 12 * * *", calendars=["mine"])
    horarium.advance(days=3)
    assert [nominal[8:10] for nominal in door.nominals("s")] == days


@pytest.mark.parametrize(
    ("name", "moment", "fires"),
    [
        # Independence Day 2026 is observed on 3 July: New York's date counts, four hours behind UTC.
        ("us-federal-holidays-2026", "2026-07-03T03:59:00Z", True),
        ("us-federal-holidays-2026", "2026-07-03T04:00:00Z", False),
        ("us-federal-holidays-2026", "2026-07-04T03:59:00Z", False),
        ("us-federal-holidays-2026", "2026-07-04T04:00:00Z", True),
        # Republic Day begins in Istanbul three hours before it begins in UTC.
        ("tr-public-holidays-2026", "2026-10-28T20:59:00Z", True),
        ("tr-public-holidays-2026", "2026-10-28T21:00:00Z", False),
        ("weekends-only", "2026-04-10T23:59:00Z", False),
        ("weekends-only", "2026-04-11T00:00:00Z", True),
    ],
)
def test_the_date_is_that_of_the_calendars_zone(
    door: Door, horarium: TestService, name: str, moment: str, fires: bool
) -> None:
    """The schedule stands in Tokyo, which makes no difference."""
    later = "2026-12-31T12:00:00Z"
    door.create(schedule_id="s", at=[moment, later], timezone="Asia/Tokyo", workflow_type="post", calendars=[name])
    horarium.advance_to(moment)
    assert door.nominals("s") == ([moment] if fires else [])
    assert reasons(door) == ([] if fires else ["calendar"])


@pytest.mark.parametrize(
    ("name", "kind", "timezone", "count"),
    [
        ("us-federal-holidays-2026", "skip_dates", "America/New_York", 11),
        ("tr-public-holidays-2026", "skip_dates", "Europe/Istanbul", 16),
        ("weekends-only", "only_dates", "UTC", 104),
    ],
)
def test_three_calendars_are_built_in(door: Door, name: str, kind: str, timezone: str, count: int) -> None:
    found = door.get(f"/api/calendars/{name}", year=2026)
    assert (found["kind"], found["timezone"], found["read_only"]) == (kind, timezone, True)
    assert len(found["days"]) == count


@pytest.mark.parametrize("name", BUILT_IN)
def test_a_built_in_calendar_is_read_only_but_can_be_cloned(door: Door, name: str) -> None:
    assert door.put(f"/api/calendars/{name}", {"dates": []}, status=409)["reason"] == "calendar_read_only"
    assert door.delete(f"/api/calendars/{name}", status=409)["reason"] == "calendar_read_only"
    door.post(f"/api/calendars/{name}/clone", {"name": "mine"}, status=201)
    mine, theirs = (door.get(f"/api/calendars/{each}", year=2026) for each in ("mine", name))
    assert (mine["days"], mine["read_only"]) == (theirs["days"], False)


def test_a_calendar_is_detached_and_another_attached(door: Door) -> None:
    write(door, "0 12 * * *", calendar_id="us-federal-holidays-2026")
    door.delete("/api/schedules/s/calendars")
    assert door.describe("s").get("calendars", []) == []
    door.put("/api/schedules/s/calendars", {"calendars": ["tr-public-holidays-2026"]})
    assert door.describe("s")["calendars"] == ["tr-public-holidays-2026"]


def test_a_calendar_that_does_not_exist_is_refused_at_write(door: Door) -> None:
    """Elsewhere a calendar that is gone means no calendar; here it is refused, and never lets anything through."""
    body = {"cron_expressions": ["0 12 * * *"], "workflow_type": "x", "calendars": ["gone"]}
    assert "calendars.0" in door.post("/api/schedules", body, status=422)["errors"]


# ── conditions ───────────────────────────────────────────────────────────────────────────────────────


def test_the_example_fires_only_after_a_run_that_succeeded(door: Door, horarium: TestService) -> None:
    write(door, "0 * * * *", pre_dispatch_condition=EXAMPLE_CONDITION)
    horarium.advance(hours=1)
    # Without a prior run there is no status, and a path that is missing equals nothing.
    assert reasons(door) == ["condition_failed"]
    door.post("/api/schedules/s/trigger")  # by hand no condition is asked
    horarium.settle()
    horarium.advance(hours=2)
    assert [run["origin"] for run in door.runs("s")] == ["manual", "scheduled", "scheduled"]


@pytest.mark.parametrize("answer", [RunFailed("no")], ids=["failing"])
def test_the_example_stops_after_a_failure(door: Door, horarium: TestService) -> None:
    write(door, "0 * * * *", pre_dispatch_condition=EXAMPLE_CONDITION, retry_policy={"max_retries": 0})
    door.post("/api/schedules/s/trigger")
    horarium.advance(hours=2)
    assert [run["origin"] for run in door.runs("s")] == ["manual"]
    assert reasons(door) == ["condition_failed"] * 2


@pytest.mark.parametrize(
    "condition",
    [
        {"/last_24h_stats/succeeded": {"eq": 2}},
        {"/last_24h_stats/failed": {"eq": 1}},
        {"/last_24h_stats/total": {"eq": 3}},
        {"/prior_run_result/rows": {"eq": 7}},
        {"/prior_run_result/status": {"eq": "failed"}},
        {"/signal_rpc_result": {"eq": None}},
    ],
    ids=lambda condition: next(iter(condition)),
)
@runs_stay_open
def test_the_context_has_what_it_promises(door: Door, horarium: TestService, condition: dict[str, Any]) -> None:
    """Three runs by hand, two good and one bad; then the clock asks."""
    write(door, "0 12 * * *", pre_dispatch_condition=condition, retry_policy={"max_retries": 0})
    for good in (True, True, False):
        door.post("/api/schedules/s/trigger")
        horarium.settle()
        run = horarium.runs("s")[-1]
        horarium.finish(run, {"rows": 1}) if good else _fail_with_result(door, horarium)
        horarium.advance(minutes=1)
    horarium.advance_to("2026-04-10T12:00:00Z")
    assert [run["origin"] for run in door.runs("s")] == ["manual"] * 3 + ["scheduled"]


def _fail_with_result(door: Door, horarium: TestService) -> None:
    run_id = door.runs("s")[-1]["run_id"]
    token = horarium.launcher.deliveries[-1].report_token
    said = {"state": "failed", "error": "no", "result": {"rows": 7}, "report_token": token}
    door.post(f"/api/runs/{run_id}/report", said)
    horarium.settle()


def test_runs_of_yesterday_are_not_in_the_statistics(door: Door, horarium: TestService) -> None:
    write(door, "0 12 * * *", pre_dispatch_condition={"/last_24h_stats/total": {"eq": 0}})
    door.post("/api/schedules/s/trigger")
    horarium.advance(days=2)
    assert [run["nominal"][8:10] for run in door.runs("s")][1:] == ["11"]
    assert reasons(door) == ["condition_failed"]


@pytest.mark.parametrize(
    "condition",
    [{"/a": {"regex": "x"}}, {"/a": {"eq": 1, "neq": 2}}, {"a": {"eq": 1}}, {"/a": 1}, ["/a"]],
    ids=["an unknown operator", "two operators", "no pointer", "no operator", "no object"],
)
def test_a_malformed_condition_is_refused_at_write(door: Door, condition: Any) -> None:
    """It would fail closed at every tick; better to say so when it is written."""
    body = {"cron_expressions": ["0 12 * * *"], "workflow_type": "x", "pre_dispatch_condition": condition}
    assert door.post("/api/schedules", body, status=422)["status"] == 422


# ── rotation ─────────────────────────────────────────────────────────────────────────────────────────


def test_three_ticks_in_a_row_take_the_three_inputs_and_the_fourth_wraps(door: Door, horarium: TestService) -> None:
    write(door, "0 * * * *", inputs_rotation=AUDIENCES, inputs_template={"audience": "nobody"})
    horarium.advance(hours=4)
    assert [run["inputs"] for run in door.whole_runs("s")] == [*AUDIENCES, AUDIENCES[0]]
    assert [run["rotation_index_used"] for run in door.runs("s")] == [0, 1, 2, 0]
    fired = door.events("s", "ScheduleTriggered")
    assert [event["payload"]["rotation_index_used"] for event in fired] == [0, 1, 2, 0]


@begins("2026-04-12T00:00:00Z")  # a Sunday
def test_a_skip_does_not_advance_the_rotation(door: Door, horarium: TestService) -> None:
    write(door, "0 12 * * *", inputs_rotation=AUDIENCES, calendars=["weekends-only"])
    horarium.advance_to("2026-04-19T00:00:00Z")
    assert [run["inputs"]["audience"] for run in door.whole_runs("s")] == ["tech", "business"]
    assert reasons(door) == ["calendar"] * 5


def test_clearing_the_rotation_resets_the_index(door: Door, horarium: TestService) -> None:
    write(door, "0 * * * *", inputs_rotation=AUDIENCES, inputs_template={"audience": "all"})
    horarium.advance(hours=2)
    assert door.describe("s")["rotation_index"] == 2
    door.delete("/api/schedules/s/rotation")
    assert door.describe("s")["rotation_index"] == 0
    horarium.advance(hours=1)
    assert door.whole_runs("s")[-1]["inputs"] == {"audience": "all"}
    door.put("/api/schedules/s/rotation", AUDIENCES)
    horarium.advance(hours=1)
    assert door.whole_runs("s")[-1]["inputs"] == AUDIENCES[0]


# ── seeing it ────────────────────────────────────────────────────────────────────────────────────────


def test_preview_tells_decision_reason_and_inputs_and_changes_nothing(door: Door) -> None:
    write(door, "0 12 * * *", inputs_rotation=AUDIENCES, calendars=["weekdays"])
    rows = preview(door, 5)
    assert [(row["tick_at"][8:10], row["decision"], row["reason"]) for row in rows] == [
        ("10", "dispatch", None),
        ("11", "skip", "calendar"),
        ("12", "skip", "calendar"),
        ("13", "dispatch", None),
        ("14", "dispatch", None),
    ]
    dispatched = [row["inputs"] for row in rows if row["decision"] == "dispatch"]
    assert dispatched == AUDIENCES  # predicted dispatches move the rotation of the preview, not that of the schedule
    assert door.describe("s")["rotation_index"] == 0
    assert len(door.events("s")) == 1


def test_preview_ends_after_31_days_or_200_rows(door: Door) -> None:
    write(door, "0 12 * * *")
    assert [row["tick_at"][:10] for row in preview(door, 200)][-1] == "2026-05-10"
    door.patch("/api/schedules/s", {"cron_expressions": ["* * * * *"]})
    assert len(preview(door, 200)) == 200
    assert "n" in door.get("/api/schedules/s/preview", n=201, status=422)["errors"]


def test_preview_takes_one_look_at_the_world(door: Door, horarium: TestService) -> None:
    """A snapshot, no simulation: the condition holds for all rows, although the first run would change that."""
    write(door, "0 * * * *", pre_dispatch_condition={"/last_24h_stats/total": {"lt": 1}})
    assert [row["decision"] for row in preview(door, 3)] == ["dispatch"] * 3
    horarium.advance(hours=3)
    assert len(door.runs("s")) == 1


@pytest.mark.parametrize(
    ("old", "ours"),
    [
        ("calendar", "calendar"),
        ("condition_failed", "condition_failed"),
        ("budget_exceeded", "budget_exceeded"),
        ("overlap_in_flight", "overlap_policy_skip"),
        ("cycle_detected", "cycle_detected"),
        ("schedule_slot_exists", "already_exists"),
    ],
)
def test_every_reason_of_the_old_log_is_known_under_its_name_or_ours(old: str, ours: str) -> None:
    assert REASON_ALIASES.get(Reason(ours), ours) == old


@runs_stay_open
def test_a_skip_carries_the_old_name_beside_ours(door: Door, horarium: TestService) -> None:
    write(door, "0 * * * *", timeout_seconds=86_400)
    horarium.advance(hours=2)
    [skip] = door.events("s", "ScheduleTriggerSkipped")
    assert (skip["payload"]["reason"], skip["payload"]["reason_alias"]) == ("overlap_policy_skip", "overlap_in_flight")


def test_a_month_of_daily_fires_leaves_nothing_unaccounted(door: Door, horarium: TestService) -> None:
    write(door, "0 12 * * *", calendars=["weekdays", "tr-public-holidays-2026"])
    horarium.advance(days=30)
    assert len(door.runs("s")) + len(reasons(door)) == 30
    assert horarium.verify() == []
