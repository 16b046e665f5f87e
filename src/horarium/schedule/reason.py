"""Why an occurrence had no run: one closed list of reasons, in the order in which guards ask.

Every door shows these words. Where another vocabulary has its own word for a reason, answers carry
it beside ours as `reason_alias`.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import assert_never


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
