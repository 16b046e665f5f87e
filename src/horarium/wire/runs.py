"""What is answered about runs, and to the workers that do them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from msgspec import Meta

from horarium.job.run_log import Stream
from horarium.policy.approval import ApprovalDecision, ApprovalMode
from horarium.schedule.assignee import AssigneeType
from horarium.schedule.effective import PolicyOrigin
from horarium.schedule.reason import Reason
from horarium.schedule.run import FINAL, Origin, PublicStatus, RunState
from horarium.wire.answer import TYPES, Amount, Answer, Object, Rows, Time
from horarium.wire.outcomes import ReportOutcome, StartOutcome, StopOutcome, TriggerOutcome


class Covered(Answer, frozen=True, kw_only=True):
    """The missed occurrences that one run stands for."""

    first: Time
    last: Time
    count: int


class RunWorkflow(Answer, frozen=True, kw_only=True):
    """The stored workflow that a run is a run of, in the version that was settled when the run was born."""

    workflow_id: str
    version: int
    name: str | None = None


class RunAssignee(Answer, frozen=True, kw_only=True):
    """The agent or team of a run; `member` is the agent of the team whose turn it was. Names are display names."""

    type: AssigneeType
    id: str
    member: str | None = None
    name: str | None = None
    member_name: str | None = None


class RunUsage(Answer, frozen=True, kw_only=True):
    """What a run has used, with all its steps; `runtime_seconds` is the time since its start, up to its end."""

    runtime_seconds: float
    cost: Amount
    tokens: int
    tool_calls: int


class RunApproval(Answer, frozen=True, kw_only=True):
    """The newest question about a run, and what came of it; a run that is held has not been asked about yet.

    `gates` are those that held it, none where the run as a whole needed a yes; `expires_at` null = it waits for ever.
    `question` is how an agent's begins, in its own words; the approval has the whole.
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
    """The policies that hold for a run, as they were when it was born.

    `origins` names who said each, as `approval_policy.mode`, `retry_policy` or `limits.cost`. `queue_policy` is null
    for runs that no schedule created.
    """

    approval_policy: Object
    retry_policy: Object
    failure_policy: Object
    limits: Object
    origins: Mapping[str, PolicyOrigin]
    queue_policy: Object | None = None


class RunStep(Answer, frozen=True, kw_only=True):
    """A step of a workflow's run, which is a run itself: `run_id` is its own, and a sub-workflow's has steps in turn.

    `fallback`: it took the place of a step of the same node that failed. `result_omitted`: the result would have made
    this answer too large; the run of the step has it. `broken` is as that of a run.
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
    """A run as lists show it; its inputs and its result are told when it is asked for by itself.

    `status` is the coarse word, `state` the exact one. An occurrence without a run (`include=skips`) has the state
    `skipped` and a `reason`; its `run_id` is null, and to a program an empty text. A step of a workflow has a
    `parent_run_id` and a `node_id`; `root_run_id` is the run that somebody asked for, however deep the step is.
    `timezone` is the zone of its schedule in the revision that it names. `schedule_name` is the display name of its
    schedule, deleted or not. `broken` says which parts of it cannot be
    read, and why, where somebody has damaged what is stored: they are null then.
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
    """A place at an agent: how many of them are in use, and how many there are."""

    agent_id: str
    in_use: int
    capacity: int


class Run(RunSummary, frozen=True, kw_only=True):
    """One run, whole; `reruns` are the runs that did it once more. `user_id` is for whom it is.

    `steps` are those of a stored workflow's run, as far as they are begun or skipped, each after those it needs.
    `waiting_for` is what a prompt lacks that is ready: a place at its agent. `rendered` holds the prompt or the
    arguments of an action with `template`, as they are sent.
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
    """All that a worker needs; `lease_epoch` goes back with every heartbeat and with the report.

    `gates` need a yes on the way: a worker that comes to one of them reports `blocked`, unless it is among
    `approved_gates`. `limits` are those that there are, and `allow_tools` null means any. `step_of` is the workflow
    that the node of a step belongs to.
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
    """`stop_requested`: somebody wants the run to end."""

    lease_until: Time
    stop_requested: bool


class RunStopped(Answer, frozen=True, kw_only=True):
    """What became of a cancel or a terminate."""

    run_id: str
    outcome: StopOutcome
    state: RunState


class RunRerun(Answer, frozen=True, kw_only=True):
    """What became of the wish to do a run once more; `run_id` is the new one, `rerun_of` the old one."""

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
    """`sequence` numbers the events of one run; `run_id` and `node_id` say whose it is among those of its steps."""

    run_id: str
    node_id: str | None = None
    sequence: int
    event_type: str
    recorded_at: Time
    payload: Object


class RunEvents(Answer, frozen=True, kw_only=True):
    """`has_more`: there are more than are in this answer, and `next_page_token` leads to them."""

    run_id: str
    events: tuple[RunEvent, ...]
    next_page_token: str | None
    has_more: bool = False


class RunLogLine(Answer, frozen=True, kw_only=True):
    """`number` counts from 1 over all attempts; a number that is missing is a line that was dropped."""

    number: int
    at: Time
    attempt: int
    stream: Stream
    text: str


class RunLogs(Answer, frozen=True, kw_only=True):
    """`next_after` is the `after` of whoever wants what comes next; `ended`: nothing more will come."""

    run_id: str
    lines: tuple[RunLogLine, ...]
    next_after: int
    ended: bool


class RunLogsKept(Answer, frozen=True, kw_only=True):
    run_id: str
    kept: int
