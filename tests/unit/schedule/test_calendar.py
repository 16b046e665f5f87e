"""Calendars: which days they list, which occurrences they allow, and what they refuse to read."""

from __future__ import annotations

import time
from datetime import UTC, date, datetime

import pytest

from horarium.core.document.calendar import (
    BUILT_IN,
    MAX_DATES,
    BlockedDay,
    CalendarDefinition,
    CalendarKind,
    MissingCalendar,
    allows,
    check,
    clone,
    contains,
    coverage_ends,
    coverage_warning,
    local_date,
    parse_calendar,
    rule_calendar,
    shared_calendar,
    to_document,
    unchanged_until,
    zone_warning,
)
from horarium.errors import InvalidCalendar
from horarium.instant import DAY, Instant, from_rfc3339

US = BUILT_IN["us-federal-holidays-2026"]
TR = BUILT_IN["tr-public-holidays-2026"]
WEEKENDS = BUILT_IN["weekends-only"]
SATURDAY = date(2026, 1, 3)


def at(text: str) -> Instant:
    return from_rfc3339(text)


def calendar(kind: CalendarKind = CalendarKind.SKIP_DATES, *days: date, zone: str = "UTC") -> CalendarDefinition:
    return CalendarDefinition("mine", kind, zone, frozenset(days))


# The first seven rows were observed on the system that published these calendars.
@pytest.mark.parametrize(
    ("name", "nominal", "allowed"),
    [
        ("us-federal-holidays-2026", "2026-07-03T03:59:00Z", True),
        ("us-federal-holidays-2026", "2026-07-03T04:00:00Z", False),
        ("us-federal-holidays-2026", "2026-07-04T03:59:00Z", False),
        ("us-federal-holidays-2026", "2026-07-04T04:00:00Z", True),
        ("tr-public-holidays-2026", "2026-10-28T20:59:00Z", True),
        ("tr-public-holidays-2026", "2026-10-28T21:00:00Z", False),
        ("weekends-only", "2026-01-03T00:00:00Z", True),
        ("weekends-only", "2026-01-02T23:59:59Z", False),
        ("weekends-only", "2026-01-05T00:00:00Z", False),
        ("weekends-only", "2027-01-02T00:00:00Z", False),
    ],
)
def test_a_built_in_calendar_judges_by_the_date_in_its_own_zone(name: str, nominal: str, allowed: bool) -> None:
    assert allows(BUILT_IN[name], at(nominal)) is allowed


@pytest.mark.parametrize(
    ("name", "kind", "zone", "count", "first", "last"),
    [
        ("us-federal-holidays-2026", "skip_dates", "America/New_York", 11, "2026-01-01", "2026-12-25"),
        ("tr-public-holidays-2026", "skip_dates", "Europe/Istanbul", 16, "2026-01-01", "2026-10-29"),
        ("weekends-only", "only_dates", "UTC", 104, "2026-01-03", "2026-12-27"),
    ],
)
def test_the_built_in_calendars_are_the_published_ones(
    name: str, kind: str, zone: str, count: int, first: str, last: str
) -> None:
    built_in = BUILT_IN[name]
    assert (built_in.kind, built_in.timezone, len(built_in.dates)) == (kind, zone, count)
    assert (min(built_in.dates).isoformat(), max(built_in.dates).isoformat()) == (first, last)
    assert built_in.read_only


def test_there_are_three_built_in_calendars_under_their_own_names() -> None:
    assert sorted(BUILT_IN) == ["tr-public-holidays-2026", "us-federal-holidays-2026", "weekends-only"]
    assert all(name == built_in.name for name, built_in in BUILT_IN.items())


def test_an_empty_list_of_days_to_run_never_allows_and_of_days_to_skip_always() -> None:
    assert not allows(calendar(CalendarKind.ONLY_DATES), at("2026-01-03T00:00:00Z"))
    assert allows(calendar(CalendarKind.SKIP_DATES), at("2026-01-03T00:00:00Z"))


@pytest.mark.parametrize(
    ("zone", "nominal", "day"),
    [
        ("UTC", "1969-12-31T23:59:59Z", date(1969, 12, 31)),
        ("Pacific/Kiritimati", "2026-01-01T10:00:00Z", date(2026, 1, 2)),
        ("Pacific/Pago_Pago", "2026-01-01T10:59:59Z", date(2025, 12, 31)),
        ("America/New_York", "2026-03-08T06:59:59Z", date(2026, 3, 8)),
        ("America/Sao_Paulo", "2018-11-04T02:59:59Z", date(2018, 11, 3)),
        ("America/Sao_Paulo", "2018-11-04T03:00:00Z", date(2018, 11, 4)),  # midnight did not exist
    ],
)
def test_the_day_of_an_instant_is_read_off_the_wall_in_the_zone(zone: str, nominal: str, day: date) -> None:
    assert local_date(zone, at(nominal)) == day


def test_all_attached_calendars_must_allow_and_the_first_that_blocks_is_named() -> None:
    independence = at("2026-07-03T12:00:00Z")
    assert check([], independence) is None
    assert check([TR], independence) is None
    assert check([TR, US, WEEKENDS], independence) == BlockedDay(
        "us-federal-holidays-2026",
        date(2026, 7, 3),
        CalendarKind.SKIP_DATES,
        "us-federal-holidays-2026 skips 2026-07-03",
    )


def test_a_day_that_is_not_listed_is_blocked_with_its_date() -> None:
    blocked = check([WEEKENDS], at("2026-01-02T12:00:00Z"))
    assert blocked is not None
    assert (blocked.date, blocked.kind) == (date(2026, 1, 2), CalendarKind.ONLY_DATES)
    assert blocked.detail == "weekends-only does not list 2026-01-02"


def test_a_holiday_by_rule_is_named_in_the_detail() -> None:
    blocked = check([calendar_by_rule("holidays:US")], at("2026-07-03T12:00:00Z"))
    assert blocked is not None
    assert blocked.detail == "holidays:US skips 2026-07-03 (Independence Day (observed))"


@pytest.mark.parametrize(
    ("broken", "detail"),
    [
        (MissingCalendar("gone"), "does not exist"),
        (calendar(CalendarKind.SKIP_DATES, zone="Mars/Olympus"), "cannot be read: timezone"),
        (calendar(CalendarKind.ONLY_DATES, zone="Mars/Olympus"), "cannot be read: timezone"),
        (
            CalendarDefinition("mine", CalendarKind.SKIP_DATES, "UTC", frozenset(), rule="holidays:XX"),
            "cannot be read: rule",
        ),
    ],
    ids=["missing", "unknown zone, skip", "unknown zone, only", "unknown country"],
)
def test_a_calendar_that_cannot_be_judged_fails_closed(
    broken: CalendarDefinition | MissingCalendar, detail: str
) -> None:
    blocked = check([US, broken], at("2026-03-03T12:00:00Z"))
    assert blocked is not None
    assert blocked.calendar_name == broken.name
    assert blocked.date is None
    assert detail in blocked.detail


# ── rules ─────────────────────────────────────────────────────────────────────────────────────────


def calendar_by_rule(name: str) -> CalendarDefinition:
    found = rule_calendar(name)
    assert found is not None
    return found


def test_a_rule_calendar_knows_the_days_of_any_year() -> None:
    us = calendar_by_rule("holidays:US")
    assert contains(us, date(2031, 7, 4))
    assert contains(us, date(1999, 12, 24))  # Christmas of 1999 was a Saturday, observed on Friday
    assert not contains(us, date(2031, 7, 3))


def test_a_rule_calendar_takes_the_zone_of_its_suffix_before_that_of_the_schedule() -> None:
    fourth_in_utc = at("2031-07-04T02:00:00Z")
    plain, suffixed = calendar_by_rule("holidays:US"), calendar_by_rule("holidays:US@Asia/Tokyo")
    assert not allows(plain, fourth_in_utc)
    assert allows(plain, fourth_in_utc, "America/Chicago")
    assert (plain.timezone, suffixed.timezone, suffixed.name) == (None, "Asia/Tokyo", "holidays:US@Asia/Tokyo")
    assert not allows(suffixed, fourth_in_utc, "America/Chicago")


# Whose date counts: calendar's zone, schedule's zone, the moment, whether the third of January is its date.
@pytest.mark.parametrize(
    ("own", "schedules", "nominal", "is_the_third"),
    [
        (None, "UTC", "2026-01-03T00:00:00Z", True),
        (None, "America/New_York", "2026-01-03T00:00:00Z", False),
        (None, "America/New_York", "2026-01-04T04:59:59Z", True),
        (None, "Asia/Tokyo", "2026-01-02T15:00:00Z", True),
        ("UTC", "Asia/Tokyo", "2026-01-02T15:00:00Z", False),
        ("Asia/Tokyo", "America/New_York", "2026-01-02T15:00:00Z", True),
    ],
    ids=str,
)
def test_a_calendar_with_a_zone_keeps_it_and_one_without_takes_the_schedules(
    own: str | None, schedules: str, nominal: str, is_the_third: bool
) -> None:
    third = CalendarDefinition("mine", CalendarKind.ONLY_DATES, own, frozenset({SATURDAY}))
    assert allows(third, at(nominal), schedules) is is_the_third
    assert (check([third], at(nominal), schedules) is None) is is_the_third
    end = unchanged_until([third], at(nominal), at(nominal) + 9 * DAY, schedules)
    assert local_date(own or schedules, end + 1) != local_date(own or schedules, at(nominal))
    assert (zone_warning("mine", own, schedules) is None) is (own is None)


def test_weekdays_and_weekends_are_days_to_run_and_holidays_days_to_skip() -> None:
    monday, saturday = at("2031-07-07T12:00:00Z"), at("2031-07-05T12:00:00Z")
    weekdays, weekends = calendar_by_rule("weekdays"), calendar_by_rule("weekends@UTC")
    assert [allows(weekdays, monday), allows(weekdays, saturday)] == [True, False]
    assert [allows(weekends, monday), allows(weekends, saturday)] == [False, True]
    assert calendar_by_rule("holidays:TR").kind is CalendarKind.SKIP_DATES


def test_a_rule_calendar_is_spelled_in_one_way_and_read_only() -> None:
    assert calendar_by_rule("Holidays:us-ca").name == "holidays:US-CA"
    assert calendar_by_rule("weekends").read_only


@pytest.mark.parametrize("name", ["payroll", "holiday:US", "us-federal-holidays-2026", ""])
def test_a_name_that_is_no_rule_is_none(name: str) -> None:
    assert rule_calendar(name) is None


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("holidays:XX", "rule: the country 'XX' is unknown"),
        ("holidays:", "rule: 'holidays:' is not a rule"),
        ("holidays:US@Mars/Olympus", "timezone: 'Mars/Olympus'"),
        ("holidays:US@", "timezone: must not be empty"),
    ],
)
def test_a_rule_that_cannot_be_kept_is_refused(name: str, message: str) -> None:
    with pytest.raises(InvalidCalendar, match=message):
        rule_calendar(name)


def test_a_shared_name_is_a_built_in_or_a_rule_or_nothing() -> None:
    assert shared_calendar("weekends-only") is WEEKENDS
    rule = shared_calendar("weekdays@Asia/Tokyo")
    assert rule is not None
    assert rule.timezone == "Asia/Tokyo"
    assert shared_calendar("payroll") is None


def test_a_calendar_may_add_days_of_its_own_to_a_rule() -> None:
    company = parse_calendar({"name": "company", "kind": "skip_dates", "rule": "holidays:us", "dates": ["2026-12-24"]})
    assert company.rule == "holidays:US"
    assert contains(company, date(2026, 12, 24))
    assert contains(company, date(2026, 12, 25))
    assert not contains(company, date(2026, 12, 23))


# ── coverage ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("subject", "ends"),
    [
        (US, date(2026, 12, 31)),
        (calendar(CalendarKind.SKIP_DATES, date(2026, 5, 1)), date(2026, 12, 31)),
        (calendar(CalendarKind.ONLY_DATES, date(2026, 5, 1)), date(2026, 5, 1)),
        (calendar(CalendarKind.SKIP_DATES), None),
        (calendar_by_rule("weekends"), None),
        (CalendarDefinition("mine", CalendarKind.SKIP_DATES, "UTC", frozenset({SATURDAY}), rule="weekends"), None),
    ],
    ids=["built-in", "skip: the year of the last date", "only: the last date", "empty", "rule", "rule and dates"],
)
def test_coverage_ends_where_the_data_does(subject: CalendarDefinition, ends: date | None) -> None:
    assert coverage_ends(subject) == ends


def test_a_holiday_rule_reaches_as_far_as_its_country_is_known() -> None:
    ends = coverage_ends(calendar_by_rule("holidays:US"))
    assert ends is not None
    assert ends.year >= 2099


@pytest.mark.parametrize(
    ("today", "warns"),
    [(date(2026, 10, 1), False), (date(2026, 10, 2), True), (date(2026, 12, 31), True), (date(2027, 6, 1), True)],
)
def test_a_calendar_warns_ninety_days_before_its_data_ends(today: date, warns: bool) -> None:
    warning = coverage_warning(US, today)
    assert (warning is not None) is warns
    if warning is not None:
        assert warning == "us-federal-holidays-2026: its dates end on 2026-12-31; after that it excludes no day"


def test_the_warning_of_days_to_run_says_that_nothing_runs() -> None:
    assert "after that it prevents every run" in (coverage_warning(WEEKENDS, date(2026, 12, 1)) or "")
    empty = calendar(CalendarKind.ONLY_DATES)
    assert coverage_warning(empty, date(2026, 1, 1)) == "mine: has no dates, so it prevents every run"


def test_the_horizon_is_the_callers() -> None:
    assert coverage_warning(US, date(2026, 1, 1), horizon_days=364) is not None
    assert coverage_warning(US, date(2026, 1, 1), horizon_days=363) is None


def test_data_without_an_end_never_warns() -> None:
    assert coverage_warning(calendar_by_rule("weekdays"), date(2099, 1, 1)) is None


# ── reading and writing ───────────────────────────────────────────────────────────────────────────


def test_a_document_is_read_with_defaults_and_any_case_of_kind() -> None:
    parsed = parse_calendar({"name": "freeze", "kind": "SkipDates", "dates": ["2026-12-24", date(2026, 12, 31)]})
    assert parsed == CalendarDefinition(
        "freeze", CalendarKind.SKIP_DATES, None, frozenset({date(2026, 12, 24), date(2026, 12, 31)})
    )
    assert parse_calendar({"name": "freeze", "kind": "skip_dates", "timezone": None}).timezone is None


def test_a_document_survives_being_written_and_read() -> None:
    written = to_document(clone(US, "us-copy"))
    assert parse_calendar(written) == clone(US, "us-copy")
    assert to_document(US)["read_only"] is True
    rule = clone(calendar_by_rule("weekends"), "free")
    assert (parse_calendar(to_document(rule)), "timezone" in to_document(rule)) == (rule, False)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": None}, "^name: "),
        ({"name": "a b"}, "^name: 'a b' is not a valid ID"),
        ({"name": "-a"}, "^name: "),
        ({"name": "a" * 129}, "^name: "),
        ({"name": 7}, "^name: "),
        ({"name": "weekends-only"}, "^name: .* is a built-in"),
        ({"name": "holidays:US"}, "^name: .* is a built-in"),
        ({"name": "weekends"}, "^name: .* is a built-in"),
        ({"kind": None}, "^kind: "),
        ({"kind": "all_dates"}, "^kind: "),
        ({"kind": ["skip_dates"]}, "^kind: "),
        ({"timezone": "Mars/Olympus"}, "^timezone: "),
        ({"timezone": ""}, "^timezone: "),
        ({"timezone": 0}, "^timezone: "),
        ({"dates": "2026-01-01"}, "^dates: must be an array"),
        ({"dates": {"2026-01-01": 1}}, "^dates: must be an array"),
        ({"dates": ["2026-02-30"]}, "^dates.0: the date 2026-02-30 does not exist"),
        ({"dates": ["2026-01-01", "20260102"]}, "^dates.1: "),
        ({"dates": ["2026-W01-1"]}, "^dates.0: "),
        ({"dates": ["٢٠٢٦-01-01"]}, "^dates.0: "),
        ({"dates": [datetime(2026, 1, 1, tzinfo=UTC)]}, "^dates.0: "),
        ({"dates": [20260101]}, "^dates.0: "),
        ({"dates": [float("nan")]}, "^dates.0: "),
        ({"dates": ["2026-01-01"] * (MAX_DATES + 1)}, "^dates: 10001 dates"),
        ({"rule": "holidays:XX"}, "^rule: "),
        ({"rule": 5}, "^rule: "),
        ({"covers": "2026"}, "^covers: "),
        ({"covers": ["2026-01-01"]}, "^covers: "),
        ({"covers": ["2026-12-31", "2026-01-01"]}, "^covers: 2026-12-31 is after"),
        ({"covers": ["2026-12-31", "x"]}, "^covers.1: "),
        ({"read_only": True}, "^read_only: "),
        ({"Name": "twice"}, "^name: is specified twice"),
        ({"holidays": []}, "^holidays: unknown key"),
    ],
    ids=lambda value: str(value)[:40] if isinstance(value, dict) else None,
)
def test_a_bad_field_is_refused_by_name(change: dict[str, object], message: str) -> None:
    good: dict[str, object] = {"name": "mine", "kind": "skip_dates", "dates": []}
    with pytest.raises(InvalidCalendar, match=message):
        parse_calendar(good | change)


@pytest.mark.parametrize(
    "document",
    [
        None,
        [],
        {"name": "\ud800" * 10_000, "kind": "skip_dates"},
        {"name": "a", "kind": "x" * 10_000},
        {"name": "a", "kind": "skip_dates", "timezone": "A/" * 5_000},
        {"name": "a", "kind": "skip_dates", "dates": ["9" * 10_000]},
        {"name": "a", "kind": "skip_dates", "dates": [10**5_000]},
        {"name": "a", "kind": "skip_dates", "rule": "holidays:" * 1_200},
        {"name": "a", "kind": "skip_dates", "k" * 10_000: 1},
        {"name": "a", "kind": "skip_dates", 3: 1},
    ],
    ids=["null", "array", "surrogates", "kind", "zone", "date", "huge int", "rule", "key", "number as key"],
)
def test_hostile_documents_are_refused_briefly_and_quickly(document: object) -> None:
    best = 1.0
    for _ in range(3):
        started = time.process_time()
        with pytest.raises(InvalidCalendar) as refused:
            parse_calendar(document)  # type: ignore[arg-type]  # broken on purpose
        best = min(best, time.process_time() - started)
    assert best < 0.01
    assert len(refused.value.message) < 400


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: CalendarDefinition("", CalendarKind.SKIP_DATES, "UTC", frozenset()), "name"),
        (
            lambda: calendar(CalendarKind.SKIP_DATES, *(date.fromordinal(n) for n in range(1, MAX_DATES + 2))),
            "at most 10000",
        ),
        (lambda: calendar(CalendarKind.SKIP_DATES, datetime(2026, 1, 1, tzinfo=UTC)), "time of day"),
    ],
    ids=["no name", "too many dates", "a time of day"],
)
def test_a_calendar_is_valid_by_construction(make: object, message: str) -> None:
    with pytest.raises(InvalidCalendar, match=message):
        make()  # type: ignore[operator]  # a row of the table


def test_a_clone_is_yours_under_a_free_name() -> None:
    mine = clone(US, "us-2026-plus")
    assert (mine.name, mine.read_only, mine.dates) == ("us-2026-plus", False, US.dates)
    for taken in ("weekends-only", "weekdays", "not a name"):
        with pytest.raises(InvalidCalendar, match="name: "):
            clone(US, taken)
