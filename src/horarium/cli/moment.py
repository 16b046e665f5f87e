"""Parse times: RFC 3339, a day, a local time, a duration from now, or words such as `tomorrow 09:00`.

Everything except RFC 3339 is read in a time zone:

| input                              | meaning                                                                    |
|------------------------------------|----------------------------------------------------------------------------|
| `now`                              | the current second                                                         |
| `7d`, `1h30m`, `PT30M`             | from now, into the past or the future, depending on the option             |
| `+30m`, `in 30m`, `-7d`, `7d ago`  | after or before now; a day is 24 hours, a week is 7 days                   |
| `2026-11-08`                       | the start of the day                                                       |
| `2026-11-08 14:00`, `…T14:00:30`   | the local time                                                             |
| `14:00`, `9am`, `noon`             | the next or the last such time, depending on the option                    |
| `tomorrow`, `friday`, `8 Nov 2027` | the start of the day; a time of day may follow                             |

A nonexistent local time (DST) is the time of the clock change; an ambiguous one is the first, as for schedules.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from enum import StrEnum
from typing import NoReturn

from horarium.core.recurrence.zone import MAX_TEXT, Moment, Zone, at_wall, exactly, from_now, load_zone, read_length
from horarium.errors import InvalidSpec
from horarium.instant import SECOND, Instant, to_datetime

# Compiled on use: most commands have no time, or RFC 3339.
_CLOCK = r"(?P<clock>\d{1,2}:\d\d(?::\d\d)?(?:\s*[ap]m)?|\d{1,2}\s*[ap]m|noon|midnight)"
_DAY_AND_CLOCK = rf"(?P<day>.+?)(?:(?:\s+at)?\s+|(?<=\d)t){_CLOCK}"
_ISO_DAY = r"\d{4}-\d\d-\d\d"
_WEEKDAY = r"(?:mon(?:day)?|tue(?:s(?:day)?)?|wed(?:nesday)?|thu(?:rs(?:day)?)?|fri(?:day)?|sat(?:urday)?|sun(?:day)?)"
_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)"
)
_NUMBER = r"\d{1,2}(?:st|nd|rd|th)?"
# The library guesses ("a" is January, "tomorrow 9" is tomorrow), so it gets only these words.
_DAY_WORDS = (
    r"today|tomorrow|yesterday|(?:the )?day (?:after tomorrow|before yesterday)"
    rf"|(?:(?:next|last|this) )?{_WEEKDAY}"
    rf"|{_NUMBER} {_MONTH}(?:,? \d{{4}})?|{_MONTH} {_NUMBER}(?:,? \d{{4}})?"
)


class Direction(StrEnum):
    """The direction of a bare `7d`, `14:00` or `friday`."""

    PAST = "past"
    FUTURE = "future"


@dataclass(frozen=True, slots=True)
class _Question:
    flag: str
    text: str
    now: Instant
    zone: Zone
    direction: Direction


def read_moment(text: str, *, flag: str, now: Instant, zone: Zone, direction: Direction) -> Moment:
    """Parse a time; raise InvalidSpec that names the flag. Other formats than RFC 3339 have whole seconds."""
    if len(text) > MAX_TEXT:
        raise InvalidSpec(f"{flag}: {text[:20]!r}… is too long for a time", field=flag)
    exact = exactly(text, field=flag)
    if exact is not None:
        return exact
    question = _Question(flag, " ".join(text.lower().split()), now - now % SECOND, zone, direction)
    return _now(question) or _from_now(question) or _on_the_wall(question) or _refuse(question, text)


def is_local(text: str, *, flag: str) -> bool:
    """Return whether the time depends on the zone: neither RFC 3339, a duration, nor `now`."""
    if len(text) > MAX_TEXT or exactly(text, field=flag) is not None:
        return False
    question = _Question(flag, " ".join(text.lower().split()), 0, load_zone("UTC"), Direction.FUTURE)
    return _now(question) is None and read_length(_sign(question)[1], field=flag) is None


def read_span(text: str, *, flag: str) -> int:
    """Parse a duration to seconds: `30s`, `1h30m`, `PT30M`, or a number of seconds."""
    lower = " ".join(text.lower().split()) if len(text) <= MAX_TEXT else ""
    is_bare = lower.isascii() and lower.isdigit() and len(lower) < 10
    length = int(lower) if is_bare else read_length(lower, field=flag)
    if not length:
        shown = f"{text[:MAX_TEXT]!r}"
        raise InvalidSpec(f"{flag}: {shown} is not a duration; use such as 30s, 10m, 1h30m or PT1H", field=flag)
    return length


def _now(question: _Question) -> Moment | None:
    return Moment(question.now) if question.text == "now" else None


# ── spans ─────────────────────────────────────────────────────────────────────────────────────────────


def _from_now(question: _Question) -> Moment | None:
    sign, rest = _sign(question)
    length = read_length(rest, field=question.flag)
    return None if length is None else from_now(sign * length, question.text, field=question.flag, now=question.now)


def _sign(question: _Question) -> tuple[int, str]:
    text = question.text
    if text.startswith("+"):
        return 1, text[1:].lstrip()
    if text.startswith("in "):
        return 1, text[3:]
    if text.startswith("-"):
        return -1, text[1:].lstrip()
    if text.endswith(" ago"):
        return -1, text[:-4]
    return (-1 if question.direction is Direction.PAST else 1), text


# ── wall times ────────────────────────────────────────────────────────────────────────────────────────


def _on_the_wall(question: _Question) -> Moment | None:
    if re.fullmatch(_CLOCK, question.text, re.ASCII):
        return _nearest(question, _clock(question, question.text))
    both = re.fullmatch(_DAY_AND_CLOCK, question.text, re.ASCII)
    day = _day(question, both["day"] if both else question.text)
    if day is None:
        return None
    return _at(question, datetime.combine(day, _clock(question, both["clock"]) if both else time()))


def _nearest(question: _Question, clock: time) -> Moment:
    """Return the next or last such time; the current second counts as future."""
    today = _wall_now(question).date()
    step = timedelta(days=-1 if question.direction is Direction.PAST else 1)
    found = _at(question, datetime.combine(today, clock))
    past = question.direction is Direction.PAST
    missed = found.instant >= question.now if past else found.instant < question.now
    return _at(question, datetime.combine(today + step, clock)) if missed else found


def _clock(question: _Question, text: str) -> time:
    if text in ("noon", "midnight"):
        return time(12 if text == "noon" else 0)
    half = text[-2:] if text[-1] == "m" else ""
    hour, minute, second = [*(int(each) for each in text.removesuffix(half).strip().split(":")), 0, 0][:3]
    if half and not 1 <= hour <= 12:
        _no_hour(question, text)
    try:
        return time(hour % 12 + (12 if half == "pm" else 0) if half else hour, minute, second)
    except ValueError:
        _no_hour(question, text)


def _day(question: _Question, text: str) -> date | None:
    if re.fullmatch(_ISO_DAY, text, re.ASCII):
        try:
            return date.fromisoformat(text)
        except ValueError as wrong:
            raise InvalidSpec(f"{question.flag}: {text!r} is not a date ({wrong})", field=question.flag) from None
    return _named_day(question, text) if re.fullmatch(_DAY_WORDS, text, re.ASCII) else None


def _named_day(question: _Question, text: str) -> date | None:
    # Slow to load; only words need it.
    from dateparser.date import DateDataParser

    settings = {
        "RELATIVE_BASE": _wall_now(question),
        "PREFER_DATES_FROM": question.direction.value,
        "PARSERS": ["relative-time", "absolute-time"],
        "DATE_ORDER": "DMY",
        "TIMEZONE": "UTC",  # avoids the zone of the machine, which the library may not know
    }
    found = DateDataParser(languages=["en"], settings=settings).get_date_data(text.removeprefix("the "))
    return found.date_obj.date() if found.date_obj is not None and found.period == "day" else None


def _wall_now(question: _Question) -> datetime:
    """Return the current local time, naive."""
    offset = question.zone.offset_at(question.now // SECOND)
    return (to_datetime(question.now) + timedelta(seconds=offset)).replace(tzinfo=None)


def _at(question: _Question, wall: datetime) -> Moment:
    return at_wall(wall, question.text, field=question.flag, zone=question.zone)


# ── refusals ──────────────────────────────────────────────────────────────────────────────────────────


def _no_hour(question: _Question, text: str) -> NoReturn:
    raise InvalidSpec(f"{question.flag}: {text!r} is not a time of day", field=question.flag)


def _refuse(question: _Question, text: str) -> NoReturn:
    raise InvalidSpec(
        f'{question.flag}: {text!r} is not a time; use such as 2026-11-08, "2026-11-08 14:00", 7d, +30m, '
        '"tomorrow 09:00" or RFC 3339 such as 2026-11-08T14:00:00Z',
        field=question.flag,
    )
