"""Words for the state of a schedule: its health, its last and recent occurrences, and the forecast of the next.

The last status is `success`, `error`, `skipped`, `stale`, or nothing yet. An agent that answers with an empty text
has done nothing, however often it says that it is well: after three such answers in a row the word is `stale`, and
stays so until the agent gives another answer. A skip or a cancel between them says nothing about the agent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final, NamedTuple

from horarium.core.document.states import EventType, Origin, Reason, RunState
from horarium.instant import SECOND, Instant

# ── Health ────────────────────────────────────────────────────────────────────────────────────────────


class HealthStatus(StrEnum):
    """Health of a schedule. The first status that applies is reported."""

    BROKEN = "broken"
    PAUSED = "paused"
    WAITING_FOR_APPROVAL = "waiting_for_approval"
    FAILING = "failing"
    STALE = "stale"  # no decision for two gaps of its spec
    LATE = "late"  # an occurrence has waited for its decision beyond its grace
    NEVER_RUN = "never_run"
    OK = "ok"


class WatchedStatus(StrEnum):
    """Health of a schedule for a monitor with three values."""

    OK = "ok"
    STALE = "stale"
    NEVER_RUN = "never_run"


UNWELL = frozenset({HealthStatus.BROKEN, HealthStatus.FAILING, HealthStatus.STALE, HealthStatus.LATE})
"""Those that a command says by its exit code."""

NEEDS_SOMEBODY = UNWELL | {HealthStatus.WAITING_FOR_APPROVAL}
"""Statuses whose beginning and end create an event."""


# ── Last occurrence ───────────────────────────────────────────────────────────────────────────────────


EMPTY_RESPONSE = "empty_response"
"""The class of the error of a run whose agent answered without a text."""

STALE_AFTER = 3
"""Empty answers in a row."""


class LastStatus(StrEnum):
    NOTHING = ""
    SUCCESS = "success"
    ERROR = "error"
    SKIPPED = "skipped"
    STALE = "stale"


_STATES_OF_STATUS = frozenset(RunState)
# Somebody did not want it, or had no room: nobody did it wrong.
_NOT_DONE = frozenset({RunState.SKIPPED, RunState.REJECTED, RunState.EXPIRED})


def status_of_end(state: RunState) -> LastStatus:
    """Status for one run that has ended."""
    if state is RunState.SUCCEEDED:
        return LastStatus.SUCCESS
    return LastStatus.SKIPPED if state in _NOT_DONE else LastStatus.ERROR


def last_status(
    *,
    last_state: str | None,
    last_completed_at: Instant | None,
    last_skipped_at: Instant | None,
    failures_in_a_row: int,
    empty_in_a_row: int,
) -> LastStatus:
    """`last_state` is that of the run that ended last; None = none has, or it did before this was kept.

    A state that a newer program has written counts as none. A skip after empty answers, such as that of a busy agent,
    is the outcome of the last occurrence.
    """
    if last_skipped_at is not None and (last_completed_at is None or last_skipped_at > last_completed_at):
        return LastStatus.SKIPPED
    ended = status_of_end(RunState(last_state)) if last_state in _STATES_OF_STATUS else None
    if empty_in_a_row >= STALE_AFTER and ended is not LastStatus.SKIPPED:
        return LastStatus.STALE
    if ended is not None:
        return ended
    if last_completed_at is None:
        return LastStatus.NOTHING
    return LastStatus.ERROR if failures_in_a_row else LastStatus.SUCCESS


def empties_after(empty_in_a_row: int, state: RunState, error_class: str | None) -> int:
    """Empty answers in a row after an end. What the agent itself did not say neither breaks the row nor lengthens it.

    A failure without a class is our own word, that a cap was passed.
    """
    if error_class == EMPTY_RESPONSE and state is RunState.FAILED:
        return empty_in_a_row + 1
    said = state is RunState.SUCCEEDED or (state is RunState.FAILED and error_class is not None)
    return 0 if said else empty_in_a_row


# ── Recent occurrences ────────────────────────────────────────────────────────────────────────────────


MOST_RECENT: Final = 30


class Happened(StrEnum):
    """Decision about an occurrence."""

    FIRED = "fired"
    HELD = "held"
    SKIPPED = "skipped"
    MISSED = "missed"


HAPPENED: Final[Mapping[EventType, Happened]] = MappingProxyType(
    {
        EventType.TRIGGERED: Happened.FIRED,
        EventType.BUFFERED: Happened.HELD,
        EventType.TRIGGER_SKIPPED: Happened.SKIPPED,
        EventType.MISSED: Happened.MISSED,
    }
)
"""The events of history that are decisions."""


class Recent(NamedTuple):
    """One decision, with what became of its run; `at` is the time of its occurrence, or when it was made by hand.

    `state` None = it had no run, or retention has removed it. `covers`: of how many occurrences it was the decision.
    """

    at: Instant
    outcome: Happened
    reason: str | None = None
    run_id: bytes | None = None
    origin: Origin = Origin.SCHEDULED
    state: RunState | None = None
    due: Instant | None = None
    started_at: Instant | None = None
    finished_at: Instant | None = None
    covers: int = 1

    @property
    def duration_seconds(self) -> float | None:
        """None = it has not started, or not ended; a clock that was set back makes it none at all."""
        if self.started_at is None or self.finished_at is None:
            return None
        return max(0, self.finished_at - self.started_at) / SECOND

    @property
    def late_seconds(self) -> float | None:
        """Start delay in seconds."""
        return None if self.started_at is None or self.due is None else max(0, self.started_at - self.due) / SECOND


def in_order(decisions: Iterable[Recent]) -> tuple[Recent, ...]:
    """Oldest first; at one instant, what was done by hand last. Of an occurrence that was skipped and then backfilled
    the run wins.
    """
    by_occurrence: dict[tuple[Instant, bool], Recent] = {}
    for each in decisions:
        key = (each.at, each.origin is Origin.MANUAL)
        if each.run_id is not None or key not in by_occurrence:
            by_occurrence[key] = each
    return tuple(by_occurrence[key] for key in sorted(by_occurrence))


# ── Forecast ──────────────────────────────────────────────────────────────────────────────────────────


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
