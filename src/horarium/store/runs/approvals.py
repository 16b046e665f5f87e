"""Requests for a yes: made with the run that waits for it, bound to the inputs that it will have."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, bindparam, select, update

from horarium.ids import id_text, new_id
from horarium.instant import Instant, to_rfc3339
from horarium.policy.approval import ApprovalDecision, input_hash
from horarium.policy.rotation import inputs_for
from horarium.schedule.definition import Definition
from horarium.schedule.document import from_canonical
from horarium.schedule.event import RunEventType
from horarium.store.database.set_wise import encode
from horarium.store.runs.definitions import Definitions
from horarium.store.tables import approvals, run_events, runs


def request(connection: Connection, run_ids: Sequence[bytes], now: Instant) -> None:
    """One pending approval for each run, until the time its policy allows; its stream tells of it."""
    if not run_ids:
        return
    columns = (
        runs.c.run_id, runs.c.namespace, runs.c.schedule_uid, runs.c.revision, runs.c.inputs, runs.c.rotation_index,
        runs.c.next_event,
    )  # fmt: skip
    rows = connection.execute(
        select(*columns)
        .where(runs.c.run_id.in_(run_ids))
        .order_by(runs.c.run_id)
        .with_for_update()  # for the number of its next event
    ).all()
    definitions = Definitions(from_canonical).load(connection, rows)
    requested = [_row(row, definitions[row.run_id], now) for row in rows]
    connection.execute(approvals.insert(), requested)
    connection.execute(_COUNT_EVENT, [{"id": row.run_id} for row in rows])
    connection.execute(
        run_events.insert(), [_event(row.next_event, made, now) for row, made in zip(rows, requested, strict=True)]
    )


_COUNT_EVENT = update(runs).where(runs.c.run_id == bindparam("id")).values(next_event=runs.c.next_event + 1)


def _event(sequence: int, made: dict[str, Any], now: Instant) -> dict[str, Any]:
    said = {
        "approval_id": id_text(made["approval_id"]),
        "gates": json.loads(made["gates"]),
        "expires_at": to_rfc3339(made["expires_at"]),
    }
    return {
        "run_id": made["run_id"],
        "sequence": sequence,
        "event_type": RunEventType.RUN_APPROVAL_REQUESTED.value,
        "recorded_at": now,
        "payload": encode(said),
    }


def _row(row: Any, definition: Definition | Exception, now: Instant) -> dict[str, Any]:
    if isinstance(definition, Exception):
        raise definition
    if row.inputs is not None:
        inputs = json.loads(row.inputs)
    else:
        inputs = inputs_for(definition.action.input, definition.inputs_rotation, row.rotation_index or 0)
    return {
        "approval_id": new_id(),
        "namespace": row.namespace,
        "run_id": row.run_id,
        "input_hash": input_hash(inputs),
        "gates": encode(sorted(definition.approval.gates)),
        "decision": ApprovalDecision.PENDING.value,
        "requested_at": now,
        "expires_at": definition.approval.expires_at(now),
    }
