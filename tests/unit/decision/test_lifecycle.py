"""What begins, edits, pauses, resumes and deletes do to the position: the past never fires because of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from unit.decision.builders import NOON, UID, clock, make_planning, make_position, make_spec

from horarium.core.decision.decide import (
    PositionEdit,
    begin_position,
    delete_position,
    edit_position,
    end_pause,
    pause_position,
    replan,
    resume_position,
)
from horarium.core.decision.facts import Missed
from horarium.core.document.planning import Planning
from horarium.core.document.states import Position, Reason, Status
from horarium.core.recurrence.spec import compile_spec
from horarium.instant import DAY, HOUR, MINUTE, SECOND

MINUTELY, HOURLY = make_planning(), make_planning("0 * * * *")
PAST = make_planning(spec=compile_spec(at=["2026-05-04T09:00:00Z"]))
NOW = clock("12:02:30")
# The engine stopped after 11:59: three occurrences are due and undecided.
BEHIND = make_position(clock("11:59"), runs_born=5, rotation_index=3, generation=2)
OVERTAKEN = Missed(clock("12:00"), clock("12:02"), 3, Reason.SUPERSEDED)


# ── begin and replan ──────────────────────────────────────────────────────────────────────────────


def test_a_new_schedule_begins_now() -> None:
    assert begin_position(MINUTELY, UID, now=NOW) == Position(NOW, clock("12:03"))


def test_a_new_schedule_plans_strictly_after_now() -> None:
    assert begin_position(MINUTELY, UID, now=NOON).next_due == NOON + MINUTE


def test_a_new_schedule_may_begin_paused_and_shows_when_it_would_fire() -> None:
    assert begin_position(MINUTELY, UID, now=NOW, paused=True) == Position(NOW, clock("12:03"), Status.PAUSED)


def test_a_start_on_an_occurrence_is_included() -> None:
    planning = make_planning(spec=make_spec("0 * * * *", start_at=clock("15:00")))
    assert begin_position(planning, UID, now=NOW).next_due == clock("15:00")


def test_a_start_in_the_past_fires_nothing_of_the_past() -> None:
    planning = make_planning(spec=make_spec("0 * * * *", start_at=NOON - 30 * DAY))
    assert begin_position(planning, UID, now=NOW) == Position(NOW, clock("13:00"))


def test_without_a_future_a_schedule_is_finished_and_not_due() -> None:
    assert begin_position(PAST, UID, now=NOW) == Position(NOW, None, Status.FINISHED)
    assert begin_position(PAST, UID, now=NOW, paused=True) == Position(NOW, None, Status.PAUSED)


def test_the_due_time_of_a_plan_has_its_jitter() -> None:
    spec = make_spec("0 * * * *", jitter_ms=600_000)
    due = spec.due(UID, clock("13:00"))
    assert due != clock("13:00")
    assert begin_position(make_planning(spec=spec), UID, now=NOW).next_due == due


@pytest.mark.parametrize(
    ("status", "with_future", "without"),
    [
        (Status.ACTIVE, Status.ACTIVE, Status.FINISHED),
        (Status.FINISHED, Status.ACTIVE, Status.FINISHED),
        (Status.PAUSED, Status.PAUSED, Status.PAUSED),
        (Status.DELETED, Status.DELETED, Status.DELETED),
        (Status.BROKEN, Status.BROKEN, Status.BROKEN),
    ],
)
def test_only_active_and_finished_depend_on_the_future(status: Status, with_future: Status, without: Status) -> None:
    before = make_position(status=status)
    assert replan(MINUTELY.spec, UID, before, NOW).status is with_future
    assert replan(PAST.spec, UID, before, NOW).status is without


# ── edit ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("status", [Status.ACTIVE, Status.PAUSED, Status.FINISHED])
def test_an_edit_that_leaves_the_spec_equal_leaves_the_plan_alone(status: Status) -> None:
    before = BEHIND._replace(status=status)
    assert edit_position(MINUTELY, MINUTELY, UID, before, now=NOW, spec_changed=False) == PositionEdit(before)


def test_an_edit_of_the_spec_supersedes_what_is_undecided_and_plans_after_now() -> None:
    change = edit_position(MINUTELY, HOURLY, UID, BEHIND, now=NOW, spec_changed=True)
    after = BEHIND._replace(decided_until=NOW, next_due=clock("13:00"), generation=3)
    assert change == PositionEdit(after, OVERTAKEN)


def test_an_occurrence_at_the_very_moment_of_an_edit_belongs_to_the_old_spec() -> None:
    change = edit_position(MINUTELY, MINUTELY, UID, BEHIND, now=clock("12:02"), spec_changed=True)
    assert change.superseded == OVERTAKEN
    assert change.position.next_due == clock("12:03")


def test_an_edit_with_nothing_undecided_supersedes_nothing() -> None:
    change = edit_position(HOURLY, MINUTELY, UID, make_position(NOON), now=NOW, spec_changed=True)
    assert change == PositionEdit(make_position(NOW, next_due=clock("12:03"), generation=2))


def test_an_edit_supersedes_what_waits_for_its_jitter() -> None:
    old = make_planning(spec=make_spec("0 * * * *", jitter_ms=3_000_000))
    now = old.spec.due(UID, NOON) - 1
    assert now > NOON
    change = edit_position(old, HOURLY, UID, make_position(), now=now, spec_changed=True)
    assert change.superseded == Missed(NOON, NOON, 1, Reason.SUPERSEDED)


def test_an_edit_never_moves_the_position_back() -> None:
    ahead = make_position(NOW + HOUR)
    change = edit_position(MINUTELY, HOURLY, UID, ahead, now=NOW, spec_changed=True)
    assert (change.position.decided_until, change.superseded) == (NOW + HOUR, None)


def test_an_edit_of_a_paused_schedule_leaves_it_paused_and_supersedes_nothing() -> None:
    paused = BEHIND._replace(status=Status.PAUSED)
    change = edit_position(MINUTELY, HOURLY, UID, paused, now=NOW, spec_changed=True)
    assert (change.position.status, change.position.next_due) == (Status.PAUSED, clock("13:00"))
    assert change.superseded is None


def test_a_finished_schedule_with_a_new_spec_is_active_again() -> None:
    finished = make_position(clock("09:00"), status=Status.FINISHED, next_due=None)
    change = edit_position(PAST, HOURLY, UID, finished, now=NOW, spec_changed=True)
    assert (change.position.status, change.position.next_due) == (Status.ACTIVE, clock("13:00"))
    assert change.superseded is None


def test_an_edit_may_finish_a_schedule() -> None:
    change = edit_position(MINUTELY, PAST, UID, BEHIND, now=NOW, spec_changed=True)
    assert (change.position.status, change.position.next_due) == (Status.FINISHED, None)
    assert change.superseded == OVERTAKEN


@pytest.mark.parametrize("spec_changed", [False, True])
def test_an_edit_mends_a_broken_schedule_from_now_on(spec_changed: bool) -> None:
    broken = BEHIND._replace(status=Status.BROKEN, next_due=None)
    change = edit_position(MINUTELY, MINUTELY, UID, broken, now=NOW, spec_changed=spec_changed)
    after = BEHIND._replace(decided_until=NOW, next_due=clock("12:03"), generation=3)
    assert change == PositionEdit(after, OVERTAKEN)


@pytest.mark.parametrize(("old", "new", "index"), [(0, 2, 0), (2, 0, 0), (2, 3, 0), (3, 3, 3)])
def test_a_rotation_that_is_set_or_cleared_starts_again(old: int, new: int, index: int) -> None:
    before, after = replace(MINUTELY, rotation=old), replace(MINUTELY, rotation=new)
    change = edit_position(before, after, UID, BEHIND, now=NOW, spec_changed=False)
    assert change == PositionEdit(BEHIND._replace(rotation_index=index))


# ── pause, resume, delete ─────────────────────────────────────────────────────────────────────────


def test_a_pause_accounts_for_what_was_due_and_keeps_the_next_time_to_be_read() -> None:
    change = pause_position(MINUTELY, BEHIND, now=NOW)
    assert change == PositionEdit(BEHIND._replace(status=Status.PAUSED, decided_until=NOW), OVERTAKEN)


def test_a_pause_with_nothing_due_accounts_for_nothing() -> None:
    change = pause_position(HOURLY, make_position(NOON), now=NOW)
    assert change == PositionEdit(make_position(NOW, status=Status.PAUSED))


def test_a_pause_when_paused_changes_nothing() -> None:
    paused = BEHIND._replace(status=Status.PAUSED)
    assert pause_position(MINUTELY, paused, now=NOW) == PositionEdit(paused)


def test_a_resume_plans_from_now_and_fires_nothing_of_the_pause() -> None:
    paused = BEHIND._replace(status=Status.PAUSED)
    change = resume_position(MINUTELY, UID, paused, now=NOW)
    assert change == PositionEdit(BEHIND._replace(decided_until=NOW, next_due=clock("12:03")))


def test_a_resume_when_active_changes_nothing() -> None:
    assert resume_position(MINUTELY, UID, BEHIND, now=NOW) == PositionEdit(BEHIND)


def test_a_resume_without_a_future_finishes() -> None:
    change = resume_position(PAST, UID, make_position(status=Status.PAUSED), now=NOW)
    assert (change.position.status, change.position.next_due) == (Status.FINISHED, None)


def test_a_resume_of_a_broken_schedule_accounts_for_what_was_not_decided() -> None:
    broken = BEHIND._replace(status=Status.BROKEN)
    change = resume_position(MINUTELY, UID, broken, now=NOW)
    assert change.position.status is Status.ACTIVE
    assert change.superseded == OVERTAKEN


def test_a_pause_and_a_resume_do_not_start_a_generation() -> None:
    paused = pause_position(MINUTELY, BEHIND, now=NOW).position
    assert resume_position(MINUTELY, UID, paused, now=NOW + HOUR).position.generation == BEHIND.generation


@pytest.mark.parametrize(
    ("status", "superseded"),
    [
        (Status.ACTIVE, OVERTAKEN),
        (Status.BROKEN, OVERTAKEN),
        (Status.PAUSED, None),
    ],
)
def test_a_deletion_stops_the_clock_and_accounts_for_what_was_due(status: Status, superseded: Missed | None) -> None:
    change = delete_position(MINUTELY, BEHIND._replace(status=status), now=NOW)
    gone = BEHIND._replace(status=Status.DELETED, next_due=None, decided_until=NOW)
    assert change == PositionEdit(gone, superseded)


def test_a_deletion_of_a_finished_schedule_accounts_for_nothing() -> None:
    finished = make_position(clock("09:00"), status=Status.FINISHED, next_due=None)
    assert delete_position(PAST, finished, now=NOW).superseded is None


AHEAD: dict[str, Callable[[Planning, Position], PositionEdit]] = {
    "pause": lambda planning, position: pause_position(planning, position, now=NOW),
    "resume": lambda planning, position: resume_position(
        planning, UID, position._replace(status=Status.PAUSED), now=NOW
    ),
    "delete": lambda planning, position: delete_position(planning, position, now=NOW),
    "edit": lambda planning, position: edit_position(planning, planning, UID, position, now=NOW, spec_changed=True),
}


@pytest.mark.parametrize("change", AHEAD)
def test_a_clock_that_went_back_moves_no_position_back(change: str) -> None:
    changed = AHEAD[change](MINUTELY, make_position(NOW + 10 * SECOND))
    assert changed.position.decided_until == NOW + 10 * SECOND
    assert changed.superseded is None


# ── a pause that ends by itself ───────────────────────────────────────────────────────────────────


def test_a_pause_that_ends_by_itself_plans_from_its_end_whenever_that_is_noticed() -> None:
    paused = make_position(clock("11:59"), status=Status.PAUSED)
    at_an_occurrence = end_pause(HOURLY, UID, paused, until=NOON)
    assert (at_an_occurrence.status, at_an_occurrence.next_due) == (Status.ACTIVE, NOON)
    assert end_pause(HOURLY, UID, paused, until=NOON + 1).next_due == NOON + HOUR
    assert end_pause(PAST, UID, paused, until=NOON).status is Status.FINISHED
