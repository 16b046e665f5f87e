"""Matches of a cron expression: bit masks on integers, no object per step.

A day is one number of 1,440 bits, a bit for each minute; the next minute is the lowest bit at or
above the present one. A month is one number of up to 31 bits that depends only on the month's
length and its first weekday, so an expression has at most 28 of them. Local times are integers too:
seconds on the wall clock since 1970-01-01T00:00:00 as if that wall had no zone.
"""

from __future__ import annotations

import re
from datetime import date
from functools import lru_cache
from typing import assert_never

from horarium.core.recurrence.field import (
    DAY_OF_MONTH,
    DAY_OF_WEEK,
    HOUR,
    MINUTE,
    MONTH,
    SECOND,
    CronField,
    LastDay,
    LastWeekday,
    LastWorkday,
    MonthRule,
    NearestWorkday,
    NthWeekday,
    parse_field,
    plain_text,
)
from horarium.errors import InvalidSpec

_DAY = 86_400
_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()
_FIRST_ORDINAL = date(2, 1, 1).toordinal()
_LAST_ORDINAL = date(9990, 1, 1).toordinal()
_MONTH_LENGTHS = (0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
# 29 February can be eight years away (2096 to 2104): 97 months hold any eight years and both ends.
_MONTHS_AHEAD = 97
_LONGEST_TEXT = 512

_HASH = re.compile(r"(?:^|[\s,])[Hh](?=$|[\s,(/])")

_MACROS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}


class Cron:
    """A parsed expression. It knows wall-clock times only; `CronSchedule` puts it into a zone.

    Immutable but for the memo of month masks.
    """

    __slots__ = (
        "_every_day", "_first_second", "_first_time", "_last_second", "_last_time", "_minutes",
        "_month_masks", "_months", "_per_day", "_seconds", "day_of_month", "day_of_week", "fixed",
        "hour", "minute", "month", "second", "text",
    )  # fmt: skip

    def __init__(
        self, text: str, fields: tuple[CronField, CronField, CronField, CronField, CronField, CronField]
    ) -> None:
        self.text = text
        self.second, self.minute, self.hour, self.day_of_month, self.month, self.day_of_week = fields
        # Vixie's rule: a job with a wildcard minute or hour follows real time through clock changes.
        self.fixed = not (self.minute.starred or self.hour.starred)
        self._seconds = self.second.mask
        self._minutes = sum(self.minute.mask << 60 * h for h in range(24) if self.hour.mask >> h & 1)
        self._first_second = _lowest(self._seconds)
        self._last_second = self._seconds.bit_length() - 1
        self._first_time = _lowest(self._minutes) * 60 + self._first_second
        self._last_time = (self._minutes.bit_length() - 1) * 60 + self._last_second
        self._per_day = self._minutes.bit_count() * self._seconds.bit_count()
        self._months = self.month.mask
        self._month_masks: dict[int, int] = {}
        self._every_day = self.month.unrestricted and self.day_of_month.unrestricted and self.day_of_week.unrestricted

    def __repr__(self) -> str:
        return f"Cron({self.text!r})"

    @property
    def fields(self) -> tuple[CronField, ...]:
        return self.second, self.minute, self.hour, self.day_of_month, self.month, self.day_of_week

    # ── the next and the previous wall-clock time ────────────────────────────────────────────────

    def next_local(self, local: int) -> int | None:
        """The earliest match at or after `local`; None where eight years hold none."""
        day, time = divmod(local, _DAY)
        if self._every_day or self._day_matches(day):
            minute, second = divmod(time, 60)
            rest = self._minutes >> minute
            if rest & 1:
                seconds = self._seconds >> second
                if seconds:
                    return local + _lowest(seconds)
                rest -= 1
            if rest:
                return day * _DAY + (minute + _lowest(rest)) * 60 + self._first_second
        next_day = self._next_day(day + 1)
        return None if next_day is None else next_day * _DAY + self._first_time

    def previous_local(self, local: int) -> int | None:
        """The latest match at or before `local`; None where eight years hold none."""
        day, time = divmod(local, _DAY)
        if self._every_day or self._day_matches(day):
            minute, second = divmod(time, 60)
            rest = self._minutes & (2 << minute) - 1
            if rest >> minute:
                seconds = self._seconds & (2 << second) - 1
                if seconds:
                    return local - second + seconds.bit_length() - 1
                rest -= 1 << minute
            if rest:
                return day * _DAY + (rest.bit_length() - 1) * 60 + self._last_second
        previous_day = self._previous_day(day - 1)
        return None if previous_day is None else previous_day * _DAY + self._last_time

    def count_local(self, start: int, stop: int) -> int:
        """Count matches in [start, stop) by arithmetic, a month at a time."""
        if stop <= start:
            return 0
        first_day, first_time = divmod(start, _DAY)
        last_day, last_time = divmod(stop, _DAY)
        total = self._count_days(first_day, last_day) * self._per_day
        if self._day_matches(first_day):
            total -= self._count_below(first_time)
        if self._day_matches(last_day):
            total += self._count_below(last_time)
        return total

    def month_days(self, month: int, length: int, first: int) -> int:
        """The matching days of a month as bits, by its number, its length and the ordinal of its first day."""
        return self._month_mask(length, first) if self._months >> month & 1 else 0

    def day_seconds(self) -> int:
        """The matching seconds of a matching day: 86,400 bits. Made anew each time, since it is large."""
        minutes = int(("0" * 59).join(f"{self._minutes:b}"), 2)  # sixty bits apart
        return minutes * self._seconds

    def mismatches(self, local: int) -> tuple[CronField, ...]:
        """The fields that do not match a wall-clock time; both day fields where together they fail."""
        day, time = divmod(local, _DAY)
        hour, minute, second = time // 3_600, time // 60 % 60, time % 60
        month = date.fromordinal(day + _EPOCH_ORDINAL).month
        values = ((self.second, second), (self.minute, minute), (self.hour, hour), (self.month, month))
        failed = [field for field, value in values if not field.mask >> value & 1]
        if self._months >> month & 1 and not self._day_matches(day):
            failed += [f for f in (self.day_of_month, self.day_of_week) if not f.unrestricted]
        return tuple(failed)

    # ── days ─────────────────────────────────────────────────────────────────────────────────────

    def _day_matches(self, day: int) -> bool:
        if self._every_day:
            return True
        ordinal = day + _EPOCH_ORDINAL
        calendar_day = date.fromordinal(ordinal)
        month, day_of_month = calendar_day.month, calendar_day.day
        if not self._months >> month & 1:
            return False
        length = month_length(calendar_day.year, month)
        return self._month_mask(length, ordinal - day_of_month + 1) >> day_of_month & 1 == 1

    def _next_day(self, day: int) -> int | None:
        ordinal = day + _EPOCH_ORDINAL
        if not _FIRST_ORDINAL <= ordinal <= _LAST_ORDINAL:
            return None
        if self._every_day:
            return day
        calendar_day = date.fromordinal(ordinal)
        year, month, from_day = calendar_day.year, calendar_day.month, calendar_day.day
        first = ordinal - from_day + 1
        for _ in range(_MONTHS_AHEAD):
            length = month_length(year, month)
            if self._months >> month & 1:
                rest = self._month_mask(length, first) >> from_day
                if rest:
                    return first + from_day - 1 + _lowest(rest) - _EPOCH_ORDINAL
            first, from_day = first + length, 1
            year, month = (year, month + 1) if month < 12 else (year + 1, 1)
        return None

    def _previous_day(self, day: int) -> int | None:
        ordinal = day + _EPOCH_ORDINAL
        if not _FIRST_ORDINAL <= ordinal <= _LAST_ORDINAL:
            return None
        if self._every_day:
            return day
        calendar_day = date.fromordinal(ordinal)
        year, month, to_day = calendar_day.year, calendar_day.month, calendar_day.day
        first = ordinal - to_day + 1
        for _ in range(_MONTHS_AHEAD):
            if self._months >> month & 1:
                rest = self._month_mask(month_length(year, month), first) & (2 << to_day) - 1
                if rest:
                    return first + rest.bit_length() - 2 - _EPOCH_ORDINAL
            year, month = (year, month - 1) if month > 1 else (year - 1, 12)
            to_day = month_length(year, month)
            first -= to_day
        return None

    def _count_days(self, first: int, last: int) -> int:
        """Matching days in [first, last)."""
        if self._every_day:
            return last - first
        total, ordinal, end = 0, first + _EPOCH_ORDINAL, last + _EPOCH_ORDINAL
        while ordinal < end:
            calendar_day = date.fromordinal(ordinal)
            length = month_length(calendar_day.year, calendar_day.month)
            month_start = ordinal - calendar_day.day + 1
            stop = min(end, month_start + length)
            if self._months >> calendar_day.month & 1:
                rest = self._month_mask(length, month_start) >> calendar_day.day
                total += (rest & (1 << stop - ordinal) - 1).bit_count()
            ordinal = stop
        return total

    def _count_below(self, time: int) -> int:
        """Matches of one matching day before the second-of-day `time`."""
        minute, second = divmod(time, 60)
        total = (self._minutes & (1 << minute) - 1).bit_count() * self._seconds.bit_count()
        if self._minutes >> minute & 1:
            total += (self._seconds & (1 << second) - 1).bit_count()
        return total

    def _month_mask(self, length: int, first: int) -> int:
        """The matching days of a month, by its length and the ordinal of its first day."""
        first_weekday = first % 7  # ordinal 7 was a Sunday, so Sunday is 0
        shape = length * 7 + first_weekday
        mask = self._month_masks.get(shape)
        if mask is None:
            mask = self._month_masks[shape] = self._compute_month_mask(length, first_weekday)
        return mask

    def _compute_month_mask(self, length: int, first_weekday: int) -> int:
        by_date, by_weekday = self.day_of_month.mask, 0
        for day in range(1, length + 1):
            if self.day_of_week.mask >> (first_weekday + day - 1) % 7 & 1:
                by_weekday |= 1 << day
        for rule in self.day_of_month.rules:
            by_date |= _rule_mask(rule, length, first_weekday)
        for rule in self.day_of_week.rules:
            by_weekday |= _rule_mask(rule, length, first_weekday)
        by_date &= (1 << length + 1) - 1
        # Debian's cron: both must match if one of the two starts with a star, else either will do.
        if self.day_of_month.starred or self.day_of_week.starred:
            return by_date & by_weekday
        return by_date | by_weekday


def month_length(year: int, month: int) -> int:
    if month == 2 and year % 4 == 0 and (year % 100 != 0 or year % 400 == 0):
        return 29
    return _MONTH_LENGTHS[month]


@lru_cache(maxsize=16_384)
def compile_cron(text: str, *, key: str | None = None) -> Cron:
    """Five fields, six with seconds first, or a macro. Bounded, and cached by text and key."""
    if len(text) > _LONGEST_TEXT:
        raise InvalidSpec(f"expression: longer than {_LONGEST_TEXT} characters", field="expression")
    stripped = text.strip()
    if stripped.startswith("@"):
        expanded = _MACROS.get(stripped.lower())
        if expanded is None:
            known = " ".join(_MACROS)
            raise InvalidSpec(f"expression: {stripped[:20]!r} is not a macro; allowed: {known}", field="expression")
        stripped = expanded
    parts = stripped.split()
    kinds = (SECOND, MINUTE, HOUR, DAY_OF_MONTH, MONTH, DAY_OF_WEEK)
    if len(parts) == 5:
        parts.insert(0, "0")
    if len(parts) != 6:
        raise InvalidSpec(
            f"expression: {len(parts)} fields; must have five (minute hour day-of-month month day-of-week), "
            "or six with seconds first",
            field="expression",
        )
    second, minute, hour, day_of_month, month, day_of_week = (
        parse_field(kind, part, key) for kind, part in zip(kinds, parts, strict=True)
    )
    return Cron(text.strip(), (second, minute, hour, day_of_month, month, day_of_week))


def resolve_hashes(text: str, key: str) -> str:
    """The same expression with every `H` replaced by the values it stands for under this key."""
    if not has_hash(text):
        return text
    found = re.match(r"((?:\s*(?:CRON_)?TZ=\S+\s+)?)(.*)", text, re.DOTALL)
    assert found is not None  # both parts may be empty
    prefix, body = found.groups()
    cron = compile_cron(body, key=key)
    shown = cron.fields if len(body.split()) == 6 else cron.fields[1:]
    return prefix + " ".join(plain_text(field) if has_hash(field.text) else field.text for field in shown)


def has_hash(text: str) -> bool:
    """Tell whether an item of a field is `H`; the h of `THU` or `March` is not one."""
    return _HASH.search(text) is not None


def _lowest(mask: int) -> int:
    return (mask & -mask).bit_length() - 1


def _rule_mask(rule: MonthRule, length: int, first_weekday: int) -> int:
    """The bit of the day that a rule means in a month of this shape, or 0 where it has no such day."""
    last_weekday = (first_weekday + length - 1) % 7
    match rule:
        case LastDay():
            return 1 << length
        case LastWorkday():
            return 1 << length - {6: 1, 0: 2}.get(last_weekday, 0)
        case NearestWorkday(day):
            return 1 << _nearest_workday(day, length, first_weekday) if day <= length else 0
        case NthWeekday(weekday, nth):
            day = 1 + (weekday - first_weekday) % 7 + 7 * (nth - 1)
            return 1 << day if day <= length else 0
        case LastWeekday(weekday):
            return 1 << length - (last_weekday - weekday) % 7
        case _:
            assert_never(rule)


def _nearest_workday(day: int, length: int, first_weekday: int) -> int:
    """Never leaves the month: Saturday the 1st moves to Monday the 3rd, not to the month before."""
    weekday = (first_weekday + day - 1) % 7
    if weekday == 6:
        return day - 1 if day > 1 else 3
    if weekday == 0:
        return day + 1 if day < length else day - 2
    return day
