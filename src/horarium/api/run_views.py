"""How runs are shown: in lists, by themselves, and to the worker that claims them."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from horarium.ids import id_text
from horarium.instant import from_rfc3339, to_datetime
from horarium.operations.occurrences import Skipped
from horarium.operations.queues import Claimed
from horarium.operations.runs import Run, RunEvent
from horarium.policy.limits import MILLIONTHS
from horarium.schedule.canonical import action_document
from horarium.schedule.field import amount
from horarium.schedule.run import Origin, RunState, public_status
from horarium.store.runs.read import RunRow
from horarium.wire import runs as wire
from horarium.wire.answer import time_of
from horarium.wire.runs import Covered, RunApproval, RunSummary


def summary(run: Run) -> RunSummary:
    return RunSummary(**_common(run))


def shown(run: Run) -> wire.Run:
    return wire.Run(**_whole(run), reruns=tuple(id_text(each) for each in run.reruns))


def claimed(taken: Claimed) -> wire.ClaimedRun:
    definition = taken.run.definition
    return wire.ClaimedRun(
        **_whole(taken.run),
        action=None if definition is None else action_document(definition.action),
        lease_epoch=taken.lease_epoch,
        lease_until=to_datetime(taken.lease_until),
        lease_seconds=taken.lease_seconds,
        report_url=taken.report_url,
        report_token=taken.report_token,
    )


def skipped(row: Skipped) -> RunSummary:
    """An occurrence without a run, among the runs; a range of missed ones is one row with its first, last and count."""
    event, said = row.event, row.event.payload
    nominal = said.get("occurrence_time") or said.get("first")
    recorded = to_datetime(event.recorded_at)
    covers = None
    if "first" in said:
        covers = Covered(first=_time(said["first"]), last=_time(said["last"]), count=said["count"])
    nobody: Any = None
    return RunSummary(
        run_id=nobody,
        schedule_id=row.schedule_id,
        namespace=event.namespace,
        origin=Origin(said.get("origin", Origin.SCHEDULED)),
        state=RunState.SKIPPED,
        status=public_status(RunState.SKIPPED),
        nominal=None if nominal is None else _time(nominal),
        due=None,
        created_at=recorded,
        started_at=None,
        finished_at=recorded,
        deadline=None,
        stop_requested_at=None,
        covers=covers,
        workflow_instance_id=None,
        workflow_type=None,
        key=row.key,
        kind=None,
        attempt=0,
        revision=None,
        trigger_number=None,
        rotation_index_used=None,
        task_queue=None,
        error=None,
        error_class=None,
        cause=None,
        cost=0,
        tokens=0,
        tool_calls=0,
        approval=None,
        labels={},
        parent_run_id=None,
        node_id=None,
        reason=said.get("reason"),
        reason_alias=said.get("reason_alias"),
        detail=said.get("detail"),
        sequence=event.sequence,
    )


def run_event(event: RunEvent) -> wire.RunEvent:
    return wire.RunEvent(
        sequence=event.sequence,
        event_type=event.event_type,
        recorded_at=to_datetime(event.recorded_at),
        payload=event.payload,
    )


def _whole(run: Run) -> dict[str, Any]:
    row, definition = run.row, run.definition
    return _common(run) | {
        "inputs": run.inputs,
        "result": row.result,
        "memo": {} if definition is None else definition.memo,
        "search_attributes": {} if definition is None else definition.search_attributes,
        "user_id": None if definition is None else definition.user_id,
    }


def _common(run: Run) -> dict[str, Any]:
    row, definition = run.row, run.definition
    return {
        "run_id": id_text(row.run_id),
        "schedule_id": row.schedule_id,
        "namespace": row.namespace,
        "workflow_instance_id": run.instance_id,
        "workflow_type": row.workflow,
        "key": run.key,
        "kind": row.kind,
        "origin": row.origin,
        "state": row.state,
        "status": public_status(row.state),
        "attempt": row.attempt,
        "revision": row.revision,
        "trigger_number": row.trigger_number,
        "rotation_index_used": row.rotation_index,
        "task_queue": row.queue,
        "error": row.error,
        "error_class": row.error_class,
        "cause": row.cause,
        "covers": _covers(row),
        "labels": {} if definition is None else definition.labels,
        "cost": amount(Decimal(row.cost) / MILLIONTHS),
        "tokens": row.tokens,
        "tool_calls": row.tool_calls,
        "approval": _approval(row),
        "nominal": to_datetime(row.nominal),
        "due": to_datetime(row.due),
        "created_at": to_datetime(row.created_at),
        "started_at": time_of(row.started_at),
        "finished_at": time_of(row.finished_at),
        "deadline": time_of(row.deadline),
        "stop_requested_at": time_of(row.stop_requested_at),
        "parent_run_id": None if row.parent_run_id is None else id_text(row.parent_run_id),
        "node_id": row.node_id,
        "rerun_of": None if row.rerun_of is None else id_text(row.rerun_of),
    }


def _covers(row: RunRow) -> Covered | None:
    if row.covers_count is None or row.covers_first is None or row.covers_last is None:
        return None
    return Covered(first=to_datetime(row.covers_first), last=to_datetime(row.covers_last), count=row.covers_count)


def _approval(row: RunRow) -> RunApproval | None:
    if not row.needs_approval and row.approval_id is None:
        return None
    approval_id = None if row.approval_id is None else id_text(row.approval_id)
    return RunApproval(needed=row.needs_approval, approval_id=approval_id)


def _time(text: str) -> Any:
    return to_datetime(from_rfc3339(text))
