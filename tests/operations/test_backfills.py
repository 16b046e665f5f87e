"""Backfills: which occurrences, in which order, and that asking twice is harmless."""

from __future__ import annotations

from typing import Any

import pytest
from operations.desks import ADMIN, NOON, Office, without_gaps

from horarium.errors import BackfillTooLarge, InvalidSpec
from horarium.instant import DAY, HOUR, MINUTE
from horarium.operations import listings
from horarium.operations.backfills import Backfilled, FillOutcome, backfill
from horarium.policy.overlap import OverlapPolicy
from horarium.schedule.position import Status


def _fill(office: Office, minutes: int = 5, **options: Any) -> Backfilled:
    return backfill(office.desk, ADMIN, "nightly", start=NOON - minutes * MINUTE, end=NOON, **options)


def test_each_occurrence_of_the_window_gets_a_run_oldest_first(office: Office) -> None:
    office.create(overlap_policy="allow_all")
    done = _fill(office)
    assert [row.nominal for row in done.rows] == [NOON - n * MINUTE for n in (5, 4, 3, 2, 1)]
    assert {row.outcome for row in done.rows} == {FillOutcome.STARTED}
    assert [run.run_id for run in office.runs()] == [row.run_id for row in done.rows]
    assert office.kinds() == ["Created", *["Triggered"] * 5]
    assert office.events()[-1].payload["outcome"] == "backfilled"
    assert without_gaps(office.events())


def test_reverse_begins_with_the_newest(office: Office) -> None:
    office.create(overlap_policy="allow_all")
    assert [row.nominal for row in _fill(office, 3, reverse=True).rows] == [NOON - n * MINUTE for n in (1, 2, 3)]


def test_a_repeated_request_is_harmless(office: Office) -> None:
    office.create(overlap_policy="allow_all")
    _fill(office, 3)
    again = _fill(office, 5)
    assert [row.outcome.value for row in again.rows] == ["started", "started", "skipped", "skipped", "skipped"]
    assert {row.reason for row in again.rows[2:]} == {"already_exists"}
    assert again.started == 2
    assert len(office.runs()) == 5


def test_what_the_ticker_ran_is_not_run_again(office: Office) -> None:
    office.create(overlap_policy="allow_all")
    office.tick(120)
    done = backfill(office.desk, ADMIN, "nightly", start=NOON, end=NOON + HOUR)
    assert [(row.nominal, row.reason) for row in done.rows] == [
        (NOON, None),
        (NOON + MINUTE, "already_exists"),
        (NOON + 2 * MINUTE, "already_exists"),
    ]


def test_a_dry_run_says_the_same_and_leaves_nothing(office: Office) -> None:
    office.create(overlap_policy="allow_all", budget={"max_daily_runs": 3})
    dry = _fill(office, dry_run=True)
    assert office.kinds() == ["Created"]
    assert office.runs() == []
    real = _fill(office)
    assert dry.dry_run
    assert [(row.nominal, row.outcome, row.reason) for row in dry.rows] == [
        (row.nominal, row.outcome, row.reason) for row in real.rows
    ]
    assert [row.reason for row in real.rows] == [None, None, None, "daily_limit_reached", "daily_limit_reached"]


def test_buffers_count_as_allow_all_and_the_caller_may_choose(office: Office) -> None:
    office.create(overlap_policy="buffer_one")
    assert _fill(office, 3).started == 3
    assert _fill(office, 6, overlap_policy=OverlapPolicy.SKIP).started == 0


def test_with_terminate_other_only_the_last_stays(office: Office) -> None:
    office.create(overlap_policy="terminate_other")
    _fill(office, 3)
    assert office.states() == ["cancelled", "cancelled", "ready"]
    assert listings.describe(office.desk, ADMIN, "nightly").row.active == 1


def test_max_runs_ends_the_list_and_the_schedule(office: Office) -> None:
    office.create(overlap_policy="allow_all", max_runs=2)
    done = _fill(office)
    assert (len(done.rows), done.stopped) == (2, True)
    assert office.kinds()[-1] == "Deleted"


def test_a_paused_span_can_be_filled_while_paused(office: Office) -> None:
    office.create(overlap_policy="allow_all", paused=True)
    office.clock.move(180)
    done = backfill(office.desk, ADMIN, "nightly", start=NOON, end=NOON + HOUR)
    assert done.started == 4
    assert listings.describe(office.desk, ADMIN, "nightly").row.status is Status.PAUSED


def test_the_future_is_left_to_the_clock(office: Office) -> None:
    office.create()
    office.clock.move(30)
    assert backfill(office.desk, ADMIN, "nightly", start=NOON + 1, end=NOON + DAY).rows == ()


def test_too_many_are_refused_with_their_number(office: Office) -> None:
    office.create()
    with pytest.raises(BackfillTooLarge) as refused:
        _fill(office, 1_001)
    assert (refused.value.count, refused.value.limit) == (1_001, 1_000)


def test_a_thousand_fit_in_one_transaction(office: Office) -> None:
    office.create(overlap_policy="allow_all")
    assert _fill(office, 1_000).started == 1_000
    assert listings.describe(office.desk, ADMIN, "nightly").row.fires_count == 1_000


def test_a_window_that_ends_before_it_starts_is_refused(office: Office) -> None:
    office.create()
    with pytest.raises(InvalidSpec):
        backfill(office.desk, ADMIN, "nightly", start=NOON, end=NOON)


def test_approval_is_asked_for_backfilled_runs_too(office: Office) -> None:
    office.create(overlap_policy="allow_all", assignee_id="agent-7")
    _fill(office, 2)
    assert office.states() == ["awaiting_approval", "awaiting_approval"]
