"""How runs are looked at and stopped: one, pages of many, the stream of its events, cancel and terminate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from horarium.decision.record import FIRST_STORED_EVENT
from horarium.errors import InvalidDefinition
from horarium.ids import id_text, parse_id
from horarium.instant import Instant, to_rfc3339
from horarium.life.change import End
from horarium.life.event import CancelledUnstarted, Terminated
from horarium.operations.caller import Caller
from horarium.operations.errors import RunNotFound, RunNotHeld
from horarium.operations.history import find_any
from horarium.operations.pages import checked_limit
from horarium.operations.resources import Resources
from horarium.policy.rotation import inputs_for
from horarium.schedule.definition import Definition
from horarium.schedule.envelope import shown_input
from horarium.schedule.event import RunEventType, make_lineage_payload
from horarium.schedule.run import (
    FINAL,
    NOT_STARTED,
    Origin,
    RunState,
    delivery_key,
    instance_id,
    occurrence_key,
    step_key,
)
from horarium.store.database import Connection
from horarium.store.database.channels import READY
from horarium.store.runs import open_runs, overdue
from horarium.store.runs import read as runs_read
from horarium.store.runs.events import add_event
from horarium.store.runs.read import RunEventRow, RunFilter, RunRow
from horarium.store.runs.work import Work
from horarium.store.runs.writer import record_event
from horarium.store.schedules import positions
from horarium.wire.outcomes import StopOutcome
from horarium.wire.roles import Permission

_SHOWN_RERUNS = 100
_FAILED = frozenset({RunState.FAILED, RunState.TIMED_OUT})
_OF_A_SCHEDULE = frozenset({Origin.SCHEDULED, Origin.MANUAL, Origin.BACKFILL})


@dataclass(frozen=True, slots=True)
class Run:
    """A run with what it takes from the revision that it names; `key` is what targets know it by.

    `inputs` are decoded where a client encoded them.
    """

    row: RunRow
    definition: Definition | None
    inputs: Any
    reruns: tuple[bytes, ...] = ()

    @property
    def instance_id(self) -> str:
        row = self.row
        return instance_id(row.schedule_id or "", row.origin, row.nominal, id_text(row.run_id))

    @property
    def key(self) -> str:
        row = self.row
        # A failed run counts its last failure too, and was not delivered again after it.
        delivered = row.attempt - 1 if row.state in _FAILED and row.attempt else row.attempt
        if row.root_run_id is not None and row.node_path is not None:
            own = step_key(id_text(row.root_run_id), row.node_path, fallback=row.fallback)
            return delivery_key(own, delivered, row.gates_passed)
        of_occurrence = row.schedule_uid is not None and row.origin in (Origin.SCHEDULED, Origin.BACKFILL)
        whose = row.schedule_uid if of_occurrence and row.schedule_uid is not None else row.run_id
        return delivery_key(occurrence_key(id_text(whose), row.nominal), delivered, row.gates_passed)


@dataclass(frozen=True, slots=True)
class RunPage:
    runs: tuple[Run, ...]
    next_page_token: str | None


@dataclass(frozen=True, slots=True)
class RunEvent:
    sequence: int
    event_type: str
    recorded_at: Instant
    payload: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Stopped:
    run_id: bytes
    outcome: StopOutcome
    state: RunState


EVERYTHING = RunFilter()


# ── looking ──────────────────────────────────────────────────────────────────────────────────────────


def get(resources: Resources, caller: Caller, run_id: str) -> Run:
    caller.require(Permission.LOOK)

    def look(connection: Connection) -> Run:
        (run,) = view(resources, connection, [find_run(connection, caller, run_id)])
        return replace(run, reruns=tuple(runs_read.reruns(connection, run.row.run_id, _SHOWN_RERUNS)))

    return resources.database.read(look)


def list_runs(
    resources: Resources,
    caller: Caller,
    wanted: RunFilter = EVERYTHING,
    *,
    schedule_id: str | None = None,
    page_size: int | None = None,
    next_page_token: str | None = None,
) -> RunPage:
    """Newest first, of one schedule (also a deleted one) or of the whole namespace."""
    caller.require(Permission.READ)
    limit = checked_limit(page_size)
    before = None if next_page_token is None else parse_id(next_page_token, "next_page_token")

    def look(connection: Connection) -> RunPage:
        if schedule_id is None:
            page = runs_read.page_of_namespace(connection, caller.namespace, wanted, before=before, limit=limit)
        else:
            uid = find_any(connection, caller, schedule_id).schedule_uid
            page = runs_read.page_of_schedule(connection, uid, wanted, before=before, limit=limit)
        shown = tuple(view(resources, connection, page.rows, whole=False))
        return RunPage(shown, None if page.before is None else id_text(page.before))

    return resources.database.read(look)


def events(
    resources: Resources, caller: Caller, run_id: str, *, after_sequence: int = 0, limit: int = 500
) -> list[RunEvent]:
    """The first ones - why the run exists, that it does, and that it was held - are read off its row."""
    caller.require(Permission.LOOK)
    if after_sequence < 0 or not 1 <= limit <= 1_000:
        raise InvalidDefinition({"limit": ["must be between 1 and 1000, after a sequence that is not negative"]})

    def look(connection: Connection) -> list[RunEvent]:
        (run,) = view(resources, connection, [find_run(connection, caller, run_id)], whole=False)
        stored = runs_read.events(connection, run.row.run_id, after_sequence=after_sequence, limit=limit)
        told = [RunEvent(each.sequence, each.event_type, each.recorded_at, each.payload) for each in stored]
        first = _first_events(run, is_held=_was_born_held(run.row, stored))
        return [event for event in first if event.sequence > after_sequence] + told

    return resources.database.read(look)[:limit]


def find_run(connection: Connection, caller: Caller, run_id: str) -> RunRow:
    """Another tenant's run is not there, nor another's for an agent; neither is one whose name is no id at all."""
    row = find_in_namespace(connection, caller, run_id)
    if not caller.sees(row):
        raise RunNotFound(run_id[:64])
    return row


def find_in_namespace(connection: Connection, caller: Caller, run_id: str) -> RunRow:
    """Whoever asks, and whether or not the run is shown."""
    try:
        row = runs_read.find(connection, caller.namespace, parse_id(run_id, "run_id"))
    except InvalidDefinition:
        row = None
    if row is None:
        raise RunNotFound(run_id[:64])
    return row


def find_held(connection: Connection, caller: Caller, run_id: str, lease_epoch: int) -> Work:
    """What the caller claimed and still holds. The number of a lease can be guessed: alone it opens nothing."""
    row = find_run(connection, caller, run_id)
    held = overdue.find_work(connection, row.run_id)
    mine = held is not None and held.claimed_by is not None and held.claimed_by == caller.principal
    if held is None or not mine or held.lease_epoch != lease_epoch or held.lease_until is None:
        raise lease_over(lease_epoch)
    return held


def lease_over(lease_epoch: int) -> RunNotHeld:
    return RunNotHeld(f"the lease {lease_epoch} of this run is over, or was never yours")


def view(resources: Resources, connection: Connection, rows: Sequence[RunRow], *, whole: bool = True) -> list[Run]:
    """Without `whole`, without their inputs: those of many at once are nobody's to decode."""
    definitions = resources.definitions.load(connection, rows)
    return [_view(row, definitions[row.run_id], whole) for row in rows]


def _view(row: RunRow, definition: Definition | Exception, whole: bool) -> Run:
    if not whole:
        return Run(row, None if isinstance(definition, Exception) else definition, None)
    if isinstance(definition, Exception):
        return Run(row, None, shown_input(row.inputs))
    inputs = row.inputs
    if inputs is None:
        inputs = inputs_for(definition.action.input, definition.inputs_rotation, row.rotation_index or 0)
    return Run(row, definition, shown_input(inputs))


def _was_born_held(row: RunRow, stored: Sequence[RunEventRow]) -> bool:
    """Then the number of the first event that others have stored was passed over: see `first_stored_event`."""
    is_passed = row.next_event > FIRST_STORED_EVENT and not (stored and stored[0].sequence == FIRST_STORED_EVENT)
    return is_passed and row.origin in _OF_A_SCHEDULE


def _first_events(run: Run, *, is_held: bool) -> list[RunEvent]:
    row, definition = run.row, run.definition
    created = {"origin": row.origin.value, "nominal": to_rfc3339(row.nominal), "revision": row.revision}
    created |= row.requested_by or {}
    if row.origin not in _OF_A_SCHEDULE or row.schedule_uid is None:
        return [RunEvent(1, RunEventType.RUN_CREATED.value, row.created_at, created)]
    lineage = make_lineage_payload(
        schedule_id=row.schedule_id,
        schedule_ulid=id_text(row.schedule_uid),
        cron_expression=next(iter(definition.spec.cron_expressions), None) if definition else None,
        timezone=(definition.spec.timezone or "UTC") if definition else None,
        overlap_policy=definition.overlap.policy.value if definition else None,
        trigger_number=row.trigger_number,
        occurrence_time=to_rfc3339(row.nominal),
    )
    first = [
        RunEvent(1, RunEventType.SCHEDULE_TRIGGERED.value, row.created_at, lineage),
        RunEvent(2, RunEventType.RUN_CREATED.value, row.created_at, created),
    ]
    held = RunEvent(FIRST_STORED_EVENT, RunEventType.RUN_HELD.value, row.created_at, {})
    return [*first, held] if is_held else first


# ── stopping ─────────────────────────────────────────────────────────────────────────────────────────


def cancel(resources: Resources, caller: Caller, run_id: str) -> Stopped:
    """What has not started ends now; whoever has taken the rest is wanted to stop."""
    caller.require(Permission.OPERATE)

    def work(connection: Connection) -> Stopped:
        row = locked(connection, caller, run_id)
        if row.state in FINAL:
            return Stopped(row.run_id, StopOutcome.UNCHANGED, row.state)
        if row.state in NOT_STARTED:
            gone = CancelledUnstarted("cancelled before it started", "requested")
            return _end(resources, connection, caller, row, gone)
        if row.stop_requested_at is None:  # the first wish stays on record
            now, said = resources.clock.now(), caller.context().to_payload()
            open_runs.ask_to_stop(connection, [row.run_id], now)
            add_event(connection, row.run_id, RunEventType.RUN_STOP_REQUESTED, now, said)
        resources.database.notify(connection, READY)
        return Stopped(row.run_id, StopOutcome.REQUESTED, row.state)

    return _told(resources, resources.database.write(work))


def terminate(resources: Resources, caller: Caller, run_id: str) -> Stopped:
    """Ends now, whoever has it: a later answer changes nothing any more."""
    caller.require(Permission.OPERATE)

    def work(connection: Connection) -> Stopped:
        row = locked(connection, caller, run_id)
        if row.state in FINAL:
            return Stopped(row.run_id, StopOutcome.UNCHANGED, row.state)
        return _end(resources, connection, caller, row, Terminated("terminated on request", "requested"))

    return _told(resources, resources.database.write(work))


def locked(connection: Connection, caller: Caller, run_id: str) -> RunRow:
    """The position first, then the run, as everybody does who holds both; read again after the wait."""
    row = find_run(connection, caller, run_id)
    if row.schedule_uid is not None:
        positions.lock(connection, row.schedule_uid)
    open_runs.lock(connection, row.run_id)
    return find_run(connection, caller, run_id)


def _end(
    resources: Resources, connection: Connection, caller: Caller, row: RunRow, event: CancelledUnstarted | Terminated
) -> Stopped:
    now, by = resources.clock.now(), caller.context()
    change = record_event(connection, resources.known, row.run_id, event, now=now, by=by)
    assert isinstance(change, End)  # it is locked, and was open just now
    resources.database.notify(connection, READY)  # its end may have released another
    return Stopped(row.run_id, StopOutcome(change.state.value), change.state)


def _told(resources: Resources, stopped: Stopped) -> Stopped:
    if stopped.outcome in (StopOutcome.CANCELLED, StopOutcome.TERMINATED):
        resources.telemetry.ended(stopped.state)
    return stopped
