"""Occurrences of the schedules of a namespace in a window of time, past and predicted.

Past decisions come from history, with the outcome of their runs; the rest is predicted as a preview does. A bounded
number of schedules is read, and those that can be among the rows are evaluated in detail. Nothing is written.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import Final, NamedTuple

from horarium.core.decision import agenda
from horarium.core.decision.agenda import MAX_ROWS, AgendaEntry, AgendaSource, Bucket, LaneCounts
from horarium.core.decision.evaluator import FACTS
from horarium.core.decision.facts import NO_FACTS, UnreadablePolicies
from horarium.core.decision.statuses import Forecast
from horarium.core.document.planning import Planning
from horarium.core.document.states import EventType, Origin, Reason, RunState, Status
from horarium.errors import InvalidDefinition
from horarium.features.forecast import rows as forecast_rows
from horarium.features.forecast.rows import AgendaCandidate, OccurrenceEvent
from horarium.features.forecast.service import HORIZON
from horarium.features.resources import Resources
from horarium.features.schedules import fact_rows
from horarium.features.schedules import list_rows as schedule_lists
from horarium.features.schedules.creation import seen_signals
from horarium.features.schedules.drafts import require_namespace
from horarium.features.schedules.filters import ScheduleFilter
from horarium.features.schedules.list_rows import Filter, SelectedSchedule
from horarium.instant import DAY, LAST, Instant
from horarium.platform.caller import Caller
from horarium.platform.database import Connection
from horarium.platform.wire import Permission

DEFAULT_WINDOW = DAY
DEFAULT_ROWS = 1_000
DEFAULT_BUCKET = 3_600
MAX_BUCKET = 31 * 86_400
# A tenant with more schedules than this is told that the list is cut.
MAX_SCHEDULES = 100_000
MAX_IDS = 100
MAX_UNDER_WAY = 500
# Of so few the histories are read one by one, of more the window is read and the others are left out.
_FEW = MAX_IDS
# Decisions that are looked at for those of a part of the schedules.
_MOST_SCANNED = 20_000
# As many as a tick gathers facts about at once.
_TOGETHER = 500


@dataclass(frozen=True, slots=True)
class Wanted:
    """Filter of the rows; None = all. `schedules` selects by id, part of a name, labels or status.

    With a `reason`, only decisions with that reason are shown, and nothing is predicted.
    """

    schedules: ScheduleFilter | None = None
    reason: Reason | None = None


EVERYTHING: Final = Wanted()


@dataclass(frozen=True, slots=True)
class ScheduleOfAgenda:
    """A schedule that has rows, or was asked for by its id; `timezone` None = it cannot be planned."""

    name: str
    status: Status
    timezone: str | None


@dataclass(frozen=True, slots=True)
class AgendaResult:
    """`schedules` by id. `under_way`: open runs from before the window. `lanes` None = not asked for."""

    start: Instant
    end: Instant
    rows: tuple[AgendaEntry, ...]
    buckets: tuple[Bucket, ...]
    truncated: bool
    schedules: Mapping[str, ScheduleOfAgenda] = field(default_factory=dict)
    under_way: tuple[AgendaEntry, ...] = ()
    lanes: tuple[Lane, ...] | None = None
    next_page_token: str | None = None


@dataclass(frozen=True, slots=True)
class Lane:
    """The counts of one schedule by bucket, without empty buckets; `rows_complete`: the rows hold every occurrence."""

    schedule_id: str
    name: str
    rows_complete: bool
    buckets: tuple[tuple[Instant, LaneCounts], ...]


class Choice(NamedTuple):
    """The schedules that are wanted, by uid; `is_cut`: there are more than can be looked at."""

    uids: frozenset[bytes]
    is_cut: bool

    @property
    def are_few(self) -> bool:
        return len(self.uids) <= _FEW


def look(
    resources: Resources,
    caller: Caller,
    *,
    start: Instant | None = None,
    end: Instant | None = None,
    limit: int = DEFAULT_ROWS,
    bucket_seconds: int = DEFAULT_BUCKET,
    wanted: Wanted = EVERYTHING,
) -> AgendaResult:
    """From `start` on and before `end`; the coming 24 hours, unless they are given."""
    caller.require(Permission.READ)
    now = resources.clock.now()
    first, last, limit = window(start, end, now, limit, bucket_seconds)

    def work(connection: Connection) -> AgendaResult:
        choice = _choose(connection, caller.namespace, wanted.schedules)
        decided, known_until = _decided(connection, caller.namespace, (first, last), limit, choice, wanted.reason)
        found: list[AgendaSource] = []
        is_cut = choice is not None and choice.is_cut
        if wanted.reason is None:
            found, is_cut = _coming(resources, connection, caller.namespace, (first, last), limit, now, choice)
        if not decided and not found:
            require_namespace(connection, caller.namespace)
        rows, truncated = agenda.arrange(
            decided, agenda.predict(found, now=now, end=last), limit=limit, known_until=known_until
        )
        asked = () if wanted.schedules is None else wanted.schedules.schedule_ids or ()
        is_asked = wanted.reason is None and first <= now
        going = going_on(connection, caller.namespace, first, choice) if is_asked else ()
        ids = {row.schedule_id for row in (*rows, *going)} | set(asked)
        shown = shown_of(resources, connection, caller.namespace, sorted(ids))
        is_short = truncated or is_cut or not _reaches_back(connection, choice, first)
        return AgendaResult(first, last, rows, agenda.buckets(rows, first, bucket_seconds), is_short, shown, going)

    return resources.database.read(work)


def _choose(connection: Connection, namespace: str, wanted: ScheduleFilter | None) -> Choice | None:
    """None = all of them."""
    asked = None if wanted is None else replace(wanted, include_deleted=not wanted.labels).filter()
    if asked is None:
        return None
    found = schedule_lists.selected(connection, namespace, asked, MAX_SCHEDULES + 1)
    return Choice(frozenset(each.schedule_uid for each in found[:MAX_SCHEDULES]), len(found) > MAX_SCHEDULES)


def _reaches_back(connection: Connection, choice: Choice | None, start: Instant) -> bool:
    return choice is None or not choice.are_few or forecast_rows.reaches_back(connection, list(choice.uids), start)


def shown_of(
    resources: Resources, connection: Connection, namespace: str, ids: Sequence[str]
) -> dict[str, ScheduleOfAgenda]:
    """Names, states and zones by schedule id; for an id that was used again, those of the live schedule."""
    found: dict[str, SelectedSchedule] = {}
    for place in range(0, len(ids), _TOGETHER):
        wanted = Filter(schedule_ids=ids[place : place + _TOGETHER], include_deleted=True)
        for each in schedule_lists.selected(connection, namespace, wanted, MAX_SCHEDULES):
            known = found.get(each.schedule_id)
            if known is None or _age(known) < _age(each):
                found[each.schedule_id] = each
    plannings = resources.known.load(connection, {each.planning for each in found.values()})
    return {
        name: ScheduleOfAgenda(each.name, each.status, _zone(plannings[each.planning])) for name, each in found.items()
    }


def _age(each: SelectedSchedule) -> tuple[bool, bytes]:
    return each.status is not Status.DELETED, each.schedule_uid


def _zone(planning: Planning | Exception) -> str | None:
    return None if isinstance(planning, Exception) else planning.spec.zone.key


def window(
    start: Instant | None, end: Instant | None, now: Instant, limit: int, bucket_seconds: int, *, least: int = 1
) -> tuple[Instant, Instant, int]:
    """Return the window that is asked for and the limit of rows, which is `least` or more."""
    first = now if start is None else start
    last = min(first + DEFAULT_WINDOW, LAST) if end is None else end
    wrong: dict[str, list[str]] = {}
    if last <= first:
        wrong["to"] = ["must be after `from`"]
    elif last - first > HORIZON:
        wrong["to"] = [f"must be at most {HORIZON // DAY} days after `from`"]
    if not least <= limit <= MAX_ROWS:
        wrong["limit"] = [f"must be between {least} and {MAX_ROWS}"]
    if not 1 <= bucket_seconds <= MAX_BUCKET:
        wrong["bucket_seconds"] = [f"must be between 1 and {MAX_BUCKET}"]
    if wrong:
        raise InvalidDefinition(wrong)
    return first, last, limit


# ── what was decided ─────────────────────────────────────────────────────────────────────────────────


def _decided(
    connection: Connection,
    namespace: str,
    window: tuple[Instant, Instant],
    limit: int,
    choice: Choice | None,
    reason: Reason | None,
) -> tuple[list[AgendaEntry], Instant | None]:
    """And up to where all of it was read; None = to the end."""
    # An occurrence may have two events: a decision, and a release or a backfill. For a reason many are passed over.
    most = 2 * limit + 1 if reason is None else _MOST_SCANNED
    if choice is None:
        events, known_until = forecast_rows.in_window(connection, namespace, *window, most)
    elif choice.are_few:
        events, known_until = forecast_rows.of_some(connection, list(choice.uids), *window, most)
    else:
        events, known_until = forecast_rows.in_window(connection, namespace, *window, _MOST_SCANNED, choice.uids)
    by_occurrence = combined(events)
    found = [each for each in by_occurrence if reason is None or each.reason == reason]
    return found, known_until


def combined(events: Iterable[OccurrenceEvent]) -> list[AgendaEntry]:
    """Return one entry for each occurrence, which may have several events.

    A run comes before a skip: what was skipped and filled in later has run. A missed one that was skipped later was
    missed.
    """
    found: dict[tuple[bytes, Instant], AgendaEntry] = {}
    for event in events:
        key, entry = (event.schedule_uid, event.nominal), _entry(event)
        known = found.get(key)
        if known is None or _rank(entry) > _rank(known):
            found[key] = entry
    return list(found.values())


def _rank(entry: AgendaEntry) -> int:
    return 2 if entry.decision is Forecast.DISPATCH else int(entry.reason in agenda.MISSED_REASONS)


def going_on(connection: Connection, namespace: str, start: Instant, choice: Choice | None) -> tuple[AgendaEntry, ...]:
    found = forecast_rows.under_way(connection, namespace, start, MAX_UNDER_WAY)
    return tuple(_entry(each) for each in found if choice is None or each.schedule_uid in choice.uids)


def _entry(event: OccurrenceEvent) -> AgendaEntry:
    ran = event.event_type in (EventType.TRIGGERED, EventType.BUFFERED)
    count = event.payload.get("count", 1) if event.event_type is EventType.MISSED else 1
    return AgendaEntry(
        event.nominal,
        event.schedule_id,
        Forecast.DISPATCH if ran else Forecast.SKIP,
        None if ran else event.payload.get("reason"),
        run_id=event.run_id,
        state=event.state,
        count=count if isinstance(count, int) else 1,
        started_at=event.started_at,
        finished_at=event.finished_at,
        held=event.state is RunState.HELD,
    )


# ── what is coming ───────────────────────────────────────────────────────────────────────────────────


def _coming(
    resources: Resources,
    connection: Connection,
    namespace: str,
    window: tuple[Instant, Instant],
    limit: int,
    now: Instant,
    choice: Choice | None,
) -> tuple[list[AgendaSource], bool]:
    """Those that can be among the first `limit` rows, and whether there were more than can be looked at."""
    if choice is None:
        nearest, is_cut = _nearest_of_all(resources, connection, namespace, window, limit, now)
    else:
        among = forecast_rows.candidates_among(connection, namespace, window[1], list(choice.uids))
        nearest, is_cut = first_of(resources, connection, among, window, limit, now), choice.is_cut
    chosen = [(first.candidate, first.planning) for first in nearest]
    return list(with_facts(resources, connection, namespace, chosen, window[0], now)), is_cut


class _First(NamedTuple):
    """The first occurrence of a schedule in the window; in the order of the rows."""

    at: Instant
    schedule_id: str
    candidate: AgendaCandidate
    planning: Planning


def _nearest_of_all(
    resources: Resources,
    connection: Connection,
    namespace: str,
    window: tuple[Instant, Instant],
    limit: int,
    now: Instant,
) -> tuple[list[_First], bool]:
    """First rows of a large fleet: read the schedules due first, and the others only if they may come earlier."""
    at_rest = forecast_rows.resting_candidates(connection, namespace, MAX_SCHEDULES + 1)
    active = forecast_rows.active_candidates(connection, namespace, window[1], limit + 1)
    if len(active) > limit:
        nearest = first_of(resources, connection, [*active, *at_rest[:MAX_SCHEDULES]], window, limit, now)
        due, name = active[-1].next_due, active[-1].schedule_id
        jitter = forecast_rows.longest_jitter(connection)
        if len(nearest) > limit and due is not None and agenda.comes_after(nearest[-1][:2], (due, name), jitter):
            return nearest, False
        active = forecast_rows.active_candidates(connection, namespace, window[1], MAX_SCHEDULES + 1)
    looked_at = [*active, *at_rest]
    nearest = first_of(resources, connection, looked_at[:MAX_SCHEDULES], window, limit, now)
    return nearest, len(looked_at) > MAX_SCHEDULES


def first_of(
    resources: Resources,
    connection: Connection,
    looked_at: Sequence[AgendaCandidate],
    window: tuple[Instant, Instant],
    limit: int,
    now: Instant,
) -> list[_First]:
    """Each of them brings a row: whoever begins later than so many others is not among the first."""
    start, end = window
    plannings = resources.known.load(connection, {each.planning for each in looked_at})
    firsts: list[_First] = []
    for each in looked_at:
        planning = plannings[each.planning]
        if isinstance(planning, Exception):
            continue  # it is shown as broken elsewhere; nobody can say when it would fire
        nominal = planning.spec.next_after(
            agenda.undecided_after(each.decided_until, each.status, start, now, each.paused_until)
        )
        if nominal is not None and nominal < end:
            firsts.append(_First(nominal, each.schedule_id, each, planning))
    return heapq.nsmallest(limit + 1, firsts, key=itemgetter(0, 1))


def with_facts(
    resources: Resources,
    connection: Connection,
    namespace: str,
    chosen: Sequence[tuple[AgendaCandidate, Planning]],
    start: Instant,
    now: Instant,
) -> Iterator[AgendaSource]:
    for place in range(0, len(chosen), _TOGETHER):
        part = chosen[place : place + _TOGETHER]
        subjects = [
            fact_rows.DecisionSubject(each.schedule_uid, namespace, planning, each.active, each.held)
            for each, planning in part
        ]
        found, shared = fact_rows.gather(
            connection,
            subjects,
            now,
            Origin.SCHEDULED,
            lock=False,
            kinds=FACTS,
            signals=seen_signals(
                resources.signals,
                ((each.schedule_uid, namespace, each.schedule_id, planning) for each, planning in part),
                now,
            ),
            timed=fact_rows.is_timed,
            quotas=resources.quotas,
        )
        for each, planning in part:
            told = found.get(each.schedule_uid, NO_FACTS)
            if isinstance(told.policies, UnreadablePolicies):
                continue  # it will be set aside, as one that cannot be planned
            yield AgendaSource(
                each.schedule_uid,
                each.schedule_id,
                planning,
                each.position,
                agenda.undecided_after(each.decided_until, each.status, start, now, each.paused_until),
                told,
                shared[namespace],
                each.paused_until,
            )
