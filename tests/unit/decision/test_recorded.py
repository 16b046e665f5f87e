"""What the guards had said when an occurrence was decided: one row for each kind of decision that history keeps."""

from __future__ import annotations

from typing import Any

import pytest
from unit.decision.builders import NOON, UID, clock, make_planning, make_position, make_spec

from horarium.condition import compile_condition
from horarium.core.decision.explain import explain
from horarium.core.decision.facts import NO_FACTS
from horarium.core.decision.forecast import GuardFinding, RecordedDecision, findings_then
from horarium.core.decision.guards import GUARDS
from horarium.core.document.states import Reason, Status
from horarium.core.policy.limits import Budget
from horarium.instant import HOUR, to_rfc3339

ALL = make_planning(
    spec=make_spec("0 * * * *", start_at=NOON - HOUR),
    max_runs=9,
    calendars=("feast",),
    condition=compile_condition({"/a": {"eq": 1}}),
    budget=Budget(5, 5),
    workflow="w",
    kind="prompt",
    assignee="ada",
)
BUSY = {"active": 1, "held": 0}
BEFORE_CALENDAR = "status_not_triggerable outside_window remaining_actions_exhausted native_scheduler"
YES = f"{BEFORE_CALENDAR} calendar condition_failed budget_exceeded"
EVERYTHING = f"{YES} daily_limit_reached cycle_detected not_the_owner quota_exceeded"
FILLED_IN = EVERYTHING.replace("condition_failed ", "").replace("native_scheduler ", "")


def event(kind: str, **payload: Any) -> RecordedDecision:
    return RecordedDecision(kind, {"occurrence_time": to_rfc3339(NOON), **payload}, NOON)


# What history kept, who had said yes, who had said no.
DECISIONS = [
    ("fired", event("ScheduleTriggered", origin="scheduled"), f"{EVERYTHING} overlap", None),
    ("held", event("ScheduleBuffered", buffer_depth=2), f"{EVERYTHING} overlap", None),
    ("filled in", event("ScheduleTriggered", origin="backfill"), f"{FILLED_IN} overlap", None),
    ("by a later release", event("ScheduleTriggered", origin="?"), f"{EVERYTHING} overlap", None),
    ("by the first", event("ScheduleTriggerSkipped", reason="status_not_triggerable"), "", "status_not_triggerable"),
    (
        "by a guard in the middle",
        event("ScheduleTriggerSkipped", reason="calendar", detail={"calendar": "feast"}),
        BEFORE_CALENDAR,
        "calendar",
    ),
    (
        "by the last",
        event("ScheduleTriggerSkipped", reason="quota_exceeded"),
        f"{YES} daily_limit_reached cycle_detected not_the_owner",
        "quota_exceeded",
    ),
    (
        "a range",
        event("ScheduleMissed", reason="budget_exceeded"),
        YES.removesuffix(" budget_exceeded"),
        "budget_exceeded",
    ),
    ("overlap", event("ScheduleTriggerSkipped", reason="overlap_policy_skip", detail=BUSY), EVERYTHING, "overlap"),
    ("full", event("ScheduleTriggerSkipped", reason="buffer_full", detail=BUSY), EVERYTHING, "overlap"),
    ("too many", event("ScheduleTriggerSkipped", reason="max_concurrent_reached"), EVERYTHING, "overlap"),
    ("has had its run", event("ScheduleTriggerSkipped", reason="already_exists"), "", None),
    ("overtaken", event("ScheduleMissed", reason="superseded"), "", None),
    ("too late", event("ScheduleMissed", reason="missed"), "", None),
    ("above the cap", event("ScheduleMissed", reason="catchup_cap"), "", None),
    ("a word of a later release", event("ScheduleTriggerSkipped", reason="eclipse"), "", None),
]


@pytest.mark.parametrize(("recorded", "yes", "no"), [row[1:] for row in DECISIONS], ids=[row[0] for row in DECISIONS])
def test_who_had_said_yes_and_who_no(recorded: RecordedDecision, yes: str, no: str | None) -> None:
    findings = findings_then(ALL, recorded)
    assert [each.question for each in findings] == [*(guard.reason for guard in GUARDS), "overlap"]
    assert [each.question for each in findings if each.holds] == yes.split()
    assert [each.question for each in findings if each.holds is False] == ([] if no is None else [no])


def test_what_the_guard_saw_is_what_history_kept() -> None:
    skipped = event("ScheduleTriggerSkipped", reason="calendar", detail={"calendar": "feast"})
    assert GuardFinding("calendar", False, {"calendar": "feast"}) in findings_then(ALL, skipped)


def test_overlap_says_what_it_saw() -> None:
    skipped = event("ScheduleTriggerSkipped", reason="overlap_policy_skip", detail=BUSY)
    seen = {"policy": "skip", "active": 1, "held": 0, "reason": "overlap_policy_skip"}
    assert findings_then(ALL, skipped)[-1] == GuardFinding("overlap", False, seen)
    held = event("ScheduleBuffered", effective_overlap_policy="buffer_all", buffer_depth=3)
    assert findings_then(ALL, held)[-1].detail == {"policy": "buffer_all", "outcome": "hold", "buffer_depth": 3}


def test_a_guard_that_the_schedule_did_not_have_was_not_asked() -> None:
    findings = findings_then(make_planning(), event("ScheduleTriggered"))
    assert [each.question for each in findings if each.holds] == [
        "status_not_triggerable",
        "quota_exceeded",
        "overlap",
    ]


def test_a_range_is_about_the_occurrences_in_it_and_about_nothing_between_them() -> None:
    said = {"first": to_rfc3339(clock("09:00")), "last": to_rfc3339(NOON), "count": 4}
    missed, hourly = RecordedDecision("ScheduleMissed", said, NOON), make_planning("0 * * * *")
    assert [missed.is_about(hourly, clock(at)) for at in ("09:00", "10:00", "10:30", "12:00")] == [
        True,
        True,
        False,
        True,
    ]
    assert missed.is_about(make_planning("30 9 * * *"), NOON), "an event is about what it names, whatever the spec"


def test_what_is_true_now_does_not_change_what_was_decided() -> None:
    paused = make_position(NOON, status=Status.PAUSED)
    skipped = event("ScheduleTriggerSkipped", reason="calendar", detail={"calendar": "feast"})
    told = explain(ALL, UID, paused, NO_FACTS, at=NOON, now=NOON + HOUR, recorded=skipped)
    assert (told.reason, told.fires, told.as_of) == (Reason.CALENDAR, False, NOON)
    assert [each.question for each in told.findings if each.holds is False] == ["calendar"]
