"""Operations of workers: claim runs of a queue, extend leases, report results. A repeated report changes nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import assert_never

from horarium.core.document.definition import Definition
from horarium.core.document.json_values import check_text, checked_object, damage_of, is_storable
from horarium.core.document.secret_values import Redactor
from horarium.core.document.states import FINAL, RunEventType, RunState
from horarium.core.lifecycle.live_run import NO_RULES, rules_for
from horarium.core.lifecycle.outcome import (
    Admit,
    Begin,
    Block,
    Change,
    End,
    Nothing,
    NothingCause,
    Progress,
    Reported,
    ReportedState,
    RetryLater,
    WaitForTarget,
)
from horarium.core.policy.limits import millionths
from horarium.core.policy.queue import (
    MAX_LONG,
    MAX_TEXT_LENGTH,
    PolicyError,
    parse_name,
    read_object,
    text,
    whole_or_none,
)
from horarium.errors import InvalidDefinition
from horarium.features.agents import rows as agent_rows
from horarium.features.approvals.rows import approved_gates
from horarium.features.resources import Resources
from horarium.features.runs import claim_rows
from horarium.features.runs import rows as runs_read
from horarium.features.runs.service import RunView, find_held, find_in_namespace, lease_over, view
from horarium.features.runs.transition_rows import record_event
from horarium.features.runs.update_rows import MAX_ERROR, add_event, count_events
from horarium.features.schedules.creation import redactor
from horarium.features.schedules.decisions import record_bypass
from horarium.features.workflows.graph_rows import node_gates
from horarium.instant import SECOND, Instant
from horarium.platform.bodies import ReportBody, names_of
from horarium.platform.caller import Caller
from horarium.platform.database import Connection
from horarium.platform.database.statements import fitting
from horarium.platform.database.wakeups import READY
from horarium.platform.errors import ApprovalRequired, Forbidden, ReportUnproven, RunNotFound, RunNotHeld
from horarium.platform.ids import id_text
from horarium.platform.wire import Permission, ReportOutcome

MAX_CLAIM = 100
MAX_TYPES = 100
"""Maximum names in one claim, because each needs a separate query."""


@dataclass(frozen=True, slots=True)
class Claimed:
    """`lease_epoch` goes back with every heartbeat and with the report; `report_token` may speak for it."""

    run: RunView
    lease_epoch: int
    lease_until: Instant
    lease_seconds: int
    report_url: str | None
    report_token: str
    node_gates: tuple[str, ...] = ()
    approved_gates: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Beat:
    """`stop_requested`: somebody wants the run to end; the worker should stop and report `cancelled`."""

    lease_until: Instant
    stop_requested: bool


def claim(
    resources: Resources,
    caller: Caller,
    queue: str,
    *,
    worker: str | None = None,
    limit: int = 1,
    workflow_types: Sequence[str] | None = None,
) -> list[Claimed]:
    """Up to `limit` runs, the highest priority first and then the oldest; an empty list means that nothing waits.

    Fewer, where more would not fit in one answer. `workflow_types` are those that the worker knows: runs of
    others stay for a worker that does. None = any. An agent is given what is assigned to it or to nobody. What is
    said of a claimed run is heard of this caller only.
    """
    caller.require(Permission.WORK)
    if not caller.takes_from(queue):
        raise Forbidden("this token is not valid for this queue")
    if not 1 <= limit <= MAX_CLAIM:
        raise InvalidDefinition({"limit": [f"must be between 1 and {MAX_CLAIM}"]})
    types = None if workflow_types is None else _checked_types(workflow_types)
    owner = (worker or caller.principal or "worker")[:MAX_TEXT_LENGTH]
    wish = _ClaimRequest(caller, queue, owner, limit, types)
    while True:
        try:
            claimed = resources.database.write(partial(_claim, resources, wish))
            break
        except _TooLarge as beyond:  # nothing is claimed then; fewer are asked for each time
            wish = replace(wish, limit=beyond.fit)
    for each in claimed:
        resources.telemetry.launched(fired_at=each.run.row.created_at, started_at=each.run.row.started_at or 0)
    return claimed


@dataclass(frozen=True, slots=True)
class _ClaimRequest:
    caller: Caller
    queue: str
    owner: str
    limit: int
    types: list[str] | None


class _TooLarge(Exception):
    """Raised when claimed runs do not fit in one response; `fit` of them do."""

    def __init__(self, fit: int) -> None:
        super().__init__(f"{fit} fit")
        self.fit = fit


def _claim(resources: Resources, wish: _ClaimRequest, connection: Connection) -> list[Claimed]:
    now, seconds = resources.clock.now(), resources.settings.lease_seconds
    if wish.caller.agent_id:
        agent_rows.set_seen(connection, wish.caller.namespace, wish.caller.agent_id, now)
    taken = claim_rows.claim_queued(
        connection,
        namespace=wish.caller.namespace,
        queue=wish.queue,
        owner=wish.owner,
        now=now,
        lease_seconds=seconds,
        limit=wish.limit,
        types=wish.types,
        claimed_by=wish.caller.principal,
        agent=wish.caller.agent_id,
    )
    run_ids = [each.run_id for each in taken]
    # An answer shows inputs and, in the action, what they were made of.
    fit = fitting(2 * size for size in runs_read.sizes(connection, run_ids)) if len(taken) > 1 else len(taken)
    if fit < len(taken):
        raise _TooLarge(fit)
    for each in taken:
        if each.parent_run_id is not None:
            continue  # a step has told so itself
        add_event(connection, each.run_id, RunEventType.RUN_STARTED, now, {"worker": wish.owner})
    rows = runs_read.find_all(connection, run_ids)
    for row in rows:
        if (why := damage_of(row.inputs)) is not None:
            raise ValueError(f"the inputs of the run {id_text(row.run_id)} cannot be read: {why}")
    declared = node_gates(connection, taken)
    approved = approved_gates(connection, [each.run_id for each in taken if each.approval_id is not None])
    return [
        replace(
            _claimed(resources, run, now, seconds),
            node_gates=declared.get(run.row.run_id, ()),
            approved_gates=approved.get(run.row.run_id, ()),
        )
        for run in view(resources, connection, rows)
    ]


def _checked_types(types: Sequence[object]) -> list[str]:
    """Each once; raises InvalidDefinition."""
    if not isinstance(types, list | tuple) or not 1 <= len(types) <= MAX_TYPES:
        raise InvalidDefinition({"workflow_types": [f"must be an array of 1 to {MAX_TYPES} names"]})
    known: dict[str, None] = {}
    for each in types:
        if not isinstance(each, str) or not 0 < len(each) <= MAX_TEXT_LENGTH or not is_storable(each):
            raise InvalidDefinition({"workflow_types": [f"a name must have 1 to {MAX_TEXT_LENGTH} characters"]})
        known[each] = None
    return list(known)


def _claimed(resources: Resources, run: RunView, now: Instant, seconds: int) -> Claimed:
    row = run.row
    token = resources.tokens.make(row.run_id, row.attempt, row.gates_passed)
    url = resources.tokens.report_url(id_text(row.run_id))
    return Claimed(run, row.lease_epoch, now + seconds * SECOND, seconds, url, token)


def heartbeat(resources: Resources, caller: Caller, run_id: str, lease_epoch: int) -> Beat:
    """Raises RunNotHeld when the run was given to somebody else, or has ended: the worker should stop."""
    caller.require(Permission.WORK)

    def work(connection: Connection) -> Beat:
        held = find_held(connection, caller, run_id, lease_epoch)
        until = resources.clock.now() + resources.settings.lease_seconds * SECOND
        renewed = claim_rows.renew(connection, [held], until).get((held.run_id, lease_epoch))
        if renewed is None:
            raise lease_over(lease_epoch)
        return Beat(until, renewed.stop_requested)

    return resources.database.write(work)


STATE_ALIASES: Mapping[str, ReportedState] = {
    "started": ReportedState.RUNNING,
    "success": ReportedState.SUCCEEDED,
    "completed": ReportedState.SUCCEEDED,
    "failure": ReportedState.FAILED,
    "error": ReportedState.FAILED,
    "canceled": ReportedState.CANCELLED,
}
MAX_LATE = 20
"""Recorded late reports per run; its token never expires, so further reports are not recorded."""


@dataclass(frozen=True, slots=True)
class Report:
    """A report and the token of its run, if the target shows one."""

    said: Reported
    token: str | None = None


@dataclass(frozen=True, slots=True)
class Answered:
    run_id: bytes
    outcome: ReportOutcome
    state: RunState


def parse_report(document: object) -> Report:
    """Raises InvalidDefinition with the field that is wrong."""
    try:
        given = read_object(document, "report", names_of(ReportBody), ReportBody.OTHER_NAMES)
        state = parse_name(ReportedState, STATE_ALIASES, given.get("state"), "state")
        gate = given.get("gate")
        if state is ReportedState.BLOCKED and gate is None:
            raise PolicyError("gate", "is required with the state blocked")
        cost = given.get("cost")
        said = Reported(
            state=state,
            result=checked_object("result", {"value": given.get("result")})["value"],
            error=_text_or_none("error", given.get("error")),
            error_class=None if given.get("error_class") is None else text("error_class", given["error_class"]),
            cost=None if cost is None else millionths(cost, "cost"),
            tokens=whole_or_none("tokens", given.get("tokens"), most=MAX_LONG),
            tool_calls=whole_or_none("tool_calls", given.get("tool_calls"), most=MAX_LONG),
            gate=None if gate is None else text("gate", gate),
            epoch=whole_or_none("lease_epoch", given.get("lease_epoch")),
            attempt=whole_or_none("attempt", given.get("attempt")),
        )
        return Report(said, _text_or_none("report_token", given.get("report_token")))
    except PolicyError as wrong:
        raise InvalidDefinition({wrong.field: [wrong.text]}) from None


def report(resources: Resources, caller: Caller, run_id: str, report: Report) -> Answered:
    """Raises InvalidTransition for a run that nobody was given, RunNotHeld for a lease that is not the caller's,
    ReportUnproven where neither a lease nor a token is shown, and ApprovalRequired for a run that waits for a yes.
    """
    caller.require(Permission.WORK)

    def work(connection: Connection) -> Answered | ApprovalRequired:
        row = find_in_namespace(connection, caller, run_id)
        known = caller.sees(row) or proves(resources, row.run_id, report)
        if row.state is RunState.AWAITING_APPROVAL and not (known and repeats_its_gate(report)):
            record_bypass(connection, caller, row, f"report {report.said.state}", resources.clock.now())
            return ApprovalRequired("this run awaits approval; a report cannot change its state")
        if not known:
            raise RunNotFound(run_id[:64])
        definition = resources.definitions.of(connection, row)
        now, said = resources.clock.now(), shown(resources, caller, row.run_id, report)
        rules = NO_RULES
        if isinstance(definition, Definition):
            said = without_secrets(said, redactor(resources, connection, row, definition))
            rules = rules_for(row.kind, definition.retry, definition.limits)
        change = record_event(connection, resources.known, row.run_id, said, rules, now=now, by=caller.context())
        resources.database.notify(connection, READY)  # an end may have released another, a failure waits for its retry
        if said.proven and caller.agent_id is not None and not caller.sees(row):
            claim_rows.note_worker(connection, row.run_id, caller.agent_id)
        outcome = outcome_of(connection, caller, row.run_id, said, change, now)
        return Answered(row.run_id, outcome, find_in_namespace(connection, caller, run_id).state)

    answered = resources.database.write(work)
    if isinstance(answered, ApprovalRequired):  # raised here: what was tried stays on record
        raise answered
    if answered.outcome is ReportOutcome.RECORDED and answered.state in FINAL:
        resources.telemetry.ended(answered.state)
    return answered


def repeats_its_gate(report: Report) -> bool:
    """Whoever reported the gate for which the run waits may say so again, by the same right."""
    return report.said.state is ReportedState.BLOCKED and (report.token is not None or report.said.epoch is not None)


def proves(resources: Resources, run_id: bytes, report: Report) -> bool:
    """Whoever was handed the run has its token, also an agent who would not see it otherwise."""
    return report.token is not None and resources.tokens.attempt_of(report.token, run_id) is not None


def shown(resources: Resources, caller: Caller, run_id: bytes, report: Report) -> Reported:
    """A token speaks for its own delivery, whatever else is said."""
    if report.token is None:
        return replace(report.said, by=caller.principal)
    fence = resources.tokens.fence_of(report.token, run_id)
    if fence is None or report.said.attempt not in (None, fence.attempt):
        raise Forbidden("this report_token does not belong to this attempt of this run")
    shown = replace(report.said, attempt=fence.attempt, gates_passed=fence.gates_passed)
    return replace(shown, by=caller.principal, proven=True)


def without_secrets(said: Reported, redactor: Redactor) -> Reported:
    """A target may repeat what it was sent."""
    error = None if said.error is None else redactor.text(said.error)
    error_class = None if said.error_class is None else redactor.text(said.error_class)
    gate = None if said.gate is None else redactor.text(said.gate)
    return replace(said, result=redactor.json(said.result), error=error, error_class=error_class, gate=gate)


def outcome_of(
    connection: Connection, caller: Caller, run_id: bytes, said: Reported, change: Change, now: Instant
) -> ReportOutcome:
    """Outcome of a report; a late report is recorded here."""
    match change:
        case End() | Progress():
            return ReportOutcome.RECORDED
        case RetryLater():
            return ReportOutcome.RETRIED
        case Block():
            return ReportOutcome.BLOCKED
        case Nothing(why):
            return _unchanged(connection, caller, run_id, said, why, now)
        case WaitForTarget() | Begin() | Admit():
            raise AssertionError("a report never hands a run over")
        case _:
            assert_never(change)


def _unchanged(
    connection: Connection, caller: Caller, run_id: bytes, said: Reported, why: NothingCause, now: Instant
) -> ReportOutcome:
    match why:
        case NothingCause.SAID_BEFORE:
            return ReportOutcome.UNCHANGED
        case NothingCause.TOO_LATE:
            told = {
                "reported": said.state.value,
                "attempt": said.attempt,
                "error": said.error,
                "cost": said.cost,
                "tokens": said.tokens,
                **caller.context().to_payload(),
            }
            payload = {name: value for name, value in told.items() if value is not None}
            if count_events(connection, run_id, RunEventType.RUN_LATE_REPORT) < MAX_LATE:
                add_event(connection, run_id, RunEventType.RUN_LATE_REPORT, now, payload)
            return ReportOutcome.LATE
        case NothingCause.UNPROVEN:
            raise ReportUnproven(
                "a report requires the lease_epoch of the claim or the report_token of the run; "
                "to end a run without them, use cancel or terminate"
            )
        case NothingCause.NOT_HELD | NothingCause.NOT_SO:
            if said.epoch is not None:
                raise lease_over(said.epoch)
            raise RunNotHeld("this report_token belongs to an attempt that has not started")
        case _:
            assert_never(why)


def _text_or_none(field: str, value: object) -> str | None:
    """An error is cut, not refused: what went wrong matters more than how long its tale is."""
    if value is None:
        return None
    if not isinstance(value, str):
        raise PolicyError(field, "must be a string")
    check_text(field, value)
    return value[:MAX_ERROR].replace("\x00", "�")
