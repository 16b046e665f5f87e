"""Calendars: whether one allows a day; `skip_dates` forbids the days it lists, `only_dates` all others.

The day of an occurrence is its date in the calendar's own zone, where it has one, else in the schedule's.
Days come from a list, from a rule (see `holidays`), or from both. Several calendars on one schedule
must all allow. What cannot be judged - a calendar that is gone, a zone or a country that the
installed data no longer has - is not allowed: a run on a holiday is worse than a run too few.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from enum import StrEnum
from types import MappingProxyType
from typing import Final, assert_never

from horarium.core.document.holidays import (
    WEEKDAYS,
    WEEKENDS,
    PublicHolidays,
    is_rule_name,
    parse_rule,
    rule_covers,
    rule_day_name,
    rule_text,
)
from horarium.core.policy.queue import PolicyError, checked_id, parse_name, read_object, shown
from horarium.core.recurrence.zone import load_zone, zone_names
from horarium.errors import InvalidCalendar, InvalidSpec
from horarium.instant import DAY, SECOND, Instant

MAX_DATES = 10_000
# Dates that one question about the coming ones looks at.
_MAX_LOOKS = 400
UTC_ZONE = "UTC"
_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()
_DAY_SECONDS = 86_400
# `date.fromisoformat` also reads week dates and dates without hyphens; people get those wrong.
_ISO_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_FIELDS = ("name", "kind", "timezone", "dates", "rule", "covers", "read_only")


class CalendarKind(StrEnum):
    SKIP_DATES = "skip_dates"
    ONLY_DATES = "only_dates"


@dataclass(frozen=True, slots=True)
class CalendarDefinition:
    """`covers` are the first and last day for which the data is meant to be complete.

    `timezone` None = that of whichever schedule asks: a job at 08:00 in Chicago means the days of Chicago.

    The zone and the rule are checked where a calendar is written (`parse_calendar`), not here: a
    stored one must stay readable when a newer data package has dropped a name.
    """

    name: str
    kind: CalendarKind
    timezone: str | None
    dates: frozenset[date]
    rule: str | None = None
    read_only: bool = False
    covers: tuple[date, date] | None = None

    def __post_init__(self) -> None:
        if not self.name:
            raise InvalidCalendar("name: is required")
        if len(self.dates) > MAX_DATES:
            raise InvalidCalendar(f"dates: {len(self.dates)} dates; at most {MAX_DATES} are allowed per calendar")
        if any(isinstance(day, datetime) for day in self.dates):
            raise InvalidCalendar("dates: must be dates without a time of day")
        if self.covers is not None and self.covers[0] > self.covers[1]:
            raise InvalidCalendar(f"covers: {self.covers[0]} is after {self.covers[1]}")


@dataclass(frozen=True, slots=True)
class MissingCalendar:
    """A calendar that a schedule names and nobody has."""

    name: str


@dataclass(frozen=True, slots=True)
class BlockedDay:
    """The calendar that said no; `date` and `kind` are None where the question could not be asked."""

    calendar_name: str
    date: date | None
    kind: CalendarKind | None
    detail: str


def check(
    calendars: Sequence[CalendarDefinition | MissingCalendar], nominal: Instant, timezone: str = UTC_ZONE
) -> BlockedDay | None:
    """None if all allow; otherwise the first that blocks. `timezone` is the schedule's."""
    for calendar in calendars:
        blocked = _judge(calendar, nominal, timezone)
        if blocked is not None:
            return blocked
    return None


def unchanged_until(
    calendars: Sequence[CalendarDefinition | MissingCalendar], nominal: Instant, last: Instant, timezone: str = UTC_ZONE
) -> Instant:
    """An instant, `last` at most, up to which `check` says yes or no as it does at `nominal`.

    It may say the same for longer: so many dates are looked at and no more.
    """
    zones = {calendar.timezone or timezone for calendar in calendars if isinstance(calendar, CalendarDefinition)}
    if not (zones <= zone_names() and all(isinstance(calendar, CalendarDefinition) for calendar in calendars)):
        return last  # what cannot be judged forbids one day as it forbids another
    is_blocked, at = check(calendars, nominal, timezone) is not None, nominal
    for _ in range(_MAX_LOOKS):
        at = min((date_ends(zone, at) for zone in zones), default=last + 1)
        if at > last:
            return last
        if (check(calendars, at, timezone) is not None) is not is_blocked:
            break
    return at - 1


def allows(calendar: CalendarDefinition, nominal: Instant, timezone: str = UTC_ZONE) -> bool:
    return _judge(calendar, nominal, timezone) is None


def contains(calendar: CalendarDefinition, day: date) -> bool:
    """Tell whether the calendar lists the day, whatever that means for schedules."""
    return day_name(calendar, day) is not None


def local_date(timezone: str, nominal: Instant) -> date:
    seconds = nominal // SECOND
    local = (seconds + load_zone(timezone).offset_at(seconds)) * SECOND
    return date.fromordinal(_EPOCH_ORDINAL + local // DAY)


def date_ends(timezone: str, nominal: Instant) -> Instant:
    """The first instant after `nominal` that has another date; clocks may go back at midnight, or leap over a day."""
    zone, seconds = load_zone(timezone), nominal // SECOND
    segment = zone.segment_at(seconds)
    day = (seconds + segment.offset) // _DAY_SECONDS
    while (midnight := (day + 1) * _DAY_SECONDS - segment.offset) >= segment.stop:
        segment = zone.segment_at(segment.stop)
        if (segment.start + segment.offset) // _DAY_SECONDS != day:
            return segment.start * SECOND
    return midnight * SECOND


def _judge(calendar: CalendarDefinition | MissingCalendar, nominal: Instant, timezone: str) -> BlockedDay | None:
    if isinstance(calendar, MissingCalendar):
        return BlockedDay(calendar.name, None, None, f"the calendar {calendar.name} does not exist")
    try:
        day = local_date(calendar.timezone or timezone, nominal)
        listed = day_name(calendar, day)
    except (InvalidSpec, InvalidCalendar) as wrong:
        return BlockedDay(calendar.name, None, calendar.kind, f"{calendar.name} cannot be read: {wrong.message}")
    match calendar.kind:
        case CalendarKind.SKIP_DATES:
            if listed is None:
                return None
            detail = f"{calendar.name} skips {day}" + (f" ({listed})" if listed else "")
        case CalendarKind.ONLY_DATES:
            if listed is not None:
                return None
            detail = f"{calendar.name} does not list {day}"
        case _:
            assert_never(calendar.kind)
    return BlockedDay(calendar.name, day, calendar.kind, detail)


def day_name(calendar: CalendarDefinition, day: date) -> str | None:
    """The name of the day in the rule, `""` for a day of the plain list, None for any other day."""
    named = rule_day_name(parse_rule(calendar.rule), day) if calendar.rule is not None else None
    if named is None and day in calendar.dates:
        return ""
    return named


# ── how far the data reaches ──────────────────────────────────────────────────────────────────────


def coverage_ends(calendar: CalendarDefinition) -> date | None:
    """The last day the data speaks about; None if it never ends or never began.

    Without `covers`, a list of days to skip is taken to be complete for the year of its last date
    (holidays are published by the year), a list of days to run ends with its last date.
    """
    if calendar.covers is not None:
        return calendar.covers[1]
    if calendar.rule is not None or not calendar.dates:
        return None
    last = max(calendar.dates)
    return date(last.year, 12, 31) if calendar.kind is CalendarKind.SKIP_DATES else last


COVERAGE_HORIZON_DAYS: Final = 90
"""A calendar whose data ends within this time has a warning wherever it is shown, attached or judged."""


def coverage_warning(
    calendar: CalendarDefinition, today: date, horizon_days: int = COVERAGE_HORIZON_DAYS
) -> str | None:
    if calendar.kind is CalendarKind.ONLY_DATES and calendar.rule is None and not calendar.dates:
        return f"{calendar.name}: has no dates, so it prevents every run"
    ends = coverage_ends(calendar)
    if ends is None or ends - today > timedelta(days=horizon_days):
        return None
    then = "it prevents every run" if calendar.kind is CalendarKind.ONLY_DATES else "it excludes no day"
    return f"{calendar.name}: its dates end on {ends}; after that {then}"


# ── calendars that everybody has ──────────────────────────────────────────────────────────────────


def rule_calendar(name: str) -> CalendarDefinition | None:
    """The read-only calendar that a rule name stands for; None if the name is no rule.

    Its zone is the suffix (`holidays:US@America/New_York`); without one it has none.
    `holidays:…` are days to skip; `weekends` and `weekdays` are the days to run.
    """
    if not is_rule_name(name):
        return None
    text, at, suffix = name.partition("@")
    rule = parse_rule(text)
    zone = _known_zone(suffix) if at else None
    skips = isinstance(rule, PublicHolidays)
    return CalendarDefinition(
        name=rule_text(rule) + (f"@{zone}" if at else ""),
        kind=CalendarKind.SKIP_DATES if skips else CalendarKind.ONLY_DATES,
        timezone=zone,
        dates=frozenset(),
        rule=rule_text(rule),
        read_only=True,
        covers=rule_covers(rule),
    )


def shared_calendar(name: str) -> CalendarDefinition | None:
    """A built-in or a rule calendar: what a name means in every namespace."""
    return BUILT_IN.get(name) or rule_calendar(name)


def zone_warning(name: str, zone: str | None, timezone: str) -> str | None:
    """That a schedule in another zone obeys it: a day of the calendar begins and ends at hours that may surprise."""
    if zone is None or zone == timezone:
        return None
    return f"{name} uses days of the time zone {zone}, but the schedule uses {timezone}"


def clone(calendar: CalendarDefinition, name: str) -> CalendarDefinition:
    """The same days under your own name, yours to change."""
    return replace(calendar, name=_own_name(name), read_only=False)


def _days_of_2026(text: str) -> frozenset[date]:
    return frozenset(date.fromisoformat(f"2026-{day}") for day in text.split())


def _built_in(name: str, kind: CalendarKind, timezone: str, dates: frozenset[date]) -> CalendarDefinition:
    year = (date(2026, 1, 1), date(2026, 12, 31))
    return CalendarDefinition(name, kind, timezone, dates, read_only=True, covers=year)


# The dates are those that LenserFight publishes under these names. Turkish half days (the eves of both feasts) count
# as whole days; the afternoon of 28 October does not count.
BUILT_IN: Mapping[str, CalendarDefinition] = MappingProxyType(
    {
        calendar.name: calendar
        for calendar in (
            _built_in(
                "us-federal-holidays-2026",
                CalendarKind.SKIP_DATES,
                "America/New_York",
                _days_of_2026("01-01 01-19 02-16 05-25 06-19 07-03 09-07 10-12 11-11 11-26 12-25"),
            ),
            _built_in(
                "tr-public-holidays-2026",
                CalendarKind.SKIP_DATES,
                "Europe/Istanbul",
                _days_of_2026(
                    "01-01 03-20 03-21 03-22 03-23 04-23 05-01 05-19 05-26 05-27 05-28 05-29 05-30 07-15 08-30 10-29"
                ),
            ),
            _built_in(
                "weekends-only",
                CalendarKind.ONLY_DATES,
                "UTC",
                frozenset(
                    day for day in (date(2026, 1, 1) + timedelta(days=n) for n in range(365)) if day.weekday() >= 5
                ),
            ),
        )
    }
)


# What a list shows beside one's own: there are too many countries to name them all.
LISTED: tuple[CalendarDefinition, ...] = (
    *BUILT_IN.values(),
    *(found for rule in (WEEKENDS, WEEKDAYS) if (found := rule_calendar(rule.name)) is not None),
)


# ── reading and writing ───────────────────────────────────────────────────────────────────────────


def parse_calendar(document: Mapping[str, object]) -> CalendarDefinition:
    """`{name, kind, timezone?, dates?, rule?, covers?}`; an InvalidCalendar names the field that is wrong."""
    try:
        given = read_object(document, "calendar", _FIELDS)
        kind = parse_name(CalendarKind, {}, given.get("kind"), "kind")
    except PolicyError as wrong:
        raise InvalidCalendar(str(wrong)) from None
    if given.get("read_only", False) is not False:
        raise InvalidCalendar("read_only: only built-in calendars are read-only")
    return CalendarDefinition(
        name=_own_name(given.get("name")),
        kind=kind,
        timezone=None if given.get("timezone") is None else _known_zone(given["timezone"]),
        dates=_parse_dates(given.get("dates", ())),
        rule=_parse_rule_field(given.get("rule")),
        covers=_parse_covers(given.get("covers")),
    )


def to_document(calendar: CalendarDefinition) -> dict[str, object]:
    """Document for `parse_calendar`, plus `read_only`. A missing zone is left out: an older program reads UTC."""
    zone = {} if calendar.timezone is None else {"timezone": calendar.timezone}
    return {
        "name": calendar.name,
        "kind": calendar.kind.value,
        **zone,
        "dates": [day.isoformat() for day in sorted(calendar.dates)],
        "rule": calendar.rule,
        "covers": None if calendar.covers is None else [day.isoformat() for day in calendar.covers],
        "read_only": calendar.read_only,
    }


def _own_name(value: object) -> str:
    try:
        name = checked_id("name", value)
    except PolicyError as wrong:
        raise InvalidCalendar(str(wrong)) from None
    if name in BUILT_IN or is_rule_name(name):
        raise InvalidCalendar(f"name: {shown(name)} is a built-in calendar; choose another name")
    return name


def _known_zone(value: object) -> str:
    if not isinstance(value, str):
        raise InvalidCalendar(f"timezone: must be the name of a time zone, not {shown(value)}")
    try:
        load_zone(value)
    except InvalidSpec as wrong:
        raise InvalidCalendar(wrong.message) from None
    return value


def _parse_rule_field(value: object) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str):
        raise InvalidCalendar(f"rule: must be a string such as holidays:US, not {shown(value)}")
    return rule_text(parse_rule(value))


def _parse_dates(value: object) -> frozenset[date]:
    if not isinstance(value, list | tuple | set | frozenset):
        raise InvalidCalendar(f"dates: must be an array of dates, not {shown(value)}")
    if len(value) > MAX_DATES:
        raise InvalidCalendar(f"dates: {len(value)} dates; at most {MAX_DATES} are allowed per calendar")
    return frozenset(_parse_date(f"dates.{index}", item) for index, item in enumerate(value))


def _parse_covers(value: object) -> tuple[date, date] | None:
    if value is None:
        return None
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise InvalidCalendar(f"covers: must be an array of a first and a last date, not {shown(value)}")
    return _parse_date("covers.0", value[0]), _parse_date("covers.1", value[1])


def _parse_date(path: str, value: object) -> date:
    if isinstance(value, date) and not isinstance(value, datetime):  # YAML reads dates by itself
        return value
    if isinstance(value, str) and len(value) == 10 and _ISO_DATE.fullmatch(value):
        try:
            return date.fromisoformat(value)
        except ValueError:
            raise InvalidCalendar(f"{path}: the date {value} does not exist") from None
    raise InvalidCalendar(f"{path}: {shown(value)} is not a date such as 2026-12-25")
