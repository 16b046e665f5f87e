"""The lanes of an agenda: for each schedule complete counts by bucket, and its single rows where they are few.

Lanes are paged by schedule id, so that a schedule with an occurrence a second hides no other. What was decided is
counted in SQL, what is coming by the evaluator of forecasts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from horarium.core.decision import agenda
from horarium.core.decision.agenda import AgendaEntry, AgendaSource, Bucket, Grid, LaneCounts
from horarium.errors import InvalidDefinition
from horarium.features.forecast import agenda as forecast_agenda
from horarium.features.forecast import lane_rows as decided
from horarium.features.forecast import rows as candidates
from horarium.features.forecast.agenda import AgendaResult, Choice, Lane, Wanted
from horarium.features.forecast.lane_rows import StoredLane
from horarium.features.resources import Resources
from horarium.features.schedules import list_rows as schedule_lists
from horarium.features.schedules.drafts import require_namespace
from horarium.features.schedules.filters import ScheduleFilter, fingerprint, make_list_token, read_list_token
from horarium.features.schedules.list_rows import Cursor, LaneRow
from horarium.instant import SECOND, Instant
from horarium.platform.caller import Caller
from horarium.platform.database import Connection
from horarium.platform.wire import Permission

MAX_LANES: Final = 100
MAX_BUCKETS: Final = 1_000
DEFAULT_ROWS: Final = 100
"""Single rows of a lane."""

MOST_ROWS: Final = MAX_LANES * DEFAULT_ROWS
"""Single rows after which a page takes no other lane, however great the `limit` of each is."""

_MOST_EVENTS: Final = 500_000
"""Events after which a page takes no other lane: a page of dense schedules has fewer."""

_MOST_SCHEDULES: Final = 1_000
"""Schedules that are looked at for a page: an id may have been used many times."""

_EVERYTHING: Final = ScheduleFilter(include_deleted=True)


@dataclass(frozen=True, slots=True)
class _Lane:
    """All schedules that had an id, the one that lives or was deleted last at the end."""

    schedule_id: str
    schedules: tuple[LaneRow, ...]


def look(
    resources: Resources,
    caller: Caller,
    *,
    start: Instant | None,
    end: Instant | None,
    limit: int | None,
    bucket_seconds: int,
    wanted: Wanted,
    lane_limit: int = MAX_LANES,
    next_page_token: str | None = None,
) -> AgendaResult:
    """Return a page of lanes, in the order of their ids, with at most `limit` rows of each.

    A lane with more occurrences has none of them among the rows, and its counts stand for them.
    """
    caller.require(Permission.READ)
    now = resources.clock.now()
    first, last, rows = forecast_agenda.window(
        start, end, now, DEFAULT_ROWS if limit is None else limit, bucket_seconds, least=0
    )
    grid = Grid(first, last, bucket_seconds * SECOND)
    _check(grid, bucket_seconds, lane_limit, wanted)
    asked = wanted.schedules or _EVERYTHING
    filters = replace(asked, include_deleted=not asked.labels)
    mark = fingerprint({"list": "lanes", "of": filters.fingerprint()})
    after = None if next_page_token is None else read_list_token(next_page_token, caller.namespace, mark)

    def work(connection: Connection) -> AgendaResult:
        namespace = caller.namespace
        lanes, stored, more = _page(connection, namespace, filters, after, lane_limit, first)
        if not lanes and after is None:
            require_namespace(connection, namespace)
        found = _Page(resources, connection, namespace, grid, now, lanes, stored).answer(rows)
        more = more or len(found.lanes or ()) < len(lanes)
        last = lanes[len(found.lanes or ()) - 1] if more else None
        following = None if last is None else make_list_token(namespace, mark, Cursor(0, last.schedule_id))
        return replace(found, next_page_token=following)

    return resources.database.read(work)


def _check(grid: Grid, bucket_seconds: int, lane_limit: int, wanted: Wanted) -> None:
    wrong: dict[str, list[str]] = {}
    if grid.places > MAX_BUCKETS:
        least = -(-(grid.end - grid.start) // (MAX_BUCKETS * SECOND))
        wrong["bucket_seconds"] = [
            f"{bucket_seconds} results in {grid.places} buckets; at most {MAX_BUCKETS} are allowed; "
            f"use {least} or more, or a shorter window"
        ]
    if not 1 <= lane_limit <= MAX_LANES:
        wrong["lane_limit"] = [f"must be between 1 and {MAX_LANES}"]
    if wanted.reason is not None:
        wrong["reason"] = ["cannot be combined with `lanes`, because lanes count every occurrence"]
    if wrong:
        raise InvalidDefinition(wrong)


def _page(
    connection: Connection,
    namespace: str,
    filters: ScheduleFilter,
    after: Cursor | None,
    lane_limit: int,
    start: Instant,
) -> tuple[list[_Lane], dict[bytes, StoredLane], bool]:
    """Choose the lanes of a page, and report whether there are more."""
    asked = filters.filter()
    if asked is None:
        return [], {}, False
    name = None if after is None else after.schedule_id
    rows = schedule_lists.for_lanes(connection, namespace, asked, since=start, after=name, limit=_MOST_SCHEDULES + 1)
    by_id: dict[str, list[LaneRow]] = defaultdict(list)
    for row in rows[:_MOST_SCHEDULES]:
        by_id[row.schedule_id].append(row)
    names = list(by_id)
    more = len(names) > lane_limit
    if len(rows) > _MOST_SCHEDULES and not more:
        more = True
        if len(names) > 1:
            names.pop()  # there may be more schedules that had this id
    lanes = [_Lane(name, tuple(by_id[name])) for name in names[:lane_limit]]
    numbers = {each.schedule_uid: each.next_sequence for lane in lanes for each in lane.schedules}
    stored = {each.schedule_uid: each for each in decided.first_events(connection, numbers, start)}
    total = 0
    for place, lane in enumerate(lanes):
        total += sum(each.next_sequence - stored[each.schedule_uid].first for each in lane.schedules)
        if place and total > _MOST_EVENTS:
            return lanes[:place], stored, True
    return lanes, stored, more


@dataclass(frozen=True, slots=True)
class _Page:
    resources: Resources
    connection: Connection
    namespace: str
    grid: Grid
    now: Instant
    lanes: Sequence[_Lane]
    stored: Mapping[bytes, StoredLane]

    def answer(self, limit: int) -> AgendaResult:
        """Return the lanes with at most `limit` rows of each, and no more of them than the rows of a page allow."""
        schedules = [each for lane in self.lanes for each in lane.schedules]
        coming = self._coming([each.schedule_uid for each in schedules])
        counts = self._counts(schedules, coming)
        totals = [sum(map(sum_of, counts[each.schedule_id].values())) for each in self.lanes]
        lanes = self.lanes[: _taken(totals, limit)]
        complete = {each.schedule_id for each, total in zip(lanes, totals, strict=False) if total <= limit}
        return replace(self, lanes=lanes)._answer(counts, complete, coming)

    def _answer(
        self, counts: Mapping[str, Mapping[int, LaneCounts]], complete: set[str], coming: Sequence[AgendaSource]
    ) -> AgendaResult:
        grid = self.grid
        choice = Choice(frozenset(each.schedule_uid for lane in self.lanes for each in lane.schedules), is_cut=False)
        rows = self._rows(complete, coming)
        of_all: dict[int, LaneCounts] = {}
        for lane in self.lanes:
            for place, counted in counts[lane.schedule_id].items():
                of_all[place] = of_all.get(place, LaneCounts()).plus(counted)
        going = (
            forecast_agenda.going_on(self.connection, self.namespace, grid.start, choice)
            if grid.start <= self.now
            else ()
        )
        shown = forecast_agenda.shown_of(
            self.resources, self.connection, self.namespace, [each.schedule_id for each in self.lanes]
        )
        return AgendaResult(
            grid.start,
            grid.end,
            rows,
            tuple(Bucket(grid.begin(place), of_all[place].starts, of_all[place].skips) for place in sorted(of_all)),
            len(complete) < len(self.lanes),
            shown,
            going,
            lanes=tuple(
                Lane(
                    each.schedule_id,
                    each.schedules[-1].name,
                    each.schedule_id in complete,
                    tuple((grid.begin(place), counted) for place, counted in sorted(counts[each.schedule_id].items())),
                )
                for each in self.lanes
            ),
        )

    def _coming(self, uids: Sequence[bytes]) -> list[AgendaSource]:
        found = candidates.candidates_among(self.connection, self.namespace, self.grid.end, uids)
        window = (self.grid.start, self.grid.end)
        first = forecast_agenda.first_of(self.resources, self.connection, found, window, len(found), self.now)
        chosen = [(each.candidate, each.planning) for each in first]
        return list(
            forecast_agenda.with_facts(self.resources, self.connection, self.namespace, chosen, window[0], self.now)
        )

    def _counts(self, schedules: Sequence[LaneRow], coming: Sequence[AgendaSource]) -> dict[str, dict[int, LaneCounts]]:
        """Count by id and bucket."""
        names = {each.schedule_uid: each.schedule_id for each in schedules}
        found: dict[str, dict[int, LaneCounts]] = {name: {} for name in names.values()}
        may_have_failed = {each.schedule_uid for each in schedules if each.failures_count}
        stored = [self.stored[uid] for uid in names]
        for (uid, place), counted in decided.count(self.connection, stored, may_have_failed, self.grid).items():
            lane = found[names[uid]]
            lane[place] = lane.get(place, LaneCounts()).plus(counted)
        for each in coming:
            lane = found[each.schedule_id]
            for place, counted in agenda.count_coming(each, self.grid, now=self.now).items():
                lane[place] = lane.get(place, LaneCounts()).plus(counted)
        return found

    def _rows(self, complete: set[str], coming: Sequence[AgendaSource]) -> tuple[AgendaEntry, ...]:
        grid = self.grid
        stored = [
            self.stored[each.schedule_uid]
            for lane in self.lanes
            if lane.schedule_id in complete
            for each in lane.schedules
        ]
        past = forecast_agenda.combined(decided.read(self.connection, stored, grid.start, grid.end))
        ahead = agenda.predict([each for each in coming if each.schedule_id in complete], now=self.now, end=grid.end)
        rows, _ = agenda.arrange(past, ahead, limit=agenda.MAX_ROWS * MAX_LANES, known_until=None)
        return rows


def _taken(totals: Sequence[int], limit: int) -> int:
    """Count the lanes, one at least, whose rows a page holds; one with more rows than `limit` brings none."""
    rows = 0
    for place, total in enumerate(totals):
        rows += total if total <= limit else 0
        if place and rows > MOST_ROWS:
            return place
    return len(totals)


def sum_of(counts: LaneCounts) -> int:
    """Return the number of occurrences."""
    return counts.starts + counts.skips
