"""Requests for a yes: made with the run that waits for it, bound to the inputs that it will have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection, bindparam, select, update

from horarium.ids import id_text, new_id
from horarium.instant import Instant, to_rfc3339
from horarium.policy.approval import ApprovalDecision, input_hash
from horarium.policy.rotation import inputs_for
from horarium.schedule.definition import Definition
from horarium.schedule.document import from_canonical
from horarium.schedule.event import RunEventType
from horarium.store.database.json_text import from_text, to_text
from horarium.store.runs import events
from horarium.store.runs.definitions import Definitions
from horarium.store.runs.events import NewRunEvent
from horarium.store.tables import approvals, runs


class _Run(NamedTuple):
    """Columns of a run that waits for a yes."""

    run_id: bytes
    namespace: str
    schedule_uid: bytes | None
    revision: int | None
    inputs: str | None
    rotation_index: int | None
    next_event: int


_RUNS = select(*(runs.c[name] for name in _Run._fields)).order_by(runs.c.run_id)
_COUNT_EVENT = update(runs).where(runs.c.run_id == bindparam("id")).values(next_event=runs.c.next_event + 1)


def request(connection: Connection, run_ids: Sequence[bytes], now: Instant) -> None:
    """One pending approval for each run, until the time its policy allows; its stream tells of it."""
    if not run_ids:
        return
    # Locked for the number of its next event.
    found = connection.execute(_RUNS.where(runs.c.run_id.in_(run_ids)).with_for_update())
    waiting = [_Run._make(row) for row in found]
    definitions = Definitions(from_canonical).load(connection, waiting)
    requested = [_row(run, definitions[run.run_id], now) for run in waiting]
    connection.execute(approvals.insert(), requested)
    connection.execute(_COUNT_EVENT, [{"id": run.run_id} for run in waiting])
    told = zip(waiting, requested, strict=True)
    events.append(connection, [_event(run.next_event, made) for run, made in told], now=now)


def close_of_ended(connection: Connection, run_ids: Sequence[bytes], now: Instant, reason: str) -> None:
    """Nobody is asked any more about runs that have ended otherwise."""
    pending = update(approvals).where(approvals.c.run_id.in_(run_ids), approvals.c.decision == "pending")
    connection.execute(pending.values(decision="expired", reason=reason, decided_at=now))


def _event(number: int, made: dict[str, Any]) -> NewRunEvent:
    said = {
        "approval_id": id_text(made["approval_id"]),
        "gates": from_text(made["gates"]),
        "expires_at": to_rfc3339(made["expires_at"]),
    }
    return made["run_id"], number, RunEventType.RUN_APPROVAL_REQUESTED, said


def _row(run: _Run, definition: Definition | Exception, now: Instant) -> dict[str, Any]:
    if isinstance(definition, Exception):
        raise definition
    if run.inputs is not None:
        inputs = from_text(run.inputs)
    else:
        inputs = inputs_for(definition.action.input, definition.inputs_rotation, run.rotation_index or 0)
    return {
        "approval_id": new_id(),
        "namespace": run.namespace,
        "run_id": run.run_id,
        "input_hash": input_hash(inputs),
        "gates": to_text(sorted(definition.approval.gates)),
        "decision": ApprovalDecision.PENDING.value,
        "requested_at": now,
        "expires_at": definition.approval.expires_at(now),
    }
