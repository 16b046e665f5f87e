"""Lint says what a person may not have meant, with dates, and is silent about the rest."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from unit.recurrence.expressions import dst_folds, dst_gaps, expressions

from horarium.core.recurrence.cron import compile_cron
from horarium.core.recurrence.lint import FindingCode, LintFinding, lint
from horarium.errors import InvalidSpec
from horarium.instant import from_rfc3339

SUMMER_2026 = from_rfc3339("2026-06-01T00:00:00Z")
NEW_YORK = "America/New_York"


def found(expr: str, code: str, timezone: str | None = None, **options: str) -> list[str]:
    findings = lint(expr, timezone=timezone, after=SUMMER_2026, **options)
    return [finding.message for finding in findings if finding.code == code]


# Each row: expression, zone, options, code, message. Clock changes are those of the pinned tz database.
DAY_30 = "day 30 does not exist in February; use `L` for the last day of the month"
ROWS: list[tuple[str, str | None, dict[str, str], str, str]] = [
    ("0 0 30 2 *", None, {}, "never_fires", "the expression has no occurrence within eight years"),
    (
        "30 2 * * *", NEW_YORK, {}, "dst_moved",
        "DST on 2027-03-14: 02:30 does not exist; the schedule fires at 03:00",
    ),
    (
        "0,30 2 * * *", NEW_YORK, {}, "dst_moved",
        "DST on 2027-03-14: 2 local times do not exist; the schedule fires once, at 03:00",
    ),
    (
        "0 2,3 * * *", NEW_YORK, {}, "dst_moved",
        "DST on 2027-03-14: 02:00 does not exist; "
        "the schedule fires at 03:00 (together with the regular occurrence)",
    ),
    (
        "20 15 2 * * *", "Australia/Lord_Howe", {}, "dst_moved",
        "DST on 2026-10-04: 02:15:20 does not exist; the schedule fires at 02:30",
    ),
    (
        "30 2 * * *", NEW_YORK, {"dst_gap": "skip"}, "dst_zero_fires",
        "DST on 2027-03-14: no occurrence, because the clock moves forward past the only time of that day",
    ),
    (
        "*/15 2 * * *", NEW_YORK, {}, "dst_zero_fires",
        "DST on 2027-03-14: no occurrence, because the clock moves forward past all 4 times of that day",
    ),
    (
        "30 1 * * *", NEW_YORK, {"dst_fold": "both"}, "dst_two_fires",
        "DST on 2026-11-01: 2 occurrences instead of 1, because the clock moves back",
    ),
    (
        "*/15 1 * * *", NEW_YORK, {}, "dst_two_fires",
        "DST on 2026-11-01: 8 occurrences instead of 4, because the clock moves back",
    ),
    (
        "5 0 31 * *", None, {}, "short_months",
        "day 31 does not exist in February, April, June, September and November; use `L` for the last day of the month",
    ),
    ("5 0 15,30 * *", None, {}, "short_months", DAY_30),
    ("5 0 30W 1-3 *", None, {}, "short_months", DAY_30),
    (
        "5 0 29 2 *", None, {}, "short_months",
        "day 29 does not exist in February of common years; use `L` for the last day of the month",
    ),
    (
        "5 0 * * MON#5", None, {}, "short_months",
        "most months have no fifth Monday; use `1L` for the last Monday of the month",
    ),
    (
        "5 0 13 * 5", None, {}, "either_day",
        "day-of-month and day-of-week are both restricted; a day matches if either field matches",
    ),
    (
        "5 0 1-31 * 5", None, {}, "either_day",
        "day-of-month `1-31` matches every day, so the other day field has no effect; use `*`",
    ),
    (
        "5 0 1,15 * */2", None, {}, "star_day",
        "day-of-week `*/2` starts with a star, so day-of-month and day-of-week must both match",
    ),
    (
        "*/70 * * * *", None, {}, "step_beyond_range",
        "minute `*/70`: the step exceeds the range, so only 0 matches",
    ),
    (
        "5 0 * * 6/2", None, {}, "step_beyond_range",
        "day-of-week `6/2`: the step exceeds the range, so only 6 matches",
    ),
    ("*/7 * * * *", None, {}, "uneven_step", "minute `*/7` restarts after 56: the step from 56 to 0 is 4, not 7"),
    ("5 */5 * * *", None, {}, "uneven_step", "hour `*/5` restarts after 20: the step from 20 to 0 is 4, not 5"),
    ("5 5 * */5 *", None, {}, "uneven_step", "month `*/5` restarts after 11: the step from 11 to 1 is 2, not 5"),
    (
        "5 0 */2 * *", None, {}, "uneven_step",
        "day-of-month `*/2` restarts each month: the 1st follows the 31st",
    ),
    (
        "0 9 * * *", None, {}, "herd",
        "many schedules fire at minute 0; `H` selects a minute from the schedule ID and spreads the load",
    ),
    (
        "0 5 5 * * *", None, {}, "six_fields",
        "six fields: the first field is seconds; some other schedulers read the sixth field as the year",
    ),
    (
        "@every PT7H", None, {}, "every_grid",
        "steps of 7 hours do not divide a day, so the times of day differ from one day to the next",
    ),
    (
        "@every P7D", None, {}, "every_grid",
        "steps of 1 week are counted from Thursday, 1 January 1970, 00:00 UTC, not from a schedule's start",
    ),
    (
        "@every PT90M", "Europe/Istanbul", {}, "every_grid",
        "intervals are counted in UTC; the time zone Europe/Istanbul and its DST changes have no effect",
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("expr", "timezone", "options", "code", "message"),
    [pytest.param(*row, id=f"{row[3]}: {row[0]}") for row in ROWS],
)
def test_an_expression_is_found_out(
    expr: str, timezone: str | None, options: dict[str, str], code: str, message: str
) -> None:
    assert found(expr, code, timezone, **options) == [message]


def test_every_code_has_a_row() -> None:
    assert {row[3] for row in ROWS} == set(FindingCode)


@pytest.mark.parametrize(
    ("expr", "timezone"),
    [
        pytest.param("*/5 * * * *", NEW_YORK, id="follows real time"),
        pytest.param("30 1 * * *", NEW_YORK, id="takes the first pass"),
        pytest.param("45 3 * * 1-5", NEW_YORK, id="never near a change"),
        pytest.param("30 2 * * *", "Asia/Kolkata", id="a zone without changes"),
        pytest.param("5 0 L,31 * *", None, id="the last day covers short months"),
        pytest.param("5 0 31 1,3,5 *", None, id="long months only"),
        pytest.param("5 0 28-31 * *", None, id="a range that starts in every month"),
        pytest.param("5 0 13 * *", None, id="one day field"),
        pytest.param("5 0 1-31 * 0-6", None, id="two day fields that match all"),
        pytest.param("5/15 2-22/4 * 1/3 *", None, id="even steps and closed ranges"),
        pytest.param("@every PT90M", None, id="divides a day"),
        pytest.param("@every P1D", "UTC", id="is a day"),
    ],
)
def test_there_is_nothing_to_say(expr: str, timezone: str | None) -> None:
    assert lint(expr, timezone=timezone, after=SUMMER_2026) == ()


def test_a_hash_is_no_herd_even_where_it_falls_on_minute_0() -> None:
    key = next(key for key in map(str, range(1_000)) if _minute(key) == 0)
    assert lint("H 3 * * *", after=SUMMER_2026, key=key) == ()


def _minute(key: str) -> int:
    return compile_cron("H 3 * * *", key=key).minute.mask.bit_length() - 1


def test_a_day_that_was_left_out_moves_noon_to_the_next_midnight() -> None:
    [moved] = lint("5 12 * * *", timezone="Pacific/Apia", after=from_rfc3339("2011-06-01T00:00:00Z"))
    assert moved == LintFinding(
        FindingCode.DST_MOVED,
        "DST on 2011-12-30: 12:05 does not exist; the schedule fires at 00:00 on 2011-12-31",
    )


def test_a_day_that_was_left_out_has_zero_fires_for_who_skips_gaps() -> None:
    after = from_rfc3339("2011-06-01T00:00:00Z")
    [zero] = lint("5 12 * * *", timezone="Pacific/Apia", after=after, dst_gap="skip")
    assert zero.message.startswith("DST on 2011-12-30: no occurrence")


def test_a_weekly_job_is_warned_only_of_the_change_on_its_day() -> None:
    assert len(found("30 2 * * 0", "dst_moved", NEW_YORK)) == 1
    assert found("30 2 * * 1", "dst_moved", NEW_YORK) == []


def test_only_the_coming_year_is_looked_at() -> None:
    just_after = from_rfc3339("2027-03-15T00:00:00Z")
    [moved] = lint("30 2 * * *", timezone=NEW_YORK, after=just_after)
    assert "2028-03-12" in moved.message


def test_both_changes_of_two_springs_are_told_when_both_lie_ahead() -> None:
    findings = lint("30 2 * * *", timezone=NEW_YORK, after=from_rfc3339("2027-03-13T00:00:00Z"))
    assert [finding.message[7:17] for finding in findings] == ["2027-03-14", "2028-03-12"]


def test_a_repeated_item_is_told_once() -> None:
    assert len(found("5 0 31,31 * *", "short_months")) == 1


def test_what_is_refused_is_not_linted() -> None:
    with pytest.raises(InvalidSpec, match="minute"):
        lint("60 * * * *", after=SUMMER_2026)


@pytest.mark.parametrize("year", ["0001", "1899", "9893", "9999"])
def test_a_moment_beyond_the_calendar_finds_no_fire(year: str) -> None:
    [never] = lint("5 9 * * *", timezone=NEW_YORK, after=from_rfc3339(f"{year}-06-01T00:00:00Z"))
    assert never.code is FindingCode.NEVER_FIRES


@settings(derandomize=True, deadline=None, max_examples=300)
@given(expressions, dst_gaps, dst_folds)
def test_whatever_compiles_can_be_linted(expr: str, gap: str, fold: str) -> None:
    findings = lint(expr, timezone="Antarctica/Troll", after=SUMMER_2026, dst_gap=gap, dst_fold=fold)
    assert all(finding.message for finding in findings)
    assert len(set(findings)) == len(findings)
