"""How a target tells what became of a run: once is enough, again is harmless, too late changes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import Any

from sqlalchemy import Connection

from horarium.errors import InvalidDefinition
from horarium.ids import id_text
from horarium.instant import SECOND, Instant
from horarium.operations.caller import Caller, Permission
from horarium.operations.desk import Desk
from horarium.operations.errors import RunNotHeld
from horarium.operations.runs import Run, locked, view
from horarium.policy.limits import MILLIONTHS, Usage, exceeded
from horarium.policy.limits import parse as parse_amount
from horarium.policy.names import MAX_LONG, PolicyError, parse_name, read_object, text, whole_or_none
from horarium.policy.retry import Retry, decide_retry
from horarium.schedule.event import RunEventType
from horarium.schedule.jsonvalue import check_text, checked_object
from horarium.schedule.run import FINAL, RunState, check_transition
from horarium.store import approvals, ends, open_runs, runs
from horarium.store.channels import READY
from horarium.store.closing import End
from horarium.store.runs_read import RunRow

_FIELDS = ("state", "result", "error", "error_class", "cost", "tokens", "tool_calls", "gate", "lease_epoch")
_ALIASES = {"status": "state"}
_MAX_ERROR = 4_000


class Reported(StrEnum):
    """What a target may say."""

    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    CANCELLED = "cancelled"
    BLOCKED = "blocked"


STATE_ALIASES: Mapping[str, Reported] = {
    "started": Reported.RUNNING,
    "success": Reported.SUCCEEDED,
    "completed": Reported.SUCCEEDED,
    "failure": Reported.FAILED,
    "error": Reported.FAILED,
    "canceled": Reported.CANCELLED,
}


@dataclass(frozen=True, slots=True)
class Report:
    """`cost` is in millionths of a credit. `lease_epoch` fences a worker that has lost its run."""

    state: Reported
    result: Any = None
    error: str | None = None
    error_class: str | None = None
    cost: int | None = None
    tokens: int | None = None
    tool_calls: int | None = None
    gate: str | None = None
    lease_epoch: int | None = None


class ReportOutcome(StrEnum):
    RECORDED = "recorded"
    RETRIED = "retried"
    BLOCKED = "blocked"
    UNCHANGED = "unchanged"  # it was said before
    LATE = "late"  # the run had ended otherwise; written down, and nothing more


@dataclass(frozen=True, slots=True)
class Answered:
    run_id: bytes
    outcome: ReportOutcome
    state: RunState


def parse_report(document: object) -> Report:
    """Raises InvalidDefinition with the field that is wrong."""
    try:
        given = read_object(document, "report", _FIELDS, _ALIASES)
        state = parse_name(Reported, STATE_ALIASES, given.get("state"), "state")
        gate = given.get("gate")
        if state is Reported.BLOCKED and gate is None:
            raise PolicyError("gate", "is required with the state blocked")
        cost = given.get("cost")
        return Report(
            state=state,
            result=checked_object("result", {"value": given.get("result")})["value"],
            error=_text_or_none("error", given.get("error")),
            error_class=None if given.get("error_class") is None else text("error_class", given["error_class"]),
            cost=None if cost is None else int(parse_amount(cost, "cost") * MILLIONTHS),
            tokens=whole_or_none("tokens", given.get("tokens"), most=MAX_LONG),
            tool_calls=whole_or_none("tool_calls", given.get("tool_calls"), most=MAX_LONG),
            gate=None if gate is None else text("gate", gate),
            lease_epoch=whole_or_none("lease_epoch", given.get("lease_epoch")),
        )
    except PolicyError as wrong:
        raise InvalidDefinition({wrong.field: [wrong.text]}) from None


def report(desk: Desk, caller: Caller, run_id: str, report: Report) -> Answered:
    """Raises InvalidTransition for a run that nobody was given, and RunNotHeld for a lease that was lost."""
    caller.require(Permission.WORK)

    def work(connection: Connection) -> Answered:
        run = view(connection, locked(connection, caller, run_id), {})
        return _answer(desk, connection, run, report, desk.clock.now())

    answered = desk.database.write(work)
    if answered.outcome is ReportOutcome.RECORDED and answered.state in FINAL:
        desk.telemetry.ended(answered.state)
    return answered


def _answer(desk: Desk, connection: Connection, run: Run, report: Report, now: Instant) -> Answered:
    row = run.row
    if row.state in FINAL:
        return _too_late(connection, row, report, now)
    if report.lease_epoch is not None and report.lease_epoch != row.lease_epoch:
        raise RunNotHeld(f"the lease {report.lease_epoch} of this run is over")
    match report.state:
        case Reported.RUNNING:
            return _progress(desk, connection, run, report, now)
        case Reported.BLOCKED:
            return _blocked(connection, row, report, now)
        case Reported.FAILED:
            return _failed(desk, connection, run, report, now)
        case Reported.SUCCEEDED | Reported.TIMED_OUT | Reported.CANCELLED:
            return _end(desk, connection, row, _ended(report), now)


def _too_late(connection: Connection, row: RunRow, report: Report, now: Instant) -> Answered:
    if report.state.value == row.state.value:
        return Answered(row.run_id, ReportOutcome.UNCHANGED, row.state)
    payload = {"reported": report.state.value, "error": report.error, "cost": report.cost, "tokens": report.tokens}
    said = {name: value for name, value in payload.items() if value is not None}
    runs.add_event(connection, row.run_id, RunEventType.RUN_LATE_REPORT, now, said)
    return Answered(row.run_id, ReportOutcome.LATE, row.state)


def _progress(desk: Desk, connection: Connection, run: Run, report: Report, now: Instant) -> Answered:
    """It has begun, or goes on; a cap that is passed ends it here."""
    row = run.row
    if row.state is not RunState.RUNNING:
        check_transition(row.state, RunState.RUNNING)
        runs.add_event(connection, row.run_id, RunEventType.RUN_STARTED, now, {})
    cause = None if run.definition is None else exceeded(run.definition.limits, _usage(row, report, now))
    if cause is not None:
        end = End(RunState.FAILED, error=f"the run passed its {cause.replace('_', ' ')}", cause=cause)
        return _end(desk, connection, row, _with_usage(end, report), now)
    used = {name: value for name in ("cost", "tokens", "tool_calls") if (value := getattr(report, name)) is not None}
    open_runs.change(
        connection,
        row.run_id,
        from_states=[row.state],
        state=RunState.RUNNING.value,
        started_at=row.started_at or now,
        **used,
    )
    return Answered(row.run_id, ReportOutcome.RECORDED, RunState.RUNNING)


def _blocked(connection: Connection, row: RunRow, report: Report, now: Instant) -> Answered:
    """The run came to a gate: it waits for a yes, and its lease and deadline wait with it."""
    if row.state is RunState.AWAITING_APPROVAL:
        return Answered(row.run_id, ReportOutcome.UNCHANGED, row.state)
    check_transition(row.state, RunState.AWAITING_APPROVAL)
    open_runs.change(
        connection,
        row.run_id,
        from_states=[row.state],
        state=RunState.AWAITING_APPROVAL.value,
        needs_approval=True,
        approval_id=None,
        lease_owner=None,
        lease_until=None,
        deadline=None,
        lease_epoch=row.lease_epoch + 1,
    )
    approvals.request(connection, [row.run_id], now)
    runs.add_event(connection, row.run_id, RunEventType.RUN_BLOCKED, now, {"gate": report.gate})
    return Answered(row.run_id, ReportOutcome.BLOCKED, RunState.AWAITING_APPROVAL)


def _failed(desk: Desk, connection: Connection, run: Run, report: Report, now: Instant) -> Answered:
    row, failures = run.row, run.row.attempt + 1
    check_transition(row.state, RunState.FAILED)
    if run.definition is not None and row.state in (RunState.RUNNING, RunState.LAUNCHING) and row.node_id is None:
        choice = decide_retry(
            run.definition.retry,
            attempt=failures,
            error_class=report.error_class,
            deadline=row.deadline,
            now=now,
            key=id_text(row.run_id),
        )
        if isinstance(choice, Retry):
            return _retry(desk, connection, row, report, choice.at, failures, now)
    return _end(desk, connection, row, _ended(report), now)


def _retry(
    desk: Desk, connection: Connection, row: RunRow, report: Report, at: Instant, failures: int, now: Instant
) -> Answered:
    open_runs.change(
        connection,
        row.run_id,
        from_states=[row.state],
        state=RunState.READY.value,
        ready_at=at,
        attempt=failures,
        launches=0,
        busy_since=None,
        error=report.error,
        lease_owner=None,
        lease_until=None,
        # Whoever failed has answered; a second word from him belongs to the attempt that is over.
        lease_epoch=row.lease_epoch + 1,
        reference=None,
    )
    runs.add_event(connection, row.run_id, RunEventType.RUN_RETRIED, now, {"attempt": failures, "error": report.error})
    desk.database.notify(connection, READY)
    return Answered(row.run_id, ReportOutcome.RETRIED, RunState.READY)


def _end(desk: Desk, connection: Connection, row: RunRow, end: End, now: Instant) -> Answered:
    check_transition(row.state, end.state)
    ends.end_run(connection, desk.known, row.run_id, end, now=now)
    desk.database.notify(connection, READY)  # its end may have released another
    return Answered(row.run_id, ReportOutcome.RECORDED, end.state)


def _ended(report: Report) -> End:
    end = End(RunState(report.state.value), report.result, report.error, report.error_class)
    return _with_usage(end, report)


def _with_usage(end: End, report: Report) -> End:
    return End(
        end.state,
        end.result,
        end.error,
        end.error_class,
        end.cause,
        cost=report.cost,
        tokens=report.tokens,
        tool_calls=report.tool_calls,
    )


def _usage(row: RunRow, report: Report, now: Instant) -> Usage:
    started = row.started_at or now
    cost = row.cost if report.cost is None else report.cost
    return Usage(
        runtime_seconds=max(0, now - started) // SECOND,
        cost=Decimal(cost) / MILLIONTHS,
        tokens=row.tokens if report.tokens is None else report.tokens,
        tool_calls=row.tool_calls if report.tool_calls is None else report.tool_calls,
    )


def _text_or_none(field: str, value: object) -> str | None:
    """An error is cut, not refused: what went wrong matters more than how long its tale is."""
    if value is None:
        return None
    if not isinstance(value, str):
        raise PolicyError(field, "must be text")
    check_text(field, value)
    return value[:_MAX_ERROR].replace("\x00", "�")
