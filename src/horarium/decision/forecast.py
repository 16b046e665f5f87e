"""The words of a forecast: the decision, how certain it is, and what moved the instant."""

from __future__ import annotations

from enum import StrEnum

from horarium.schedule.reason import Reason


class Forecast(StrEnum):
    DISPATCH = "dispatch"
    SKIP = "skip"


class Certainty(StrEnum):
    CERTAIN = "certain"  # only an edit, a pause, a freeze, an outage or a manual run can change the decision
    LIKELY = "likely"  # it depends on when runs end, estimated from the history of the schedule
    UNKNOWN = "unknown"  # it depends on a condition, a limit or a run whose end cannot be estimated


class MoveKind(StrEnum):
    DST_GAP = "dst_gap"  # the local time does not exist on that day; the occurrence is at the end of the gap
    DST_FOLD = "dst_fold"  # the local time exists twice on that day; one of the two was chosen
    JITTERED = "jittered"  # it acts some seconds after its nominal time
    DEDUPLICATED = "deduplicated"  # several parts of the spec name the instant; it is one occurrence


class NoRun(StrEnum):
    """Reason why no upcoming occurrence is dispatched: that of the last one, or `finished`."""

    STATUS_NOT_TRIGGERABLE = Reason.STATUS_NOT_TRIGGERABLE.value
    OUTSIDE_WINDOW = Reason.OUTSIDE_WINDOW.value
    REMAINING_ACTIONS_EXHAUSTED = Reason.REMAINING_ACTIONS_EXHAUSTED.value
    NATIVE_SCHEDULER = Reason.NATIVE_SCHEDULER.value
    CALENDAR = Reason.CALENDAR.value
    CONDITION_FAILED = Reason.CONDITION_FAILED.value
    BUDGET_EXCEEDED = Reason.BUDGET_EXCEEDED.value
    DAILY_LIMIT_REACHED = Reason.DAILY_LIMIT_REACHED.value
    CYCLE_DETECTED = Reason.CYCLE_DETECTED.value
    NOT_THE_OWNER = Reason.NOT_THE_OWNER.value
    OVERLAP_POLICY_SKIP = Reason.OVERLAP_POLICY_SKIP.value
    BUFFER_FULL = Reason.BUFFER_FULL.value
    MAX_CONCURRENT_REACHED = Reason.MAX_CONCURRENT_REACHED.value
    MISSED = Reason.MISSED.value
    CATCHUP_CAP = Reason.CATCHUP_CAP.value
    FINISHED = "finished"
