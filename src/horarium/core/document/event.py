"""Types of history events with the keys that each payload may have, checked at every write.

A schedule has one audit stream, a run another. The keys of `CONTRACT_KEYS` and `LINEAGE_KEYS` are
those of the Durable Workflow schedule contract, which its clients read; `ADDED_KEYS` are ours. A key
without a value is left out, never written as null.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from horarium.core.document.states import FINAL, RunState


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
