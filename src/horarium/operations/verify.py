"""Whether every occurrence has its one decision: the specs are recomputed and history is walked beside them.

What else must hold of runs and of what counts them is asked as well (`verify_runs.py`).

A schedule's stream is read once, page by page, in one snapshot. `cursor` is the instant up to which
everything is accounted for; a decision must begin at the first occurrence after it. What a pause, an
edit or a deletion overtakes is recorded by it, so the cursor moves to its moment and nothing is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from horarium.ids import id_text
from horarium.instant import Instant, from_rfc3339
from horarium.operations.caller import Caller
from horarium.operations.resources import Resources
from horarium.operations.verify_runs import RunFinding, counts_of, verify_runs
from horarium.recurrence.spec import Spec
from horarium.schedule.damage import unreadable_of
from horarium.schedule.event import MAX_RUNS_EXHAUSTED, EventType
from horarium.schedule.planning import Planning
from horarium.schedule.position import Status
from horarium.schedule.run import Origin
from horarium.store.database import Connection
from horarium.store.errors import is_fault_of_a_row
from horarium.store.history import audit
from horarium.store.history import events as history
from horarium.store.history.events import HistoryRow
from horarium.store.runs.checks import Scope
from horarium.store.schedules import rows as schedules
from horarium.store.schedules.rows import ScheduleRow
from horarium.wire.roles import Permission

_PAGE = 500
_MAX_FINDINGS = 100


@dataclass(frozen=True, slots=True)
class Missing:
    """Occurrences without a decision."""

    schedule_uid: bytes
    schedule_id: str
    first: Instant
    last: Instant
    count: int


@dataclass(frozen=True, slots=True)
class Double:
    """An occurrence with a second decision, at `sequence`."""

    schedule_uid: bytes
    schedule_id: str
    nominal: Instant
    sequence: int


@dataclass(frozen=True, slots=True)
class Stray:
    """A decision about a moment, or about more moments, than the spec has."""

    schedule_uid: bytes
    schedule_id: str
    nominal: Instant
    sequence: int


@dataclass(frozen=True, slots=True)
class Gap:
    """Events that are gone: from `sequence` up to and including `last`."""

    schedule_uid: bytes
    schedule_id: str
    sequence: int
    last: int


@dataclass(frozen=True, slots=True)
class OrphanRun:
    """A run that history does not know."""

    schedule_uid: bytes
    schedule_id: str
    run_id: bytes
    nominal: Instant


@dataclass(frozen=True, slots=True)
class CannotVerify:
    """Rows of a schedule that cannot be read; the others are verified all the same."""

    schedule_uid: bytes
    schedule_id: str
    detail: str


Finding: TypeAlias = CannotVerify | Missing | Double | Stray | Gap | OrphanRun | RunFinding
Progress: TypeAlias = Callable[[int], None]
"""Told how many schedules have been checked so far."""


def verify(
    resources: Resources,
    caller: Caller,
    *,
    schedule_id: str | None = None,
    everywhere: bool = False,
    progress: Progress | None = None,
) -> Iterator[Finding]:
    """One schedule at a time, each in a snapshot of its own, at most 100 findings a schedule; then the runs."""
    caller.require(Permission.READ)
    if everywhere:
        caller.require_house()
    namespace = None if everywhere else caller.namespace
    after, checked = b"", 0
    while uids := _next_uids(resources, namespace, after):
        for uid in uids:
            yield from _verify_one(resources, uid, schedule_id)
            checked += 1
            if progress is not None:
                progress(checked)
        after = uids[-1]
    yield from verify_runs(resources, Scope(namespace, schedule_id))


def _next_uids(resources: Resources, namespace: str | None, after: bytes) -> list[bytes]:
    return resources.database.read(lambda connection: audit.schedule_uids(connection, namespace, after, _PAGE))


def _verify_one(resources: Resources, uid: bytes, only: str | None) -> list[Finding]:
    name = id_text(uid)

    def work(connection: Connection) -> list[Finding]:
        nonlocal name
        namespace, name = audit.name_of(connection, uid)
        if only not in (None, name):
            return []
        row = schedules.find_by_uid(connection, namespace, uid)
        if row is None:
            return []
        return [*_Walk(resources, connection, row).findings(), *counts_of(connection, row)]

    try:
        return resources.database.read(work)
    except Exception as wrong:
        if not is_fault_of_a_row(wrong):
            raise
        return [CannotVerify(uid, name, f"{type(wrong).__name__}: {wrong}"[:300])]


class _Walk:
    """One stream, event by event."""

    def __init__(self, resources: Resources, connection: Connection, row: ScheduleRow) -> None:
        self._resources, self._connection, self._row = resources, connection, row
        self._found: list[Finding] = []
        self._plannings = audit.plannings_by_revision(connection, row.schedule_uid)
        mark = audit.checkpoint(connection, row.schedule_uid)
        self._sequence = 1 if mark is None else mark.sequence
        self._cursor: Instant | None = None if mark is None else mark.decided_until
        self._since = 0 if mark is None else mark.made_at
        self._spec: Spec | None = None
        self._generation: object = None
        self._ticking = True
        if mark is not None:
            self._recall(mark)

    def findings(self) -> list[Finding]:
        row = self._row
        for event in self._events():
            if len(self._found) >= _MAX_FINDINGS:
                return self._found
            self._count(event)
            if (unreadable := unreadable_of(event)) is None:
                self._take(event)
            else:
                self._add(CannotVerify(*self._who, f"event {event.sequence}: {unreadable.detail}"))
        if self._sequence != row.next_sequence:
            self._add(Gap(*self._who, self._sequence, row.next_sequence - 1))
        if self._ticking and row.status in (Status.ACTIVE, Status.FINISHED):
            self._expect_nothing_until(row.decided_until)
        orphans = audit.runs_without_event(self._connection, row.schedule_uid, self._since, _MAX_FINDINGS)
        for run_id, nominal in orphans:
            self._add(OrphanRun(*self._who, run_id, nominal))
        return self._found

    def _recall(self, mark: audit.Checkpoint) -> None:
        """Restore the state at a checkpoint from the lifecycle events before it, which stay in history."""
        for event in audit.life_before(self._connection, self._row.schedule_uid, mark.sequence):
            generation = event.payload.get("generation", self._generation)
            if event.event_type is EventType.RESUMED or generation != self._generation:
                self._cursor = max(mark.decided_until, _began(event))
            if event.event_type in (EventType.CREATED, EventType.UPDATED):
                self._plan(event.payload.get("revision"))
            if event.event_type in (EventType.PAUSED, EventType.DELETED, EventType.RESUMED):
                self._ticking = event.event_type is EventType.RESUMED
            self._generation = generation

    @property
    def _who(self) -> tuple[bytes, str]:
        return self._row.schedule_uid, self._row.schedule_id

    def _events(self) -> Iterator[HistoryRow]:
        after = self._sequence - 1
        while page := history.read(self._connection, self._row.schedule_uid, after_sequence=after, limit=_PAGE):
            yield from page
            after = page[-1].sequence

    def _count(self, event: HistoryRow) -> None:
        if event.sequence != self._sequence:
            self._add(Gap(*self._who, self._sequence, event.sequence - 1))
        self._sequence = event.sequence + 1

    def _take(self, event: HistoryRow) -> None:
        match event.event_type:
            case EventType.CREATED:
                self._plan(event.payload.get("revision"))
                self._generation = event.payload.get("generation")
                self._cursor = event.recorded_at
            case EventType.UPDATED:
                self._updated(event)
            case EventType.PAUSED | EventType.DELETED:
                if self._ticking:
                    used_up = event.payload.get("reason") == MAX_RUNS_EXHAUSTED
                    self._expect_nothing_until(event.recorded_at, due_only=used_up)
                self._ticking = False
            case EventType.RESUMED:
                self._ticking, self._cursor = True, _began(event)
            case EventType.MISSED:
                self._decision(event, event.payload.get("count", 1))
            case EventType.TRIGGERED | EventType.BUFFERED | EventType.TRIGGER_SKIPPED:
                self._decided(event)
            case EventType.BROKEN | EventType.APPROVAL_BYPASS_ATTEMPT:
                pass

    def _updated(self, event: HistoryRow) -> None:
        """A new generation begins where the edit was made; within one, the plan goes on."""
        generation = event.payload.get("generation")
        if generation is None or generation != self._generation or self._spec is None:
            if self._ticking:
                self._expect_nothing_until(event.recorded_at)
            self._cursor = event.recorded_at
        self._generation = generation
        self._plan(event.payload.get("revision"))

    def _decided(self, event: HistoryRow) -> None:
        payload = event.payload
        # By hand is nobody's occurrence; a release and a backfill are linked to a decision made before.
        if event.nominal is None or payload.get("from_buffer") or payload.get("origin") == Origin.BACKFILL:
            return
        if self._spec is None:
            self._plan(payload.get("revision"))
        self._decision(event, (payload.get("covers") or {}).get("count", 1))

    def _decision(self, event: HistoryRow, count: int) -> None:
        first, last = event.nominal, event.nominal_last
        if first is None or last is None or self._spec is None:
            return
        if self._cursor is not None and first <= self._cursor:
            self._add(Double(*self._who, first, event.sequence))
        else:
            self._expect_nothing_until(first - 1)
            really = self._spec.count(first - 1, last)
            if really > count:
                self._add(Missing(*self._who, first, last, really - count))
            elif really < count:
                self._add(Stray(*self._who, first, event.sequence))
        self._cursor = last if self._cursor is None else max(self._cursor, last)

    def _expect_nothing_until(self, instant: Instant, *, due_only: bool = False) -> None:
        """Whatever the spec has between the cursor and the instant has no decision.

        `due_only`: when runs are used up, the tick accounts for what is due; jitter may delay the newest.
        """
        if self._spec is None or self._cursor is None or instant <= self._cursor:
            return
        first, last = self._spec.next_after(self._cursor), self._spec.previous_before(instant + 1)
        if due_only and last is not None and self._spec.due(self._row.schedule_uid, last) > instant:
            last = self._spec.previous_before(last)
        if first is not None and last is not None and first <= last:
            self._add(Missing(*self._who, first, last, self._spec.count(first - 1, last)))
        self._cursor = instant

    def _plan(self, revision: object) -> None:
        planning = self._plannings.get(revision) if isinstance(revision, int) else None
        if planning is None:
            self._spec = None
            return
        compiled = self._resources.known.load(self._connection, [planning])[planning]
        # What cannot be compiled today cannot be checked; the schedule is shown as broken elsewhere.
        self._spec = compiled.spec if isinstance(compiled, Planning) else None

    def _add(self, finding: Finding) -> None:
        self._found.append(finding)


def _began(event: HistoryRow) -> Instant:
    """Up to where a change counts as having decided all: a pause that ended by itself ended at its own instant."""
    resumed_at = event.payload.get("resumed_at")
    return event.recorded_at if resumed_at is None else from_rfc3339(resumed_at) - 1
