"""Responses about runs, for users and workers, and bodies of bulk reports."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from msgspec import Meta

from horarium.core.document.assignee import AssigneeType
from horarium.core.document.effective_policies import PolicyOrigin
from horarium.core.document.states import FINAL, Origin, PublicStatus, Reason, RunState
from horarium.core.policy.approval import ApprovalDecision, ApprovalMode
from horarium.platform.bodies import Body, ReportBody
from horarium.platform.run_log import Stream
from horarium.platform.wire import (
    TYPES,
    Amount,
    Answer,
    Object,
    ReportOutcome,
    Rows,
    StartOutcome,
    StopOutcome,
    Time,
    TriggerOutcome,
)


class Covered(Answer, frozen=True, kw_only=True):
    """Missed occurrences that one run covers."""

    first: Time
    last: Time
    count: int


class RunWorkflow(Answer, frozen=True, kw_only=True):
    """The stored workflow of a run. The version is fixed when the run is created."""

    workflow_id: str
    version: int
    name: str | None = None


class RunAssignee(Answer, frozen=True, kw_only=True):
    """The agent or team of a run. `member` is the selected agent of the team. Names are display names."""

    type: AssigneeType
    id: str
    member: str | None = None
    name: str | None = None
    member_name: str | None = None


class RunUsage(Answer, frozen=True, kw_only=True):
    """Usage of a run, including its steps. `runtime_seconds`: time from start to end, or until now."""

    runtime_seconds: float
    cost: Amount
    tokens: int
    tool_calls: int


class RunApproval(Answer, frozen=True, kw_only=True):
    """The newest approval request of a run and its outcome. A buffered run has none yet.

    `gates`: gates that require approval; empty if the whole run does. `expires_at` null: never expires. `question`:
    beginning of the agent's question; the approval request has the full text.
    """

    needed: bool
    approval_id: str | None
    status: ApprovalDecision | None
    gates: tuple[str, ...]
    expires_at: Time | None
    decided_by: str | None
    decided_at: Time | None
    reason: str | None
    question: str | None = None


class RunPolicies(Answer, frozen=True, kw_only=True):
    """Policies of a run, fixed when it was created.

    `origins` maps `approval_policy.mode`, `retry_policy`, `limits.cost` and so on to the level that set them.
    `queue_policy` is null for runs without a schedule.
    """

    approval_policy: Object
    retry_policy: Object
    failure_policy: Object
    limits: Object
    origins: Mapping[str, PolicyOrigin]
    queue_policy: Object | None = None


class RunStep(Answer, frozen=True, kw_only=True):
    """A step of a workflow run, which is a run itself with `run_id`. Steps of a sub-workflow have steps too.

    `fallback`: the step replaces a failed step of the same node. `result_omitted`: the result is too large for this
    answer; get the run of the step. `broken`: see the run.
    """

    node_id: str
    run_id: str
    state: RunState
    attempt: int
    started_at: Time | None
    finished_at: Time | None
    result: Any
    error: str | None
    error_class: str | None
    cause: str | None
    assignee: RunAssignee | None
    approval: RunApproval | None
    workflow: RunWorkflow | None = None
    fallback: bool = False
    result_omitted: bool = False
    broken: str | None = None


class RunSummary(Answer, frozen=True, kw_only=True):
    """A run in lists, without inputs and result. `status` is the coarse state, `state` the exact one.

    An occurrence without a run (`include=skips`) has the state `skipped`, a `reason` and a null `run_id` (an empty
    string in the clients). A workflow step has `parent_run_id` and `node_id`; `root_run_id` is the run at the top.
    `timezone` is the time zone of the schedule in the recorded revision. `schedule_name` is the display name of the
    schedule, which may be deleted. `broken`: unreadable fields and the cause, if the stored row is damaged; these
    fields are null.
    """

    run_id: Annotated[str, Meta(extra_json_schema={TYPES: ["string", "null"]})]
    schedule_id: str | None
    namespace: str
    origin: Origin
    state: RunState
    status: PublicStatus
    nominal: Time | None
    due: Time | None
    created_at: Time
    started_at: Time | None
    finished_at: Time | None
    duration_seconds: float | None
    deadline: Time | None
    stop_requested_at: Time | None
    covers: Covered | None
    workflow_instance_id: str | None
    workflow_type: str | None
    key: str | None
    kind: str | None
    attempt: int
    revision: int | None
    trigger_number: int | None
    rotation_index_used: int | None
    task_queue: str | None
    error: str | None
    error_class: str | None
    cause: str | None
    cost: Amount
    tokens: int
    tool_calls: int
    usage: RunUsage
    workflow: RunWorkflow | None
    assignee: RunAssignee | None
    policies: RunPolicies | None
    approval: RunApproval | None
    labels: Mapping[str, str]
    parent_run_id: str | None
    root_run_id: str | None
    node_id: str | None
    reason: str | None = None
    reason_alias: str | None = None
    detail: Any = None
    sequence: int | None = None
    rerun_of: str | None = None
    timezone: str | None = None
    broken: str | None = None
    schedule_name: str | None = None

    @property
    def is_final(self) -> bool:
        return self.state in FINAL


class RunPlace(Answer, frozen=True, kw_only=True):
    """Concurrency of an agent: used and total slots."""

    agent_id: str
    in_use: int
    capacity: int


class Run(RunSummary, frozen=True, kw_only=True):
    """A run in full. `reruns`: runs that repeat it. `user_id`: user it belongs to.

    `steps`: started and skipped steps of a stored workflow, each after those it depends on. `waiting_for`: the agent's
    free slot that a ready prompt waits for. `rendered`: prompt or arguments after rendering, for an action with
    `template`.
    """

    run_id: str
    inputs: Any
    rendered: Object | None = None
    result: Any
    memo: Object
    search_attributes: Object
    user_id: str | None = None
    reruns: tuple[str, ...] = ()
    steps: Rows[RunStep] | None = None
    waiting_for: RunPlace | None = None


class RunList(Answer, frozen=True, kw_only=True):
    runs: Rows[RunSummary]
    next_page_token: str | None


class ClaimedRun(Run, frozen=True, kw_only=True):
    """A claimed run. Return `lease_epoch` with every heartbeat and with the report.

    `gates` need approval during the run: a worker that reaches one reports `blocked`, unless it is in `approved_gates`.
    `limits` contains the limits that are set; `allow_tools` null allows all tools. `step_of`: the workflow of the
    step's node.
    """

    HIDDEN: ClassVar = frozenset({"report_token"})

    action: Object | None
    step_of: RunWorkflow | None = None
    approval_mode: ApprovalMode | None
    gates: tuple[str, ...]
    approved_gates: tuple[str, ...]
    limits: Object
    allow_tools: tuple[str, ...] | None
    global_model_id: str | None
    lease_epoch: int
    lease_until: Time
    lease_seconds: float
    report_url: str | None
    report_token: str | None


class ClaimedRuns(Answer, frozen=True, kw_only=True):
    queue: str
    runs: tuple[ClaimedRun, ...]


class Heartbeat(Answer, frozen=True, kw_only=True):
    """Result of a heartbeat. `stop_requested`: stop the run."""

    lease_until: Time
    stop_requested: bool


class RunStopped(Answer, frozen=True, kw_only=True):
    """Outcome of a cancel or terminate request."""

    run_id: str
    outcome: StopOutcome
    state: RunState


class RunRerun(Answer, frozen=True, kw_only=True):
    """Outcome of a rerun request. `run_id` is the new run, `rerun_of` the original one."""

    rerun_of: str
    run_id: str | None
    schedule_id: str
    namespace: str
    outcome: TriggerOutcome
    workflow_id: str | None = None
    state: RunState | None = None
    reason: Reason | None = None
    detail: Any = None
    buffer_depth: int | None = None


class RunReported(Answer, frozen=True, kw_only=True):
    run_id: str
    outcome: ReportOutcome
    state: RunState


class RunStarted(Answer, frozen=True, kw_only=True):
    run_id: str
    outcome: StartOutcome
    state: RunState
    started: bool
    idempotency_key: str


class RunEvent(Answer, frozen=True, kw_only=True):
    """An event of a run. `sequence` numbers the events of one run; `run_id` and `node_id` identify the run or step."""

    run_id: str
    node_id: str | None = None
    sequence: int
    event_type: str
    recorded_at: Time
    payload: Object


class RunEvents(Answer, frozen=True, kw_only=True):
    """Events of a run. `has_more`: `next_page_token` returns the next ones."""

    run_id: str
    events: tuple[RunEvent, ...]
    next_page_token: str | None
    has_more: bool = False


class RunLogLine(Answer, frozen=True, kw_only=True):
    """A log line. `number` counts from 1 over all attempts. Missing numbers are dropped lines."""

    number: int
    at: Time
    attempt: int
    stream: Stream
    text: str


class RunLogs(Answer, frozen=True, kw_only=True):
    """Log lines of a run. Use `next_after` as `after` of the next request. `ended`: no more lines will follow."""

    run_id: str
    lines: tuple[RunLogLine, ...]
    next_after: int
    ended: bool


class RunLogsKept(Answer, frozen=True, kw_only=True):
    run_id: str
    kept: int


MAX_REPORTS = 100
"""Maximum reports of one request. Their runs are locked while the client waits."""


class ReportOfRun(ReportBody, frozen=True, kw_only=True):
    """A report and its run."""

    OTHER_NAMES: ClassVar = ReportBody.OTHER_NAMES

    run_id: str


class ReportsBody(Body, frozen=True, kw_only=True):
    """At most 100 reports. Reports about the same run are processed in order."""

    reports: tuple[ReportOfRun, ...]


class RunReportOutcome(Answer, frozen=True, kw_only=True):
    """Outcome of one report: `status`, or `reason` and `message` if it was rejected."""

    run_id: str
    status: int
    outcome: ReportOutcome | None
    state: RunState | None
    reason: str | None = None
    message: str | None = None


class RunReports(Answer, frozen=True, kw_only=True):
    """Outcomes in the order of the reports."""

    outcomes: tuple[RunReportOutcome, ...]
