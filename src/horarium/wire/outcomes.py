"""Outcomes of requests."""

from __future__ import annotations

from enum import StrEnum


class WriteOutcome(StrEnum):
    CREATED = "created"
    UPDATED = "updated"
    PAUSED = "paused"
    RESUMED = "resumed"
    DELETED = "deleted"
    UNCHANGED = "unchanged"


class TriggerOutcome(StrEnum):
    TRIGGERED = "triggered"
    BUFFERED = "buffered"
    BUFFER_FULL = "buffer_full"
    SKIPPED = "skipped"


class FillOutcome(StrEnum):
    """Outcome of one occurrence of a backfill."""

    STARTED = "started"
    BUFFERED = "buffered"
    SKIPPED = "skipped"


class BackfillOutcome(StrEnum):
    STARTED = "backfill_started"
    PLANNED = "backfill_planned"  # a dry run


class ExplainedOutcome(StrEnum):
    """Outcome of an occurrence. `fires`, `skips` and `nothing` are predicted, the others recorded."""

    FIRES = "fires"
    SKIPS = "skips"
    NOTHING = "nothing"  # no occurrence is at this moment
    FIRED = "fired"
    HELD = "held"
    SKIPPED = "skipped"
    MISSED = "missed"
    COVERED = "covered"  # another run stood for it
    RECORDED = "recorded"


class ExplainedSource(StrEnum):
    PREDICTION = "prediction"
    HISTORY = "history"


class StopOutcome(StrEnum):
    CANCELLED = "cancelled"
    TERMINATED = "terminated"
    REQUESTED = "cancel_requested"  # whoever has it will be told
    UNCHANGED = "unchanged"  # it has ended already


class ReportOutcome(StrEnum):
    RECORDED = "recorded"
    RETRIED = "retried"
    BLOCKED = "blocked"
    UNCHANGED = "unchanged"  # it was said before
    LATE = "late"  # the run has ended otherwise, or the attempt is over; written down, and nothing more


class StartOutcome(StrEnum):
    STARTED = "started"
    ALREADY_STARTED = "already_started"


class RemovalOutcome(StrEnum):
    """Outcome of deleting a namespace."""

    DELETED = "deleted"  # nothing of it is left
    DELETING = "deleting"  # nobody gets in any more; the rest of its rows goes by itself
    PLANNED = "planned"  # a dry run


class RedeliverOutcome(StrEnum):
    QUEUED = "queued"
    UNCHANGED = "unchanged"  # there is nothing to send again


class RevokeOutcome(StrEnum):
    REVOKED = "revoked"
    UNCHANGED = "unchanged"
