"""Verify that each occurrence has one decision: recompute the specs and compare history, runs and counters."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from horarium.core.document.json_values import unreadable_of
from horarium.core.document.planning import Planning
from horarium.core.document.states import MAX_RUNS_EXHAUSTED, EventType, Origin, Status
from horarium.core.lifecycle.live_run import Unsound, unsound
from horarium.core.recurrence.spec import Spec
from horarium.features.cluster import repair_rows, verify_rows
from horarium.features.cluster.verify_rows import Scope
from horarium.features.history import rows as history
from horarium.features.history.rows import HistoryRow
from horarium.features.resources import Resources
from horarium.features.schedules import rows as schedules
from horarium.features.schedules.rows import ScheduleRow
from horarium.instant import Instant, from_rfc3339
from horarium.platform.caller import Caller
from horarium.platform.database import Connection
from horarium.platform.database.errors import is_fault_of_a_row
from horarium.platform.database.statements import key_owner
from horarium.platform.ids import id_text
from horarium.platform.wire import Permission

_PAGE = 500
_MAX_RUN_FINDINGS = 1_000


@dataclass(frozen=True, slots=True)
class Miscounted:
    """A schedule, or a concurrency key (`schedule_id` None), that counts `told` runs where there are `really`."""

    schedule_id: str | None
    counter: str
    told: int
    really: int


@dataclass(frozen=True, slots=True)
class UnsoundRun:
    schedule_id: str | None
    run_id: bytes
    what: Unsound


@dataclass(frozen=True, slots=True)
class DoubleStep:
    """A node for which two runs of the same workflow run stand."""

    run_id: bytes
    node_id: str


RunFinding: TypeAlias = Miscounted | UnsoundRun | DoubleStep


def counts_of(connection: Connection, row: ScheduleRow) -> list[Miscounted]:
    """Wrong counts of a schedule."""
    really = repair_rows.count_open(connection, row.schedule_uid)
    both = (("active", row.active, really.active), ("held", row.held, really.held))
    return [Miscounted(row.schedule_id, *each) for each in both if each[1] != each[2]]


def verify_runs(resources: Resources, scope: Scope) -> Iterator[RunFinding]:
    """At most 1,000 findings."""
    left = _MAX_RUN_FINDINGS
    after = b""
    while left > 0:
        found, last = resources.database.read(partial(_page, scope=scope, after=after))
        yield from found[:left]
        left -= len(found)
        if last is None:
            break
        after = last
    if scope.schedule_id is None:
        yield from resources.database.read(partial(_keys, scope=scope))[: max(left, 0)]


def _page(connection: Connection, scope: Scope, after: bytes) -> tuple[list[RunFinding], bytes | None]:
    """With where the next one begins; None = this was the last."""
    last = verify_rows.last_of_page(connection, scope, after, _PAGE)
    if last is None:
        return [], None
    found: list[RunFinding] = [
        UnsoundRun(each.schedule_id, each.run_id, what)
        for each in verify_rows.run_facts(connection, scope, after, last)
        for what in ((Unsound.UNREADABLE,) if each.facts is None else unsound(each.facts))
    ]
    found += [DoubleStep(*each) for each in verify_rows.doubles(connection, scope, after, last)]
    return found, last


def _keys(connection: Connection, scope: Scope) -> list[Miscounted]:
    begin = "key:" if scope.namespace is None else key_owner(scope.namespace, "")
    differences = sorted(repair_rows.key_differences(connection).items())
    return [Miscounted(None, owner, *numbers) for owner, numbers in differences if owner.startswith(begin)]


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
    return resources.database.read(lambda connection: verify_rows.schedule_uids(connection, namespace, after, _PAGE))


def _verify_one(resources: Resources, uid: bytes, only: str | None) -> list[Finding]:
    name = id_text(uid)

    def work(connection: Connection) -> list[Finding]:
        nonlocal name
        namespace, name = verify_rows.name_of(connection, uid)
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
        self._plannings = verify_rows.plannings_by_revision(connection, row.schedule_uid)
        mark = verify_rows.checkpoint(connection, row.schedule_uid)
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
        orphans = verify_rows.runs_without_event(self._connection, row.schedule_uid, self._since, _MAX_FINDINGS)
        for run_id, nominal in orphans:
            self._add(OrphanRun(*self._who, run_id, nominal))
        return self._found

    def _recall(self, mark: verify_rows.Checkpoint) -> None:
        """Restore the state at a checkpoint from the lifecycle events before it, which stay in history."""
        for event in verify_rows.life_before(self._connection, self._row.schedule_uid, mark.sequence):
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
