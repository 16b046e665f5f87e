"""What the server's answers are to a program: frozen values with names and types.

Times are aware datetimes. What is not a field here is still in `raw`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic, TypeVar

from horarium.client.lenient import Answer
from horarium.schedule.run import FINAL

T = TypeVar("T")

_Object = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """Part of a list. `cursor` leads to the next part; None = this is the last one."""

    items: tuple[T, ...]
    cursor: str | int | None = None
    raw: _Object = field(default_factory=dict, repr=False, compare=False)

    def __iter__(self) -> Iterator[T]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)


# ── schedules ────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleDescription(Answer):
    """`next_fire_times` and `error` are there when one schedule was described, not in lists."""

    schedule_id: str = ""
    uid: str | None = None
    namespace: str = "default"
    name: str | None = None
    status: str | None = None
    paused: bool = False
    spec: _Object = field(default_factory=dict)
    action: _Object = field(default_factory=dict)
    workflow_type: str | None = None
    overlap_policy: str | None = None
    catchup_policy: str | None = None
    calendars: tuple[str, ...] = ()
    pre_dispatch_condition: _Object | None = None
    inputs_rotation: tuple[Any, ...] = ()
    note: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    memo: _Object = field(default_factory=dict)
    search_attributes: _Object = field(default_factory=dict)
    source: str | None = None
    owner: str | None = None
    jitter_seconds: float = 0.0
    max_runs: int | None = None
    remaining_actions: int | None = None
    fires_count: int = 0
    failures_count: int = 0
    skipped_trigger_count: int = 0
    active_runs: int = 0
    held_runs: int = 0
    rotation_index: int = 0
    next_fire_at: datetime | None = None
    next_fire_times: tuple[datetime, ...] = ()
    last_fired_at: datetime | None = None
    last_run_id: str | None = None
    last_completed_at: datetime | None = None
    last_dispatch_status: str | None = None
    last_skip_reason: str | None = None
    last_skipped_at: datetime | None = None
    last_error_at: datetime | None = None
    last_error_message: str | None = None
    latest_workflow_instance_id: str | None = None
    paused_at: datetime | None = None
    pause_reason: str | None = None
    error: str | None = None
    created_at: datetime | None = None
    updated_at: datetime | None = None
    version: int = 0
    revision: int = 0
    generation: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteResult(Answer):
    """`version` is what `if_version` of the next edit may name."""

    schedule_id: str = ""
    outcome: str = ""
    namespace: str = "default"
    status: str | None = None
    next_fire_at: datetime | None = None
    version: int = 0
    changed_fields: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Triggered(Answer):
    """`repeated`: this idempotency key has triggered before, and this is what it did then."""

    schedule_id: str = ""
    outcome: str = ""
    workflow_id: str | None = None
    run_id: str | None = None
    state: str | None = None
    reason: str | None = None
    detail: Any = None
    buffer_depth: int | None = None
    repeated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Filled(Answer):
    fire_time: datetime | None = None
    outcome: str = ""
    workflow_id: str | None = None
    run_id: str | None = None
    reason: str | None = None
    detail: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Backfilled(Answer):
    """`stopped`: the schedule ran out of runs before the window ended."""

    schedule_id: str = ""
    outcome: str = ""
    fires_attempted: int = 0
    fires_started: int = 0
    dry_run: bool = False
    stopped: bool = False
    results: tuple[Filled, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryEvent(Answer):
    sequence: int = 0
    event_type: str = ""
    recorded_at: datetime | None = None
    workflow_instance_id: str | None = None
    workflow_run_id: str | None = None
    payload: _Object = field(default_factory=dict)
    id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PreviewRow(Answer):
    """`decision` is `dispatch` or `skip`; `reason` says why it would be skipped."""

    tick_at: datetime | None = None
    decision: str = ""
    reason: str | None = None
    detail: Any = None
    inputs: Any = None
    due: datetime | None = None
    rotation_index: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding(Answer):
    """One question and its answer; `holds` None = it is not asked of this schedule."""

    question: str = ""
    holds: bool | None = None
    detail: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation(Answer):
    """`recorded` is what history says was decided; it wins over what would be decided today.

    `source` says which of the two `outcome`, `fires` and `reason` are: `history` or `prediction`.
    """

    at: datetime | None = None
    sentence: str = ""
    outcome: str = ""
    source: str = ""
    fires: bool = False
    on_spec: bool = False
    reason: str | None = None
    due: datetime | None = None
    findings: tuple[Finding, ...] = ()
    recorded: _Object | None = None
    previous: datetime | None = None
    following: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleHealth(Answer):
    """How a schedule is doing: `status` is `ok`, or the word for what is wrong."""

    schedule_id: str = ""
    schedule_name: str | None = None
    namespace: str = "default"
    status: str = ""
    last_run_at: datetime | None = None
    expected_next_run: datetime | None = None
    late_seconds: float = 0.0
    stale_threshold_seconds: float | None = None
    error: str | None = None


# ── runs ─────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class Run(Answer):
    """`status` is the coarse word (ENQUEUED, STARTED, SUCCESS …), `state` the exact one."""

    run_id: str = ""
    schedule_id: str | None = None
    namespace: str = "default"
    workflow_instance_id: str | None = None
    workflow_type: str | None = None
    key: str | None = None
    kind: str | None = None
    origin: str | None = None
    state: str = ""
    status: str | None = None
    attempt: int = 0
    revision: int | None = None
    trigger_number: int | None = None
    rotation_index_used: int | None = None
    task_queue: str | None = None
    inputs: Any = None
    result: Any = None
    error: str | None = None
    error_class: str | None = None
    cause: str | None = None
    covers: _Object | None = None
    cost: float = 0.0
    tokens: int = 0
    tool_calls: int = 0
    approval: _Object | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    memo: _Object = field(default_factory=dict)
    search_attributes: _Object = field(default_factory=dict)
    nominal: datetime | None = None
    due: datetime | None = None
    deadline: datetime | None = None
    created_at: datetime | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    stop_requested_at: datetime | None = None
    parent_run_id: str | None = None
    node_id: str | None = None

    @property
    def is_final(self) -> bool:
        return self.state in FINAL


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimedRun(Run):
    """`lease_epoch` goes back with every heartbeat and with the report."""

    action: _Object = field(default_factory=dict)
    lease_epoch: int = 0
    lease_until: datetime | None = None
    lease_seconds: float | None = None
    report_url: str | None = None
    report_token: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat(Answer):
    """`stop_requested`: somebody wants the run to end."""

    lease_until: datetime | None = None
    stop_requested: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOutcome(Answer):
    """What became of a cancel, a terminate, a report, an approval or a start."""

    run_id: str = ""
    outcome: str = ""
    state: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEvent(Answer):
    sequence: int = 0
    event_type: str = ""
    recorded_at: datetime | None = None
    payload: _Object = field(default_factory=dict)
