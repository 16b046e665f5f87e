"""The values of a forecast: rows, stretches of rows with the same decision, and their sentences."""

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
    """All occurrences from `first` to `last`, with one decision; `rotation_index` belongs to the first."""

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
    """One occurrence. `rotation_index` selects the inputs of a dispatch; None = the schedule's own inputs.

    `doubt` is the sentence about what an uncertain decision depends on; `moved` lists the moves of the instant.
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
        """Return the row without jitter, which is unknown until the schedule exists."""
        return self._replace(due=self.tick_at, moved=tuple(each for each in self.moved if each.kind != "jittered"))

    @property
    def sentence(self) -> str:
        return sentence(self.decision, self.reason, self.held, self.doubt, self.moved)


class NextRun(NamedTuple):
    """The due time of the next run, or None with the reason."""

    due: Instant | None = None
    reason: NoRun | None = None


NOT_TRIGGERABLE: Final = NextRun(None, NoRun.STATUS_NOT_TRIGGERABLE)

SKIPPED: Final = MappingProxyType(
    {
        Reason.STATUS_NOT_TRIGGERABLE: "schedule not active",
        Reason.OUTSIDE_WINDOW: "outside the start and end of the schedule",
        Reason.REMAINING_ACTIONS_EXHAUSTED: "max runs reached",
        Reason.NATIVE_SCHEDULER: "agent is self-scheduled",
        Reason.CALENDAR: "excluded by a calendar",
        Reason.CONDITION_FAILED: "condition not met",
        Reason.BUDGET_EXCEEDED: "budget exceeded",
        Reason.DAILY_LIMIT_REACHED: "daily limit reached",
        Reason.CYCLE_DETECTED: "workflow contains a cycle",
        Reason.NOT_THE_OWNER: "workflow has another owner",
        Reason.QUOTA_EXCEEDED: "namespace quota exceeded",
        Reason.OVERLAP_POLICY_SKIP: "previous run still active",
        Reason.BUFFER_FULL: "buffer full",
        Reason.MAX_CONCURRENT_REACHED: "concurrency limit reached",
        Reason.SUPERSEDED: "superseded by an edit, pause or deletion",
        Reason.MISSED: "scheduler was down",
        Reason.CATCHUP_CAP: "catch-up limit reached",
        Reason.ALREADY_EXISTS: "run already exists",
        Reason.TARGET_BUSY: "target busy",
    }
)


def sentence(
    decision: Forecast, reason: Reason | None, held: bool, doubt: str | None, moved: Sequence[Move] = ()
) -> str:
    """Return the sentences about the decision, its uncertainty and the moves of the instant."""
    plain = _unmoved(decision, reason, held, doubt)
    return " ".join([plain, *map(_move, moved)]) if moved else plain


@lru_cache(maxsize=256)
def _unmoved(decision: Forecast, reason: Reason | None, held: bool, doubt: str | None) -> str:
    """Cache the sentence, because a long list repeats few of them."""
    plain = outcome(decision, reason, held=held, is_certain=doubt is None)
    return " ".join([f"The occurrence {plain}.", *notes(doubt, ())])


def notes(doubt: str | None, moved: Sequence[Move]) -> list[str]:
    """Return the sentences about the uncertainty of a decision and the moves of the instant."""
    return [*([doubt] if doubt else []), *map(_move, moved)]


def outcome(decision: Forecast, reason: Reason | None = None, *, held: bool, is_certain: bool) -> str:
    """Return the predicate of a sentence about an occurrence, such as `will run`."""
    will = "will" if is_certain else "is expected to"
    if decision is Forecast.SKIP:
        return f"{will} be skipped" + ("" if reason is None else f": {SKIPPED[reason]}")
    return f"{will} be buffered until an earlier run ends" if held else f"{will} run"


def _move(move: Move) -> str:
    match MoveKind(move.kind):
        case MoveKind.DST_GAP:
            gap = f"The local time {move.local_time} does not exist on that day (DST)."
            return f"{gap} The occurrence moves to the end of the gap."
        case MoveKind.DST_FOLD:
            return f"The local time {move.local_time} occurs twice on that day (DST)."
        case MoveKind.JITTERED:
            return f"Jitter delays the occurrence by {move.seconds:g} seconds."
        case MoveKind.DEDUPLICATED:
            return f"{len(move.parts)} parts of the spec have this occurrence; it runs once."
        case unknown:
            assert_never(unknown)
