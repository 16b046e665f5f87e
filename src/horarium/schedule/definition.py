"""What a person wrote: one frozen value that holds a schedule's spec, action, guards and policies.

It knows no column, no request and no engine. `document.py` reads and writes it as JSON, `planning.py`
takes out of it what a decision needs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from horarium.instant import Instant
from horarium.policy.approval import ApprovalPolicy
from horarium.policy.catchup import Catchup
from horarium.policy.failure import FailurePolicy
from horarium.policy.limits import Budget, RunLimits
from horarium.policy.overlap import Overlap
from horarium.policy.queue import OwnQueue
from horarium.policy.retry import UNASKED, RetryPolicy
from horarium.recurrence.spec import Spec, compile_spec
from horarium.recurrence.wall import DstFold, DstGap
from horarium.schedule.assignee import Assignee
from horarium.schedule.json_limits import Json
from horarium.schedule.run import Delivery
from horarium.schedule.source import Source

PROMPT_TIMEOUT_SECONDS = 300
OTHER_TIMEOUT_SECONDS = 3_600


@dataclass(frozen=True, slots=True)
class IntervalText:
    every: str
    offset: str | None = None

    def document(self) -> dict[str, str]:
        return {"every": self.every} if self.offset is None else {"every": self.every, "offset": self.offset}


@dataclass(frozen=True, slots=True)
class SpecText:
    """The *when* as it was written; `compile` turns it into something that can be asked."""

    cron_expressions: tuple[str, ...] = ()
    intervals: tuple[IntervalText, ...] = ()
    at: tuple[str, ...] = ()
    timezone: str | None = None
    start_at: Instant | None = None
    end_at: Instant | None = None
    jitter_ms: int = 0
    dst_gap: DstGap = DstGap.NEXT_VALID
    dst_fold: DstFold = DstFold.FIRST

    def compile(self, key: str | None) -> Spec:
        """`key` is the schedule's id, which `H` hashes."""
        return compile_spec(
            cron_expressions=self.cron_expressions,
            intervals=[{"every": each.every, "offset": each.offset} for each in self.intervals],
            at=self.at,
            timezone=self.timezone,
            start_at=self.start_at,
            end_at=self.end_at,
            jitter_ms=self.jitter_ms,
            dst_gap=self.dst_gap,
            dst_fold=self.dst_fold,
            key=key,
        )


@dataclass(frozen=True, slots=True)
class Action:
    """The *what*. `target` holds the fields of its kind (`url`, `task`, `prompt`, `workflow_type` …)."""

    kind: str
    target: Mapping[str, Json] = field(default_factory=dict)
    input: Json = None
    template: bool = False
    connection: str | None = None
    queue: str | None = None
    global_model_id: str | None = None
    execution_timeout_seconds: int | None = None
    run_timeout_seconds: int | None = None
    timeout_seconds: int | None = None
    delivery: Delivery = Delivery.AT_LEAST_ONCE

    @property
    def workflow(self) -> str | None:
        """The name under which runs of the same work are known, whichever schedule started them."""
        for key in ("workflow_id", "workflow_type", "workflow_class"):
            if self.target.get(key):
                return str(self.target[key])
        return None

    @property
    def timeout(self) -> int | None:
        """Longest duration of a run, if the action sets it."""
        for chosen in (self.timeout_seconds, self.run_timeout_seconds, self.execution_timeout_seconds):
            if chosen is not None:
                return chosen
        return None


class RunDefinition(NamedTuple):
    """The part of a definition that a launch and the life of a run need."""

    schedule_id: str
    action: Action
    inputs_rotation: tuple[Json, ...]
    labels: Mapping[str, str]
    memo: Mapping[str, Json]
    search_attributes: Mapping[str, Json]
    approval: ApprovalPolicy
    retry: RetryPolicy
    limits: RunLimits
    user_id: str | None
    node_gates: tuple[str, ...] = ()
    """The gates of a step's node, which may require approval."""
    approved_gates: tuple[str, ...] = ()
    """The gates for which the run is approved."""


@dataclass(frozen=True, slots=True)
class Definition:
    """Pause is not part of it: whether a schedule is paused belongs to its operators."""

    schedule_id: str
    spec: SpecText
    action: Action
    namespace: str = "default"
    name: str = ""
    note: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    memo: Mapping[str, Json] = field(default_factory=dict)
    search_attributes: Mapping[str, Json] = field(default_factory=dict)
    source: Source = Source.RUNTIME
    user_id: str | None = None
    owner: str | None = None
    assignee: Assignee | None = None
    workflow_assignment_id: str | None = None
    calendars: tuple[str, ...] = ()
    pre_dispatch_condition: Json = None
    inputs_rotation: tuple[Json, ...] = ()
    budget: Budget = field(default_factory=Budget)
    overlap: Overlap = field(default_factory=Overlap)
    catchup: Catchup = field(default_factory=Catchup)
    concurrency_key: str | None = None
    concurrency_limit: int = 1
    priority: int = 0
    approval: ApprovalPolicy = field(default_factory=ApprovalPolicy)
    retry: RetryPolicy = UNASKED
    failure: FailurePolicy = field(default_factory=FailurePolicy)
    limits: RunLimits = field(default_factory=RunLimits)
    pause_on_failure: int | None = None
    failing_after: int | None = None
    max_runs: int | None = None

    @property
    def queue(self) -> OwnQueue:
        return OwnQueue(self.overlap, self.catchup, self.priority)
