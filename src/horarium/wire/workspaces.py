"""What is said about the schedules of a workspace: its own small words, for programs that were written for them."""

from __future__ import annotations

from typing import Literal

from horarium.decision.health_status import HealthStatus, WatchedStatus
from horarium.decision.last_status import LastStatus
from horarium.decision.workspace_status import RunStatus
from horarium.schedule.source import Source
from horarium.wire.answer import Answer, Object, Time
from horarium.wire.bodies import Body


class WorkspaceScheduleBody(Body, frozen=True, kw_only=True):
    """A prompt and when it is sent. Fields that are not known are ignored."""

    cron_expr: str
    prompt: str
    name: str | None = None
    timezone: str | None = None
    enabled: bool | None = None


class WorkspaceChangeBody(Body, frozen=True, kw_only=True):
    """What is to be different; null is the same as absent. Fields that are not known are ignored."""

    name: str | None = None
    cron_expr: str | None = None
    timezone: str | None = None
    prompt: str | None = None
    enabled: bool | None = None


class WorkspaceHealth(Answer, frozen=True, kw_only=True):
    """How a schedule is doing, for peers: nothing of what it says or when. `run_count` counts skips too."""

    id: str
    name: str
    enabled: bool
    last_run_at: Time | None
    next_run_at: Time | None
    run_count: int
    last_status: LastStatus
    last_error: str


class WorkspaceSchedule(WorkspaceHealth, frozen=True, kw_only=True):
    """`cron_expr` is empty where no single expression says when. `id` is that of the schedule everywhere else."""

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
    """A run was created; `prompt` is what it says. `awaiting_approval`: the prompt is sent once it is approved."""

    status: Literal["fired", "awaiting_approval"]
    workspace_id: str
    prompt: str


class WorkspaceRun(Answer, frozen=True, kw_only=True):
    """A run, or an occurrence without one: then `request` says `skipped`. `duration_ms` null = it has not ended."""

    timestamp: Time
    duration_ms: int | None
    status: RunStatus
    error_detail: str
    request: Object


class WatchedSchedule(Answer, frozen=True, kw_only=True):
    """How a schedule is doing, for a monitor: `status` in three words, `health` in all of ours.

    `workspace_id` null = it is no prompt to one agent. `stale_threshold_seconds` 0 = its spec has no gap.
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
