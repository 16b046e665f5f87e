"""Crontabs of Celery as cron expressions, with a calendar where an expression cannot express one.

To Celery all five fields must match. Here, as in cron, of two day fields that are both restricted either is enough,
unless one of them begins with a star: then both must match. So the days are written, in this order:

1. by one field alone, where the other holds every day;
2. as `1#2`, the second Monday, where the days of the month are whole weeks of it (1-7, 8-14 …);
3. with a star in front that adds nothing: `*/31` is the first of the month, `*/7` is Sunday;
4. by the day of the month, and a calendar that allows the days of the week.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date, timedelta

from horarium.compat.celery_beat.entries import Crontab, CrontabField
from horarium.core.document.calendar import CalendarDefinition, CalendarKind, rule_calendar
from horarium.core.recurrence.field import DAY_OF_MONTH, DAY_OF_WEEK, HOUR, MINUTE, MONTH, CronFieldKind, parse_field
from horarium.errors import InvalidSpec

CALENDAR_YEARS = 20
"""How far a calendar of our own reaches; it says by itself when it ends."""

_EVERY_DAY = frozenset(range(1, 32))
_WEEK = frozenset(range(7))
_WEEKDAYS = frozenset(range(1, 6))
_WEEKS_OF_MONTH = {1: range(1, 8), 2: range(8, 15), 3: range(15, 22), 4: range(22, 29), 5: range(29, 32)}
_DAY_NAMES = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_LONGEST_NAME = 60
_LONGEST_TEXT = 80


@dataclass(frozen=True, slots=True)
class CronText:
    """`calendar` None = the expression says it all."""

    expression: str
    calendar: CalendarDefinition | None = None


def cron_text(crontab: Crontab, today: date) -> CronText:
    """`today` is where a calendar of our own begins: with its year."""
    days, week = crontab.day_of_month.values, crontab.day_of_week.values
    calendar = None
    if week == _WEEK or days == _EVERY_DAY:
        day_text = "*" if days == _EVERY_DAY else _field_text(DAY_OF_MONTH, crontab.day_of_month)
        week_text = "*" if week == _WEEK else _field_text(DAY_OF_WEEK, crontab.day_of_week)
    elif (nth := _weeks_of_month(days)) is not None:
        day_text = "*"
        week_text = ",".join(f"{day}#{number}" for number in nth for day in sorted(week))
    elif 1 in days:
        day_text = _starred(DAY_OF_MONTH, crontab.day_of_month)
        week_text = _field_text(DAY_OF_WEEK, crontab.day_of_week)
    elif 0 in week:
        day_text = _field_text(DAY_OF_MONTH, crontab.day_of_month)
        week_text = _starred(DAY_OF_WEEK, crontab.day_of_week)
    else:
        day_text, week_text = _field_text(DAY_OF_MONTH, crontab.day_of_month), "*"
        calendar = _days_calendar(days, week, today)
    month = _field_text(MONTH, crontab.month_of_year)
    times = f"{_field_text(MINUTE, crontab.minute)} {_field_text(HOUR, crontab.hour)}"
    return CronText(f"{times} {day_text} {month} {week_text}", calendar)


def _field_text(kind: CronFieldKind, field: CrontabField) -> str:
    """As somebody wrote it where it means the same here; else the numbers."""
    text = field.text
    if text is not None and len(text) <= _LONGEST_TEXT and _values(kind, text) == field.values:
        return text.lower()
    return _ranges(field.values)


def _values(kind: CronFieldKind, text: str) -> frozenset[int] | None:
    """None for what is no field here, and for what depends on more than a number."""
    try:
        field = parse_field(kind, text)
    except InvalidSpec:
        return None
    if field.rules:
        return None
    return frozenset(value for value in range(field.mask.bit_length()) if field.mask >> value & 1)


def _ranges(values: Iterable[int]) -> str:
    """`0-2,22-23`"""
    return ",".join(f"{low}" if low == high else f"{low}-{high}" for low, high in _runs(sorted(values)))


def _runs(numbers: list[int]) -> Iterator[tuple[int, int]]:
    low = high = numbers[0]
    for number in numbers[1:]:
        if number > high + 1:
            yield low, high
            low = number
        high = number
    yield low, high


def _weeks_of_month(days: frozenset[int]) -> list[int] | None:
    nth = [number for number, week in _WEEKS_OF_MONTH.items() if week[0] in days]
    return nth if days == {day for number in nth for day in _WEEKS_OF_MONTH[number]} else None


def _starred(kind: CronFieldKind, field: CrontabField) -> str:
    written = _field_text(kind, field)
    if written.startswith("*"):
        return written
    rest = field.values - {kind.low}
    return f"*/{kind.last_step - kind.low + 1}" + (f",{_ranges(rest)}" if rest else "")


def _days_calendar(days: frozenset[int], week: frozenset[int], today: date) -> CalendarDefinition:
    """Without a zone of its own: the days are those of the schedule's."""
    if week == _WEEKDAYS and (weekdays := rule_calendar("weekdays")) is not None:
        return weekdays
    first, last = date(today.year, 1, 1), date(today.year + CALENDAR_YEARS - 1, 12, 31)
    every = (first + timedelta(days=n) for n in range((last - first).days + 1))
    dates = frozenset(day for day in every if day.day in days and day.isoweekday() % 7 in week)
    return CalendarDefinition(_calendar_name(days, week), CalendarKind.ONLY_DATES, None, dates, covers=(first, last))


def _calendar_name(days: frozenset[int], week: frozenset[int]) -> str:
    """The same days have the same calendar, whichever entry wants them: `celery:13:fri`."""
    named = f"celery:{_ranges(days).replace(',', '.')}:{'.'.join(_DAY_NAMES[day] for day in sorted(week))}"
    if len(named) <= _LONGEST_NAME:
        return named
    return f"celery:{sum(1 << day for day in days):x}:{sum(1 << day for day in week):x}"
