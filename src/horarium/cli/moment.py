"""What a person means by a time: RFC 3339, a day, a local time, a span from now, or words such as `tomorrow 09:00`.

RFC 3339 is read first and means what it says. Everything else is read in a zone:

| written                            | means                                                                      |
|------------------------------------|----------------------------------------------------------------------------|
| `now`                              | this second                                                                |
| `7d`, `1h30m`, `PT30M`             | so long from now; whether before or after is said by the option            |
| `+30m`, `in 30m`, `-7d`, `7d ago`  | after now, before now; a day is 24 hours, a week is 7 days                 |
| `2026-11-08`                       | when that day begins                                                       |
| `2026-11-08 14:00`, `…T14:00:30`   | when the clock on the wall shows it                                        |
| `14:00`, `9am`, `noon`             | the next or the last time it shows that, as the option says                |
| `tomorrow`, `friday`, `8 Nov 2027` | when that day begins; an hour may follow                                   |

A wall time that the clock leaps over is the moment of the leap; one that it shows twice is the first of the two, as
for schedules.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from enum import StrEnum
from typing import NoReturn

from horarium.errors import InvalidSpec
from horarium.instant import SECOND, Instant, to_datetime
from horarium.recurrence.duration import read_length
from horarium.recurrence.moment import MAX_TEXT, Moment, at_wall, exactly, from_now
from horarium.recurrence.zone import Zone, load_zone

# Patterns are compiled where they are used: most commands are given no time, or RFC 3339.
_CLOCK = r"(?P<clock>\d{1,2}:\d\d(?::\d\d)?(?:\s*[ap]m)?|\d{1,2}\s*[ap]m|noon|midnight)"
_DAY_AND_CLOCK = rf"(?P<day>.+?)(?:(?:\s+at)?\s+|(?<=\d)t){_CLOCK}"
_ISO_DAY = r"\d{4}-\d\d-\d\d"
_WEEKDAY = r"(?:mon(?:day)?|tue(?:s(?:day)?)?|wed(?:nesday)?|thu(?:rs(?:day)?)?|fri(?:day)?|sat(?:urday)?|sun(?:day)?)"
_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)"
)
_NUMBER = r"\d{1,2}(?:st|nd|rd|th)?"
# The library guesses at whatever it is given ("a" is January, "tomorrow 9" is tomorrow): it is given these alone.
_DAY_WORDS = (
    r"today|tomorrow|yesterday|(?:the )?day (?:after tomorrow|before yesterday)"
    rf"|(?:(?:next|last|this) )?{_WEEKDAY}"
    rf"|{_NUMBER} {_MONTH}(?:,? \d{{4}})?|{_MONTH} {_NUMBER}(?:,? \d{{4}})?"
)


class Direction(StrEnum):
    """Where a time lies that does not say it: what a bare `7d`, `14:00` or `friday` is."""

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
    """Raises InvalidSpec in words that name the flag. What is no RFC 3339 comes out in whole seconds."""
    if len(text) > MAX_TEXT:
        raise InvalidSpec(f"{flag}: {text[:20]!r}… is far too long for a time", field=flag)
    exact = exactly(text, field=flag)
    if exact is not None:
        return exact
    question = _Question(flag, " ".join(text.lower().split()), now - now % SECOND, zone, direction)
    return _now(question) or _from_now(question) or _on_the_wall(question) or _refuse(question, text)


def is_local(text: str, *, flag: str) -> bool:
    """Whether it means something in a zone alone: it is no RFC 3339, no span, and not `now`."""
    if len(text) > MAX_TEXT or exactly(text, field=flag) is not None:
        return False
    question = _Question(flag, " ".join(text.lower().split()), 0, load_zone("UTC"), Direction.FUTURE)
    return _now(question) is None and read_length(_sign(question)[1], field=flag) is None


def read_span(text: str, *, flag: str) -> int:
    """Seconds; how long and not when: `30s`, `1h30m`, `PT30M`, or a bare number of seconds."""
    lower = " ".join(text.lower().split()) if len(text) <= MAX_TEXT else ""
    is_bare = lower.isascii() and lower.isdigit() and len(lower) < 10
    length = int(lower) if is_bare else read_length(lower, field=flag)
    if not length:
        shown = f"{text[:MAX_TEXT]!r}"
        raise InvalidSpec(f"{flag}: {shown} is no length of time; write 30s, 10m, 1h30m or PT1H", field=flag)
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
    """Now itself is not yet over, and not yet past."""
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
            raise InvalidSpec(f"{question.flag}: {text!r} is no day ({wrong})", field=question.flag) from None
    return _named_day(question, text) if re.fullmatch(_DAY_WORDS, text, re.ASCII) else None


def _named_day(question: _Question, text: str) -> date | None:
    # It takes a tenth of a second to load, and only words need it.
    from dateparser.date import DateDataParser

    settings = {
        "RELATIVE_BASE": _wall_now(question),
        "PREFER_DATES_FROM": question.direction.value,
        "PARSERS": ["relative-time", "absolute-time"],
        "DATE_ORDER": "DMY",
        "TIMEZONE": "UTC",  # else it asks for the zone of the machine, which may be one that it does not know
    }
    found = DateDataParser(languages=["en"], settings=settings).get_date_data(text.removeprefix("the "))
    return found.date_obj.date() if found.date_obj is not None and found.period == "day" else None


def _wall_now(question: _Question) -> datetime:
    """Naive: what the clock on the wall shows."""
    offset = question.zone.offset_at(question.now // SECOND)
    return (to_datetime(question.now) + timedelta(seconds=offset)).replace(tzinfo=None)


def _at(question: _Question, wall: datetime) -> Moment:
    return at_wall(wall, question.text, field=question.flag, zone=question.zone)


# ── refusals ──────────────────────────────────────────────────────────────────────────────────────────


def _no_hour(question: _Question, text: str) -> NoReturn:
    raise InvalidSpec(f"{question.flag}: {text!r} is no time of a day", field=question.flag)


def _refuse(question: _Question, text: str) -> NoReturn:
    raise InvalidSpec(
        f'{question.flag}: {text!r} is no time; write 2026-11-08, "2026-11-08 14:00", 7d, +30m, "tomorrow 09:00" '
        "or RFC 3339 such as 2026-11-08T14:00:00Z",
        field=question.flag,
    )
