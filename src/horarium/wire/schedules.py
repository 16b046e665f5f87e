"""What is answered about schedules: descriptions, what became of a change, previews, explanations, health."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from horarium.decision.forecast import Certainty, Forecast, MoveKind, NoRun
from horarium.decision.health_status import HealthStatus
from horarium.decision.last_status import LastStatus
from horarium.decision.recent import Happened
from horarium.policy.catchup import CatchupPolicy
from horarium.policy.overlap import OverlapPolicy
from horarium.schedule.event import EventType
from horarium.schedule.position import Status
from horarium.schedule.reason import Reason
from horarium.schedule.run import Origin, RunState
from horarium.schedule.source import Source
from horarium.wire.answer import Answer, Object, Rows, Time
from horarium.wire.outcomes import (
    BackfillOutcome,
    ExplainedOutcome,
    ExplainedSource,
    FillOutcome,
    TriggerOutcome,
    WriteOutcome,
)


class ScheduleState(Answer, frozen=True, kw_only=True):
    """What we compute about a schedule beside what its author wrote: none of it can be set.

    `next_fire_at` is when the next occurrence of the spec acts, also while it is paused; `next_run_at` when the first
    does that the forecast dispatches, or null together with `next_run_reason`. Both include jitter. `words` is the
    spec as a sentence. `broken` says
    why its definition cannot be read, where somebody has damaged what is stored: then what the definition says is
    not in the answer. `consecutive_failures` is above 0 where the last run failed, also while its health is still `ok`.
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
    """One of the last decisions about a schedule: fired, held, skipped with its reason, or missed, `count` at once.

    `state` is what its run is doing now; null = it had none, or it is no longer kept. `late_seconds` is how long after
    it was due it started. `at` is the time of the occurrence; of what was triggered by hand, when that was.
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
    """The state of one schedule of a list, with its last occurrences."""

    recent: tuple[RecentOccurrence, ...]


class Standing(Answer, frozen=True, kw_only=True):
    """`state` of a description, as the Durable Workflow command line reads it."""

    status: Status
    paused: bool
    note: str | None


class HeldAction(Answer, frozen=True, kw_only=True):
    """An occurrence that waits for its turn."""

    buffered_at: Time
    occurrence_time: Time


class RecentAction(Answer, frozen=True, kw_only=True):
    """One of the newest runs."""

    workflow_id: str
    run_id: str
    outcome: RunState
    fired_at: Time
    occurrence_time: Time


class ScheduleInfo(Answer, frozen=True, kw_only=True):
    """`info` of a description, as the Durable Workflow command line reads it."""

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
    """The state of one schedule that was asked for by itself; `error` says why it cannot be planned.

    `last_result` is that of the run that ended last, `last_completed_run_id`. `queue_policy` and `failure_policy` are
    those of the schedule, defaults included; `effective_overlap_policy` is the one that applies, which an assignment
    may set. `effective_retries` is how often a failed run or step is retried by the policy that
    applies; a node of a workflow may set its own number. Null means that the definition cannot be read.
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
    """A schedule: what its author wrote, as far as it differs from the defaults, and how it is doing.

    What only one schedule that was asked for by itself shows has a default here, and so has what a list shows only
    where it is asked for: `recent` are the last occurrences, oldest first.
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
    """What became of a change; `version` is what `if_version` of the next edit may name.

    `next_run_at` is null, together with a reason, where something known now stands against every coming occurrence.
    `exhausted`: nothing changed, since the runs of an equal schedule of this id are used up; it is deleted.
    `paused_until`: when the pause that was asked for ends by itself.
    `effective_retries`: retries of a failed run or step, given when the definition was written.
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
    """`repeated`: this idempotency key has triggered before, and this is what it did then."""

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
    """`stopped`: the schedule ran out of runs before the window ended.

    `fires_started` counts the runs that were made, also those that wait for their turn (`buffered`). `message` says why
    there are none, or fewer than the window might have.
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
    """A change to the instant of an occurrence. `local_time` is the wall time that the expression names, in the
    schedule's zone; `seconds` is the delay of jitter; `parts` are the expressions that name one instant.
    """

    kind: MoveKind
    local_time: str | None = None
    seconds: float | None = None
    parts: tuple[str, ...] = ()


class PreviewRow(Answer, frozen=True, kw_only=True):
    """`tick_at` is the nominal time of the occurrence, `due` when it acts. `decision` is `dispatch` or `skip`; `reason`
    says why it would be skipped, and then it has no `inputs`. `held`: its run waits in the buffer first.

    `certainty` says what can change the decision, `moved` what happened to the instant, and `sentence` both in English.
    `prompt` is the rendered prompt of an action with `template`; a name that is not known before the run exists stays
    an expression. `inputs_omitted`: they do not fit in the answer any more; the schedule has them.
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
    """`date` is one of the schedule's own zone; `reasons` counts what is skipped; `detail` says why, of the first."""

    date: str
    fires: int
    skips: int
    reasons: Mapping[str, int]
    detail: str | None = None


class Year(Answer, frozen=True, kw_only=True):
    """What the spec and the calendars say now of each day of a year, also of those that are past: it is no history.

    Days on which nothing happens are left out. `bounded`: after the last of the days nobody has looked.
    """

    schedule_id: str
    timezone: str
    year: int
    days: tuple[YearDay, ...]
    bounded: bool


class Finding(Answer, frozen=True, kw_only=True):
    """One question and its answer; `holds` null = it is not asked of this schedule, or was not asked then."""

    question: str
    holds: bool | None
    detail: Any


class RecordedEvent(Answer, frozen=True, kw_only=True):
    event_type: EventType
    payload: Object


class Explanation(Answer, frozen=True, kw_only=True):
    """`recorded` is what history says was decided; it wins over what would be decided today.

    `source` says which of the two `outcome`, `fires`, `reason` and `findings` are: `history` or `prediction`.
    `as_of` is when the findings were true: at the decision, or now. `certainty`, `held` and `moved` are those of the
    forecast of an occurrence that is not decided yet. `existed` is false for an instant before the creation.
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
    """How a schedule is doing: `status` is the first word that holds of it, `sentence` says why.

    `stale_threshold_seconds` are two gaps of its spec around now; null = it has none. `warnings` name calendars whose
    data ends within 90 days; they do not change the status.
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
