"""What a whole fleet does in a window of time: the occurrences of many schedules as one list, cut where it is long."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice, takewhile
from operator import attrgetter

from horarium.decision.evaluator import Forecaster
from horarium.decision.facts import Facts, Shared
from horarium.decision.forecast import Forecast
from horarium.decision.forecast_rows import Row
from horarium.instant import SECOND, Instant
from horarium.schedule.planning import Planning
from horarium.schedule.position import Position, Status
from horarium.schedule.run import RunState

MAX_ROWS = 5_000


@dataclass(frozen=True, slots=True)
class Entry:
    """One occurrence, or a row of missed ones. `forecast` is what is predicted, where it is not decided yet."""

    at: Instant
    schedule_id: str
    decision: Forecast
    reason: str | None = None
    forecast: Row | None = None
    run_id: bytes | None = None
    state: RunState | None = None
    count: int = 1
    started_at: Instant | None = None
    finished_at: Instant | None = None

    @property
    def predicted(self) -> bool:
        return self.forecast is not None


@dataclass(frozen=True, slots=True)
class Coming:
    """A schedule with what is known of it now; `after` is from where on nothing is decided."""

    schedule_uid: bytes
    schedule_id: str
    planning: Planning
    position: Position
    after: Instant
    facts: Facts
    shared: Shared
    paused_until: Instant | None = None


@dataclass(frozen=True, slots=True)
class Bucket:
    at: Instant
    starts: int
    skips: int


def undecided_after(decided_until: Instant, status: str, start: Instant, now: Instant) -> Instant:
    """From where on a window shows predictions. What falls into a pause before now is nobody's."""
    decided = decided_until if status == Status.ACTIVE else max(decided_until, now)
    return max(decided, start - 1)


def comes_after(row: tuple[Instant, str], due: tuple[Instant, str], jitter: Instant) -> bool:
    """Whether all that is due after `due` comes after `row`; each has the name of its schedule beside it.

    An occurrence is due at most the jitter after its own time, which is its place among the rows.
    """
    at, name = due
    return (at - jitter, "" if jitter else name) >= row


def predict(schedules: Iterable[Coming], *, now: Instant, end: Instant) -> Iterator[Entry]:
    """In the order of time, one by one: whoever stops asking has not paid for the rest of the window."""
    return heapq.merge(*(_entries(each, now, end) for each in schedules), key=_IN_ORDER)


def forecaster_of(coming: Coming, now: Instant) -> Forecaster:
    return Forecaster(
        coming.planning,
        coming.schedule_uid,
        coming.position,
        coming.facts,
        now=now,
        shared=coming.shared,
        paused_until=coming.paused_until,
    )


def _entries(coming: Coming, now: Instant, end: Instant) -> Iterator[Entry]:
    rows = forecaster_of(coming, now).rows(coming.after)
    for row in takewhile(lambda row: row.tick_at < end, rows):
        reason = None if row.reason is None else row.reason.value
        yield Entry(row.tick_at, coming.schedule_id, row.decision, reason, forecast=row)


def arrange(
    decided: Iterable[Entry], predicted: Iterable[Entry], *, limit: int, known_until: Instant | None
) -> tuple[tuple[Entry, ...], bool]:
    """Both as one list of at most `limit` rows, and whether there is more.

    What was decided is known only up to `known_until`, where that is not None: nothing later is shown, lest a gap
    look like silence.
    """
    merged: Iterator[Entry] = heapq.merge(sorted(decided, key=_IN_ORDER), predicted, key=_IN_ORDER)
    if known_until is not None:
        merged = takewhile(lambda entry: entry.at <= known_until, merged)
    found = tuple(islice(merged, limit + 1))
    return found[:limit], len(found) > limit or known_until is not None


def buckets(rows: Iterable[Entry], start: Instant, seconds: int) -> tuple[Bucket, ...]:
    """Only those in which something happens."""
    starts: Counter[int] = Counter()
    skips: Counter[int] = Counter()
    for row in rows:
        counter = starts if row.decision is Forecast.DISPATCH else skips
        counter[(row.at - start) // (seconds * SECOND)] += row.count
    places = sorted(starts.keys() | skips.keys())
    return tuple(Bucket(start + place * seconds * SECOND, starts[place], skips[place]) for place in places)


_IN_ORDER = attrgetter("at", "schedule_id")
