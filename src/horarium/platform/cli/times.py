"""Time options of commands: an option `--tz`, and one line on stderr for each interpreted time.

@with_options(times=time_options, remote=remote_options)
    def pause_command(remote: Remote, times: Times, until: Until = None) -> None:
        moment = times.future("--until", until)

Results are RFC 3339 in UTC; None stays None.

A time is RFC 3339, a day, a local time, a duration from now, or words such as `tomorrow 09:00`.

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

import os
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, overload

import typer

from horarium.core.recurrence.zone import (
    MAX_TEXT,
    Moment,
    Wall,
    Zone,
    at_wall,
    exactly,
    from_now,
    load_zone,
    read_length,
)
from horarium.errors import InvalidSpec
from horarium.instant import SECOND, Instant, to_datetime, to_rfc3339
from horarium.platform.cli import options
from horarium.platform.cli.streams import local_time, talk
from horarium.platform.clock import SystemClock

if TYPE_CHECKING:
    from horarium.platform.cli.remote import Remote


# ── parsing ───────────────────────────────────────────────────────────────────────────────────────────


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


TIME = "TIME"
"""The metavar of every time option."""
VARIABLE = "HORARIUM_TZ"


def _zone_option(default: str) -> Any:
    return typer.Option(
        "--tz",
        metavar="ZONE",
        show_default=f"{VARIABLE}, else {default}",
        help="Time zone of local times and days.",
        autocompletion=options.zones,
    )


TimeZone = Annotated[str | None, _zone_option("UTC")]
_OfSchedule = Annotated[str | None, _zone_option("that of the schedule")]
_OfOneOrMany = Annotated[str | None, _zone_option("that of the schedule; UTC for several")]

_WALLS = {
    Wall.ONCE: "",
    Wall.LEAPT: "; the local time does not exist (DST), the time of the clock change is used",
    Wall.TWICE: "; the local time is ambiguous (DST), the first is used",
}


@dataclass(frozen=True, slots=True)
class Times:
    """Parses times in the zone `tz`, else HORARIUM_TZ, else `default`, else UTC; zones are loaded on demand."""

    tz: str | None = None
    flag: str = "--tz"
    default: Callable[[], str] | None = None

    def of_schedule(self, remote: Remote, schedule_id: str) -> Times:
        """Read local times in the zone of the schedule."""
        return replace(self, default=lambda: _zone_of(remote, schedule_id))

    @overload
    def future(self, flag: str, text: str) -> str: ...
    @overload
    def future(self, flag: str, text: str | None) -> str | None: ...
    def future(self, flag: str, text: str | None) -> str | None:
        """Read a time; a bare duration is in the future."""
        return None if text is None else self._read(flag, text, Direction.FUTURE)

    @overload
    def past(self, flag: str, text: str) -> str: ...
    @overload
    def past(self, flag: str, text: str | None) -> str | None: ...
    def past(self, flag: str, text: str | None) -> str | None:
        """Read a time; a bare duration is in the past."""
        return None if text is None else self._read(flag, text, Direction.PAST)

    def _read(self, flag: str, text: str, direction: Direction) -> str:
        zone, now = self._zone(), SystemClock().now()
        found = read_moment(text, flag=flag, now=now, zone=zone, direction=direction)
        if self.default is not None and not self._configured_zone() and is_local(text, flag=flag):
            zone = load_zone(self.default())  # requested only for a local time
            found = read_moment(text, flag=flag, now=now, zone=zone, direction=direction)
        if not found.exact:
            talk(f"{flag}: {understood(found, zone)}")
        return to_rfc3339(found.instant)

    def _configured_zone(self) -> str | None:
        return self.tz or os.environ.get(VARIABLE)

    def _zone(self) -> Zone:
        try:
            return load_zone(self._configured_zone() or "UTC")
        except InvalidSpec as wrong:
            flag = self.flag if self.tz else VARIABLE
            raise InvalidSpec(f"{flag}: {wrong.message.removeprefix('timezone: ')}", field=flag) from None


def time_options(tz: TimeZone = None) -> Times:
    return Times(tz)


def schedule_time_options(tz: _OfSchedule = None) -> Times:
    return Times(tz)


def schedules_time_options(tz: _OfOneOrMany = None) -> Times:
    return Times(tz)


def _zone_of(remote: Remote, schedule_id: str) -> str:
    found = remote.client.describe_schedule(schedule_id)
    if found.broken is not None:
        raise InvalidSpec("--tz: the schedule is unreadable, so its time zone is unknown; set --tz", field="--tz")
    return found.spec.get("timezone") or "UTC"


def understood(moment: Moment, zone: Zone) -> str:
    """Return such as `2026-11-08T06:00:00Z (Sun 2026-11-08 09:00:00 +03:00, Europe/Istanbul)`."""
    local = "" if zone.key == "UTC" else f" ({local_time(moment.instant, zone)}, {zone.key})"
    return f"{to_rfc3339(moment.instant)}{local}{_WALLS[moment.wall]}"
