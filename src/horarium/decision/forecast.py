"""The words of what is foreseen: an occurrence will be dispatched or skipped, and why nothing runs at all."""

from __future__ import annotations

from enum import StrEnum

from horarium.schedule.reason import Reason


class Forecast(StrEnum):
    DISPATCH = "dispatch"
    SKIP = "skip"


class NoRun(StrEnum):
    """Why nothing runs as far as one can see: the words of the guards, and one for a schedule without a future."""

    STATUS_NOT_TRIGGERABLE = Reason.STATUS_NOT_TRIGGERABLE.value
    OUTSIDE_WINDOW = Reason.OUTSIDE_WINDOW.value
    REMAINING_ACTIONS_EXHAUSTED = Reason.REMAINING_ACTIONS_EXHAUSTED.value
    NATIVE_SCHEDULER = Reason.NATIVE_SCHEDULER.value
    CALENDAR = Reason.CALENDAR.value
    BUDGET_EXCEEDED = Reason.BUDGET_EXCEEDED.value
    DAILY_LIMIT_REACHED = Reason.DAILY_LIMIT_REACHED.value
    FINISHED = "finished"
