"""How decisions made by a caller are written: the same rows, counters and approvals as those of a tick."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from horarium.decision import births, lifecycle
from horarium.decision.births import BirthPolicies
from horarium.decision.facts import NO_FACTS, NO_SIGNAL, Facts, Shared, Signal, UnreadablePolicies
from horarium.decision.plan import Decision, Missed, Skip
from horarium.decision.record import Entry, Named, record_decisions
from horarium.errors import InvalidDefinition
from horarium.ids import id_text
from horarium.instant import MINUTE, SECOND, Instant
from horarium.operations.bypasses import refuse_skipping
from horarium.operations.caller import Caller
from horarium.operations.errors import QuotaExceeded, ScheduleBroken
from horarium.operations.gated_steps import any_step_waits
from horarium.operations.resources import Opened, Resources
from horarium.policy.approval import NO_SKIPPING, ApprovalPolicy
from horarium.policy.overlap import OverlapPolicy
from horarium.policy.quotas import Exceeded, Quota
from horarium.schedule.document import from_canonical
from horarium.schedule.planning import Planning
from horarium.schedule.position import Position, Status
from horarium.schedule.reason import Reason
from horarium.schedule.run import Origin, RunState
from horarium.schedule.sub_workflows import Use
from horarium.schedule.text_template import TemplateError
from horarium.store import usage
from horarium.store.database import Connection
from horarium.store.database.channels import READY
from horarium.store.database.json_text import to_text
from horarium.store.quotas import QuotaBook
from horarium.store.runs import approvals, open_runs
from horarium.store.runs.side_effects import new_ids, settle_side_effects
from horarium.store.schedules import facts
from horarium.store.schedules import rows as schedules
from horarium.store.schedules.decisions import ScheduleRecord, write_records

# Seconds until somebody whose runs are all open may ask again.
_SOON = 10


def gather_facts(
    connection: Connection,
    opened: Opened,
    origin: Origin,
    *,
    lock: bool = True,
    signal: Signal = NO_SIGNAL,
    quotas: QuotaBook | None = None,
    timed: bool = False,
) -> tuple[Facts, Shared]:
    """The facts that this schedule's guards ask for; `signal` was asked for before, outside of any transaction.

    `quotas` are for a decision about now, and `timed` is for a forecast. Raises ScheduleBroken where the policies of a
    run cannot be read.
    """
    row = opened.row
    subject = facts.Subject(row.schedule_uid, row.namespace, opened.sound, row.active, row.held)
    found, shared = facts.gather(
        connection,
        [subject],
        opened.now,
        origin,
        lock=lock,
        signals={row.schedule_uid: signal},
        quotas=quotas,
        timed=facts.is_timed if timed else facts.never,
    )
    known = found.get(row.schedule_uid, NO_FACTS)
    if isinstance(known.policies, UnreadablePolicies):
        raise ScheduleBroken(f"{row.schedule_id!r} has policies that cannot be read: {known.policies.why}")
    return known, shared[row.namespace]


def under_policies(opened: Opened, known: Facts) -> Opened:
    """With what others say where the schedule says nothing."""
    policies = known.policies
    if not isinstance(policies, BirthPolicies):
        return opened
    return replace(opened, planning=births.under_policies(opened.sound, policies))


def write_decisions(
    resources: Resources,
    connection: Connection,
    caller: Caller,
    opened: Opened,
    decisions: Sequence[Decision],
    position: Position,
    origin: Origin,
    *,
    overlap_policy: OverlapPolicy | None = None,
    external_key: str | None = None,
    inputs: object = None,
    values: object = None,
    rerun_of: bytes | None = None,
    known: Facts = NO_FACTS,
) -> Entry:
    """`position` is the one after the decisions; a schedule whose runs are used up ends here.

    `inputs` are those of the runs in place of the schedule's, `values` what a template reads in their place. `known`
    are the facts that were decided by. In the answer a run that a yes given beforehand let go is ready.
    """
    row, planning, now = opened.row, opened.sound, opened.now
    policies = known.policies if isinstance(known.policies, BirthPolicies) else None
    if caller.skipping != NO_SKIPPING:
        waits = planning.needs_approval or (policies is not None and policies.waits())
        refuse_skipping(caller.skipping, needs_approval=waits or _steps_wait(connection, opened, policies))
    told = [*decisions, *_left_over(opened, position)]
    is_deleted = row.status is Status.DELETED
    if position.status is Status.DELETED and not is_deleted:
        position = position._replace(decided_until=max(position.decided_until, now))
    again = None if rerun_of is None else id_text(rerun_of)
    named = Named(row.schedule_id, row.revision, _under(planning, overlap_policy), again, policies, is_deleted)
    entry = record_decisions(
        named, row.counts(), told, position, now=now, origin=origin, ids=new_ids(), context=caller.context()
    )
    record = ScheduleRecord(row.schedule_uid, row.namespace, row.revision, planning, entry)
    with _values_named():
        rendered = write_records(connection, [record], now=now, origin=origin, given=values)
    for run in entry.runs:
        open_runs.set_callers_part(connection, run.run_id, external_key=external_key, inputs=inputs, rerun_of=rerun_of)
    open_runs.set_requested_by(connection, [run.run_id for run in entry.runs], caller.context())
    waiting = settle_side_effects(connection, resources.known, row.namespace, row.schedule_uid, planning, entry, now)
    entry = _let_go(entry, approvals.request(connection, waiting, now))
    if any(run.state is RunState.READY for run in entry.runs):
        resources.database.notify(connection, READY)
    if entry.runs:
        size = sum(rendered.values()) + (0 if inputs is None else len(entry.runs) * len(to_text(inputs)))
        usage.add(connection, {row.namespace: usage.Growth(births=len(entry.runs), bytes=size)}, now)
    return entry


@contextmanager
def _values_named() -> Iterator[None]:
    """Values that a template needs and the caller did not give are the caller's mistake."""
    try:
        yield
    except TemplateError as wrong:
        raise InvalidDefinition({"inputs": [f"{wrong.field}: {wrong.text}"]}) from None


def policy_of(connection: Connection, opened: Opened) -> ApprovalPolicy:
    """Return the approval policy of the schedule itself."""
    found = schedules.find_revision(connection, opened.row.schedule_uid, opened.row.revision)
    return ApprovalPolicy() if found is None else from_canonical(found.document).approval


def _steps_wait(connection: Connection, opened: Opened, policies: BirthPolicies | None) -> bool:
    """Check whether a step of the stored workflow would await approval, whichever member of a team works."""
    name = opened.sound.workflow
    if policies is None or policies.workflow_version is None or name is None:
        return False
    own = policy_of(connection, opened)
    said = {own if each.effective is None else each.effective.approval for each in policies.bundles.values()} or {own}
    root = Use(name, policies.workflow_version)
    has_assignee = policies.assignee is not None
    return any(
        any_step_waits(connection, opened.row.namespace, root, policy, has_assignee=has_assignee) for policy in said
    )


def _let_go(entry: Entry, run_ids: Collection[bytes]) -> Entry:
    if not run_ids:
        return entry
    runs = [run._replace(state=RunState.READY) if run.run_id in run_ids else run for run in entry.runs]
    return entry._replace(runs=tuple(runs))


def refuse_beyond_quota(namespace: str, decisions: Iterable[Decision], now: Instant) -> None:
    """Raises QuotaExceeded: to a caller it is told, where the clock could only skip; then nothing was done."""
    for decision in decisions:
        if isinstance(decision, Skip) and decision.reason is Reason.QUOTA_EXCEEDED:
            seen = decision.detail or {}
            raise births_exceed(namespace, Exceeded(Quota(seen["quota"]), seen["limit"], seen["used"]), now)


def births_exceed(namespace: str, found: Exceeded, now: Instant) -> QuotaExceeded:
    match found.quota:
        case Quota.RUNS_PER_MINUTE:
            return QuotaExceeded(namespace, found, seconds=MINUTE // SECOND - now % MINUTE // SECOND)
        case Quota.OPEN_RUNS:
            return QuotaExceeded(namespace, found, seconds=_SOON)
        case _:
            return QuotaExceeded(namespace, found)


def _under(planning: Planning, overlap_policy: OverlapPolicy | None) -> Planning:
    """History names the overlap policy that was really asked."""
    if overlap_policy is None:
        return planning
    return replace(planning, overlap=replace(planning.overlap, policy=overlap_policy))


def _left_over(opened: Opened, position: Position) -> list[Missed]:
    """Occurrences that were due and undecided when the last run was created: they will not be decided any more."""
    row = opened.row
    if position.status is not Status.DELETED or row.status is not Status.ACTIVE:
        return []
    left = lifecycle.pause(opened.sound, row.position(), now=opened.now).superseded
    return [] if left is None else [replace(left, reason=Reason.REMAINING_ACTIONS_EXHAUSTED)]
