"""Which instant somebody means: RFC 3339, a length of time from now, or what the clock on the wall of a zone shows.

| written                          | means                                                                          |
|----------------------------------|--------------------------------------------------------------------------------|
| `2026-11-17T09:00:00+03:00`      | what it says; the seconds may be left out                                      |
| `4h`, `1h30m`, `PT4H`, `P1D`     | so long after now; a day is 24 hours                                           |
| `-4h`, `-P1D`                    | so long before now                                                             |
| `now`                            | now, as a whole second                                                         |
| `2026-11-17T09:00`               | when the clock on the wall of the zone shows it; a blank may stand for the `T` |
| `2026-11-17`                     | when that day begins there                                                     |

A wall time that the clock leaps over is the moment of the leap; one that it shows twice is the first of the two, as
for schedules.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

from horarium.errors import InvalidSpec
from horarium.instant import SECOND, Instant, from_rfc3339
from horarium.recurrence.duration import DAY, read_length
from horarium.recurrence.zone import EARLIEST, LATEST, Zone

MAX_TEXT = 64
_NOW = "now"
# Patterns are compiled where they are used: most requests and commands are given no time.
_EXACT = r"(\d{4}-\d\d-\d\d)[tT ](\d\d:\d\d)(:\d\d(?:\.\d+)?)?([zZ]|[+-]\d\d:\d\d)"
_WALL = r"(\d{4}-\d\d-\d\d)(?:[tT ](\d\d:\d\d(?::\d\d)?))?"


class Wall(StrEnum):
    """Local times that exist once, never or twice."""

    ONCE = "once"
    LEAPT = "leapt"
    TWICE = "twice"


@dataclass(frozen=True, slots=True)
class Moment:
    """`exact`: it was written as RFC 3339, so there is nothing to explain."""

    instant: Instant
    exact: bool = False
    wall: Wall = Wall.ONCE


def read_moment(text: str, *, field: str, now: Instant, zone: Zone | None) -> Moment:
    """Raises InvalidSpec in words that name the field, also for a wall time where there is no zone."""
    if len(text) > MAX_TEXT:
        raise InvalidSpec(f"{field}: {text[:20]!r}… is too long for a time", field=field)
    plain = " ".join(text.split())
    exact = exactly(plain, field=field)
    if exact is not None:
        return exact
    if plain.lower() == _NOW:
        return from_now(0, plain, field=field, now=now)
    length = read_length(plain.removeprefix("-"), field=field)
    if length is not None:
        return from_now(-length if plain.startswith("-") else length, plain, field=field, now=now)
    written = re.fullmatch(_WALL, plain, re.ASCII)
    if written is None:
        raise InvalidSpec(
            f"{field}: {text!r} is not a time; use RFC 3339 such as 2026-11-17T09:00:00Z, a duration such as 4h "
            "or P1D, or a local time such as 2026-11-17T09:00",
            field=field,
        )
    return _read_wall(plain, written[1], written[2] or "00:00", field, zone)


def exactly(text: str, *, field: str) -> Moment | None:
    """None = it is written in another way."""
    exact = re.fullmatch(_EXACT, text, re.ASCII)
    if exact is None:
        return None
    day, clock, seconds, offset = exact.groups()
    return Moment(from_rfc3339(f"{day}T{clock}{seconds or ':00'}{offset}", field=field), exact=True)


def from_now(seconds: int, text: str, *, field: str, now: Instant) -> Moment:
    """In whole seconds; before now where they are negative."""
    moved = now - now % SECOND + seconds * SECOND
    if not EARLIEST * SECOND <= moved <= LATEST * SECOND:
        raise _out_of_years(text, field)
    return Moment(moved)


def at_wall(wall: datetime, text: str, *, field: str, zone: Zone) -> Moment:
    """`wall` is naive: what the clock shows."""
    seconds = int(wall.replace(tzinfo=UTC).timestamp())
    if not EARLIEST + 2 * DAY <= seconds <= LATEST - 2 * DAY:
        raise _out_of_years(text, field)
    instant, how = _instant_of(zone, seconds)
    return Moment(instant * SECOND, wall=how)


def _read_wall(text: str, day: str, clock: str, field: str, zone: Zone | None) -> Moment:
    if zone is None:
        raise InvalidSpec(
            f"{field}: {text!r} is a local time without a time zone; set timezone, such as Europe/Istanbul, "
            "or append Z or an offset",
            field=field,
        )
    try:
        wall = datetime.fromisoformat(f"{day}T{clock}")
    except ValueError as wrong:
        raise InvalidSpec(f"{field}: {text!r} does not exist ({wrong})", field=field) from None
    return at_wall(wall, text, field=field, zone=zone)


def _instant_of(zone: Zone, wall: int) -> tuple[int, Wall]:
    """No zone changes its clock twice within three days, so the offsets a day before and after are all there are."""
    before, after = zone.offset_at(wall - DAY * 3 // 2), zone.offset_at(wall + DAY * 3 // 2)
    shown = sorted({wall - offset for offset in (before, after) if zone.offset_at(wall - offset) == offset})
    if shown:
        return shown[0], Wall.TWICE if len(shown) > 1 else Wall.ONCE
    segment = zone.segment_at(wall - before)
    while segment.before == segment.offset:  # cut where a survey ended, not where the clock leapt
        segment = zone.segment_at(segment.start - 1)
    return segment.start, Wall.LEAPT


def _out_of_years(text: str, field: str) -> InvalidSpec:
    return InvalidSpec(f"{field}: {text!r} is outside the years 1900 to 9892", field=field)
