"""The days in a file: one ISO date per line, or the all-day events of an iCalendar file (RFC 5545).

Recurring events and events with a time of day are refused with their line.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta

from horarium.cli.reading import read_bytes, refuse

_MAX_DAYS = 10_000
_COMMENT = "#"
_REPEATING = ("RRULE", "RDATE", "EXDATE", "RECURRENCE-ID")
_BEGIN, _END = "BEGIN:VEVENT", "END:VEVENT"


def read_dates(file: str) -> list[str]:
    """Return the days of a file, sorted and without duplicates."""
    try:
        text = read_bytes("dates", file).decode("utf-8-sig")
    except UnicodeDecodeError:
        refuse(f"dates: {file!r} is not UTF-8 text")
    is_calendar = text.lstrip()[:15].upper() == "BEGIN:VCALENDAR"
    days = set(_events(text) if is_calendar else _lines(text))
    if not days:
        refuse(f"dates: {file!r} contains no days")
    if len(days) > _MAX_DAYS:
        refuse(f"dates: {file!r} contains {len(days)} days; a calendar has at most {_MAX_DAYS}")
    return [day.isoformat() for day in sorted(days)]


def _lines(text: str) -> Iterator[date]:
    """Yield the date of each line; text after it, or after a #, is a comment."""
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition(_COMMENT)[0].split()
        if words:
            yield _day(words[0], number, dashed=True)


def _events(text: str) -> Iterator[date]:
    start: date | None = None
    end: date | None = None
    inside = False
    for number, line in _unfolded(text):
        name, parameters, value = _property(line)
        match line.upper():
            case "BEGIN:VEVENT":
                inside, start, end = True, None, None
            case "END:VEVENT":
                inside = False
                yield from _span(start, end, number)
            case _ if inside and name in _REPEATING:
                refuse(f"dates: line {number}: recurring events ({name}) are not supported; list the days")
            case _ if inside and name in ("DTSTART", "DTEND"):
                if "VALUE=DATE" not in parameters:
                    refuse(f"dates: line {number}: {name} has a time of day; only all-day events are supported")
                day = _day(value, number, dashed=False)
                start, end = (day, end) if name == "DTSTART" else (start, day)
            case _ if inside and name == "DURATION":
                refuse(f"dates: line {number}: DURATION is not supported; use DTEND")


def _span(start: date | None, end: date | None, number: int) -> Iterator[date]:
    """DTEND is the day after the last one; without it the event is one day (RFC 5545 section 3.6.1)."""
    if start is None:
        refuse(f"dates: line {number}: the event has no DTSTART")
    days = 1 if end is None else (end - start).days
    if not 1 <= days <= _MAX_DAYS:
        refuse(f"dates: line {number}: an event of {days} days is not supported")
    yield from (start + timedelta(days=each) for each in range(days))


def _unfolded(text: str) -> Iterator[tuple[int, str]]:
    """Join continuation lines, which begin with a blank (RFC 5545 section 3.1)."""
    held, at = "", 0
    for number, line in enumerate(text.splitlines(), 1):
        if line[:1] in (" ", "\t"):
            held += line[1:]
        else:
            yield at, held
            held, at = line.rstrip(), number
    yield at, held


def _property(line: str) -> tuple[str, list[str], str]:
    head, _, value = line.partition(":")
    name, *parameters = head.upper().split(";")
    return name, parameters, value.strip()


def _day(text: str, number: int, *, dashed: bool) -> date:
    example = "2026-01-31" if dashed else "20260131"
    # `date.fromisoformat` also accepts week dates.
    plain = len(text) == len(example) and text.replace("-", "").isdecimal() and text.count("-") == example.count("-")
    try:
        return date.fromisoformat(text if plain else "")
    except ValueError:
        refuse(f"dates: line {number}: {text[:40]!r} is not a date such as {example}")
