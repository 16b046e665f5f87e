"""Show, list, cancel and terminate runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from horarium.core.document.definition import Definition, agent_in
from horarium.core.document.json_values import UnreadableEntry, damage_of, shown_input
from horarium.core.document.states import (
    FINAL,
    NOT_STARTED,
    Origin,
    RunEventType,
    RunState,
    delivery_key,
    instance_id,
    occurrence_key,
    step_key,
)
from horarium.core.lifecycle.outcome import CancelledUnstarted, End, Terminated
from horarium.core.policy.queue import inputs_for
from horarium.errors import InvalidDefinition
from horarium.features.agents import task_rows
from horarium.features.approvals.rows import NewestApproval, newest_approvals
from horarium.features.history.service import find_any
from horarium.features.resources import Resources
from horarium.features.runs import open_rows, work_rows
from horarium.features.runs import rows as runs_read
from horarium.features.runs.name_rows import NO_NAMES, DisplayNames, NameKey, find_names, keys_of
from horarium.features.runs.rows import RunFilter, RunRow, StepRow, steps_of
from horarium.features.runs.transition_rows import record_event
from horarium.features.runs.update_rows import add_event
from horarium.features.runs.work_rows import ReadyTarget, RunWork, TargetPlaces
from horarium.features.schedules import write_rows
from horarium.instant import SECOND, Instant
from horarium.platform.caller import Caller, checked_limit
from horarium.platform.database import Connection
from horarium.platform.database.wakeups import READY
from horarium.platform.errors import RunNotFound, RunNotHeld
from horarium.platform.ids import id_text, parse_id
from horarium.platform.wire import Permission, StopOutcome

_SHOWN_RERUNS = 100
_FAILED = frozenset({RunState.FAILED, RunState.TIMED_OUT})


@dataclass(frozen=True, slots=True)
class StepView:
    """One of the steps of a workflow's run, and the newest question about it."""

    row: StepRow
    asked: NewestApproval | None


@dataclass(frozen=True, slots=True)
class RunView:
    """A run with what it takes from the revision that it names; `key` is what targets know it by.

    `inputs` are decoded where a client encoded them. `asked` is the newest question about it; it was seen at `seen_at`.
    `waits_at` is the agent that has no place for it; `names` are those of what it and its steps name.
    """

    row: RunRow
    definition: Definition | None
    inputs: Any
    asked: NewestApproval | None
    seen_at: Instant
    reruns: tuple[bytes, ...] = ()
    steps: tuple[StepView | UnreadableEntry, ...] | None = None
    waits_at: TargetPlaces | None = None
    names: DisplayNames = NO_NAMES

    @property
    def instance_id(self) -> str:
        row = self.row
        return instance_id(row.schedule_id or "", row.origin, row.nominal, id_text(row.run_id))

    @property
    def runtime_seconds(self) -> float:
        """From its start to its end, or until it was seen; a clock that was set back makes it none."""
        row = self.row
        if row.started_at is None:
            return 0
        return max(0, (self.seen_at if row.finished_at is None else row.finished_at) - row.started_at) / SECOND

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
    runs: tuple[RunView, ...]
    next_page_token: str | None


@dataclass(frozen=True, slots=True)
class Stopped:
    run_id: bytes
    outcome: StopOutcome
    state: RunState


EVERYTHING = RunFilter()


# ── looking ──────────────────────────────────────────────────────────────────────────────────────────


def get(resources: Resources, caller: Caller, run_id: str) -> RunView:
    caller.require(Permission.LOOK)

    def look(connection: Connection) -> RunView:
        (run,) = view(resources, connection, [find_run(connection, caller, run_id)])
        again = tuple(runs_read.reruns(connection, run.row.run_id, _SHOWN_RERUNS))
        waits_at = _full_agent(connection, run.row)
        steps, names = _steps(connection, run.row), run.names
        if steps:
            own = keys_of(run.row.namespace, run.row)
            readable = [each.row for each in steps if not isinstance(each, UnreadableEntry)]
            names = find_names(connection, own.union(*(keys_of(run.row.namespace, each) for each in readable)))
        return replace(run, reruns=again, steps=steps, waits_at=waits_at, names=names)

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
    refuse_schedule_of_all(caller, schedule_id)
    limit = checked_limit(page_size)
    before = None if next_page_token is None else parse_id(next_page_token, "next_page_token")

    def look(connection: Connection) -> RunPage:
        if schedule_id is None:
            page = runs_read.page_of_namespace(connection, caller.scope, wanted, before=before, limit=limit)
        else:
            uid = find_any(connection, caller, schedule_id).schedule_uid
            page = runs_read.page_of_schedule(connection, uid, wanted, before=before, limit=limit)
        shown = tuple(view(resources, connection, page.rows, whole=False))
        return RunPage(shown, None if page.before is None else id_text(page.before))

    return resources.database.read(look)


def refuse_schedule_of_all(caller: Caller, schedule_id: str | None) -> None:
    """A schedule id is unique within its namespace alone."""
    if caller.all_namespaces and schedule_id is not None:
        raise InvalidDefinition({"schedule_id": ["requires a single namespace"]})


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


def find_held(connection: Connection, caller: Caller, run_id: str, lease_epoch: int) -> RunWork:
    """Find a run that the caller claimed and still holds.

    The number of a lease can be guessed: alone it proves nothing.
    """
    row = find_run(connection, caller, run_id)
    held = work_rows.find_work(connection, row.run_id)
    mine = held is not None and held.claimed_by is not None and held.claimed_by == caller.principal
    if held is None or not mine or held.lease_epoch != lease_epoch or held.lease_until is None:
        raise lease_over(lease_epoch)
    return held


def lease_over(lease_epoch: int) -> RunNotHeld:
    return RunNotHeld(f"the lease {lease_epoch} of this run expired or belongs to another worker")


def view(resources: Resources, connection: Connection, rows: Sequence[RunRow], *, whole: bool = True) -> list[RunView]:
    """Without `whole`, without their inputs: those of many at once are nobody's to decode."""
    definitions = resources.definitions.load(connection, rows)
    asked = newest_approvals(connection, [row.run_id for row in rows if _may_have_approval(row)])
    names = find_names(connection, set[NameKey]().union(*(keys_of(row.namespace, row) for row in rows)))
    now = resources.clock.now()
    viewed = []
    for row in rows:
        found = definitions[row.run_id]
        definition = None if isinstance(found, Exception) else found
        inputs = _inputs(row, definition) if whole else None
        viewed.append(RunView(row, definition, inputs, asked.get(row.run_id), now, names=names))
    return viewed


def _may_have_approval(row: RunRow | StepRow) -> bool:
    return row.needs_approval or row.approval_id is not None


def _inputs(row: RunRow, definition: Definition | None) -> Any:
    inputs = row.inputs
    if inputs is None and definition is not None:
        inputs = inputs_for(definition.action.input, definition.inputs_rotation, row.rotation_index or 0)
    return None if damage_of(inputs) is not None else shown_input(inputs)


def _steps(connection: Connection, row: RunRow) -> tuple[StepView | UnreadableEntry, ...] | None:
    """None for what is no run of a stored workflow."""
    if row.workflow is None or row.workflow_version is None:
        return None
    found = steps_of(connection, row.run_id, row.namespace, row.workflow, row.workflow_version)
    waiting = [step.run_id for step in found if isinstance(step, StepRow) and _may_have_approval(step)]
    asked = newest_approvals(connection, waiting)
    return tuple(StepView(step, asked.get(step.run_id)) if isinstance(step, StepRow) else step for step in found)


def _full_agent(connection: Connection, row: RunRow) -> TargetPlaces | None:
    """Return the agent's places if all are taken; a run that the agent may have received already needs none."""
    if row.state is not RunState.READY or row.heard or agent_in(row.target) is None:
        return None
    target = ReadyTarget(row.namespace, row.target)
    places = task_rows.read_places(connection, [target])[target]
    return places if places.free == 0 else None


# ── stopping ─────────────────────────────────────────────────────────────────────────────────────────


def cancel(resources: Resources, caller: Caller, run_id: str) -> Stopped:
    """Cancel a run: end it if it has not started, otherwise request a stop."""
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
            open_rows.ask_to_stop(connection, [row.run_id], now)
            add_event(connection, row.run_id, RunEventType.RUN_STOP_REQUESTED, now, said)
        resources.database.notify(connection, READY)
        return Stopped(row.run_id, StopOutcome.REQUESTED, row.state)

    return _count_stop(resources, resources.database.write(work))


def terminate(resources: Resources, caller: Caller, run_id: str) -> Stopped:
    """Ends now, whoever has it: a later answer changes nothing any more."""
    caller.require(Permission.OPERATE)

    def work(connection: Connection) -> Stopped:
        row = locked(connection, caller, run_id)
        if row.state in FINAL:
            return Stopped(row.run_id, StopOutcome.UNCHANGED, row.state)
        return _end(resources, connection, caller, row, Terminated("terminated on request", "requested"))

    # All steps of a workflow end with it, in one transaction.
    is_workflow = resources.database.glance(lambda connection: find_run(connection, caller, run_id)).workflow_version
    database = resources.database
    return _count_stop(resources, (database.write if is_workflow is None else database.write_planned)(work))


def locked(connection: Connection, caller: Caller, run_id: str) -> RunRow:
    """The position first, then the run, as everybody does who holds both; read again after the wait."""
    row = find_run(connection, caller, run_id)
    if row.schedule_uid is not None:
        write_rows.lock_position(connection, row.schedule_uid)
    open_rows.lock_run(connection, row.run_id)
    return find_run(connection, caller, run_id)


def _end(
    resources: Resources, connection: Connection, caller: Caller, row: RunRow, event: CancelledUnstarted | Terminated
) -> Stopped:
    now, by = resources.clock.now(), caller.context()
    change = record_event(connection, resources.known, row.run_id, event, now=now, by=by)
    assert isinstance(change, End)  # it is locked, and was open just now
    resources.database.notify(connection, READY)  # its end may have released another
    return Stopped(row.run_id, StopOutcome(change.state.value), change.state)


def _count_stop(resources: Resources, stopped: Stopped) -> Stopped:
    if stopped.outcome in (StopOutcome.CANCELLED, StopOutcome.TERMINATED):
        resources.telemetry.ended(stopped.state)
    return stopped
