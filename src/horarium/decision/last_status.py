"""What became of a schedule's last occurrence, in one word: `success`, `error`, `skipped`, `stale`, or nothing yet.

An agent that answers with an empty text has done nothing, however often it says that it is well: after three such
answers in a row the word is `stale`, and stays so until the agent gives another answer. A skip or a cancel between them
says nothing about the agent.
"""

from __future__ import annotations

from enum import StrEnum

from horarium.instant import Instant
from horarium.schedule.run import RunState

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


_STATES = frozenset(RunState)
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
    ended = status_of_end(RunState(last_state)) if last_state in _STATES else None
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
