"""A backfill under `skip`: one run after the other, beside a clock that goes on, and also while paused."""

from __future__ import annotations

from typing import Any

import pytest
from operations.desks import ADMIN, NOON, Office, without_gaps

from horarium.core.document.states import Origin, RunState
from horarium.core.policy.queue import OverlapPolicy
from horarium.engine.janitor import Repair
from horarium.features.cluster.verification import verify
from horarium.features.runs import service as run_service
from horarium.features.runs.rows import RunRow
from horarium.features.schedules import lifecycle, lists, triggers
from horarium.features.schedules.backfills import BackfillResult, backfill
from horarium.instant import DAY, MINUTE, to_rfc3339
from horarium.platform.ids import id_text


def _fill(office: Office, minutes: int = 3, **options: Any) -> BackfillResult:
    return backfill(office.resources, ADMIN, "nightly", start=NOON - minutes * MINUTE, end=NOON, **options)


def _outcomes(done: BackfillResult) -> list[str]:
    return [row.outcome.value if row.reason is None else row.reason.value for row in done.rows]


def _active(office: Office) -> list[RunRow]:
    return [run for run in office.runs() if run.state is RunState.READY]


def _work_off(office: Office, most: int = 20) -> list[int]:
    """End what is active, one at a time, until nothing is; the minutes of their nominal times, counted from noon."""
    order: list[int] = []
    while active := _active(office):
        assert len(active) == 1, "one after the other"
        order.append((active[0].nominal - NOON) // MINUTE)
        office.end(active[0])
        assert len(order) <= most
    return order


def _is_sound(office: Office) -> bool:
    """Counts are right, history has no gaps, and every occurrence has one decision."""
    repaired = Repair(office.resources.database, office.clock).step()
    return repaired.recounted == 0 and without_gaps(office.events()) and list(verify(office.resources, ADMIN)) == []


def test_the_window_runs_one_after_the_other(office: Office) -> None:
    office.create()
    dry = _fill(office, 5, dry_run=True)
    done = _fill(office, 5)
    assert _outcomes(dry) == _outcomes(done) == ["started", *["buffered"] * 4]
    assert (done.started, done.message) == (5, None)
    assert office.states() == ["ready", *["held"] * 4]
    assert _work_off(office) == [-5, -4, -3, -2, -1]
    assert office.kinds() == ["Created", "Triggered", *["Buffered"] * 4, *["Triggered"] * 4]
    assert [each.payload["effective_overlap_policy"] for each in office.events()[1:6]] == ["skip"] * 5
    assert _is_sound(office)
    assert _outcomes(_fill(office, 5)) == ["already_exists"] * 5


def test_in_reverse_the_newest_runs_first(office: Office) -> None:
    office.create()
    assert _outcomes(_fill(office, reverse=True)) == ["started", "buffered", "buffered"]
    assert _work_off(office) == [-1, -2, -3]


def test_the_caller_may_ask_for_it_of_any_schedule(office: Office) -> None:
    office.create(overlap_policy="allow_all")
    assert _outcomes(_fill(office, overlap_policy=OverlapPolicy.SKIP)) == ["started", "buffered", "buffered"]
    assert _work_off(office) == [-3, -2, -1]


@pytest.mark.both_databases
def test_live_occurrences_wait_behind_it_and_none_is_skipped(office: Office) -> None:
    office.create()
    _fill(office, 2)
    office.tick(60)
    office.tick(60)
    assert office.states() == ["ready", "held", "held", "held"]
    assert triggers.trigger(office.resources, ADMIN, "nightly").outcome.value == "buffered"
    assert _work_off(office) == [-2, -1, 1, 2, 2]
    assert lists.describe(office.resources, ADMIN, "nightly").row.skipped_count == 0
    office.tick(60)
    office.tick(60)
    assert "TriggerSkipped" in office.kinds(), "without a backfill it is as ever"
    assert _is_sound(office)


def test_what_the_clock_holds_still_makes_a_schedule_busy(office: Office) -> None:
    """The last of the backfill is at work, and only a live one waits: the next is skipped as under any backlog."""
    office.create()
    _fill(office, 2)
    office.tick(60)
    office.end(_active(office)[0])
    office.tick(60)
    assert office.kinds()[-1] == "TriggerSkipped"
    assert office.events()[-1].payload["reason"] == "overlap_policy_skip"


def test_a_pause_holds_back_the_clock_and_not_the_backfill(office: Office) -> None:
    office.create()
    _fill(office)
    office.tick(60)
    lifecycle.pause(office.resources, ADMIN, "nightly")
    assert _work_off(office) == [-3, -2, -1]
    assert [(run.origin, run.state.value) for run in office.runs() if run.state is not RunState.SUCCEEDED] == [
        (Origin.SCHEDULED, "held")
    ]
    # Nothing is active that could release them: the request does it.
    done = backfill(office.resources, ADMIN, "nightly", start=NOON - DAY, end=NOON - DAY + 2 * MINUTE)
    assert _outcomes(done) == ["buffered", "buffered"]
    assert _work_off(office) == [-1440, -1439]
    lifecycle.resume(office.resources, ADMIN, "nightly")
    assert _work_off(office) == [1]
    assert _is_sound(office)


def test_one_that_waits_may_be_cancelled_and_a_delete_cancels_them_all(office: Office) -> None:
    office.create()
    _fill(office, 4)
    run_service.cancel(office.resources, ADMIN, id_text(office.runs()[1].run_id))
    assert office.states() == ["ready", "cancelled", "held", "held"]
    office.end(_active(office)[0])
    assert office.states() == ["succeeded", "cancelled", "ready", "held"]
    lifecycle.delete(office.resources, ADMIN, "nightly")
    assert office.states() == ["succeeded", "cancelled", "cancelled", "cancelled"]
    assert _is_sound(office)


def test_two_backfills_are_worked_off_as_they_were_asked_for(office: Office) -> None:
    office.create()
    _fill(office, 2)
    earlier = backfill(office.resources, ADMIN, "nightly", start=NOON - DAY, end=NOON - DAY + 2 * MINUTE)
    assert _outcomes(earlier) == ["buffered", "buffered"]
    assert _work_off(office) == [-2, -1, -1440, -1439]
    assert _is_sound(office)


def test_the_last_run_ends_the_schedule_and_those_that_wait_still_run(office: Office) -> None:
    office.create(max_runs=2)
    done = _fill(office)
    assert (_outcomes(done), done.stopped) == (["started", "buffered"], True)
    assert _work_off(office) == [-3, -2]


@pytest.mark.both_databases
def test_a_shared_key_is_waited_for(office: Office) -> None:
    office.create("other", overlap_policy="allow_all", concurrency_key="printer")
    office.create(concurrency_key="printer")
    office.clock.move(1)
    other = triggers.trigger(office.resources, ADMIN, "other").run_id
    assert _outcomes(_fill(office, 2)) == ["buffered", "buffered"]
    lifecycle.pause(office.resources, ADMIN, "nightly")
    [holder] = [run for run in office.runs("other") if run.run_id == other]
    office.end(holder)
    assert _work_off(office) == [-2, -1]


def test_a_window_that_brings_nothing_says_why(office: Office) -> None:
    office.create(spec={"cron_expressions": ["0 3 * * *"]})

    def said(start: int, end: int, **options: Any) -> str | None:
        done = backfill(office.resources, ADMIN, "nightly", start=start, end=end, **options)
        assert done.rows == ()
        return done.message

    for dry in (False, True):
        assert said(NOON - MINUTE, NOON, dry_run=dry) == "The window contains no occurrences."
        coming = to_rfc3339(NOON + DAY - 9 * 60 * MINUTE)
        assert coming in (said(NOON, NOON + 3 * DAY, dry_run=dry) or "")
