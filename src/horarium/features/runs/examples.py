"""Examples of responses about runs in the OpenAPI document."""

from __future__ import annotations

from typing import Any

from horarium.core.document.effective_policies import PolicyOrigin
from horarium.core.document.states import Origin, PublicStatus, RunState
from horarium.features.runs.model import (
    ClaimedRun,
    Heartbeat,
    Run,
    RunEvent,
    RunLogLine,
    RunPolicies,
    RunReported,
    RunStarted,
    RunStopped,
    RunSummary,
    RunUsage,
)
from horarium.platform import wire as platform_wire
from horarium.platform.http.examples import AT, LATER, RUN_ID, UID
from horarium.platform.run_log import Stream

_RUN: dict[str, Any] = {
    "run_id": RUN_ID,
    "schedule_id": "nightly-report",
    "schedule_name": "Nightly report",
    "namespace": "default",
    "origin": Origin.SCHEDULED,
    "state": RunState.RUNNING,
    "status": PublicStatus.STARTED,
    "nominal": AT,
    "due": AT,
    "created_at": AT,
    "started_at": AT,
    "finished_at": None,
    "duration_seconds": None,
    "deadline": LATER,
    "stop_requested_at": None,
    "covers": None,
    "workflow_instance_id": "schedule:nightly-report:1772406000",
    "workflow_type": "report",
    "key": f"{UID}:1772406000",
    "kind": "workflow",
    "attempt": 0,
    "revision": 1,
    "trigger_number": 13,
    "rotation_index_used": None,
    "task_queue": "reports",
    "error": None,
    "error_class": None,
    "cause": None,
    "cost": 0,
    "tokens": 0,
    "tool_calls": 0,
    "usage": RunUsage(runtime_seconds=12.5, cost=0, tokens=0, tool_calls=0),
    "workflow": None,
    "assignee": None,
    "policies": RunPolicies(
        approval_policy={"requires_approval": False, "mode": None, "gates": []},
        retry_policy={"max_retries": 2, "backoff_ms": 1_000},
        failure_policy={"mode": "isolate", "fallback_assignee_id": None},
        limits={"cost": 5},
        queue_policy={"mode": "skip", "on_missed": "fire_once"},
        origins={
            "approval_policy.requires_approval": PolicyOrigin.DEFAULT,
            "retry_policy": PolicyOrigin.SCHEDULE,
            "failure_policy": PolicyOrigin.DEFAULT,
            "limits.cost": PolicyOrigin.SCHEDULE,
        },
    ),
    "approval": None,
    "labels": {},
    "parent_run_id": None,
    "root_run_id": None,
    "node_id": None,
}
_WHOLE: dict[str, Any] = {"inputs": [{"kind": "daily"}], "result": None, "memo": {}, "search_attributes": {}}
SUMMARY = RunSummary(**_RUN)
RUN = Run(**_RUN, **_WHOLE)
CLAIMED = ClaimedRun(
    **_RUN,
    **_WHOLE,
    action={"kind": "workflow", "workflow_type": "report", "queue": "reports"},
    approval_mode=None,
    gates=("publish",),
    approved_gates=(),
    limits={"cost": 5},
    allow_tools=None,
    global_model_id=None,
    lease_epoch=1,
    lease_until=LATER,
    lease_seconds=60,
    report_url=None,
    report_token="hrt_…",
)
LOG_LINE = RunLogLine(number=1, at=AT, attempt=0, stream=Stream.STDOUT, text="42 rows were written")
RUN_EVENT = RunEvent(run_id=RUN_ID, sequence=2, event_type="run.created", recorded_at=AT, payload={})
CANCELLED = RunStopped(run_id=RUN_ID, outcome=platform_wire.StopOutcome.CANCELLED, state=RunState.CANCELLED)
TERMINATED = RunStopped(run_id=RUN_ID, outcome=platform_wire.StopOutcome.TERMINATED, state=RunState.TERMINATED)
REPORTED = RunReported(run_id=RUN_ID, outcome=platform_wire.ReportOutcome.RECORDED, state=RunState.SUCCEEDED)
BEAT = Heartbeat(lease_until=LATER, stop_requested=False)
STARTED = RunStarted(
    run_id=RUN_ID,
    outcome=platform_wire.StartOutcome.STARTED,
    state=RunState.READY,
    started=True,
    idempotency_key="report-2026-03-01",
)
