"""Differences between the fires of Celery's own class and those of the translated spec.

Both are computed in the same stretches of the coming year. A moment that only one of them has is added or lost;
where each has one of its own within three hours, and none of the other's is nearer, it has moved.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from itertools import islice, takewhile
from typing import Any

from horarium.compat.celery_beat.entries import FireSpan
from horarium.compat.celery_beat.translation import Translation
from horarium.core.document.calendar import CalendarDefinition, check
from horarium.core.recurrence.spec import Spec, compile_spec
from horarium.core.recurrence.zone import Zone
from horarium.instant import SECOND, from_rfc3339

MAX_DIFFERENCES = 1_000
"""Of one entry; the others are counted."""

# Of one stretch: what is denser was stepped through in shorter ones.
_MAX_FIRES = 100_000
_NEAR = 3 * 3_600
# A job of the day after a clock change may still be early or late by it.
_AROUND_CHANGE = 26 * 3_600


class BeatChange(StrEnum):
    ADDED = "added"
    LOST = "lost"
    MOVED = "moved"


@dataclass(frozen=True, slots=True)
class BeatDifference:
    """`before` is when beat sends it, `after` when it fires here; both are epoch seconds."""

    change: BeatChange
    before: int | None
    after: int | None
    why: str


@dataclass(frozen=True, slots=True)
class BeatComparison:
    """`spans` are the stretches that were looked at; `differences` the first ones of `count`."""

    spans: tuple[tuple[int, int], ...]
    fires_before: int
    fires_after: int
    count: int
    differences: tuple[BeatDifference, ...]


def compare(translation: Translation) -> BeatComparison | None:
    """None where there is nothing to compare: no schedule, no grid, or a class that could not be asked."""
    document, spans = translation.document, translation.entry.spans
    if document is None or not spans or not translation.has_grid:
        return None
    spec = _compiled(document["spec"], translation.schedule_id)
    before = {moment for span in spans for moment in span.fires if _in_window(spec, moment)}
    after = {moment for span in spans for moment in _fires(spec, translation.calendar, span)}
    if document.get("max_runs") is not None:
        before, after = _first(before), _first(after)
    found = list(_paired(sorted(before - after), sorted(after - before), spec.zone))
    return BeatComparison(
        tuple((span.after, span.until) for span in spans),
        len(before),
        len(after),
        len(found),
        tuple(found[:MAX_DIFFERENCES]),
    )


def _compiled(spec: Mapping[str, Any], key: str) -> Spec:
    moments = {name: from_rfc3339(text) for name, text in spec.items() if name in ("start_at", "end_at")}
    return compile_spec(**{**spec, **moments}, key=key)


def _in_window(spec: Spec, moment: int) -> bool:
    instant = moment * SECOND
    return (spec.start_at is None or instant >= spec.start_at) and (spec.end_at is None or instant <= spec.end_at)


def _fires(spec: Spec, calendar: CalendarDefinition | None, span: FireSpan) -> Iterator[int]:
    """Ours in the same stretch."""
    last = span.until * SECOND
    ours = takewhile(lambda each: each <= last, spec.occurrences(span.after * SECOND))
    for nominal in islice(ours, _MAX_FIRES):
        if calendar is None or check([calendar], nominal, spec.zone.key) is None:
            yield nominal // SECOND


def _first(moments: Iterable[int]) -> set[int]:
    return {min(moments)} if moments else set()


def _paired(lost: list[int], added: list[int], zone: Zone) -> Iterator[BeatDifference]:
    """In the order of time; each moment is told once."""
    i = j = 0
    while i < len(lost) or j < len(added):
        if i < len(lost) and j < len(added) and abs(lost[i] - added[j]) <= _NEAR:
            yield BeatDifference(BeatChange.MOVED, lost[i], added[j], _why(BeatChange.MOVED, lost[i], zone))
            i, j = i + 1, j + 1
        elif j == len(added) or (i < len(lost) and lost[i] < added[j]):
            yield BeatDifference(BeatChange.LOST, lost[i], None, _why(BeatChange.LOST, lost[i], zone))
            i += 1
        else:
            yield BeatDifference(BeatChange.ADDED, None, added[j], _why(BeatChange.ADDED, added[j], zone))
            j += 1


def _why(change: BeatChange, moment: int, zone: Zone) -> str:
    segment = zone.segment_at(moment)
    if moment - segment.start <= _AROUND_CHANGE and segment.before != segment.offset:
        return _at_change(change, segment.start, segment.before, segment.offset)
    if segment.stop - moment <= _AROUND_CHANGE and segment.after != segment.offset:
        return _at_change(change, segment.stop, segment.offset, segment.after)
    return "beat and Horarium compute this time differently"


def _at_change(change: BeatChange, at: int, before: int, after: int) -> str:
    old, new = _wall(at + before), _wall(at + after)
    if after > before:
        what = {
            BeatChange.ADDED: f"beat skips a time in this gap; Horarium fires at {new}",
            BeatChange.LOST: "beat sends a time in this gap later; Horarium skips it if its expression contains a star",
            BeatChange.MOVED: f"beat sends a time in this gap later by the length of the gap; Horarium fires at {new}",
        }
        return f"DST: the clock moves forward from {old} to {new}; {what[change]}"
    what = {
        BeatChange.ADDED: "beat sends nothing in one of the two repeated hours",
        BeatChange.LOST: "beat sends in both of the repeated hours",
        BeatChange.MOVED: "beat uses the other of the two repeated hours",
    }
    return f"DST: the clock moves back from {old} to {new}; {what[change]}"


def _wall(local: int) -> str:
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=local)).strftime("%H:%M")
