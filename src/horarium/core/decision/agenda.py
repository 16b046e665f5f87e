"""Agenda of many schedules: their occurrences in a window of time as one list, cut where it is long."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice, takewhile
from operator import add, attrgetter
from typing import Final, NamedTuple, TypeVar

from horarium.core.decision.evaluator import Forecaster
from horarium.core.decision.facts import Facts, SharedFacts
from horarium.core.decision.forecast import ForecastRow
from horarium.core.decision.guards import CalendarSpans
from horarium.core.decision.statuses import Forecast
from horarium.core.document.planning import Planning
from horarium.core.document.states import Position, Reason, RunState, Status
from horarium.core.recurrence.spec import Spec
from horarium.instant import SECOND, Instant

T = TypeVar("T")

MAX_ROWS = 5_000
MISSED_REASONS: Final = frozenset({Reason.MISSED, Reason.CATCHUP_CAP})
"""The reasons of occurrences that no scheduler decided in time."""


@dataclass(slots=True)  # thousands for each answer: `frozen` would double the cost of making one
class AgendaEntry:
    """One occurrence, or a row of missed ones. `forecast` is what is predicted, where it is not decided yet."""

    at: Instant
    schedule_id: str
    decision: Forecast
    reason: str | None = None
    forecast: ForecastRow | None = None
    run_id: bytes | None = None
    state: RunState | None = None
    count: int = 1
    started_at: Instant | None = None
    finished_at: Instant | None = None
    held: bool = False

    @property
    def predicted(self) -> bool:
        return self.forecast is not None


@dataclass(frozen=True, slots=True)
class AgendaSource:
    """A schedule with what is known of it now; `after` is from where on nothing is decided."""

    schedule_uid: bytes
    schedule_id: str
    planning: Planning
    position: Position
    after: Instant
    facts: Facts
    shared: SharedFacts
    paused_until: Instant | None = None


@dataclass(frozen=True, slots=True)
class Bucket:
    at: Instant
    starts: int
    skips: int


def undecided_after(
    decided_until: Instant, status: str, start: Instant, now: Instant, paused_until: Instant | None
) -> Instant:
    """Return after which instant a window shows predictions: no decision is due about what fell into a pause."""
    rests_until = now if paused_until is None else min(now, paused_until - 1)
    decided = decided_until if status == Status.ACTIVE else max(decided_until, rests_until)
    return max(decided, start - 1)


def comes_after(row: tuple[Instant, str], due: tuple[Instant, str], jitter: Instant) -> bool:
    """Tell whether all that is due after `due` comes after `row`; each has the name of its schedule.

    An occurrence is due at most the jitter after its own time, which is its place among the rows.
    """
    at, name = due
    return (at - jitter, "" if jitter else name) >= row


def predict(schedules: Iterable[AgendaSource], *, now: Instant, end: Instant) -> Iterator[AgendaEntry]:
    """In the order of time, one by one: whoever stops asking has not paid for the rest of the window."""
    spans = CalendarSpans()
    return heapq.merge(*(_entries(each, now, end, spans) for each in schedules), key=_IN_ORDER)


def forecaster_of(coming: AgendaSource, now: Instant, spans: CalendarSpans | None = None) -> Forecaster:
    return Forecaster(
        coming.planning,
        coming.schedule_uid,
        coming.position,
        coming.facts,
        now=now,
        shared=coming.shared,
        paused_until=coming.paused_until,
        spans=spans,
    )


def _entries(coming: AgendaSource, now: Instant, end: Instant, spans: CalendarSpans) -> Iterator[AgendaEntry]:
    name = coming.schedule_id
    for row in _as_far_as_read(lambda: forecaster_of(coming, now, spans).rows(coming.after)):
        if row.tick_at >= end:
            return
        reason = None if row.reason is None else row.reason.value
        yield AgendaEntry(row.tick_at, name, row.decision, reason, row, held=row.held)


def _as_far_as_read(predict: Callable[[], Iterable[T]]) -> Iterator[T]:
    """Predict one of many schedules. One whose stored numbers make no sense hides no other; the tick parks it."""
    with suppress(ValueError, TypeError, ArithmeticError, LookupError, AttributeError):
        yield from predict()


def arrange(
    decided: Iterable[AgendaEntry], predicted: Iterable[AgendaEntry], *, limit: int, known_until: Instant | None
) -> tuple[tuple[AgendaEntry, ...], bool]:
    """Both as one list of at most `limit` rows, and whether there is more.

    What was decided is known only up to `known_until`, where that is not None: nothing later is shown, lest a gap
    look like silence.
    """
    merged: Iterator[AgendaEntry] = heapq.merge(sorted(decided, key=_IN_ORDER), predicted, key=_IN_ORDER)
    if known_until is not None:
        merged = takewhile(lambda entry: entry.at <= known_until, merged)
    found = tuple(islice(merged, limit + 1))
    return found[:limit], len(found) > limit or known_until is not None


def buckets(rows: Iterable[AgendaEntry], start: Instant, seconds: int) -> tuple[Bucket, ...]:
    """Only those in which something happens."""
    starts: Counter[int] = Counter()
    skips: Counter[int] = Counter()
    for row in rows:
        counter = starts if row.decision is Forecast.DISPATCH else skips
        counter[(row.at - start) // (seconds * SECOND)] += row.count
    places = sorted(starts.keys() | skips.keys())
    return tuple(Bucket(start + place * seconds * SECOND, starts[place], skips[place]) for place in places)


class LaneCounts(NamedTuple):
    """Occurrences of one schedule in a bucket: each is counted once, and `failed` are some of the dispatched."""

    dispatched: int = 0
    skipped: int = 0
    held: int = 0
    missed: int = 0
    failed: int = 0

    @property
    def starts(self) -> int:
        return self.dispatched + self.held

    @property
    def skips(self) -> int:
        return self.skipped + self.missed

    def plus(self, other: LaneCounts) -> LaneCounts:
        return LaneCounts(*map(add, self, other))


def counts_of(decision: Forecast, reason: str | None, *, held: bool, count: int = 1) -> LaneCounts:
    """Count occurrences that were decided alike, or will be."""
    if decision is Forecast.DISPATCH:
        return LaneCounts(held=count) if held else LaneCounts(dispatched=count)
    return LaneCounts(missed=count) if reason in MISSED_REASONS else LaneCounts(skipped=count)


@dataclass(frozen=True, slots=True)
class Grid:
    """The buckets of a window; `size` is the length of one, in microseconds."""

    start: Instant
    end: Instant
    size: Instant

    @property
    def places(self) -> int:
        return -(-(self.end - self.start) // self.size)

    def place(self, at: Instant) -> int:
        return (at - self.start) // self.size

    def begin(self, place: int) -> Instant:
        return self.start + place * self.size


def count_coming(coming: AgendaSource, grid: Grid, *, now: Instant) -> dict[int, LaneCounts]:
    """Count the undecided occurrences of a schedule by bucket, by arithmetic where they are many."""
    found: dict[int, LaneCounts] = {}
    spec = coming.planning.spec
    for stretch in takewhile(
        lambda stretch: stretch.first < grid.end,
        _as_far_as_read(lambda: forecaster_of(coming, now).stretches(coming.after)),
    ):
        first, last = max(stretch.first, coming.after + 1), min(stretch.last, grid.end - 1)
        for place, count in _by_place(spec, grid, first, last):
            counts = counts_of(stretch.decision, stretch.reason, held=stretch.held, count=count)
            found[place] = found.get(place, LaneCounts()).plus(counts)
    return found


def _by_place(spec: Spec, grid: Grid, first: Instant, last: Instant) -> Iterator[tuple[int, int]]:
    """Yield buckets, and how many occurrences from `first` to `last` lie in each."""
    if last < first:
        return
    places = range(grid.place(first), grid.place(last) + 1)
    total = spec.count(first - 1, last)
    if total <= len(places):
        yield from Counter(map(grid.place, islice(spec.occurrences(first - 1), total))).items()
        return
    for place in places:
        count = spec.count(max(first, grid.begin(place)) - 1, min(last, grid.begin(place + 1) - 1))
        if count:
            yield place, count


_IN_ORDER = attrgetter("at", "schedule_id")
