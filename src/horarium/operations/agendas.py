"""What the schedules of a namespace did and will do in a window of time; nothing is written.

What was decided comes from history, with what became of its run; the rest is predicted as a preview does. However
many schedules there are, a bounded number is looked at, and those that can be among the rows are looked at closely.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from horarium.decision import agenda
from horarium.decision.agenda import MAX_ROWS, Bucket, Coming, Entry
from horarium.decision.facts import NO_FACTS, UnreadablePolicies
from horarium.decision.forecast import Forecast
from horarium.decision.preview import HORIZON
from horarium.errors import InvalidDefinition
from horarium.instant import DAY, LAST, Instant
from horarium.operations.caller import Caller
from horarium.operations.drafts import require_namespace
from horarium.operations.resources import Resources
from horarium.schedule.event import EventType
from horarium.schedule.planning import Planning
from horarium.schedule.run import Origin
from horarium.store.database import Connection
from horarium.store.history import occurrences
from horarium.store.history.occurrences import OccurrenceEvent
from horarium.store.schedules import coming, facts
from horarium.store.schedules.coming import Candidate
from horarium.wire.roles import Permission

DEFAULT_WINDOW = DAY
DEFAULT_ROWS = 1_000
DEFAULT_BUCKET = 3_600
MAX_BUCKET = 31 * 86_400
# A tenant with more schedules than this is told that the list is cut.
MAX_SCHEDULES = 100_000
# As many as a tick gathers facts about at once.
_TOGETHER = 500


@dataclass(frozen=True, slots=True)
class Agenda:
    start: Instant
    end: Instant
    rows: tuple[Entry, ...]
    buckets: tuple[Bucket, ...]
    truncated: bool


def look(
    resources: Resources,
    caller: Caller,
    *,
    start: Instant | None = None,
    end: Instant | None = None,
    limit: int = DEFAULT_ROWS,
    bucket_seconds: int = DEFAULT_BUCKET,
) -> Agenda:
    """From `start` on and before `end`; the coming 24 hours, unless they are given."""
    caller.require(Permission.READ)
    now = resources.clock.now()
    first = now if start is None else start
    last = min(first + DEFAULT_WINDOW, LAST) if end is None else end
    _check(first, last, limit, bucket_seconds)

    def work(connection: Connection) -> Agenda:
        decided, known_until = _decided(connection, caller.namespace, first, last, limit)
        found, is_cut = _coming(resources, connection, caller.namespace, first, last, limit, now)
        if not decided and not found:
            require_namespace(connection, caller.namespace)
        rows, truncated = agenda.arrange(
            decided, agenda.predict(found, now=now, end=last), limit=limit, known_until=known_until
        )
        return Agenda(first, last, rows, agenda.buckets(rows, first, bucket_seconds), truncated or is_cut)

    return resources.database.read(work)


def _check(start: Instant, end: Instant, limit: int, bucket_seconds: int) -> None:
    wrong: dict[str, list[str]] = {}
    if end <= start:
        wrong["to"] = ["must be after `from`"]
    elif end - start > HORIZON:
        wrong["to"] = [f"must be at most {HORIZON // DAY} days after `from`"]
    if not 1 <= limit <= MAX_ROWS:
        wrong["limit"] = [f"must be between 1 and {MAX_ROWS}"]
    if not 1 <= bucket_seconds <= MAX_BUCKET:
        wrong["bucket_seconds"] = [f"must be between 1 and {MAX_BUCKET}"]
    if wrong:
        raise InvalidDefinition(wrong)


# ── what was decided ─────────────────────────────────────────────────────────────────────────────────


def _decided(
    connection: Connection, namespace: str, start: Instant, end: Instant, limit: int
) -> tuple[list[Entry], Instant | None]:
    """And up to where all of it was read; None = to the end."""
    most = 2 * limit + 1  # an occurrence may have two events: a decision, and a release or a backfill
    events = occurrences.in_window(connection, namespace, start, end, most)
    by_occurrence: dict[tuple[bytes, Instant], Entry] = {}
    for event in events:
        key = (event.schedule_uid, event.nominal)
        known = by_occurrence.get(key)
        # A run wins: what was skipped and backfilled later has run after all.
        if known is None or event.run_id is not None:
            by_occurrence[key] = _entry(event)
    return list(by_occurrence.values()), events[-1].nominal if len(events) == most else None


def _entry(event: OccurrenceEvent) -> Entry:
    ran = event.event_type in (EventType.TRIGGERED, EventType.BUFFERED)
    count = event.payload.get("count", 1) if event.event_type is EventType.MISSED else 1
    return Entry(
        event.nominal,
        event.schedule_id,
        Forecast.DISPATCH if ran else Forecast.SKIP,
        None if ran else event.payload.get("reason"),
        run_id=event.run_id,
        state=event.state,
        count=count if isinstance(count, int) else 1,
    )


# ── what is coming ───────────────────────────────────────────────────────────────────────────────────


def _coming(
    resources: Resources,
    connection: Connection,
    namespace: str,
    start: Instant,
    end: Instant,
    limit: int,
    now: Instant,
) -> tuple[list[Coming], bool]:
    """Those that can be among the first `limit` rows, and whether there were more than can be looked at."""
    looked_at = coming.candidates(connection, namespace, end, MAX_SCHEDULES + 1)
    plannings = resources.known.load(connection, {each.planning for each in looked_at[:MAX_SCHEDULES]})
    firsts: list[tuple[Instant, str, Candidate, Planning]] = []
    for each in looked_at[:MAX_SCHEDULES]:
        planning = plannings[each.planning]
        if isinstance(planning, Exception):
            continue  # it is shown as broken elsewhere; nobody can say when it would fire
        nominal = planning.spec.next_after(agenda.undecided_after(each.position, start, now))
        if nominal is not None and nominal < end:
            firsts.append((nominal, each.schedule_id, each, planning))
    # Each of them brings a row: whoever begins later than so many others is not among the first.
    nearest = heapq.nsmallest(limit + 1, firsts, key=lambda first: first[:2])
    chosen = [(each, planning) for _, _, each, planning in nearest]
    return list(_with_facts(connection, namespace, chosen, start, now)), len(looked_at) > MAX_SCHEDULES


def _with_facts(
    connection: Connection, namespace: str, chosen: Sequence[tuple[Candidate, Planning]], start: Instant, now: Instant
) -> Iterator[Coming]:
    for place in range(0, len(chosen), _TOGETHER):
        part = chosen[place : place + _TOGETHER]
        subjects = [
            facts.Subject(each.schedule_uid, namespace, planning, each.active, each.held) for each, planning in part
        ]
        found, shared = facts.gather(connection, subjects, now, Origin.SCHEDULED, lock=False)
        for each, planning in part:
            told = found.get(each.schedule_uid, NO_FACTS)
            if isinstance(told.policies, UnreadablePolicies):
                continue  # it will be set aside, as one that cannot be planned
            yield Coming(
                each.schedule_uid,
                each.schedule_id,
                planning,
                each.position,
                agenda.undecided_after(each.position, start, now),
                told,
                shared[namespace],
                each.paused_until,
            )
