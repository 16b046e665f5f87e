"""How a target tells what became of a run: once is enough, again is harmless, too late changes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import assert_never

from horarium.errors import InvalidDefinition
from horarium.instant import Instant
from horarium.life.change import Admit, Again, Begin, Block, Change, End, Nothing, Progress, Wait, Why
from horarium.life.event import Reported, ReportedState
from horarium.life.live_run import NO_RULES, rules_for
from horarium.operations.bypasses import record_bypass
from horarium.operations.caller import Caller
from horarium.operations.credentials import redactor
from horarium.operations.errors import ApprovalRequired, Forbidden, ReportUnproven, RunNotFound, RunNotHeld
from horarium.operations.resources import Resources
from horarium.operations.runs import find_in_namespace, lease_over
from horarium.policy.limits import millionths
from horarium.policy.names import MAX_LONG, PolicyError, parse_name, read_object, text, whole_or_none
from horarium.schedule.definition import Definition
from horarium.schedule.event import RunEventType
from horarium.schedule.jsonvalue import check_text, checked_object
from horarium.schedule.redaction import Redactor
from horarium.schedule.run import FINAL, RunState
from horarium.store.database import Connection
from horarium.store.database.channels import READY
from horarium.store.runs import claims
from horarium.store.runs.changes import MAX_ERROR
from horarium.store.runs.events import add_event, count_events
from horarium.store.runs.writer import record_event
from horarium.wire.bodies import ReportBody, names_of
from horarium.wire.outcomes import ReportOutcome
from horarium.wire.roles import Permission

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
            claims.note_worker(connection, row.run_id, caller.agent_id)
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
        case Again():
            return ReportOutcome.RETRIED
        case Block():
            return ReportOutcome.BLOCKED
        case Nothing(why):
            return _unchanged(connection, caller, run_id, said, why, now)
        case Wait() | Begin() | Admit():
            raise AssertionError("a report never hands a run over")
        case _:
            assert_never(change)


def _unchanged(
    connection: Connection, caller: Caller, run_id: bytes, said: Reported, why: Why, now: Instant
) -> ReportOutcome:
    match why:
        case Why.SAID_BEFORE:
            return ReportOutcome.UNCHANGED
        case Why.TOO_LATE:
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
        case Why.UNPROVEN:
            raise ReportUnproven(
                "a report requires the lease_epoch of the claim or the report_token of the run; "
                "to end a run without them, use cancel or terminate"
            )
        case Why.NOT_HELD | Why.NOT_SO:
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
