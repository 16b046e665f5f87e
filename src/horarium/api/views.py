"""What schedules look like from outside: native fields, and the Durable Workflow contract's flat and nested ones.

Its client reads the flat fields, its command line the nested `state` and `info`: an answer has both.
"""

from __future__ import annotations

from typing import Any

from horarium.ids import id_text
from horarium.instant import Instant, to_rfc3339
from horarium.operations.listings import Described, Listed
from horarium.operations.write_result import WriteResult
from horarium.schedule.definition import Source
from horarium.schedule.position import Status
from horarium.schedule.run import instance_id
from horarium.store.runs.read import RunRow

Body = dict[str, Any]


def moment(instant: Instant | None) -> str | None:
    return None if instant is None else to_rfc3339(instant)


def written(done: WriteResult) -> Body:
    return {
        "schedule_id": done.schedule_id,
        "outcome": done.outcome.value,
        "namespace": done.namespace,
        "status": done.status.value,
        "next_fire_at": moment(done.next_due),
        "version": done.version,
        **({"changed_fields": list(done.changed)} if done.changed else {}),
        **({"warnings": list(done.warnings)} if done.warnings else {}),
    }


def listed(schedule: Listed) -> Body:
    row = schedule.row
    return {
        **schedule.document,
        **_flat(schedule),
        "workflow_type": row.workflow,
        "next_fire": moment(row.next_due),
        "last_fire": moment(row.last_fired_at),
    }


def described(schedule: Described) -> Body:
    row = schedule.row
    return {
        **schedule.document,
        **_flat(schedule),
        "workflow_type": row.workflow,
        "uid": id_text(row.schedule_uid),
        "latest_workflow_instance_id": schedule.last_instance_id,
        "next_fire_times": [moment(fire.nominal) for fire in schedule.next_fires],
        "error": schedule.error,
        "state": {
            "status": row.status.value,
            "paused": _paused(schedule),
            "note": row.pause_reason or schedule.document.get("note"),
        },
        "info": _info(schedule),
    }


def _flat(schedule: Listed) -> Body:
    row, document = schedule.row, schedule.document
    action = dict(document["action"])
    if "queue" in action:
        action["task_queue"] = action["queue"]
    return {
        "action": action,
        "namespace": row.namespace,
        "status": row.status.value,
        "paused": _paused(schedule),
        "note": document.get("note"),
        "memo": document.get("memo", {}),
        "search_attributes": document.get("search_attributes", {}),
        "labels": document.get("labels", {}),
        "overlap_policy": document["overlap_policy"],
        "catchup_policy": document["catchup_policy"],
        "jitter_seconds": document["spec"].get("jitter_seconds", 0),
        "max_runs": document.get("max_runs"),
        "remaining_actions": schedule.remaining_runs,
        "fires_count": row.fires_count,
        "failures_count": row.failures_count,
        "skipped_trigger_count": row.skipped_count,
        "next_fire_at": moment(row.next_due) if row.status is Status.ACTIVE else None,
        "last_fired_at": moment(row.last_fired_at),
        "paused_at": moment(row.paused_at),
        "pause_reason": row.pause_reason,
        "created_at": moment(row.created_at),
        "updated_at": moment(row.updated_at),
        "version": row.version,
        "revision": row.revision,
        "generation": row.generation,
        "source": document.get("source", Source.RUNTIME.value),
        "owner": row.owner,
        "rotation_index": row.rotation_index,
        "active_runs": row.active,
        "held_runs": row.held,
        **_tracking(schedule),
    }


def _tracking(schedule: Listed) -> Body:
    row = schedule.row
    return {
        "last_dispatch_status": row.last_dispatch_status,
        "last_skip_reason": row.last_skip_reason,
        "last_skipped_at": moment(row.last_skipped_at),
        "last_run_id": None if row.last_run_id is None else id_text(row.last_run_id),
        "last_run_at": moment(row.last_fired_at),
        "last_completed_at": moment(row.last_completed_at),
        "last_error_at": moment(row.last_error_at),
        "last_error_message": row.last_error,
    }


def _info(schedule: Described) -> Body:
    row = schedule.row
    return {
        "next_fire": moment(row.next_due) if row.status is Status.ACTIVE else None,
        "last_fire": moment(row.last_fired_at),
        "next_fire_times": [moment(fire.nominal) for fire in schedule.next_fires],
        "fires_count": row.fires_count,
        "failures_count": row.failures_count,
        "skipped_trigger_count": row.skipped_count,
        "last_skip_reason": row.last_skip_reason,
        "last_skipped_at": moment(row.last_skipped_at),
        "held_runs": row.held,
        "buffered_actions": [
            {"buffered_at": moment(run.created_at), "occurrence_time": moment(run.nominal)}
            for run in reversed(schedule.held)
        ],
        "recent_actions": [_recent(run) for run in schedule.recent],
    }


def _recent(run: RunRow) -> Body:
    return {
        "workflow_id": instance_id(run.schedule_id or "", run.origin, run.nominal, id_text(run.run_id)),
        "run_id": id_text(run.run_id),
        "outcome": run.state.value,
        "fired_at": moment(run.created_at),
        "occurrence_time": moment(run.nominal),
    }


def _paused(schedule: Listed) -> bool:
    return schedule.row.status is Status.PAUSED
