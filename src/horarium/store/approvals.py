"""Requests for a yes: made with the run that waits for it, bound to the inputs that it will have."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, and_, select

from horarium.ids import new_id
from horarium.instant import Instant
from horarium.policy.approval import ApprovalDecision, input_hash
from horarium.policy.rotation import inputs_for
from horarium.schedule.document import from_canonical
from horarium.store.many import encode
from horarium.store.tables import approvals, runs, schedule_revisions


def request(connection: Connection, run_ids: Sequence[bytes], now: Instant) -> None:
    """One pending approval for each run, until the time its policy allows."""
    if not run_ids:
        return
    joined = runs.join(
        schedule_revisions,
        and_(
            schedule_revisions.c.schedule_uid == runs.c.schedule_uid,
            schedule_revisions.c.revision == runs.c.revision,
        ),
    )
    rows = connection.execute(
        select(runs.c.run_id, runs.c.namespace, runs.c.inputs, runs.c.rotation_index, schedule_revisions.c.document)
        .select_from(joined)
        .where(runs.c.run_id.in_(run_ids))
    ).all()
    connection.execute(approvals.insert(), [_row(row, now) for row in rows])


def _row(row: Any, now: Instant) -> dict[str, Any]:
    definition = from_canonical(json.loads(row.document))
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
