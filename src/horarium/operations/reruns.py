"""How an ended run is done once more: a new run of the same occurrence, with the old one's definition and input.

It is a trigger by hand, since the occurrence has had its run: it has a key of its own, moves no plan and takes no turn
in the rotation. What holds today decides whether it may start: status, limits, overlap, and approval, which is asked
for anew.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from horarium.decision.facts import Facts
from horarium.decision.plan import Birth, Covers, Fire, Skip
from horarium.decision.trigger import Ended, decide_rerun, rerun_planning
from horarium.errors import InvalidDefinition
from horarium.ids import id_text
from horarium.instant import Instant
from horarium.operations.bypasses import bypass_on_record
from horarium.operations.caller import Caller
from horarium.operations.decisions import gather_facts, refuse_beyond_quota, under_policies, write_decisions
from horarium.operations.drafts import check_input
from horarium.operations.errors import RunNotEnded, RunNotRepeatable, ScheduleBroken
from horarium.operations.resources import Opened, Resources
from horarium.operations.runs import find_run
from horarium.operations.triggers import check_secrets, own_inputs, position_after
from horarium.policy.approval import NO_SKIPPING
from horarium.policy.overlap import OverlapPolicy
from horarium.schedule.damage import damage_of
from horarium.schedule.planning import Planning
from horarium.schedule.position import Status
from horarium.schedule.reason import Reason
from horarium.schedule.run import FINAL, Origin, RunState, instance_id
from horarium.store.database import Connection
from horarium.store.runs import renderings
from horarium.store.runs.read import RunRow
from horarium.store.schedules import rows as schedules
from horarium.store.schedules.rows import ScheduleRow
from horarium.wire.outcomes import TriggerOutcome
from horarium.wire.roles import Permission


@dataclass(frozen=True, slots=True)
class Rerun:
    rerun_of: bytes
    schedule_id: str
    outcome: TriggerOutcome
    run_id: bytes | None = None
    instance_id: str | None = None
    state: RunState | None = None
    reason: Reason | None = None
    detail: object = None
    buffer_depth: int | None = None


def rerun(
    resources: Resources,
    caller: Caller,
    run_id: str,
    *,
    overlap_policy: OverlapPolicy | None = None,
    even_if_paused: bool = False,
    inputs: object = None,
) -> Rerun:
    """Raises RunNotFound, RunNotEnded, and RunNotRepeatable for what no schedule stands behind any more.

    `inputs` in place of those that the run had are a write, as those of a trigger are.
    """
    caller.require(Permission.OPERATE)
    _check_inputs(caller, inputs)

    def work(connection: Connection) -> tuple[Rerun, Birth | Skip, Instant]:
        run, opened = _open(resources, connection, caller, run_id)
        check_secrets(inputs, opened)
        values = _given(connection, run) if inputs is None and opened.sound.template else inputs
        run = run if inputs is None else replace(run, inputs=own_inputs(opened, inputs))
        if (why := damage_of(run.inputs)) is not None:
            raise RunNotRepeatable(f"the inputs of this run cannot be read ({why}); send inputs")
        gathered, shared = gather_facts(connection, opened, Origin.MANUAL, quotas=resources.quotas)
        opened = under_policies(opened, gathered)
        decision = decide_rerun(
            opened.sound,
            opened.row.position(),
            gathered,
            shared,
            _ended(run),
            now=opened.now,
            overlap_policy=overlap_policy,
            even_if_paused=even_if_paused,
        )
        refuse_beyond_quota(caller.namespace, [decision], opened.now)
        written = _write(resources, connection, caller, run, opened, decision, overlap_policy, gathered, values)
        return written, decision, opened.now

    with bypass_on_record(resources, caller, _schedule_of(resources, caller, run_id)):
        answer, decision, now = resources.database.write(work)
    resources.telemetry.decided(caller.namespace, answer.schedule_id, [decision], now, Origin.MANUAL)
    return answer


def _given(connection: Connection, run: RunRow) -> object:
    try:
        return renderings.given_to(connection, run.run_id)
    except ValueError as wrong:
        raise RunNotRepeatable(f"{wrong}; send inputs") from None


def _check_inputs(caller: Caller, inputs: object) -> None:
    if inputs is not None:
        caller.require(Permission.WRITE)
    if problems := check_input("inputs", inputs):
        raise InvalidDefinition(problems)


def _schedule_of(resources: Resources, caller: Caller, run_id: str) -> str | None:
    """Looked up only for whoever asks to skip something."""
    if caller.skipping == NO_SKIPPING:
        return None
    return resources.database.read(lambda connection: find_run(connection, caller, run_id)).schedule_id


def _write(
    resources: Resources,
    connection: Connection,
    caller: Caller,
    run: RunRow,
    opened: Opened,
    decision: Birth | Skip,
    overlap_policy: OverlapPolicy | None,
    known: Facts,
    values: object,
) -> Rerun:
    entry = write_decisions(
        resources,
        connection,
        caller,
        opened,
        [decision],
        position_after(opened, decision, takes_turn=False),
        Origin.MANUAL,
        overlap_policy=overlap_policy,
        inputs=run.inputs,
        values=values,
        rerun_of=run.run_id,
        known=known,
    )
    if isinstance(decision, Skip):
        return _refused(run, opened, decision)
    return _born(run, opened, decision, entry.runs[0].run_id, entry.runs[0].state, entry.counts.held)


def _open(resources: Resources, connection: Connection, caller: Caller, run_id: str) -> tuple[RunRow, Opened]:
    """The schedule under lock, with the planning of the rerun in place of its own."""
    run = find_run(connection, caller, run_id)
    if run.parent_run_id is not None:
        raise RunNotRepeatable("a step cannot be rerun on its own; rerun its workflow run")
    if run.schedule_uid is None or run.revision is None:
        raise RunNotRepeatable("this run has no schedule; start a new run with another idempotency key")
    row = schedules.find_by_uid(connection, caller.namespace, run.schedule_uid, lock=True)
    if row is None or row.status is Status.DELETED:
        raise RunNotRepeatable(f"the schedule of this run, {run.schedule_id!r}, was deleted")
    run = find_run(connection, caller, run_id)  # read again after the wait
    if run.state not in FINAL:
        raise RunNotEnded(f"this run is in state {run.state}; only ended runs can be rerun")
    revision = schedules.find_revision(connection, row.schedule_uid, run.revision or row.revision)
    if revision is None:
        raise RunNotRepeatable("the definition of this run does not exist any more")
    known = resources.known.load(connection, [row.planning, revision.planning])
    frozen, current = (_sound(row, known[each]) for each in (revision.planning, row.planning))
    planning = rerun_planning(frozen, current, _ended(run))
    if run.workflow_version is not None:
        planning = replace(planning, asked_version=run.workflow_version)  # the same work, whatever was put since
    return run, Opened(replace(row, revision=revision.revision), planning, resources.clock.now())


def _sound(row: ScheduleRow, planning: Planning | Exception) -> Planning:
    if isinstance(planning, Exception):
        raise ScheduleBroken(f"{row.schedule_id!r} has an invalid definition: {planning}")
    return planning


def _ended(run: RunRow) -> Ended:
    covers = None
    if run.covers_first is not None and run.covers_last is not None and run.covers_count is not None:
        covers = Covers(run.covers_first, run.covers_last, run.covers_count)
    return Ended(run.nominal, run.rotation_index, covers, run.needs_approval)


def _refused(run: RunRow, opened: Opened, decision: Skip) -> Rerun:
    full = decision.reason is Reason.BUFFER_FULL
    outcome = TriggerOutcome.BUFFER_FULL if full else TriggerOutcome.SKIPPED
    return Rerun(run.run_id, opened.row.schedule_id, outcome, reason=decision.reason, detail=decision.detail)


def _born(run: RunRow, opened: Opened, decision: Birth, run_id: bytes, state: RunState, held: int) -> Rerun:
    is_fired = isinstance(decision, Fire)
    return Rerun(
        run.run_id,
        opened.row.schedule_id,
        TriggerOutcome.TRIGGERED if is_fired else TriggerOutcome.BUFFERED,
        run_id,
        instance_id(opened.row.schedule_id, Origin.MANUAL, decision.nominal, id_text(run_id)),
        state,
        buffer_depth=None if is_fired else held,
    )
