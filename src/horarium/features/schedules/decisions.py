"""Decisions made by a caller, written like those of a tick, and records of bypassed approvals."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from horarium.core.decision import decide, run_policies
from horarium.core.decision.facts import (
    NO_FACTS,
    NO_SIGNAL,
    Decision,
    Facts,
    Missed,
    SharedFacts,
    Signal,
    Skip,
    UnreadablePolicies,
)
from horarium.core.decision.record import ScheduleSubject, ScheduleWrites, record_decisions
from horarium.core.decision.run_policies import CreationPolicies
from horarium.core.document.definition import Definition
from horarium.core.document.document import from_canonical
from horarium.core.document.effective_policies import read_effective
from horarium.core.document.planning import Planning
from horarium.core.document.states import (
    EventType,
    NoticeType,
    Origin,
    Position,
    Reason,
    RunEventType,
    RunState,
    Status,
)
from horarium.core.document.stored_workflow import WorkflowUse
from horarium.core.document.text_template import TemplateError
from horarium.core.policy.approval import BYPASS_EVENT, NO_SKIPPING, ApprovalPolicy, Skipping, detect_bypass
from horarium.core.policy.limits import Quota, QuotaExcess
from horarium.core.policy.queue import OverlapPolicy
from horarium.errors import InvalidDefinition
from horarium.features.approvals import request_rows
from horarium.features.history import rows as history_rows
from horarium.features.history.rows import Journal, Notice
from horarium.features.resources import Opened, Resources
from horarium.features.runs import open_rows
from horarium.features.runs import rows as runs_read
from horarium.features.runs.end_rows import new_ids, settle_side_effects
from horarium.features.runs.rows import RunRow
from horarium.features.runs.update_rows import add_event, count_events
from horarium.features.schedules import fact_rows, write_rows
from horarium.features.schedules import rows as schedules
from horarium.features.schedules.decision_rows import ScheduleRecord, write_records
from horarium.features.schedules.references import any_step_waits, steps_wait
from horarium.features.tenants import rows as tenant_rows
from horarium.features.tenants.rows import QuotaBook
from horarium.instant import MINUTE, SECOND, Instant
from horarium.platform.caller import Caller
from horarium.platform.database import Connection
from horarium.platform.database.statements import to_text
from horarium.platform.database.wakeups import READY
from horarium.platform.errors import ApprovalRequired, BundleRefused, QuotaExceeded, ScheduleBroken
from horarium.platform.ids import id_text

MAX_RECORDED = 20
"""Recorded attempts per run, or in a row per schedule; further attempts are refused but not recorded."""


def refuse_skipping(skipping: Skipping, *, needs_approval: bool, about: bytes | None = None) -> None:
    """Raises ApprovalRequired, which undoes the transaction: see `bypass_on_record`."""
    asked = detect_bypass(needs_approval=needs_approval, approval_status=skipping.approval_status, skip=skipping.skip)
    if asked is not None:
        raise ApprovalRequired(f"this requires approval, which a request cannot skip ({asked})", asked, about)


def refuse_skipping_in(
    connection: Connection, skipping: Skipping, definition: Definition, *, needs_approval: bool
) -> None:
    """Refuse what a written schedule says to skip approval, also where only a step of its workflow would need one."""
    if skipping == NO_SKIPPING:
        return
    waits = needs_approval or steps_wait(connection, definition, definition.approval)
    refuse_skipping(skipping, needs_approval=waits)


def refuse_skipping_again(
    connection: Connection, caller: Caller, run: RunRow, policy: ApprovalPolicy | None = None, *, is_new: bool = False
) -> None:
    """Refuse a request to skip approval for a run that awaits approval, or has steps that would.

    `policy` is that of its definition, for a run that keeps none of its own. `is_new`: the refusal undoes the run.
    """
    if caller.skipping == NO_SKIPPING:
        return
    waits = run.state is RunState.AWAITING_APPROVAL
    if not waits and run.workflow is not None and run.workflow_version is not None:
        kept = policy if run.effective is None else read_effective(run.effective).approval
        root = WorkflowUse(run.workflow, run.workflow_version)
        has_assignee = run.assignee is not None
        waits = any_step_waits(connection, run.namespace, root, kept or ApprovalPolicy(), has_assignee=has_assignee)
    refuse_skipping(caller.skipping, needs_approval=waits, about=None if is_new else run.run_id)


@contextmanager
def bypass_on_record(resources: Resources, caller: Caller, schedule_id: str | None = None) -> Iterator[None]:
    """Around what `refuse_skipping` may undo: nothing of it was done, and that it was tried is written here."""
    try:
        yield
    except (ApprovalRequired, BundleRefused) as refused:
        tried = refused if isinstance(refused, ApprovalRequired) else refused.__cause__
        if isinstance(tried, ApprovalRequired) and tried.attempted is not None:
            named = schedule_id or getattr(refused, "schedule_id", None)
            _record(resources, caller, named, tried)
        raise


def _record(resources: Resources, caller: Caller, schedule_id: str | None, tried: ApprovalRequired) -> None:
    def write(connection: Connection) -> ApprovalRequired:
        run = None if tried.about is None else runs_read.find(connection, caller.namespace, tried.about)
        if run is not None and tried.attempted is not None:
            record_bypass(connection, caller, run, tried.attempted, resources.clock.now())
            return tried
        row = None
        if schedule_id is not None:
            row = schedules.find(connection, caller.namespace, schedule_id, lock=True)
        now, context, values = resources.clock.now(), caller.context(), {"attempted": tried.attempted}
        if row is None:
            told = {**values, "command_context": context}
            notice = Notice(NoticeType.APPROVAL_BYPASS_ATTEMPT, caller.namespace, None, None, told)
            history_rows.append_notices(connection, [notice], now=now)
        elif not _filled(connection, row.schedule_uid):
            journal = Journal(row.next_sequence, now, context)
            journal.about(EventType.APPROVAL_BYPASS_ATTEMPT, values)
            following = journal.write(connection, row.schedule_uid, row.namespace)
            write_rows.move_position(connection, row.schedule_uid, next_sequence=following)
        return tried

    resources.database.write(write)


def _filled(connection: Connection, schedule_uid: bytes) -> bool:
    """Tell whether the newest history consists of such attempts only."""
    newest = history_rows.newest_types(connection, schedule_uid, MAX_RECORDED)
    return len(newest) == MAX_RECORDED and set(newest) == {EventType.APPROVAL_BYPASS_ATTEMPT.value}


def record_bypass(connection: Connection, caller: Caller, run: RunRow, attempted: str, now: Instant) -> None:
    """In the caller's transaction, which must be committed though the caller is refused."""
    place = None if run.schedule_uid is None else write_rows.lock_position(connection, run.schedule_uid)
    if count_events(connection, run.run_id, RunEventType(BYPASS_EVENT)) >= MAX_RECORDED:
        return
    context = caller.context()
    said = {"attempted": attempted, "command_context": context.to_payload()}
    add_event(connection, run.run_id, RunEventType(BYPASS_EVENT), now, said)
    values: dict[str, object] = {"workflow_run_id": id_text(run.run_id), "attempted": attempted}
    if place is None or run.schedule_uid is None:
        told = {**values, "command_context": context}
        kind = NoticeType.APPROVAL_BYPASS_ATTEMPT
        history_rows.append_notices(connection, [Notice(kind, run.namespace, None, run.run_id, told)], now=now)
        return
    journal = Journal(place.next_sequence, now, context)
    journal.about(EventType.APPROVAL_BYPASS_ATTEMPT, values, run_id=run.run_id)
    following = journal.write(connection, run.schedule_uid, run.namespace)
    write_rows.move_position(connection, run.schedule_uid, next_sequence=following)


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
) -> tuple[Facts, SharedFacts]:
    """The facts that this schedule's guards ask for; `signal` was asked for before, outside of any transaction.

    `quotas` are for a decision about now, and `timed` is for a forecast. Raises ScheduleBroken where the policies of a
    run cannot be read.
    """
    row = opened.row
    subject = fact_rows.DecisionSubject(row.schedule_uid, row.namespace, opened.sound, row.active, row.held)
    found, shared = fact_rows.gather(
        connection,
        [subject],
        opened.now,
        origin,
        lock=lock,
        signals={row.schedule_uid: signal},
        quotas=quotas,
        timed=fact_rows.is_timed if timed else fact_rows.never,
    )
    known = found.get(row.schedule_uid, NO_FACTS)
    if isinstance(known.policies, UnreadablePolicies):
        raise ScheduleBroken(f"{row.schedule_id!r} has policies that cannot be read: {known.policies.why}")
    return known, shared[row.namespace]


def under_policies(opened: Opened, known: Facts) -> Opened:
    """With what others say where the schedule says nothing."""
    policies = known.policies
    if not isinstance(policies, CreationPolicies):
        return opened
    return replace(opened, planning=run_policies.under_policies(opened.sound, policies))


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
) -> ScheduleWrites:
    """`position` is the one after the decisions; a schedule whose runs are used up ends here.

    `inputs` are those of the runs in place of the schedule's, `values` what a template reads in their place. `known`
    are the facts that were decided by. In the answer a run that a yes given beforehand let go is ready.
    """
    row, planning, now = opened.row, opened.sound, opened.now
    policies = known.policies if isinstance(known.policies, CreationPolicies) else None
    if caller.skipping != NO_SKIPPING:
        waits = planning.needs_approval or (policies is not None and policies.waits())
        refuse_skipping(caller.skipping, needs_approval=waits or _steps_wait(connection, opened, policies))
    told = [*decisions, *_left_over(opened, position)]
    is_deleted = row.status is Status.DELETED
    if position.status is Status.DELETED and not is_deleted:
        position = position._replace(decided_until=max(position.decided_until, now))
    again = None if rerun_of is None else id_text(rerun_of)
    named = ScheduleSubject(
        row.schedule_id, row.revision, _under(planning, overlap_policy), again, policies, is_deleted
    )
    entry = record_decisions(
        named, row.counts(), told, position, now=now, origin=origin, ids=new_ids(), context=caller.context()
    )
    record = ScheduleRecord(row.schedule_uid, row.namespace, row.revision, planning, entry)
    with _values_named():
        rendered = write_records(connection, [record], now=now, origin=origin, given=values)
    for run in entry.runs:
        open_rows.set_callers_part(connection, run.run_id, external_key=external_key, inputs=inputs, rerun_of=rerun_of)
    open_rows.set_requested_by(connection, [run.run_id for run in entry.runs], caller.context())
    waiting = settle_side_effects(connection, resources.known, row.namespace, row.schedule_uid, planning, entry, now)
    entry = _let_go(entry, request_rows.request(connection, waiting, now))
    if any(run.state is RunState.READY for run in entry.runs):
        resources.database.notify(connection, READY)
    if entry.runs:
        size = sum(rendered.values()) + (0 if inputs is None else len(entry.runs) * len(to_text(inputs)))
        tenant_rows.add_growth(connection, {row.namespace: tenant_rows.Growth(births=len(entry.runs), bytes=size)}, now)
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


def _steps_wait(connection: Connection, opened: Opened, policies: CreationPolicies | None) -> bool:
    """Check whether a step of the stored workflow would await approval, whichever member of a team works."""
    name = opened.sound.workflow
    if policies is None or policies.workflow_version is None or name is None:
        return False
    own = policy_of(connection, opened)
    said = {own if each.effective is None else each.effective.approval for each in policies.bundles.values()} or {own}
    root = WorkflowUse(name, policies.workflow_version)
    has_assignee = policies.assignee is not None
    return any(
        any_step_waits(connection, opened.row.namespace, root, policy, has_assignee=has_assignee) for policy in said
    )


def _let_go(entry: ScheduleWrites, run_ids: Collection[bytes]) -> ScheduleWrites:
    if not run_ids:
        return entry
    runs = [run._replace(state=RunState.READY) if run.run_id in run_ids else run for run in entry.runs]
    return entry._replace(runs=tuple(runs))


def refuse_beyond_quota(namespace: str, decisions: Iterable[Decision], now: Instant) -> None:
    """Raises QuotaExceeded: to a caller it is told, where the clock could only skip; then nothing was done."""
    for decision in decisions:
        if isinstance(decision, Skip) and decision.reason is Reason.QUOTA_EXCEEDED:
            seen = decision.detail or {}
            raise births_exceed(namespace, QuotaExcess(Quota(seen["quota"]), seen["limit"], seen["used"]), now)


def births_exceed(namespace: str, found: QuotaExcess, now: Instant) -> QuotaExceeded:
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
    left = decide.pause_position(opened.sound, row.position(), now=opened.now).superseded
    return [] if left is None else [replace(left, reason=Reason.REMAINING_ACTIONS_EXHAUSTED)]
