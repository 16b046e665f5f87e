"""States of schedules and runs, reasons, and types of history events.

held ──────────────► ready ──► launching ──► queued ──► running ──► final
  └► awaiting_approval ─┘ ▲         └───────────┴──────────┘
                          └── retry, lost lease, approved gate

A position is the progress of the engine with one schedule: the narrow row that a decision reads and moves. Reasons are
one closed list, in the order of the guards. Where another vocabulary has its own word for a reason, answers have it as
`reason_alias`.

A schedule has one audit stream, a run another. The keys in the payload of each event are checked at every write. Those
of `CONTRACT_KEYS` and `LINEAGE_KEYS` are of the Durable Workflow schedule contract, which its clients read;
`ADDED_KEYS` are ours. A key without a value is left out, never written as null.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256
from types import MappingProxyType
from typing import NamedTuple, assert_never

from horarium.errors import InvalidTransition
from horarium.instant import SECOND, Instant

# ── Runs ──────────────────────────────────────────────────────────────────────────────────────────────


_GATE = re.compile(r":gate[0-9]+\Z", re.ASCII)


class RunState(StrEnum):
    HELD = "held"
    AWAITING_APPROVAL = "awaiting_approval"
    READY = "ready"
    LAUNCHING = "launching"
    QUEUED = "queued"  # handed to a queue, not started
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    CANCELLED = "cancelled"
    TERMINATED = "terminated"
    REJECTED = "rejected"
    EXPIRED = "expired"
    SKIPPED = "skipped"
    LAUNCH_FAILED = "launch_failed"
    UNKNOWN = "unknown"


_COUNTED = (RunState.FAILED, RunState.TIMED_OUT)

FINAL: frozenset[RunState] = frozenset(
    {
        RunState.SUCCEEDED,
        RunState.FAILED,
        RunState.TIMED_OUT,
        RunState.CANCELLED,
        RunState.TERMINATED,
        RunState.REJECTED,
        RunState.EXPIRED,
        RunState.SKIPPED,
        RunState.LAUNCH_FAILED,
        RunState.UNKNOWN,
    }
)

UNSUCCESSFUL: frozenset[RunState] = frozenset(
    {RunState.FAILED, RunState.TIMED_OUT, RunState.LAUNCH_FAILED, RunState.UNKNOWN}
)
"""Ends that count as a failure of the schedule; an end on request, a rejection and an expiry do not."""

STATE_GROUPS: Mapping[str, frozenset[RunState]] = MappingProxyType({"unsuccessful": UNSUCCESSFUL})
"""Names for groups of states that filters and subscriptions accept in addition to states."""

# Nobody outside has seen these, so they can end without anybody being told.
NOT_STARTED: frozenset[RunState] = frozenset({RunState.HELD, RunState.AWAITING_APPROVAL, RunState.READY})
# Somebody may be at work on these.
HANDED_OUT: frozenset[RunState] = frozenset({RunState.LAUNCHING, RunState.QUEUED, RunState.RUNNING})
OPEN: frozenset[RunState] = NOT_STARTED | HANDED_OUT

_NOTHING: frozenset[RunState] = frozenset()

TRANSITIONS: Mapping[RunState, frozenset[RunState]] = MappingProxyType(
    {
        RunState.HELD: frozenset({RunState.READY, RunState.AWAITING_APPROVAL, RunState.CANCELLED}),
        RunState.AWAITING_APPROVAL: frozenset(
            {RunState.READY, RunState.REJECTED, RunState.EXPIRED, RunState.CANCELLED}
        ),
        RunState.READY: frozenset({RunState.LAUNCHING, RunState.CANCELLED}),
        # Back to ready: a launch that is tried again, or a lease that was lost.
        # Awaiting approval: the target asked its question at once.
        RunState.LAUNCHING: FINAL | {RunState.QUEUED, RunState.RUNNING, RunState.READY, RunState.AWAITING_APPROVAL},
        # Back to ready: nobody took it in time, and it is tried again.
        RunState.QUEUED: FINAL | {RunState.RUNNING, RunState.READY},
        # Back to ready: a retry. Awaiting approval: the run came to a gate.
        RunState.RUNNING: FINAL | {RunState.READY, RunState.AWAITING_APPROVAL},
        **dict.fromkeys(FINAL, _NOTHING),
    }
)


def is_final(state: RunState) -> bool:
    return state in FINAL


def check_transition(old: RunState, new: RunState) -> None:
    if new not in TRANSITIONS[old]:
        allowed = ", ".join(sorted(TRANSITIONS[old])) or "no other state, because it is final"
        raise InvalidTransition(f"a run cannot change from {old} to {new}; allowed from {old}: {allowed}")


def state_after_termination(state: RunState) -> RunState:
    """Only what was handed out can be terminated; what has not started is cancelled."""
    if state in FINAL:
        return state
    return RunState.TERMINATED if RunState.TERMINATED in TRANSITIONS[state] else RunState.CANCELLED


class PublicStatus(StrEnum):
    """Coarse status of a run, as in the schedule-runs ledger."""

    ENQUEUED = "ENQUEUED"
    STARTED = "STARTED"
    SUCCESS = "SUCCESS"
    FAILED = "FAILED"
    SKIPPED = "SKIPPED"


def public_status(state: RunState) -> PublicStatus:
    """Whatever a run waits for, it is ENQUEUED; every end but success and skipped is FAILED."""
    match state:
        case RunState.RUNNING:
            return PublicStatus.STARTED
        case RunState.SUCCEEDED:
            return PublicStatus.SUCCESS
        case RunState.SKIPPED:
            return PublicStatus.SKIPPED
        case _:
            return PublicStatus.FAILED if state in FINAL else PublicStatus.ENQUEUED


def result_status(state: RunState) -> str:
    """The word in `prior_run_result.status`: `completed` for success, else the state's own name."""
    return "completed" if state is RunState.SUCCEEDED else state.value


class Origin(StrEnum):
    SCHEDULED = "scheduled"
    MANUAL = "manual"
    BACKFILL = "backfill"
    API = "api"
    STEP = "step"


class Delivery(StrEnum):
    """Treatment of a launch with an unknown outcome: send it again, or give it up as `unknown`."""

    AT_LEAST_ONCE = "at_least_once"
    AT_MOST_ONCE = "at_most_once"


def instance_id(schedule_id: str, origin: Origin, nominal: Instant, run_id: str) -> str:
    """A scheduled or backfilled run is named by its occurrence: a repeated start names the same thing.

    Runs that no occurrence asked for are named by themselves.
    """
    match origin:
        case Origin.SCHEDULED:
            return f"schedule:{schedule_id}:{nominal // SECOND}"
        case Origin.BACKFILL:
            return f"schedule:{schedule_id}:backfill:{nominal // SECOND}"
        case Origin.MANUAL:
            return f"schedule:{schedule_id}:manual:{run_id}"
        case Origin.API | Origin.STEP:
            return f"run:{run_id}"
        case _:
            assert_never(origin)


def occurrence_key(schedule_uid_text: str, nominal: Instant) -> str:
    """The idempotency key of an occurrence: anybody who knows the schedule can recompute it."""
    return sha256(f"{schedule_uid_text}:{nominal // SECOND}".encode()).hexdigest()


def attempt_number(state: str, attempt: int) -> int:
    """Number of the run's current or last attempt, counted from 1.

    `attempt` counts known failures: in a run that failed the last attempt is among them, in any other it is not.
    """
    return max(attempt, 1) if state in _COUNTED else attempt + 1


def step_key(root_run_id_text: str, node_path: str, *, fallback: bool = False) -> str:
    """The idempotency key of a step; whoever takes the place of one that failed has another."""
    key = sha256(f"{root_run_id_text}:{node_path}".encode()).hexdigest()
    return f"{key}:fallback" if fallback else key


def delivery_key(key: str, attempt: int, gates_passed: int = 0) -> str:
    """Key for the target: a redelivery repeats the key, a retry after a known failure has a separate one.

    A delivery after an approval at a gate has a separate one too: it continues, and does not repeat the earlier part.
    """
    if attempt < 0:
        raise ValueError(f"attempt counts known failures and cannot be {attempt}")
    tried = key if attempt == 0 else f"{key}:{attempt}"
    return tried if gates_passed == 0 else f"{tried}:gate{gates_passed}"


def begun_key(delivered: str) -> str:
    """Return the original delivery's key, without `:gateN`."""
    return _GATE.sub("", delivered)


# ── Positions ─────────────────────────────────────────────────────────────────────────────────────────


class Status(StrEnum):
    ACTIVE = "active"
    PAUSED = "paused"
    FINISHED = "finished"  # its last occurrence is decided; a trigger by hand still works
    DELETED = "deleted"
    BROKEN = "broken"  # it cannot be planned or recorded; its error is shown everywhere


def status_at(status: Status, paused_until: Instant | None, at: Instant) -> Status:
    """That of a coming moment: a pause whose end is known is over then."""
    over = status is Status.PAUSED and paused_until is not None and at >= paused_until
    return Status.ACTIVE if over else status


class Position(NamedTuple):
    """Every occurrence up to and including `decided_until` has its decision, and none after it has one.

    `generation` counts the specs that this schedule has had, so that an audit knows which one to ask.
    """

    decided_until: Instant
    next_due: Instant | None
    status: Status = Status.ACTIVE
    generation: int = 1
    runs_born: int = 0
    rotation_index: int = 0


# ── Reasons ───────────────────────────────────────────────────────────────────────────────────────────


class Reason(StrEnum):
    STATUS_NOT_TRIGGERABLE = "status_not_triggerable"  # paused, deleted or broken
    OUTSIDE_WINDOW = "outside_window"
    REMAINING_ACTIONS_EXHAUSTED = "remaining_actions_exhausted"
    NATIVE_SCHEDULER = "native_scheduler"  # the agent keeps its own time
    CALENDAR = "calendar"
    CONDITION_FAILED = "condition_failed"
    BUDGET_EXCEEDED = "budget_exceeded"
    DAILY_LIMIT_REACHED = "daily_limit_reached"
    CYCLE_DETECTED = "cycle_detected"
    NOT_THE_OWNER = "not_the_owner"  # the workflow is somebody else's by now
    QUOTA_EXCEEDED = "quota_exceeded"  # the namespace has what it may have
    OVERLAP_POLICY_SKIP = "overlap_policy_skip"
    BUFFER_FULL = "buffer_full"
    MAX_CONCURRENT_REACHED = "max_concurrent_reached"
    SUPERSEDED = "superseded"  # an edit came before it was decided
    MISSED = "missed"
    CATCHUP_CAP = "catchup_cap"
    ALREADY_EXISTS = "already_exists"
    TARGET_BUSY = "target_busy"


REASON_ALIASES: Mapping[Reason, str] = MappingProxyType(
    {
        Reason.OVERLAP_POLICY_SKIP: "overlap_in_flight",
        Reason.ALREADY_EXISTS: "schedule_slot_exists",
        Reason.TARGET_BUSY: "skipped",
    }
)


class Obstacle(StrEnum):
    """Values of `last_dispatch_status` that are no reason of a skip."""

    PAUSED = "paused"
    BROKEN = "broken"
    LAUNCH_FAILED = "launch_failed"


def dispatch_status(cause: Reason | Obstacle | None) -> str:
    """The word for `last_dispatch_status`; None = a run was born."""
    match cause:
        case None:
            return "dispatched"
        case Obstacle.PAUSED:
            return "paused"
        case Obstacle.BROKEN | Reason.CYCLE_DETECTED:
            return "validation_failed"
        case Obstacle.LAUNCH_FAILED:
            return "dispatch_failed"
        case Reason.OVERLAP_POLICY_SKIP:
            return "skipped_overlap"
        case Reason():
            return f"skipped_{cause}"
        case _:
            assert_never(cause)


# ── Sources ───────────────────────────────────────────────────────────────────────────────────────────


class Source(StrEnum):
    """`template`: managed by code or a bundle. `runtime`: created by a user."""

    TEMPLATE = "template"
    RUNTIME = "runtime"


class EventType(StrEnum):
    """Event types in the history of a schedule."""

    CREATED = "ScheduleCreated"
    PAUSED = "SchedulePaused"
    RESUMED = "ScheduleResumed"
    UPDATED = "ScheduleUpdated"
    TRIGGERED = "ScheduleTriggered"
    TRIGGER_SKIPPED = "ScheduleTriggerSkipped"
    DELETED = "ScheduleDeleted"
    MISSED = "ScheduleMissed"
    BUFFERED = "ScheduleBuffered"
    BROKEN = "ScheduleBroken"
    APPROVAL_BYPASS_ATTEMPT = "ScheduleApprovalBypassAttempted"


class NoticeType(StrEnum):
    """Types of notices in the feed that are in no audit stream of a schedule and have no number."""

    RUN_FINISHED = "run_finished"
    APPROVAL_REQUESTED = "approval_requested"
    APPROVAL_DECIDED = "approval_decided"
    APPROVAL_EXPIRED = "approval_expired"
    SCHEDULE_HEALTH = "schedule_health"
    APPROVAL_BYPASS_ATTEMPT = "approval_bypass_attempt"  # on a run that no schedule asked for


class RecordedOutcome(StrEnum):
    """`outcome` of a ScheduleTriggered: at its time or by hand, out of the buffer, or by a backfill."""

    SCHEDULED = "scheduled"
    DRAINED = "drained"
    BACKFILLED = "backfilled"


MAX_RUNS_EXHAUSTED = "max_runs_exhausted"
"""`reason` of the ScheduleDeleted of a schedule whose runs are used up."""


def _keys(text: str) -> frozenset[str]:
    return frozenset(text.split())


CONTRACT_KEYS: Mapping[EventType, frozenset[str]] = MappingProxyType(
    {
        EventType.CREATED: _keys("spec action overlap_policy next_fire_at command_context"),
        EventType.PAUSED: _keys("reason paused_at command_context"),
        EventType.RESUMED: _keys("next_fire_at command_context"),
        EventType.UPDATED: _keys("changed_fields spec action overlap_policy next_fire_at command_context"),
        EventType.TRIGGERED: _keys(
            "workflow_instance_id workflow_run_id outcome effective_overlap_policy trigger_number "
            "occurrence_time command_context"
        ),
        EventType.TRIGGER_SKIPPED: _keys("reason skipped_trigger_count last_skipped_at command_context"),
        EventType.DELETED: _keys("reason deleted_at command_context"),
    }
)

# `revision` and `generation` let an audit recompute what was planned when; `origin` tells a trigger by
# hand from one by the clock; `detail` is a sentence for a person. A pause that ended by itself ended at `resumed_at`,
# whenever that was written down.
ADDED_KEYS: Mapping[EventType, frozenset[str]] = MappingProxyType(
    {
        EventType.CREATED: _keys("revision generation"),
        EventType.PAUSED: _keys("detail until"),
        EventType.RESUMED: _keys("generation resumed_at detail"),
        EventType.UPDATED: _keys("revision generation"),
        EventType.TRIGGERED: _keys("due origin revision covers rotation_index_used from_buffer rerun_of"),
        EventType.TRIGGER_SKIPPED: _keys("occurrence_time due origin reason_alias detail"),
        EventType.DELETED: _keys("detail"),
        EventType.MISSED: _keys("first last count reason detail command_context"),
        EventType.BUFFERED: _keys(
            "occurrence_time buffer_depth due origin revision covers rotation_index_used "
            "workflow_instance_id workflow_run_id effective_overlap_policy rerun_of command_context"
        ),
        EventType.BROKEN: _keys("error error_class broken_at occurrence_time detail command_context"),
        EventType.APPROVAL_BYPASS_ATTEMPT: _keys("workflow_run_id attempted gates detail command_context"),
    }
)

PAYLOAD_KEYS: Mapping[EventType, frozenset[str]] = MappingProxyType(
    {kind: CONTRACT_KEYS.get(kind, frozenset()) | ADDED_KEYS[kind] for kind in EventType}
)

_APPROVAL_KEYS = _keys("approval_id gates question workflow node_id origin occurrence_time expires_at command_context")

NOTICE_KEYS: Mapping[NoticeType, frozenset[str]] = MappingProxyType(
    {
        NoticeType.RUN_FINISHED: _keys(
            "state error error_class cause attempt origin occurrence_time started_at finished_at duration_seconds "
            "workflow version approval"
        ),
        NoticeType.SCHEDULE_HEALTH: _keys("status was sentence"),
        NoticeType.APPROVAL_REQUESTED: _APPROVAL_KEYS,
        NoticeType.APPROVAL_DECIDED: _APPROVAL_KEYS | _keys("decision decided_by reason standing_id"),
        NoticeType.APPROVAL_EXPIRED: _APPROVAL_KEYS | _keys("reason"),
        NoticeType.APPROVAL_BYPASS_ATTEMPT: _keys("workflow_run_id attempted command_context"),
    }
)

FEED_KINDS: Mapping[EventType | NoticeType, str] = MappingProxyType(
    {
        EventType.CREATED: "schedule_created",
        EventType.PAUSED: "schedule_paused",
        EventType.RESUMED: "schedule_resumed",
        EventType.UPDATED: "schedule_updated",
        EventType.TRIGGERED: "schedule_dispatch",
        EventType.TRIGGER_SKIPPED: "schedule_skipped",
        EventType.DELETED: "schedule_deleted",
        EventType.MISSED: "schedule_missed",
        EventType.BUFFERED: "schedule_buffered",
        EventType.BROKEN: "schedule_broken",
        EventType.APPROVAL_BYPASS_ATTEMPT: "approval_bypass_attempt",
        NoticeType.RUN_FINISHED: "run_finished",
        NoticeType.SCHEDULE_HEALTH: "schedule_health",
        NoticeType.APPROVAL_REQUESTED: "approval_requested",
        NoticeType.APPROVAL_DECIDED: "approval_decided",
        NoticeType.APPROVAL_EXPIRED: "approval_expired",
        NoticeType.APPROVAL_BYPASS_ATTEMPT: "approval_bypass_attempt",
    }
)
"""What an entry of the feed is called, by what was written."""

# The first event of a run that a schedule started carries these instead: it says why the run exists.
LINEAGE_KEYS: frozenset[str] = _keys(
    "schedule_id schedule_ulid cron_expression timezone overlap_policy trigger_number occurrence_time"
)


@dataclass(frozen=True, slots=True)
class CommandContext:
    """Caller, request, source and reason of a command; on every event that a caller caused."""

    principal: str | None = None
    request_id: str | None = None
    source: str | None = None
    reason: str | None = None

    def to_payload(self) -> dict[str, str]:
        values = {
            "principal": self.principal,
            "request_id": self.request_id,
            "source": self.source,
            "reason": self.reason,
        }
        return {key: value for key, value in values.items() if value is not None}


def make_payload(event_type: EventType, **values: object) -> dict[str, object]:
    return checked_payload(event_type, values)


def checked_payload(event_type: EventType, values: Mapping[str, object]) -> dict[str, object]:
    """Raises ValueError for a key that is not in the registry: a typo must not reach the history."""
    return _payload(event_type, PAYLOAD_KEYS[event_type], values)


def notice_payload(kind: NoticeType, values: Mapping[str, object]) -> dict[str, object]:
    return _payload(kind, NOTICE_KEYS[kind], values)


def make_lineage_payload(**values: object) -> dict[str, object]:
    """The payload of ScheduleTriggered on the stream of the run."""
    return _payload("ScheduleTriggered on a run", LINEAGE_KEYS, values)


def _payload(what: str, allowed: frozenset[str], values: Mapping[str, object]) -> dict[str, object]:
    if not allowed.issuperset(values):
        unknown = ", ".join(sorted(values.keys() - allowed))
        raise ValueError(f"{what} has no payload key {unknown}")
    payload = {key: value for key, value in values.items() if value is not None}
    context = payload.get("command_context")
    if isinstance(context, CommandContext):
        known = context.to_payload()
        # A context in which nothing is known is no context: readers test for the key.
        payload = {key: value for key, value in payload.items() if key != "command_context"}
        return {**payload, "command_context": known} if known else payload
    return payload


class RunEventType(StrEnum):
    """The stream of a run; `node.*` tell of the steps of a workflow, on the stream of its root."""

    SCHEDULE_TRIGGERED = "ScheduleTriggered"
    RUN_CREATED = "run.created"
    RUN_HELD = "run.held"
    RUN_RELEASED = "run.released"
    RUN_APPROVAL_REQUESTED = "run.approval_requested"
    RUN_APPROVED = "run.approved"
    RUN_MODIFIED = "run.modified"
    RUN_STARTED = "run.started"
    RUN_STOP_REQUESTED = "run.stop_requested"
    RUN_RETRIED = "run.retried"
    RUN_REDELIVERED = "run.redelivered"
    RUN_BLOCKED = "run.blocked"
    RUN_LATE_REPORT = "run.late_report"
    RUN_COMPLETED = "run.completed"
    RUN_FAILED = "run.failed"
    RUN_TIMED_OUT = "run.timed_out"
    RUN_CANCELLED = "run.cancelled"
    RUN_TERMINATED = "run.terminated"
    RUN_REJECTED = "run.rejected"
    RUN_EXPIRED = "run.expired"
    RUN_SKIPPED = "run.skipped"
    RUN_LAUNCH_FAILED = "run.launch_failed"
    RUN_UNKNOWN = "run.unknown"
    NODE_QUEUED = "node.queued"
    NODE_STARTED = "node.started"
    NODE_RETRIED = "node.retried"
    NODE_BLOCKED = "node.blocked"
    NODE_COMPLETED = "node.completed"
    NODE_FAILED = "node.failed"
    NODE_TIMED_OUT = "node.timed_out"
    NODE_CANCELLED = "node.cancelled"
    NODE_TERMINATED = "node.terminated"
    NODE_REJECTED = "node.rejected"
    NODE_EXPIRED = "node.expired"
    NODE_SKIPPED = "node.skipped"
    NODE_LAUNCH_FAILED = "node.launch_failed"
    NODE_UNKNOWN = "node.unknown"
    APPROVAL_BYPASS_ATTEMPT = "approval_bypass_attempt"


def final_event(state: RunState, *, is_step: bool) -> RunEventType:
    """The event that ends a run or a step; ValueError for a state that ends nothing."""
    if state not in FINAL:
        raise ValueError(f"a run in the state {state} has not ended")
    word = "completed" if state is RunState.SUCCEEDED else state.value
    return RunEventType(f"{'node' if is_step else 'run'}.{word}")
