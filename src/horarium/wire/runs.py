"""What is answered about runs, and to the workers that do them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from msgspec import Meta

from horarium.job.run_log import Stream
from horarium.schedule.reason import Reason
from horarium.schedule.run import FINAL, Origin, PublicStatus, RunState
from horarium.wire.answer import TYPES, Amount, Answer, Object, Time
from horarium.wire.outcomes import ReportOutcome, StartOutcome, StopOutcome, TriggerOutcome


class Covered(Answer, frozen=True, kw_only=True):
    """The missed occurrences that one run stands for."""

    first: Time
    last: Time
    count: int


class RunApproval(Answer, frozen=True, kw_only=True):
    needed: bool
    approval_id: str | None


class RunSummary(Answer, frozen=True, kw_only=True):
    """A run as lists show it; its inputs and its result are told when it is asked for by itself.

    `status` is the coarse word, `state` the exact one. An occurrence without a run (`include=skips`) has the state
    `skipped` and a `reason`; its `run_id` is null, and to a program an empty text.
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
    approval: RunApproval | None
    labels: Mapping[str, str]
    parent_run_id: str | None
    node_id: str | None
    reason: str | None = None
    reason_alias: str | None = None
    detail: Any = None
    sequence: int | None = None
    rerun_of: str | None = None

    @property
    def is_final(self) -> bool:
        return self.state in FINAL


class Run(RunSummary, frozen=True, kw_only=True):
    """One run, whole; `reruns` are the runs that did it once more. `user_id` is for whom it is."""

    run_id: str
    inputs: Any
    result: Any
    memo: Object
    search_attributes: Object
    user_id: str | None = None
    reruns: tuple[str, ...] = ()


class RunList(Answer, frozen=True, kw_only=True):
    runs: tuple[RunSummary, ...]
    next_page_token: str | None


class ClaimedRun(Run, frozen=True, kw_only=True):
    """All that a worker needs; `lease_epoch` goes back with every heartbeat and with the report."""

    HIDDEN: ClassVar = frozenset({"report_token"})

    action: Object | None
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
    sequence: int
    event_type: str
    recorded_at: Time
    payload: Object


class RunEvents(Answer, frozen=True, kw_only=True):
    """`has_more`: these are all that fit in one answer; go on after the sequence of the last."""

    run_id: str
    events: tuple[RunEvent, ...]
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
