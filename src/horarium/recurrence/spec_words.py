"""What a whole spec says in words: its crons, intervals and single times as one sentence, with the zone at its end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from horarium.errors import InvalidSpec
from horarium.recurrence.cron import has_hash
from horarium.recurrence.interval import parse_interval
from horarium.recurrence.spec import split_zone
from horarium.recurrence.words import describe, duration_words

MOST_PARTS: Final = 4
"""Maximum parts in the text; the others are counted."""

# A spec may have ten thousand single times: what is that long is put into words again.
_REMEMBERED: Final = 20
_EPOCH = ", counted from the Unix epoch in UTC"


def spec_words(spec: Mapping[str, Any], key: str) -> str | None:
    """Describe the spec of a stored document in words, or None if there are none. `key` is the schedule's id."""
    crons, at = tuple(spec.get("cron_expressions") or ()), tuple(spec.get("at") or ())
    intervals = tuple((each["every"], each.get("offset")) for each in spec.get("intervals") or ())
    # Only an expression with `H` depends on the schedule: all others share their words.
    words = _words if len(crons) + len(intervals) + len(at) <= _REMEMBERED else _words.__wrapped__
    return words(crons, intervals, at, spec.get("timezone"), key if any(map(has_hash, crons)) else "")


@lru_cache(maxsize=16_384)
def _words(
    crons: Sequence[str], intervals: Sequence[tuple[str, str | None]], at: Sequence[str], zone: str | None, key: str
) -> str | None:
    try:
        parts = [describe(_without_zone(each), key=key or None).removesuffix(_EPOCH) for each in crons[:MOST_PARTS]]
        parts += [_interval(*each) for each in intervals[: MOST_PARTS - len(parts)]]
        zones = [zone, *(split_zone(each)[0] for each in crons)]
    except InvalidSpec:
        return None
    if at and len(parts) < MOST_PARTS:
        parts.append(_single(at))
    more = len(crons) + len(intervals) + bool(at) - len(parts)
    if more:
        parts.append(f"{more} more")
    sentence = "; and ".join(filter(None, ["; ".join(parts[:-1]), *parts[-1:]]))
    if not crons:
        return sentence or None
    name = next((each for each in zones if each is not None), "UTC")
    return f"{sentence} ({name if name == 'UTC' else f'{name} time'})"


def _without_zone(expr: str) -> str:
    return split_zone(expr)[1]


def _interval(every: str, offset: str | None) -> str:
    grid = parse_interval(every, offset)
    length = duration_words(grid.every)
    words = f"every {length.removeprefix('1 ') if length.count(' ') == 1 else length}"
    return f"{words}, offset by {duration_words(grid.offset)}" if grid.offset else words


def _single(at: Sequence[str]) -> str:
    return f"once at {at[0]}" if len(at) == 1 else f"at {len(at):,} one-time runs, the first at {min(at)}"
