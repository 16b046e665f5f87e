"""What comes next of a schedule: the next occurrences of its spec, also while it is paused, and when it runs next."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple

from horarium.decision import lifecycle
from horarium.decision.ahead import FACTS, NOT_TRIGGERABLE, NextRun, RefusedSpans, is_guarded, next_run
from horarium.decision.facts import NO_FACTS, UnreadablePolicies
from horarium.instant import Instant
from horarium.schedule.planning import Planning
from horarium.schedule.position import Position, Status
from horarium.store.database import Connection
from horarium.store.schedules import facts
from horarium.store.schedules.rows import ScheduleRow

NEXT_FIRES = 5
# What a document holds where something may stand against the next occurrence of an active schedule.
GUARDED_BY = ("calendars", "max_runs", "budget", "assignee_id", "workflow_assignment_id")


@dataclass(frozen=True, slots=True)
class NextFire:
    nominal: Instant
    due: Instant


class Planned(NamedTuple):
    """Whose next run is asked for."""

    schedule_uid: bytes
    namespace: str
    position: Position
    planning: Planning | Exception


def planned_row(row: ScheduleRow, planning: Planning | Exception) -> Planned:
    """Of a pause that ends by itself, as it will be from then on."""
    position = row.position()
    if position.status is Status.PAUSED and row.paused_until is not None and isinstance(planning, Planning):
        position = lifecycle.end_pause(planning, row.schedule_uid, position, until=row.paused_until)
    return Planned(row.schedule_uid, row.namespace, position, planning)


def next_fires(row: ScheduleRow, planning: Planning, now: Instant, count: int = NEXT_FIRES) -> tuple[NextFire, ...]:
    """What is due and not yet decided counts as coming; a paused schedule shows what a resume would bring."""
    if row.status is Status.DELETED:
        return ()
    after = row.decided_until if row.status is Status.ACTIVE else max(row.decided_until, now)
    spec = planning.spec
    return tuple(
        NextFire(nominal, spec.due(row.schedule_uid, nominal)) for nominal in islice(spec.occurrences(after), count)
    )


def next_due(row: ScheduleRow, planning: Planning | Exception, now: Instant) -> Instant | None:
    """When it acts next, or would if it were resumed now."""
    if row.status is not Status.PAUSED or isinstance(planning, Exception):
        return row.next_due
    return next((fire.due for fire in next_fires(row, planning, now, count=1)), None)


def is_plain(row: ScheduleRow, document: Mapping[str, Any]) -> bool:
    """Whether its next run is its next fire, as far as one sees without a look at anything else."""
    return row.status is Status.ACTIVE and all(document.get(name) is None for name in GUARDED_BY)


def next_runs(connection: Connection, planned: Sequence[Planned], now: Instant) -> dict[bytes, NextRun]:
    """By schedule, with one query for each kind of fact, and none for what nothing could stand against."""
    guarded = [
        facts.Subject(each.schedule_uid, each.namespace, each.planning, 0, 0)
        for each in planned
        if isinstance(each.planning, Planning) and each.position.status is Status.ACTIVE and is_guarded(each.planning)
    ]
    known, shared = facts.gather(connection, guarded, now, lock=False, kinds=FACTS) if guarded else ({}, {})
    spans: defaultdict[str, RefusedSpans] = defaultdict(RefusedSpans)
    found: dict[bytes, NextRun] = {}
    # The earliest first: what calendars refuse is then known from there on.
    for uid, namespace, position, planning in sorted(planned, key=lambda each: each.position.next_due or 0):
        if isinstance(planning, Exception):
            found[uid] = NOT_TRIGGERABLE
            continue
        told = known.get(uid, NO_FACTS)
        if isinstance(told.policies, UnreadablePolicies):
            found[uid] = NOT_TRIGGERABLE  # the tick will set it aside
            continue
        found[uid] = next_run(
            planning, uid, position, told, now=now, shared=shared.get(namespace), spans=spans[namespace]
        )
    return found
