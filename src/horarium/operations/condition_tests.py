"""Whether a condition would hold: in a context that somebody makes up, or in the one that a schedule would see now.

A condition that cannot be read holds nowhere, and the answer says why. Nothing is written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from horarium.condition import Clause, ClauseResult, Condition, Operator, compile_condition
from horarium.decision.facts import NO_SIGNAL, Fact, Signal
from horarium.errors import ConditionError, InvalidDefinition
from horarium.operations.caller import Caller
from horarium.operations.resources import Opened, Resources, not_found
from horarium.schedule.context import ContextMember, DayCount, into_signal, never_there
from horarium.store.database import Connection
from horarium.store.schedules import facts as store_facts
from horarium.store.schedules import rows as schedules
from horarium.wire.roles import Permission

_SIGNAL: Final = ContextMember.SIGNAL_RPC_RESULT
# Of a schedule that has had no run: what every new one sees.
_NO_RUNS: Final[Mapping[str, Any]] = {
    ContextMember.PRIOR_RUN_RESULT.value: None,
    ContextMember.LAST_24H_STATS.value: {each.value: 0 for each in DayCount},
}


@dataclass(frozen=True, slots=True)
class Tried:
    """`error`: the condition cannot be read, and so does not hold. `signal_error`: why the signal is null."""

    holds: bool
    error: str | None
    findings: tuple[ClauseResult, ...]
    context: Any
    warnings: tuple[str, ...] = ()
    signal_error: str | None = None


def try_condition(
    resources: Resources, caller: Caller, condition: object, *, schedule_id: str | None = None, context: Any = None
) -> Tried:
    """Without a context, and without a schedule, it is that of a schedule that has had no run."""
    caller.require(Permission.READ)
    if schedule_id is not None and context is not None:
        raise InvalidDefinition({"context": ["cannot be combined with schedule_id"]})
    try:
        compiled: Condition | ConditionError = compile_condition(condition)
    except ConditionError as wrong:
        compiled = wrong
    warnings: tuple[str, ...] = ()
    signal = NO_SIGNAL
    if context is None:
        context, signal = _live(resources, caller, compiled, schedule_id)
        warnings = () if isinstance(compiled, ConditionError) else _warnings(resources, compiled)
    if isinstance(compiled, ConditionError):
        return Tried(False, compiled.message, (), context)
    findings = compiled.explain(context)
    return Tried(all(each.holds for each in findings), None, findings, context, warnings, signal.error)


def _live(
    resources: Resources, caller: Caller, condition: Condition | ConditionError, schedule_id: str | None
) -> tuple[dict[str, Any], Signal]:
    """The signal is in it where the condition reads it: nobody outside is asked for what nobody wants to know."""
    wants_signal = isinstance(condition, Condition) and condition.reads(_SIGNAL.value)
    if schedule_id is None:
        return {**_NO_RUNS, **({_SIGNAL.value: None} if wants_signal else {})}, NO_SIGNAL
    resources.database.read(lambda connection: _opened(resources, connection, caller, schedule_id))
    signal = NO_SIGNAL
    if wants_signal and resources.signals is not None:
        signal = resources.signals.ask(caller.namespace, schedule_id, resources.clock.now())
    members = [member for member in ContextMember if member is not _SIGNAL or wants_signal]

    def look(connection: Connection) -> dict[str, Any]:
        opened = _opened(resources, connection, caller, schedule_id)
        row, planning = opened.row, replace(opened.sound, condition=_reading(members))
        subject = store_facts.Subject(row.schedule_uid, row.namespace, planning, row.active, row.held)
        found, _ = store_facts.gather(
            connection,
            [subject],
            opened.now,
            lock=False,
            kinds=frozenset({Fact.CONTEXT}),
            signals={row.schedule_uid: signal},
        )
        seen = found[row.schedule_uid].context
        return {member.value: seen[member.value] for member in members}

    return resources.database.read(look), signal


def _opened(resources: Resources, connection: Connection, caller: Caller, schedule_id: str) -> Opened:
    row = schedules.find(connection, caller.namespace, schedule_id)
    if row is None:
        raise not_found(resources, connection, caller, schedule_id)
    planning = resources.known.load(connection, [row.planning])[row.planning]
    return Opened(row, planning, resources.clock.now())


def _reading(members: list[ContextMember]) -> Condition:
    """One that sees all of them: what a condition reads is what is looked up for it."""
    return Condition(tuple(Clause(f"/{each.value}", (each.value,), Operator.EQ, None) for each in members))


def _warnings(resources: Resources, condition: Condition) -> tuple[str, ...]:
    """As whoever writes it down would be told."""
    missing = () if resources.signals is not None else into_signal(condition)
    return (
        *never_there(condition),
        *(f"{each} never exists, because no signal provider is configured" for each in missing),
    )
