"""Weeks, their names and bounds, and which of them are to be made or may go."""

from __future__ import annotations

import pytest

from horarium.instant import DAY, SECOND, from_rfc3339
from horarium.platform.database.limits import row_by_row
from horarium.platform.database.partitions import (
    Bound,
    Partition,
    Week,
    indexes_of,
    literal,
    missing,
    named_for_all,
    past,
    read_bounds,
    week_of,
    weeks_wanted,
)
from horarium.platform.ids import id_at, new_id

MONDAY = from_rfc3339("2026-11-16T00:00:00Z")
NOW = MONDAY + 3 * DAY


# Names by ISO 8601: its first week of a year is the one with the first Thursday.
@pytest.mark.parametrize(
    ("instant", "start", "name"),
    [
        ("2026-11-16T00:00:00Z", "2026-11-16T00:00:00Z", "2026w47"),
        ("2026-11-22T23:59:59.999999Z", "2026-11-16T00:00:00Z", "2026w47"),
        ("2026-11-15T23:59:59.999999Z", "2026-11-09T00:00:00Z", "2026w46"),
        ("2027-01-01T12:00:00Z", "2026-12-28T00:00:00Z", "2026w53"),
        ("2025-12-30T00:00:00Z", "2025-12-29T00:00:00Z", "2026w01"),
        ("1970-01-05T00:00:00Z", "1970-01-05T00:00:00Z", "1970w02"),
    ],
)
def test_a_week_begins_on_monday_and_is_named_as_calendars_do(instant: str, start: str, name: str) -> None:
    week = week_of(from_rfc3339(instant))
    assert (week, week.name) == (Week(from_rfc3339(start)), name)


def test_this_week_and_four_more_are_wanted() -> None:
    assert [week.name for week in weeks_wanted(NOW)] == ["2026w47", "2026w48", "2026w49", "2026w50", "2026w51"]


@pytest.mark.parametrize("now", [-DAY, 10**18], ids=["before all", "after all"])
def test_a_clock_beyond_any_calendar_wants_none(now: int) -> None:
    assert weeks_wanted(now) == []


def _names(table: str, *there: Partition) -> list[str]:
    return [each.name.removeprefix(f"{table}_") for each in missing(table, there, NOW)]


@pytest.mark.parametrize(
    ("low", "high", "left"),
    [
        (None, None, ["2026w47", "2026w48", "2026w49", "2026w50", "2026w51"]),
        (None, MONDAY + 7 * DAY, ["2026w48", "2026w49", "2026w50", "2026w51"]),
        (None, MONDAY, ["2026w47", "2026w48", "2026w49", "2026w50", "2026w51"]),
        (MONDAY + 7 * DAY, MONDAY + 14 * DAY, ["2026w47", "2026w49", "2026w50", "2026w51"]),
        (MONDAY + 13 * DAY, MONDAY + 15 * DAY, ["2026w47", "2026w50", "2026w51"]),
        (MONDAY + 10 * DAY, None, ["2026w47"]),
    ],
    ids=["the rest", "the past", "an older past", "a week", "across two weeks", "the future"],
)
def test_only_weeks_that_nobody_takes_are_made(low: Bound, high: Bound, left: list[str]) -> None:
    assert _names("history", Partition("history", "x", low, high)) == left
    by_id = (each if each is None else id_at(each) for each in (low, high))  # type: ignore[arg-type]  # ints here
    assert _names("run_events", Partition("run_events", "x", *by_id)) == left


def test_partitions_of_another_table_are_in_nobodys_way() -> None:
    assert len(_names("run_logs", Partition("run_events", "run_events_2026w47", id_at(MONDAY), id_at(NOW)))) == 5


def test_a_run_lies_in_the_week_of_its_birth() -> None:
    now = int.from_bytes(new_id()[:6], "big") * 1_000
    run_id = new_id()
    mine = [each for each in missing("run_events", [], now) if each.low <= run_id < each.high]  # type: ignore[operator]  # bytes of this table
    assert [each.name for each in mine] == [f"run_events_{week_of(now).name}"]


def test_what_is_over_goes_the_oldest_first() -> None:
    weeks = [
        Partition("history", f"history_{Week(start).name}", start, start + 7 * DAY)
        for start in (MONDAY, MONDAY - 14 * DAY, MONDAY - 7 * DAY)
    ]
    rest = Partition("history", "history_default", None, None)
    assert [each.name for each in past([*weeks, rest], MONDAY)] == ["history_2026w45", "history_2026w46"]
    assert [each.name for each in past([*weeks, rest], MONDAY - SECOND)] == ["history_2026w45"]
    of_run = Partition("run_logs", "run_logs_2026w46", id_at(MONDAY - 7 * DAY), id_at(MONDAY))
    assert past([of_run], MONDAY) == [of_run]
    assert past([of_run], MONDAY - SECOND) == []


def test_the_past_goes_before_all_weeks() -> None:
    before = Partition("history", "history_before", None, MONDAY)
    week = Partition("history", "history_2026w47", MONDAY, MONDAY + 7 * DAY)
    assert past([week, before], MONDAY + 7 * DAY) == [before, week]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("DEFAULT", (None, None)),
        ("FOR VALUES FROM ('1795392000000000') TO ('1795996800000000')", (1795392000000000, 1795996800000000)),
        ("FOR VALUES FROM (7) TO (MAXVALUE)", (7, None)),
        ("FOR VALUES FROM (MINVALUE) TO ('\\x01a2')", (None, b"\x01\xa2")),
    ],
)
def test_bounds_are_read_as_the_catalogue_writes_them(text: str, found: tuple[Bound, Bound]) -> None:
    assert read_bounds(text) == found


@pytest.mark.parametrize(
    "text", ["FOR VALUES IN ('a')", "FOR VALUES FROM ('a', 'b') TO ('c', 'd')", "FOR VALUES FROM ('x') TO ('y')"]
)
def test_other_peoples_bounds_are_not_guessed(text: str) -> None:
    with pytest.raises(ValueError, match=r"unknown partition bounds|invalid literal"):
        read_bounds(text)


@pytest.mark.parametrize(("bound", "text"), [(7, "'7'"), (b"\x01\xa2", "'\\x01a2'"), (None, "MINVALUE")])
def test_bounds_are_written_for_sql(bound: Bound, text: str) -> None:
    assert literal(bound, otherwise="MINVALUE") == text


@pytest.mark.parametrize(
    ("name", "whole"),
    [
        ("history_2026w47_in_order", "history_in_order"),
        ("history_default_pkey", "history_pkey"),
        ("runs_archive_2026w01", "runs_archive"),
        ("runs_one_per_occurrence", "runs_one_per_occurrence"),
        ("schedules_default_id", "schedules_default_id"),
        ("", ""),
    ],
)
def test_the_key_of_a_partition_is_called_by_that_of_its_table(name: str, whole: str) -> None:
    assert named_for_all(name) == whole


def test_a_partition_has_the_indexes_of_its_table_under_names_of_its_own() -> None:
    week = Partition("history", "history_2026w47", 1, 2)
    of_table = [
        ("history_feed", "CREATE INDEX history_feed ON ONLY public.history USING btree (namespace, feed_id)"),
        ("history_in_order", "CREATE UNIQUE INDEX history_in_order ON ONLY public.history USING btree (a) WHERE (b)"),
        ("mine", "CREATE INDEX mine ON ONLY public.history USING btree (payload)"),
    ]
    assert indexes_of(week, of_table) == [
        "CREATE INDEX history_2026w47_feed ON history_2026w47 USING btree (namespace, feed_id)",
        "CREATE UNIQUE INDEX history_2026w47_in_order ON history_2026w47 USING btree (a) WHERE (b)",
    ]


# ── what goes row by row ─────────────────────────────────────────────────────────────────────────────

WEEKS = (MONDAY - 28 * DAY, MONDAY + 28 * DAY)


@pytest.mark.parametrize(
    ("before", "since"),
    [
        (MONDAY - 29 * DAY, MONDAY - 29 * DAY),
        (MONDAY - 28 * DAY, MONDAY - 28 * DAY),
        (MONDAY - 27 * DAY, MONDAY - 28 * DAY),
        (MONDAY - SECOND, MONDAY - 7 * DAY),
        (MONDAY + DAY - SECOND, MONDAY - 7 * DAY),
        (MONDAY + DAY, MONDAY),
        (MONDAY + 28 * DAY, MONDAY + 21 * DAY),
        (MONDAY + 29 * DAY, MONDAY + 29 * DAY),
    ],
    ids=[
        "before all weeks",
        "the first",
        "in the first",
        "a Sunday",
        "a Monday",
        "a Tuesday",
        "the last",
        "behind all",
    ],
)
def test_a_week_goes_row_by_row_a_day_after_it_could_have_been_dropped(before: int, since: int) -> None:
    assert row_by_row(before, WEEKS) == since
