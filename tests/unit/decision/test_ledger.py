"""What decisions leave behind: rows of runs, events in sequence, and counts that move with them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from horarium.core.decision.facts import Covers, Decision, Fire, Hold, Missed, Skip
from horarium.core.decision.record import Counts, NewId, ScheduleSubject, ScheduleWrites, record_decisions
from horarium.core.document.planning import Planning
from horarium.core.document.states import CommandContext, EventType, Origin, Position, Reason, RunState, Status
from horarium.core.recurrence.spec import compile_spec
from horarium.instant import MINUTE, SECOND, from_rfc3339

NOON = from_rfc3339("2026-05-04T12:00:00Z")
NOW = NOON + 2 * SECOND
SPEC = compile_spec(cron_expressions=["* * * * *"])
PLAIN = Planning(spec=SPEC)
BEFORE = Counts(next_sequence=5, active=1, held=2, fires_count=7, skipped_count=3)


def ids() -> Iterator[NewId]:
    for number in range(1, 100):
        yield NewId(number.to_bytes(16, "big"), f"id-{number}")


def written(*decisions: Decision, planning: Planning = PLAIN, **options: Any) -> ScheduleWrites:
    position = Position(NOW, None, options.pop("status", Status.ACTIVE))
    chosen = {"now": NOW, "origin": Origin.SCHEDULED, "ids": ids(), **options}
    return record_decisions(ScheduleSubject("nightly", 4, planning), BEFORE, decisions, position, **chosen)


def types(entry: ScheduleWrites) -> list[str]:
    return [event.event_type.value for event in entry.events]


def test_a_fire_is_one_run_and_one_event() -> None:
    entry = written(Fire(NOON, NOON))
    [run], [event] = entry.runs, entry.events
    assert (run.state, run.nominal, run.ready_at, run.trigger_number) == (RunState.READY, NOON, NOW, 8)
    assert (event.sequence, event.nominal, event.nominal_last, event.run_id) == (5, NOON, NOON, run.run_id)
    assert event.payload == {
        "outcome": "scheduled",
        "trigger_number": 8,
        "occurrence_time": "2026-05-04T12:00:00Z",
        "origin": "scheduled",
        "revision": 4,
        "workflow_instance_id": f"schedule:nightly:{NOON // SECOND}",
        "workflow_run_id": "id-1",
        "effective_overlap_policy": "skip",
    }


def test_a_fire_moves_the_counts() -> None:
    counts = written(Fire(NOON, NOON)).counts
    assert (counts.next_sequence, counts.active, counts.held, counts.fires_count) == (6, 2, 2, 8)
    assert (counts.last_fired_at, counts.last_run_id, counts.last_dispatch_status) == (
        NOW,
        (1).to_bytes(16, "big"),
        "dispatched",
    )


def test_a_run_that_needs_approval_is_born_waiting() -> None:
    [run] = written(Fire(NOON, NOON), planning=Planning(spec=SPEC, needs_approval=True)).runs
    assert run.state is RunState.AWAITING_APPROVAL


def test_a_held_run_is_not_fired_yet() -> None:
    entry = written(Hold(NOON, NOON, release_at=NOON + MINUTE))
    [run] = entry.runs
    assert (run.state, run.ready_at, run.trigger_number) == (RunState.HELD, NOON + MINUTE, None)
    assert types(entry) == ["ScheduleBuffered"]
    assert entry.events[0].payload["buffer_depth"] == 3
    assert (entry.counts.held, entry.counts.fires_count, entry.counts.last_run_id) == (3, 7, None)


def test_what_a_run_covers_is_in_its_row_and_its_event() -> None:
    covers = Covers(NOON, NOON + 9 * MINUTE, 10)
    entry = written(Fire(NOON, NOON, covers=covers))
    assert entry.runs[0].covers == covers
    assert entry.events[0].nominal_last == NOON + 9 * MINUTE
    assert entry.events[0].payload["covers"] == {
        "first": "2026-05-04T12:00:00Z",
        "last": "2026-05-04T12:09:00Z",
        "count": 10,
    }


def test_a_delay_and_a_place_in_the_rotation_are_told() -> None:
    payload = written(Fire(NOON, NOON + SECOND, rotation_index=2)).events[0].payload
    assert (payload["due"], payload["rotation_index_used"]) == ("2026-05-04T12:00:01Z", 2)


def test_a_skip_is_counted_and_says_why() -> None:
    entry = written(Skip(NOON, Reason.OVERLAP_POLICY_SKIP, {"active": 1}))
    payload = entry.events[0].payload
    assert (payload["reason"], payload["reason_alias"]) == ("overlap_policy_skip", "overlap_in_flight")
    assert (payload["skipped_trigger_count"], payload["detail"]) == (4, {"active": 1})
    counts = entry.counts
    assert (counts.skipped_count, counts.last_skip_reason, counts.last_skipped_at) == (4, "overlap_policy_skip", NOW)
    assert (counts.last_dispatch_status, counts.last_fired_at) == ("skipped_overlap", None)


def test_a_missed_range_is_one_event_over_its_range() -> None:
    [event] = written(Missed(NOON, NOON + 4 * MINUTE, 5, Reason.CATCHUP_CAP)).events
    assert (event.event_type, event.nominal, event.nominal_last) == (EventType.MISSED, NOON, NOON + 4 * MINUTE)
    assert (event.payload["count"], event.payload["reason"]) == (5, "catchup_cap")


def test_a_range_that_a_guard_refused_counts_as_so_many_skips() -> None:
    detail = {"result": False}
    entry = written(Missed(NOON, NOON + 4 * MINUTE, 5, Reason.CONDITION_FAILED, detail))
    assert entry.events[0].payload == {
        "first": "2026-05-04T12:00:00Z",
        "last": "2026-05-04T12:04:00Z",
        "count": 5,
        "reason": "condition_failed",
        "detail": detail,
    }
    counts = entry.counts
    assert (counts.skipped_count, counts.last_skip_reason, counts.last_skipped_at) == (8, "condition_failed", NOW)
    assert counts.last_dispatch_status == "skipped_condition_failed"


@pytest.mark.parametrize(
    "reason", [Reason.MISSED, Reason.CATCHUP_CAP, Reason.SUPERSEDED, Reason.REMAINING_ACTIONS_EXHAUSTED]
)
def test_a_range_that_nobody_was_asked_about_counts_as_no_skip(reason: Reason) -> None:
    counts = written(Missed(NOON, NOON + 4 * MINUTE, 5, reason)).counts
    assert (counts.skipped_count, counts.last_skip_reason) == (3, None)


def test_events_are_numbered_without_gaps_in_the_order_of_decisions() -> None:
    decisions: Iterable[Decision] = (
        Missed(NOON - MINUTE, NOON - MINUTE, 1, Reason.MISSED),
        Fire(NOON, NOON),
        Skip(NOON + MINUTE, Reason.CALENDAR),
    )
    entry = written(*decisions)
    assert [event.sequence for event in entry.events] == [5, 6, 7]
    assert types(entry) == ["ScheduleMissed", "ScheduleTriggered", "ScheduleTriggerSkipped"]
    assert entry.counts.next_sequence == 8


def test_the_last_run_ends_the_schedule_with_an_event() -> None:
    entry = written(Fire(NOON, NOON), status=Status.DELETED)
    assert types(entry) == ["ScheduleTriggered", "ScheduleDeleted"]
    assert entry.events[1].payload["reason"] == "max_runs_exhausted"


def test_a_trigger_by_hand_is_nobodys_occurrence() -> None:
    context = CommandContext(principal="ada", source="http")
    entry = written(Fire(NOW, NOW), Skip(NOW, Reason.BUFFER_FULL), origin=Origin.MANUAL, context=context)
    assert [event.nominal for event in entry.events] == [None, None]
    payload = entry.events[0].payload
    assert payload["workflow_instance_id"] == "schedule:nightly:manual:id-1"
    assert payload["command_context"] == {"principal": "ada", "source": "http"}


def test_a_skip_of_a_backfill_is_tracked_as_every_skip() -> None:
    context = CommandContext(principal="ada")
    entry = written(
        Fire(NOON + MINUTE, NOON + MINUTE),
        Skip(NOON, Reason.ALREADY_EXISTS, {"text": "x"}),
        origin=Origin.BACKFILL,
        context=context,
    )
    assert types(entry) == ["ScheduleTriggered", "ScheduleTriggerSkipped"]
    assert entry.events[0].payload["outcome"] == "backfilled"
    assert (entry.events[1].nominal, entry.events[1].nominal_last) == (NOON, NOON)
    assert entry.events[1].payload == {
        "reason": "already_exists",
        "reason_alias": "schedule_slot_exists",
        "occurrence_time": "2026-05-04T12:00:00Z",
        "origin": "backfill",
        "detail": {"text": "x"},
        "skipped_trigger_count": 4,
        "last_skipped_at": "2026-05-04T12:00:02Z",
        "command_context": {"principal": "ada"},
    }
    assert (entry.counts.skipped_count, entry.counts.last_skip_reason) == (4, "already_exists")
    assert (entry.counts.last_skipped_at, entry.counts.last_dispatch_status) == (NOW, "skipped_already_exists")


@pytest.mark.parametrize(
    ("decision", "terminates", "cancels", "active"),
    [(Fire(NOON, NOON, terminate_active=True), True, False, 1), (Hold(NOON, NOON, cancel_active=True), False, True, 1)],
    ids=["terminate", "cancel"],
)
def test_who_must_make_room_is_told(decision: Decision, terminates: bool, cancels: bool, active: int) -> None:
    entry = written(decision)
    assert (entry.terminate_active, entry.cancel_active, entry.counts.active) == (terminates, cancels, active)
