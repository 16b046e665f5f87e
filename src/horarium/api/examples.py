"""What requests and answers look like, for the description of the API; a test sends each of the requests.

Answers are shown as far as they explain themselves; an answer may have more members.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

_AT = "2026-03-01T23:00:00Z"
_LATER = "2026-03-02T23:00:00Z"
_RUN_ID = "01KJF0Z7C8E2V9Q4M6T1N3B5XA"
_UID = "01KJF0Z7C8E2V9Q4M6T1N3B5XB"

SCHEDULE: Mapping[str, Any] = {
    "schedule_id": "nightly-report",
    "spec": {"cron_expressions": ["0 2 * * *"], "timezone": "Europe/Istanbul"},
    "action": {"workflow_type": "report", "task_queue": "reports", "input": [{"kind": "daily"}]},
    "overlap_policy": "skip",
    "note": "every night at two",
}
_WRITTEN = {
    "schedule_id": "nightly-report",
    "outcome": "updated",
    "namespace": "default",
    "status": "active",
    "next_fire_at": _AT,
    "version": 2,
}
_DESCRIBED = {**SCHEDULE, "status": "active", "paused": False, "next_fire_times": [_AT, _LATER], "version": 1}
_RUN = {
    "run_id": _RUN_ID,
    "schedule_id": "nightly-report",
    "namespace": "default",
    "state": "running",
    "status": "STARTED",
    "origin": "scheduled",
    "nominal": _AT,
    "due": _AT,
    "inputs": [{"kind": "daily"}],
}
_STOPPED = {"run_id": _RUN_ID, "outcome": "cancelled", "state": "cancelled"}
_CALENDAR = {
    "name": "company-holidays",
    "kind": "skip_dates",
    "timezone": "Europe/Istanbul",
    "dates": ["2026-12-24", "2026-12-31"],
}
_KEPT = {**_CALENDAR, "rule": None, "read_only": False, "version": 1, "warning": None}
_EVENT = {
    "sequence": 4,
    "event_type": "ScheduleTriggered",
    "recorded_at": _AT,
    "payload": {"occurrence_time": _AT, "workflow_run_id": _RUN_ID},
}
_ENTRY = {
    "id": "714-20",
    "kind": "schedule_skipped",
    "at": _AT,
    "schedule_id": "nightly-report",
    "run_id": None,
    "reason": "calendar",
}
_TOKEN = {
    "token_id": _UID,
    "namespace": "default",
    "name": "ci",
    "role": "operator",
    "subject": None,
    "created_at": _AT,
    "expires_at": None,
}
_NAMESPACE = {"namespace": "tenant", "description": "a tenant", "created_at": _AT}
_PROBE = {"status": "ok", "ready": True, "checks": [{"name": "ticking", "passed": True}]}
_HEALTH = {
    "schedule_id": "nightly-report",
    "status": "ok",
    "last_run_at": _AT,
    "expected_next_run": _LATER,
    "late_seconds": 0.0,
    "stale_threshold_seconds": 120.0,
}
_UPSERT = {
    "schedule_id": "nightly-report",
    "workflow_id": "report",
    "version": 3,
    "cron_expr": "0 2 * * *",
    "timezone": "Europe/Istanbul",
}
_START = {"workflow_id": "report", "version": 3, "scheduled_for": _AT, "idempotency_key": "report-2026-03-01"}
_STARTED = {"run_id": _RUN_ID, "outcome": "started", "state": "ready", "started": True}


@dataclass(frozen=True, slots=True)
class Example:
    """`body` None = the request has none; `also` are other statuses of the same answer."""

    answer: Any
    body: Any = None
    also: tuple[int, ...] = ()
    media_type: str = "application/json"


_S, _R, _C = "/api/schedules/{schedule_id}", "/api/runs/{run_id}", "/api/calendars/{name}"

EXAMPLES: Mapping[tuple[str, str], Example] = MappingProxyType(
    {
        ("GET", "/livez"): Example({"status": "ok"}),
        ("GET", "/healthz"): Example(_PROBE, also=(503,)),
        ("GET", "/api/health"): Example(_PROBE, also=(503,)),
        ("GET", "/readyz"): Example(_PROBE, also=(503,)),
        ("GET", "/metrics"): Example("horarium_ticks_total 812.0", media_type="text/plain"),
        ("GET", "/api/cluster/info"): Example({"server": "horarium", "control_plane": {"version": "2"}}),
        # schedules
        ("GET", "/api/schedules"): Example({"schedules": [_DESCRIBED], "next_page_token": None}),
        ("POST", "/api/schedules"): Example({**_WRITTEN, "outcome": "created", "version": 1}, SCHEDULE),
        ("POST", "/api/schedules/upsert"): Example(_WRITTEN, SCHEDULE, also=(201,)),
        ("GET", _S): Example(_DESCRIBED),
        ("PUT", _S): Example(_WRITTEN, {"spec": {"cron_expressions": ["0 3 * * *"], "timezone": "Europe/Istanbul"}}),
        ("PATCH", _S): Example(_WRITTEN, {"note": "every night at three"}),
        ("DELETE", _S): Example({**_WRITTEN, "outcome": "deleted", "next_fire_at": None}),
        ("POST", f"{_S}/pause"): Example({**_WRITTEN, "outcome": "paused"}, {"note": "maintenance"}),
        ("POST", f"{_S}/resume"): Example({**_WRITTEN, "outcome": "resumed"}, {"note": "done"}),
        ("POST", f"{_S}/trigger"): Example(
            {"schedule_id": "nightly-report", "outcome": "triggered", "run_id": _RUN_ID, "state": "ready"},
            {"overlap_policy": "allow_all", "reason": "the numbers were wrong"},
        ),
        ("POST", f"{_S}/backfill"): Example(
            {
                "outcome": "backfill_started",
                "fires_attempted": 1,
                "results": [{"fire_time": _AT, "outcome": "started"}],
            },
            {"start_time": "2026-02-27T00:00:00Z", "end_time": "2026-02-28T00:00:00Z", "dry_run": True},
        ),
        ("GET", f"{_S}/history"): Example({"events": [_EVENT], "has_more": False, "next_cursor": None}),
        ("GET", f"{_S}/runs"): Example({"runs": [_RUN], "next_page_token": None}),
        ("GET", f"{_S}/preview"): Example(
            {"rows": [{"tick_at": _AT, "decision": "skip", "reason": "calendar", "inputs": None, "due": _AT}]}
        ),
        ("GET", f"{_S}/explain"): Example(
            {"at": _AT, "sentence": f"{_AT} is on the spec and nothing known now stands against it.", "fires": True}
        ),
        ("GET", f"{_S}/health"): Example(_HEALTH),
        ("PUT", f"{_S}/calendars"): Example(_WRITTEN, {"calendars": ["us-federal-holidays-2026"]}),
        ("DELETE", f"{_S}/calendars"): Example(_WRITTEN),
        ("PUT", f"{_S}/condition"): Example(
            _WRITTEN, {"pre_dispatch_condition": {"/last_24h_stats/failed": {"lt": 3}}}
        ),
        ("DELETE", f"{_S}/condition"): Example(_WRITTEN),
        ("PUT", f"{_S}/rotation"): Example(_WRITTEN, {"inputs_rotation": [{"region": "eu"}, {"region": "us"}]}),
        ("DELETE", f"{_S}/rotation"): Example(_WRITTEN),
        # runs
        ("GET", "/api/runs"): Example({"runs": [_RUN], "next_page_token": None}),
        ("GET", _R): Example(_RUN),
        ("GET", f"{_R}/events"): Example({"run_id": _RUN_ID, "events": [{"sequence": 2, "event_type": "run.created"}]}),
        ("POST", f"{_R}/cancel"): Example(_STOPPED),
        ("POST", f"{_R}/terminate"): Example({**_STOPPED, "outcome": "terminated", "state": "terminated"}),
        ("POST", f"{_R}/report"): Example(
            {"run_id": _RUN_ID, "outcome": "recorded", "state": "succeeded"},
            {"state": "succeeded", "result": {"rows": 3}, "cost": 0.25, "tokens": 700},
        ),
        ("POST", f"{_R}/heartbeat"): Example({"lease_until": _AT, "stop_requested": False}, {"lease_epoch": 1}),
        ("POST", "/api/queues/{queue}/claim"): Example(
            {"queue": "reports", "runs": [{**_RUN, "lease_epoch": 1, "lease_until": _AT}]}, {"worker": "w1", "limit": 1}
        ),
        ("POST", "/api/run-launcher/start"): Example(_STARTED, _START, also=(200,)),
        ("POST", "/run-launcher/start"): Example(_STARTED, _START, also=(200,)),
        # calendars
        ("GET", "/api/calendars"): Example({"calendars": [_KEPT]}),
        ("POST", "/api/calendars"): Example(_KEPT, _CALENDAR),
        ("GET", _C): Example(_KEPT),
        ("PUT", _C): Example({**_KEPT, "version": 2}, {"dates": ["2026-12-24"]}),
        ("DELETE", _C): Example({"name": "company-holidays", "outcome": "deleted"}),
        ("POST", f"{_C}/clone"): Example(_KEPT, {"name": "company-holidays-copy"}),
        # the feed
        ("GET", "/api/feed"): Example({"entries": [_ENTRY], "next_page_token": "714-20"}),
        ("GET", "/api/events"): Example(
            'id: 714-20\nevent: schedule_skipped\ndata: {"id": "714-20"}\n\n', media_type="text/event-stream"
        ),
        # the house
        ("GET", "/api/tokens"): Example({"tokens": [_TOKEN]}),
        ("POST", "/api/tokens"): Example({**_TOKEN, "secret": "hor_…"}, {"name": "ci", "role": "operator"}),
        ("DELETE", "/api/tokens/{token_id}"): Example({"token_id": _UID, "outcome": "revoked"}),
        ("GET", "/api/namespaces"): Example({"namespaces": [_NAMESPACE]}),
        ("POST", "/api/namespaces"): Example(_NAMESPACE, {"namespace": "tenant", "description": "a tenant"}),
        ("GET", "/api/namespaces/{namespace}"): Example(_NAMESPACE),
        ("GET", "/admin/liveness"): Example(
            {"healthy": True, "subsystems": {"ticker": {"last_tick_at": _AT, "seconds_ago": 0.4, "healthy": True}}},
            also=(503,),
        ),
        ("GET", "/admin/schedules/health"): Example([_HEALTH]),
        # the registrar
        ("POST", "/schedules/upsert"): Example(
            {"schedule_id": "nightly-report", "next_run_at": _AT, "outcome": "created"}, _UPSERT, also=(201,)
        ),
        ("POST", "/schedules/pause"): Example(
            {"schedule_id": "nightly-report", "paused": True}, {"schedule_id": "nightly-report", "paused": True}
        ),
        ("GET", "/schedules/{schedule_id}"): Example({**_UPSERT, "paused": False, "preview": [_AT, _LATER]}),
        ("GET", "/schedules/{schedule_id}/runs"): Example({"runs": [{"run_at": _AT, "status": "SUCCESS"}]}),
        ("DELETE", "/schedules/{schedule_id}"): Example({"schedule_id": "nightly-report", "outcome": "deleted"}),
    }
)
