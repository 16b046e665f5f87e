"""What moved an instant, and that lint and the forecast name the same clock changes."""

from __future__ import annotations

from itertools import takewhile
from typing import Any

import pytest

from horarium.core.decision.forecast import InstantMove, moves_of
from horarium.core.recurrence.lint import FindingCode, lint
from horarium.core.recurrence.spec import compile_spec
from horarium.instant import DAY, from_rfc3339, to_rfc3339

AFTER = from_rfc3339("2026-12-01T00:00:00Z")


def moved(zone: str, *crons: str, **options: Any) -> dict[str, tuple[InstantMove, ...]]:
    """Return the moves of the coming year by instant."""
    spec = compile_spec(cron_expressions=list(crons), timezone=zone, **options)
    year = takewhile(lambda each: each <= AFTER + 365 * DAY, spec.occurrences(AFTER))
    return {to_rfc3339(nominal): moves for nominal in year if (moves := moves_of(spec, nominal, nominal))}


def test_the_end_of_a_gap_is_where_a_lost_time_fires() -> None:
    found = moved("America/New_York", "30 2 * * *")
    assert found == {"2027-03-14T07:00:00Z": (InstantMove("dst_gap", "2027-03-14T02:30:00"),)}


def test_of_a_repeated_hour_the_chosen_pass_is_named() -> None:
    assert moved("America/New_York", "30 1 * * *") == {
        "2027-11-07T05:30:00Z": (InstantMove("dst_fold", "2027-11-07T01:30:00"),)
    }
    assert [*moved("America/New_York", "30 1 * * *", dst_fold="both")] == [
        "2027-11-07T05:30:00Z",
        "2027-11-07T06:30:00Z",
    ]


def test_parts_that_coincide_are_one_occurrence() -> None:
    found = moved("UTC", "0 0 1 1 *", "0 0 1 * *")
    assert found == {"2027-01-01T00:00:00Z": (InstantMove("deduplicated", parts=("0 0 1 1 *", "0 0 1 * *")),)}


@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Europe/Berlin", "Australia/Lord_Howe", "Africa/Cairo"])
@pytest.mark.parametrize("cron", ["30 2 * * *", "30 0 * * *", "15 1 * * 0", "*/30 * * * *", "0 12 * * *", "45 1 1 * *"])
@pytest.mark.parametrize("gap", ["next_valid", "skip"])
def test_lint_and_the_forecast_name_the_same_moved_times(zone: str, cron: str, gap: str) -> None:
    warned = {each.code for each in lint(cron, timezone=zone, after=AFTER, dst_gap=gap)}
    kinds = {move.kind for moves in moved(zone, cron, dst_gap=gap).values() for move in moves}
    assert (FindingCode.DST_MOVED in warned) == ("dst_gap" in kinds)
