"""Time zones, durations, and the instants that a text means.

A zone is cut into segments of one constant UTC offset. The rules come from the pinned `tzdata` package and never
from the machine, so two processes that run the same version agree about every instant. `zoneinfo` knows offsets but
not transitions: `Zone` finds them by looking at one offset every other day and halving the span in which it changed.
No zone of tzdata changes twice within three days (a test checks this), so these looks miss nothing.

`read_moment` accepts RFC 3339, a length of time from now, or a wall time in a zone:

| written                          | meaning                                                      |
|----------------------------------|--------------------------------------------------------------|
| `2026-11-17T09:00:00+03:00`      | that instant; the seconds are optional                       |
| `4h`, `1h30m`, `PT4H`, `P1D`     | that long after now; a day is 24 hours                       |
| `-4h`, `-P1D`                    | that long before now                                         |
| `now`                            | now, as a whole second                                       |
| `2026-11-17T09:00`               | that wall time in the zone; a blank may replace the `T`      |
| `2026-11-17`                     | the beginning of that day in the zone                        |

A wall time in a gap of the clock is the end of the gap; one that occurs twice is the first of the two, as for
schedules.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import lru_cache
from importlib import resources
from importlib.metadata import version
from typing import NamedTuple
from zoneinfo import ZoneInfo

from horarium.errors import InvalidSpec
from horarium.instant import SECOND, Instant, from_rfc3339

# ── Zones ─────────────────────────────────────────────────────────────────────────────────────────────


# 2**25 seconds are about 388 days: a look-up is one shift, a survey about a tenth of a millisecond.
_BLOCK_BITS = 25
_DAY = 86_400
# Surveys are a memo, not a store: a caller who asks for far centuries must not fill the memory.
_MAX_BLOCKS = 256
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

# Within these bounds `datetime` can do all the arithmetic; nobody schedules beyond them.
EARLIEST = -2_208_988_800  # 1900-01-01
LATEST = 250_000_000_000  # the year 9892


class Segment(NamedTuple):
    """`[start, stop)` in epoch seconds with one offset; `before` and `after` are the neighbours' offsets.

    A neighbour may have the same offset: segments are also cut where a survey ended.
    """

    start: int
    stop: int
    offset: int
    before: int
    after: int


class Zone:
    """One zone of tzdata; its answers are pure functions of the instant, memoised by block."""

    __slots__ = ("_blocks", "_info", "key")

    def __init__(self, key: str, info: ZoneInfo) -> None:
        self.key = key
        self._info = info
        self._blocks: dict[int, tuple[Segment, ...]] = {}

    def __repr__(self) -> str:
        return f"Zone({self.key!r})"

    def segment_at(self, instant: int) -> Segment:
        block = instant >> _BLOCK_BITS
        segments = self._blocks.get(block) or self._survey(block)
        for segment in segments:
            if instant < segment[1]:
                return segment
        raise AssertionError("a survey covers its whole block")

    def offset_at(self, instant: int) -> int:
        """Seconds east of UTC."""
        return self.segment_at(instant).offset

    def _survey(self, block: int) -> tuple[Segment, ...]:
        first, last = block << _BLOCK_BITS, (block + 1) << _BLOCK_BITS
        cuts = [first]
        offsets = [self._offset(first)]
        looked = first
        while looked < last:
            ahead = min(looked + 2 * _DAY, last)
            offset = self._offset(ahead)
            if offset != offsets[-1]:
                change = self._halve(looked, ahead, offsets[-1])
                if change < last:
                    cuts.append(change)
                    offsets.append(offset)
            looked = ahead
        around = [self._offset(first - 1), *offsets, self._offset(last)]
        segments = tuple(
            Segment(start, stop, around[i + 1], around[i], around[i + 2])
            for i, (start, stop) in enumerate(zip(cuts, [*cuts[1:], last], strict=True))
        )
        if len(self._blocks) >= _MAX_BLOCKS:
            self._blocks.clear()
        self._blocks[block] = segments
        return segments

    def _offset(self, instant: int) -> int:
        local = (_EPOCH + timedelta(seconds=instant)).astimezone(self._info)
        offset = local.utcoffset()
        assert offset is not None  # ZoneInfo always knows
        return offset.days * _DAY + offset.seconds

    def _halve(self, low: int, high: int, old: int) -> int:
        """The first instant in (low, high] whose offset is not `old`."""
        while high - low > 1:
            middle = (low + high) // 2
            if self._offset(middle) == old:
                low = middle
            else:
                high = middle
        return high


@lru_cache(maxsize=1)
def zone_names() -> frozenset[str]:
    """Every name that tzdata has, aliases such as `US/Eastern` included."""
    listed = resources.files("tzdata").joinpath("zones").read_text("utf-8")
    return frozenset(listed.split()) - {"Factory"}  # Factory means "not set up"


@lru_cache(maxsize=1_024)
def load_zone(name: str) -> Zone:
    if name not in zone_names():
        raise InvalidSpec(f"timezone: {_unknown(name)}", field="timezone")
    with resources.files("tzdata").joinpath("zoneinfo", *name.split("/")).open("rb") as file:
        return Zone(name, ZoneInfo.from_file(file, key=name))


def tzdata_version() -> str:
    """The version of the installed `tzdata` package, such as `2026.6`."""
    return version("tzdata")


def _unknown(name: str) -> str:
    if not name:
        return "must not be empty; use UTC or a name such as Europe/Istanbul"
    if len(name) > 64:
        return f"{name[:12]!a}… is too long for a time zone name"
    lower = name.lower()
    # Alike in their first letter and about as long: comparing with all six hundred names takes milliseconds.
    near = {
        known.lower(): known
        for known in zone_names()
        if known[0].lower() == lower[0] and abs(len(known) - len(name)) <= 3
    }
    close = [lower] if lower in near else difflib.get_close_matches(lower, near, n=1, cutoff=0.75)
    hint = f"; did you mean {near[close[0]]}?" if close else "; use a name such as Europe/Istanbul"
    return f"{name!r} is not a time zone of the tz database{hint}"


# ── Durations ─────────────────────────────────────────────────────────────────────────────────────────


MINUTE = 60
HOUR = 3_600
DAY = 86_400
WEEK = 604_800
_LONGEST = 36_525 * DAY  # a hundred years; beyond it somebody mistyped

_DURATION = re.compile(
    r"P(?:(?P<weeks>\d{1,9})W)?(?:(?P<days>\d{1,9})D)?"
    r"(?:T(?=\d)(?:(?P<hours>\d{1,9})H)?(?:(?P<minutes>\d{1,9})M)?(?:(?P<seconds>\d{1,9})S)?)?",
    re.ASCII,
)
_CALENDAR_PART = re.compile(r"P[^T]*\d[YM]", re.ASCII)
# As a person writes it. Patterns are compiled where they are used: most texts are ISO-8601.
_SHORT = {"s": 1, "m": MINUTE, "h": HOUR, "d": DAY, "w": WEEK}
_UNIT = r"(s(?:ec(?:ond)?s?)?|m(?:in(?:ute)?s?)?|h(?:(?:ou)?rs?)?|d(?:ays?)?|w(?:eeks?)?)"
_STEP = rf"(\d{{1,9}})\s*{_UNIT}(?![a-z])\s*"
_UNITS = {"weeks": WEEK, "days": DAY, "hours": HOUR, "minutes": MINUTE, "seconds": 1}


def parse_duration(text: str, *, field: str) -> int:
    """`PT30M` → 1800. Months and years are refused: they have no fixed length."""
    upper = text.upper() if len(text) <= 64 else ""
    match = _DURATION.fullmatch(upper)
    if match is None or not any(match.groups()):
        raise InvalidSpec(f"{field}: {_why_not(text, upper)}", field=field)
    seconds = sum(int(match[name]) * unit for name, unit in _UNITS.items() if match[name])
    if seconds > _LONGEST:
        raise InvalidSpec(f"{field}: {text!r} exceeds 100 years", field=field)
    return seconds


def read_length(text: str, *, field: str) -> int | None:
    """`1h30m`, `7 days` or `PT30M` → seconds; None = it is no length of time at all.

    Raises InvalidSpec for ISO-8601 that cannot be meant, and for more than a hundred years.
    """
    lower = " ".join(text.lower().split()) if len(text) <= 64 else ""
    if re.fullmatch(rf"(?:{_STEP})+", lower, re.ASCII):
        seconds = sum(int(count) * _SHORT[unit[0]] for count, unit in re.findall(_STEP, lower, re.ASCII))
        if seconds > _LONGEST:
            raise InvalidSpec(f"{field}: {text!r} exceeds 100 years", field=field)
        return seconds
    if lower.startswith("p") and any(each.isdigit() for each in lower):
        return parse_duration(lower, field=field)
    return None


def format_duration(seconds: int) -> str:
    """The shortest usual form: 5400 → `PT1H30M`, 86400 → `P1D`."""
    if seconds == 0:
        return "PT0S"
    days, rest = divmod(seconds, DAY)
    hours, rest = divmod(rest, HOUR)
    minutes, rest = divmod(rest, MINUTE)
    date_part = f"{days}D" if days else ""
    time_part = "".join(f"{n}{unit}" for n, unit in ((hours, "H"), (minutes, "M"), (rest, "S")) if n)
    return f"P{date_part}" + (f"T{time_part}" if time_part else "")


def _why_not(text: str, upper: str) -> str:
    if not upper:
        return "must not be empty" if not text else f"{text[:20]!r}… is too long for a duration"
    if _CALENDAR_PART.match(upper):
        return f"{text!r}: months and years have no fixed length; use a cron expression such as `0 0 1 * *`"
    if "." in upper or "," in upper:
        return f"{text!r}: must contain only integers; the smallest unit is one second"
    return f"{text!r} is not an ISO-8601 duration such as PT30M, PT1H or P1D"


# ── Moments ───────────────────────────────────────────────────────────────────────────────────────────


MAX_TEXT = 64
_NOW = "now"
# Patterns are compiled where they are used: most requests and commands are given no time.
_EXACT_INSTANT = r"(\d{4}-\d\d-\d\d)[tT ](\d\d:\d\d)(:\d\d(?:\.\d+)?)?([zZ]|[+-]\d\d:\d\d)"
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
    exact = re.fullmatch(_EXACT_INSTANT, text, re.ASCII)
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
