"""Bodies, responses and errors of the workspace paths, in the terms of existing clients."""

from __future__ import annotations

from typing import Literal

from horarium.core.decision.statuses import HealthStatus, LastStatus, WatchedStatus
from horarium.core.document.states import Source
from horarium.features.agents.workspace_words import RunStatus
from horarium.platform.bodies import Body
from horarium.platform.errors import AlreadyExists, OperationError, Refused
from horarium.platform.wire import Answer, Object, Time


class WorkspaceScheduleBody(Body, frozen=True, kw_only=True):
    """A prompt and its schedule. Unknown fields are ignored."""

    cron_expr: str
    prompt: str
    name: str | None = None
    timezone: str | None = None
    enabled: bool | None = None


class WorkspaceChangeBody(Body, frozen=True, kw_only=True):
    """Changes to a schedule. null is the same as omitted. Unknown fields are ignored."""

    name: str | None = None
    cron_expr: str | None = None
    timezone: str | None = None
    prompt: str | None = None
    enabled: bool | None = None


class WorkspaceHealth(Answer, frozen=True, kw_only=True):
    """Health of a schedule for other agents, without prompt and times. `run_count` includes skips."""

    id: str
    name: str
    enabled: bool
    last_run_at: Time | None
    next_run_at: Time | None
    run_count: int
    last_status: LastStatus
    last_error: str


class WorkspaceSchedule(WorkspaceHealth, frozen=True, kw_only=True):
    """A schedule in a workspace. `cron_expr` is empty if the schedule has no single cron expression. `id` is the
    schedule ID.
    """

    workspace_id: str
    cron_expr: str
    timezone: str
    prompt: str
    source: Source
    consecutive_empty_runs: int
    created_at: Time
    updated_at: Time


class WorkspaceScheduleCreated(Answer, frozen=True, kw_only=True):
    id: str
    status: Literal["created"]
    next_run_at: Time | None
    warnings: tuple[str, ...] = ()


class WorkspaceScheduleUpdated(Answer, frozen=True, kw_only=True):
    status: Literal["updated"]
    warnings: tuple[str, ...] = ()


class WorkspaceScheduleDeleted(Answer, frozen=True, kw_only=True):
    status: Literal["deleted"]


class WorkspaceFired(Answer, frozen=True, kw_only=True):
    """A created run. `prompt`: its prompt. `awaiting_approval`: the prompt is sent after approval."""

    status: Literal["fired", "awaiting_approval"]
    workspace_id: str
    prompt: str


class WorkspaceRun(Answer, frozen=True, kw_only=True):
    """A run, or an occurrence without a run (`request` contains `skipped`). `duration_ms` null: not ended."""

    timestamp: Time
    duration_ms: int | None
    status: RunStatus
    error_detail: str
    request: Object


class WatchedSchedule(Answer, frozen=True, kw_only=True):
    """Health of a schedule for a monitor: `status` has three values, `health` all. `workspace_id` null: the schedule
    does not prompt a single agent. `stale_threshold_seconds` 0: the spec has no gap.
    """

    workspace_id: str | None
    workspace_name: str | None
    schedule_id: str
    schedule_name: str
    cron_expr: str
    last_run_at: Time | None
    expected_next_run: Time | None
    status: WatchedStatus
    stale_threshold_seconds: int
    health: HealthStatus
    sentence: str


class WorkspaceRequestInvalid(OperationError):
    """A body that says something wrong; `errors` names the field."""

    reason = "validation_failed"
    status = 400

    def __init__(self, field: str, text: str) -> None:
        super().__init__(text)
        self.errors = {field: [text]}


class WorkspaceCallerUnnamed(OperationError):
    """An agent that does not say for which workspace it asks. Its token is good: this is no failed login."""

    reason = "workspace_header_required"
    status = 401

    def __init__(self) -> None:
        super().__init__("X-Workspace-ID header required")


class WorkspaceNameTaken(AlreadyExists):
    reason = "schedule_name_taken"
    what = "schedule named"


class NotFired(Refused):
    """Something stands against it now; the word that a skip would have is in the sentence."""

    reason = "not_fired"
