"""What runs look like from outside."""

from __future__ import annotations

from decimal import Decimal

from horarium.api.views import Body, moment
from horarium.ids import id_text
from horarium.operations.occurrences import Skipped
from horarium.operations.queues import Claimed
from horarium.operations.runs import Run, RunEvent
from horarium.policy.limits import MILLIONTHS
from horarium.schedule.canonical import action_document
from horarium.schedule.field import amount
from horarium.schedule.run import Origin, RunState, public_status
from horarium.store.runs_read import RunRow


def shown(run: Run) -> Body:
    row, definition = run.row, run.definition
    return {
        "run_id": id_text(row.run_id),
        "schedule_id": row.schedule_id,
        "namespace": row.namespace,
        "workflow_instance_id": run.instance_id,
        "workflow_type": row.workflow,
        "key": run.key,
        "kind": row.kind,
        "origin": row.origin.value,
        "state": row.state.value,
        "status": public_status(row.state).value,
        "attempt": row.attempt,
        "revision": row.revision,
        "trigger_number": row.trigger_number,
        "rotation_index_used": row.rotation_index,
        "task_queue": row.queue,
        "inputs": run.inputs,
        "result": row.result,
        "error": row.error,
        "error_class": row.error_class,
        "cause": row.cause,
        "covers": _covers(row),
        "labels": {} if definition is None else dict(definition.labels),
        "memo": {} if definition is None else dict(definition.memo),
        "search_attributes": {} if definition is None else dict(definition.search_attributes),
        **_usage(row),
        **_approval(row),
        **_times(row),
        "parent_run_id": _id(row.parent_run_id),
        "node_id": row.node_id,
    }


def skipped(row: Skipped) -> Body:
    """An occurrence without a run, among the runs; a row of missed ones is one line with its first, last and count."""
    event, said = row.event, row.event.payload
    first, last = said.get("first"), said.get("last")
    return {
        "run_id": None,
        "schedule_id": row.schedule_id,
        "namespace": event.namespace,
        "origin": said.get("origin", Origin.SCHEDULED.value),
        "state": RunState.SKIPPED.value,
        "status": public_status(RunState.SKIPPED).value,
        "reason": said.get("reason"),
        "reason_alias": said.get("reason_alias"),
        "detail": said.get("detail"),
        "nominal": said.get("occurrence_time") or first,
        "covers": None if first is None else {"first": first, "last": last, "count": said.get("count")},
        "created_at": moment(event.recorded_at),
        "finished_at": moment(event.recorded_at),
        "sequence": event.sequence,
    }


def claimed(taken: Claimed) -> Body:
    """All that a worker needs; `lease_epoch` goes back with every heartbeat and with the report."""
    definition = taken.run.definition
    return {
        **shown(taken.run),
        "action": None if definition is None else action_document(definition.action),
        "lease_epoch": taken.lease_epoch,
        "lease_until": moment(taken.lease_until),
        "lease_seconds": taken.lease_seconds,
        "report_url": taken.report_url,
        "report_token": taken.report_token,
    }


def run_event(event: RunEvent) -> Body:
    return {
        "sequence": event.sequence,
        "event_type": event.event_type,
        "recorded_at": moment(event.recorded_at),
        "payload": event.payload,
    }


def _covers(row: RunRow) -> Body | None:
    if row.covers_count is None:
        return None
    return {"first": moment(row.covers_first), "last": moment(row.covers_last), "count": row.covers_count}


def _usage(row: RunRow) -> Body:
    return {"cost": amount(Decimal(row.cost) / MILLIONTHS), "tokens": row.tokens, "tool_calls": row.tool_calls}


def _approval(row: RunRow) -> Body:
    approval = {"needed": row.needs_approval, "approval_id": _id(row.approval_id)}
    return {"approval": approval if row.needs_approval or row.approval_id else None}


def _times(row: RunRow) -> Body:
    return {
        "nominal": moment(row.nominal),
        "due": moment(row.due),
        "created_at": moment(row.created_at),
        "started_at": moment(row.started_at),
        "finished_at": moment(row.finished_at),
        "deadline": moment(row.deadline),
        "stop_requested_at": moment(row.stop_requested_at),
    }


def _id(identity: bytes | None) -> str | None:
    return None if identity is None else id_text(identity)
