"""Answers about schedules: definitions, changes, previews, explanations, health."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from horarium.core.decision.statuses import Certainty, Forecast, Happened, HealthStatus, LastStatus, MoveKind, NoRun
from horarium.core.document.states import EventType, Origin, Reason, RunState, Source, Status
from horarium.core.policy.queue import CatchupPolicy, OverlapPolicy
from horarium.platform.wire import (
    Answer,
    BackfillOutcome,
    ExplainedOutcome,
    ExplainedSource,
    FillOutcome,
    Object,
    Rows,
    Time,
    TriggerOutcome,
    WriteOutcome,
)


class ScheduleState(Answer, frozen=True, kw_only=True):
    """Computed fields of a schedule. They cannot be set.

    `next_fire_at`: time of the next occurrence of the spec, even while paused. `next_run_at`: first occurrence that is
    predicted to dispatch, or null with `next_run_reason`. Both include jitter. `words`: the spec in English. `broken`:
    cause, if the stored definition is damaged; the definition is then omitted. `consecutive_failures` is above 0 if the
    last run failed, even while health is still `ok`.
    """

    status: Status
    paused: bool
    workflow_type: str | None
    remaining_actions: int | None
    fires_count: int
    failures_count: int
    consecutive_failures: int
    skipped_trigger_count: int
    active_runs: int
    held_runs: int
    rotation_index: int
    next_fire_at: Time | None
    next_run_at: Time | None
    next_run_reason: NoRun | None
    last_fired_at: Time | None
    last_run_at: Time | None
    last_run_id: str | None
    last_completed_at: Time | None
    last_dispatch_status: str | None
    last_status: LastStatus
    consecutive_empty_runs: int
    last_skip_reason: str | None
    last_skipped_at: Time | None
    last_error_at: Time | None
    last_error_message: str | None
    paused_at: Time | None
    pause_reason: str | None
    paused_until: Time | None
    paused_by: str | None
    bundle: str | None
    created_at: Time
    updated_at: Time
    deleted_at: Time | None
    version: int
    revision: int
    generation: int
    uid: str
    next_fire: Time | None
    last_fire: Time | None
    words: str | None
    broken: str | None = None


class RecentOccurrence(Answer, frozen=True, kw_only=True):
    """A recent decision about a schedule: fired, held (buffered), skipped with a reason, or missed (`count` at once).

    `state`: current state of its run; null if it had none or it is no longer kept. `late_seconds`: start delay. `at`:
    time of the occurrence, or of a manual trigger.
    """

    at: Time
    outcome: Happened
    reason: str | None
    run_id: str | None
    origin: Origin
    state: RunState | None
    duration_seconds: float | None
    late_seconds: float | None
    count: int


class ScheduleWithRecent(ScheduleState, frozen=True, kw_only=True):
    """The state of a schedule in a list, with its recent occurrences."""

    recent: tuple[RecentOccurrence, ...]


class Standing(Answer, frozen=True, kw_only=True):
    """`state` of a schedule, as the Durable Workflow command line reads it."""

    status: Status
    paused: bool
    note: str | None


class HeldAction(Answer, frozen=True, kw_only=True):
    """A buffered occurrence."""

    buffered_at: Time
    occurrence_time: Time


class RecentAction(Answer, frozen=True, kw_only=True):
    """A recent run."""

    workflow_id: str
    run_id: str
    outcome: RunState
    fired_at: Time
    occurrence_time: Time


class ScheduleInfo(Answer, frozen=True, kw_only=True):
    """`info` of a schedule, as the Durable Workflow command line reads it."""

    next_fire: Time | None
    last_fire: Time | None
    next_fire_times: tuple[Time, ...]
    fires_count: int
    failures_count: int
    skipped_trigger_count: int
    last_skip_reason: str | None
    last_skipped_at: Time | None
    held_runs: int
    buffered_actions: tuple[HeldAction, ...]
    recent_actions: tuple[RecentAction, ...]


class ScheduleDetails(ScheduleState, frozen=True, kw_only=True):
    """Additional fields of a single schedule. `error`: cause, if it is broken.

    `last_result`: result of the run that ended last (`last_completed_run_id`). `queue_policy` and `failure_policy`:
    those of the schedule, including defaults. `effective_overlap_policy`: the policy in force, which an assignment may
    set. `effective_retries`: maximum retries of a failed run or step; a workflow node may override it. Null: the
    definition cannot be read.
    """

    latest_workflow_instance_id: str | None
    last_completed_run_id: str | None
    last_result: Any
    next_fire_times: tuple[Time, ...]
    error: str | None
    effective_retries: int | None
    state: Standing
    info: ScheduleInfo
    queue_policy: Object | None
    failure_policy: Object | None
    effective_overlap_policy: OverlapPolicy | None


class Schedule(ScheduleState, frozen=True, kw_only=True):
    """A schedule: its definition, without default values, and its state.

    Lists omit fields of single schedules. `recent` is present only on request: the last occurrences, oldest first.
    """

    schedule_id: str
    namespace: str
    spec: Object
    action: Object
    overlap_policy: OverlapPolicy
    catchup_policy: CatchupPolicy
    source: Source
    jitter_seconds: float
    max_runs: int | None
    note: str | None
    owner: str | None
    labels: Mapping[str, str]
    memo: Object
    search_attributes: Object
    name: str = ""
    calendars: tuple[str, ...] = ()
    pre_dispatch_condition: Object | None = None
    inputs_rotation: tuple[Any, ...] = ()
    latest_workflow_instance_id: str | None = None
    last_completed_run_id: str | None = None
    last_result: Any = None
    next_fire_times: tuple[Time, ...] = ()
    error: str | None = None
    effective_retries: int | None = None
    state: Standing | None = None
    info: ScheduleInfo | None = None
    queue_policy: Object | None = None
    failure_policy: Object | None = None
    effective_overlap_policy: OverlapPolicy | None = None
    recent: tuple[RecentOccurrence, ...] | None = None


class ScheduleList(Answer, frozen=True, kw_only=True):
    namespace: str
    schedules: Rows[Schedule]
    schedule_count: int
    next_page_token: str | None


class WriteResult(Answer, frozen=True, kw_only=True):
    """Outcome of a change. Use `version` as `if_version` of the next update.

    `next_run_at` is null, with a reason, if no future occurrence is predicted to dispatch. `exhausted`: nothing changed
    because an equal schedule with this ID has reached `max_runs` and was deleted. `paused_until`: time at which the
    pause ends. `effective_retries`: maximum retries of a failed run or step, present if the definition was written.
    """

    schedule_id: str
    outcome: WriteOutcome
    namespace: str
    status: Status
    next_fire_at: Time | None
    next_run_at: Time | None
    next_run_reason: NoRun | None
    version: int
    changed_fields: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    exhausted: bool = False
    paused_until: Time | None = None
    effective_retries: int | None = None


class Triggered(Answer, frozen=True, kw_only=True):
    """Outcome of a trigger. `repeated`: the idempotency key was used before, and this is the first outcome."""

    schedule_id: str
    namespace: str
    outcome: TriggerOutcome
    workflow_id: str | None = None
    run_id: str | None = None
    state: RunState | None = None
    reason: Reason | None = None
    detail: Any = None
    buffer_depth: int | None = None
    repeated: bool = False


class Filled(Answer, frozen=True, kw_only=True):
    """One occurrence of a backfill."""

    fire_time: Time
    outcome: FillOutcome
    workflow_id: str | None = None
    run_id: str | None = None
    reason: Reason | None = None
    detail: Any = None


class Backfilled(Answer, frozen=True, kw_only=True):
    """Outcome of a backfill. `stopped`: the schedule reached `max_runs` before the end of the window.

    `fires_started`: number of created runs, including buffered ones. `message`: cause, if there are no runs or fewer
    than expected.
    """

    schedule_id: str
    namespace: str
    outcome: BackfillOutcome
    fires_attempted: int
    fires_started: int
    dry_run: bool
    stopped: bool
    results: tuple[Filled, ...]
    message: str | None = None


class HistoryEvent(Answer, frozen=True, kw_only=True):
    id: str
    sequence: int
    namespace: str
    event_type: EventType
    recorded_at: Time
    workflow_instance_id: str | None
    workflow_run_id: str | None
    payload: Object


class History(Answer, frozen=True, kw_only=True):
    schedule_id: str
    uid: str
    namespace: str
    events: Rows[HistoryEvent]
    has_more: bool
    next_cursor: int | None


class Moved(Answer, frozen=True, kw_only=True):
    """A change to the time of an occurrence. `local_time`: wall time of the expression, in the time zone of the
    schedule. `seconds`: jitter delay. `parts`: expressions that produce the same time.
    """

    kind: MoveKind
    local_time: str | None = None
    seconds: float | None = None
    parts: tuple[str, ...] = ()


class PreviewRow(Answer, frozen=True, kw_only=True):
    """A predicted occurrence. `tick_at`: scheduled time. `due`: time including jitter. `decision`: `dispatch` or
    `skip`.

    `reason`: cause of a skip; skipped occurrences have no `inputs`. `held`: its run is buffered first. `certainty`:
    changes that could alter the decision. `moved`: changes to the time. `sentence`: both in English. `prompt`: rendered
    prompt of an action with `template`; names unknown before the run exists stay expressions. `inputs_omitted`: the
    inputs do not fit in the answer; get the schedule instead.
    """

    tick_at: Time
    decision: Forecast
    reason: Reason | None
    inputs: Any
    prompt: str | None = None
    due: Time
    detail: Any
    rotation_index: int | None
    inputs_omitted: bool = False
    held: bool = False
    certainty: Certainty
    moved: tuple[Moved, ...] = ()
    sentence: str


class Preview(Answer, frozen=True, kw_only=True):
    schedule_id: str
    rows: tuple[PreviewRow, ...]


class YearDay(Answer, frozen=True, kw_only=True):
    """A day in the time zone of the schedule. `reasons` counts skips; `detail` has the cause of the first."""

    date: str
    fires: int
    skips: int
    reasons: Mapping[str, int]
    detail: str | None = None


class Year(Answer, frozen=True, kw_only=True):
    """Days of a year with occurrences, according to the current spec and calendars, also for past days. Days without
    occurrences are omitted. `bounded`: days after the last one were not computed.
    """

    schedule_id: str
    timezone: str
    year: int
    days: tuple[YearDay, ...]
    bounded: bool


class Finding(Answer, frozen=True, kw_only=True):
    """A check and its result. `holds` null: not applicable, or not evaluated at the time."""

    question: str
    holds: bool | None
    detail: Any


class RecordedEvent(Answer, frozen=True, kw_only=True):
    event_type: EventType
    payload: Object


class Explanation(Answer, frozen=True, kw_only=True):
    """Explanation of an occurrence. `recorded`: the decision in history, which takes precedence over a prediction.

    `source` (`history` or `prediction`) applies to `outcome`, `fires`, `reason` and `findings`. `as_of`: time of the
    findings, either the decision or now. `certainty`, `held` and `moved` are set for predicted occurrences. `existed`
    is false for a time before the schedule was created.
    """

    schedule_id: str
    at: Time
    as_of: Time
    sentence: str
    on_spec: bool
    outcome: ExplainedOutcome
    fires: bool
    reason: str | None
    source: ExplainedSource
    due: Time | None
    findings: tuple[Finding, ...]
    recorded: RecordedEvent | None
    previous: Time | None
    following: Time | None
    certainty: Certainty | None = None
    held: bool = False
    moved: tuple[Moved, ...] = ()
    existed: bool = True


class ScheduleHealth(Answer, frozen=True, kw_only=True):
    """Health of a schedule. `status`: the first status that applies. `sentence`: the cause.

    `stale_threshold_seconds`: twice the current gap between occurrences (null = no gap). `warnings`: calendars whose
    data ends within 90 days; they do not affect `status`.
    """

    workspace_id: str | None
    workspace_name: str | None
    schedule_id: str
    schedule_name: str
    namespace: str
    cron_expr: str | None
    last_run_at: Time | None
    expected_next_run: Time | None
    status: HealthStatus
    sentence: str
    failures_in_a_row: int
    last_status: LastStatus
    consecutive_empty_runs: int
    late_seconds: float
    stale_threshold_seconds: float | None
    error: str | None
    warnings: tuple[str, ...] = ()


class ScheduleHealthList(Answer, frozen=True, kw_only=True):
    schedules: Rows[ScheduleHealth]
    next_page_token: str | None
