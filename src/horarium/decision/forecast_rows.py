"""The values of a forecast: rows, stretches of rows that are decided alike, and their sentences."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Final, NamedTuple, assert_never

from horarium.decision.forecast import Certainty, Forecast, MoveKind, NoRun
from horarium.decision.plan import Detail
from horarium.instant import Instant
from horarium.recurrence.moves import Move
from horarium.schedule.reason import Reason


class Stretch(NamedTuple):
    """All occurrences from `first` to `last`, which are decided alike; `rotation_index` is that of the first."""

    first: Instant
    last: Instant
    decision: Forecast
    reason: Reason | None = None
    detail: Detail | None = None
    held: bool = False
    certainty: Certainty = Certainty.CERTAIN
    doubt: str | None = None
    rotation_index: int | None = None


class Row(NamedTuple):
    """One occurrence. `rotation_index` names the inputs that a dispatch would use; None = the schedule's own.

    `doubt` says what the decision depends on, where it is not certain; `moved` what happened to the instant.
    """

    tick_at: Instant
    due: Instant
    decision: Forecast
    reason: Reason | None = None
    detail: Detail | None = None
    rotation_index: int | None = None
    held: bool = False
    certainty: Certainty = Certainty.CERTAIN
    doubt: str | None = None
    moved: tuple[Move, ...] = ()

    def unjittered(self) -> Row:
        """The same of a schedule whose jitter is not known, because it does not exist yet."""
        return self._replace(due=self.tick_at, moved=tuple(each for each in self.moved if each.kind != "jittered"))

    @property
    def sentence(self) -> str:
        return sentence(self.decision, self.reason, self.held, self.doubt, self.moved)


class NextRun(NamedTuple):
    """`due` is when it acts, or None together with the reason."""

    due: Instant | None = None
    reason: NoRun | None = None


NOT_TRIGGERABLE: Final = NextRun(None, NoRun.STATUS_NOT_TRIGGERABLE)

SKIPPED: Final = MappingProxyType(
    {
        Reason.STATUS_NOT_TRIGGERABLE: "the schedule is not active",
        Reason.OUTSIDE_WINDOW: "it is outside the window of the schedule",
        Reason.REMAINING_ACTIONS_EXHAUSTED: "all runs of the schedule are used up",
        Reason.NATIVE_SCHEDULER: "the agent keeps its own schedule",
        Reason.CALENDAR: "a calendar excludes the day",
        Reason.CONDITION_FAILED: "the condition is false",
        Reason.BUDGET_EXCEEDED: "the budget of the day is used up",
        Reason.DAILY_LIMIT_REACHED: "the daily limit of runs is reached",
        Reason.CYCLE_DETECTED: "the workflow has a cycle",
        Reason.NOT_THE_OWNER: "the workflow belongs to another owner",
        Reason.QUOTA_EXCEEDED: "a quota of the namespace is used up",
        Reason.OVERLAP_POLICY_SKIP: "an earlier run is still open",
        Reason.BUFFER_FULL: "the buffer is full",
        Reason.MAX_CONCURRENT_REACHED: "the limit of concurrent runs is reached",
        Reason.SUPERSEDED: "an edit replaced it",
        Reason.MISSED: "it was missed",
        Reason.CATCHUP_CAP: "more occurrences were missed than are caught up",
        Reason.ALREADY_EXISTS: "it has a run already",
        Reason.TARGET_BUSY: "the target is busy",
    }
)


def sentence(
    decision: Forecast, reason: Reason | None, held: bool, doubt: str | None, moved: Sequence[Move] = ()
) -> str:
    """Say what is decided, what that depends on, and what happened to the instant."""
    plain = _unmoved(decision, reason, held, doubt)
    return " ".join([plain, *map(_move, moved)]) if moved else plain


@lru_cache(maxsize=256)
def _unmoved(decision: Forecast, reason: Reason | None, held: bool, doubt: str | None) -> str:
    """A long list says few different things."""
    return " ".join([_decision(decision, reason, held, doubt is None), *notes(doubt, ())])


def notes(doubt: str | None, moved: Sequence[Move]) -> list[str]:
    """Say what the decision depends on, and what happened to the instant."""
    return [*([doubt] if doubt else []), *map(_move, moved)]


def _decision(decision: Forecast, reason: Reason | None, held: bool, is_certain: bool) -> str:
    will = "will" if is_certain else "is expected to"
    if decision is Forecast.SKIP:
        why = "" if reason is None else f": {SKIPPED[reason]}"
        return f"The occurrence {will} be skipped{why}."
    if held:
        return f"The occurrence {will} be buffered until an earlier run ends."
    return f"The occurrence {will} run."


def _move(move: Move) -> str:
    match MoveKind(move.kind):
        case MoveKind.DST_GAP:
            return (
                f"The local time {move.local_time} does not exist on that day; the occurrence is at the end of the gap."
            )
        case MoveKind.DST_FOLD:
            return f"The local time {move.local_time} exists twice on that day."
        case MoveKind.JITTERED:
            return f"Jitter delays it by {move.seconds:g} seconds."
        case MoveKind.DEDUPLICATED:
            return f"{len(move.parts)} parts of the spec name this instant; it is one occurrence."
        case unknown:
            assert_never(unknown)
