"""What a clock on the wall shows: a zone cut into segments of one constant UTC offset.

The rules come from the pinned `tzdata` package and never from the machine, so two processes that
run the same version agree about every instant. `zoneinfo` knows offsets but not transitions; they
are found by looking at one offset every other day and halving the span in which it changed. No zone
of tzdata changes twice within three days (a test looks), so these looks miss nothing.
"""

from __future__ import annotations

import difflib
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from importlib import resources
from importlib.metadata import version
from typing import NamedTuple
from zoneinfo import ZoneInfo

from horarium.errors import InvalidSpec

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
