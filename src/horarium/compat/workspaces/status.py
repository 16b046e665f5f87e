"""Status of the runs of a workspace's schedules, and the reason why the last one was none."""

from __future__ import annotations

from enum import StrEnum

from horarium.core.decision.statuses import LastStatus, status_of_end
from horarium.core.document.states import FINAL, HANDED_OUT, RunState

_MOST_ERROR = 1_000
_BUSY = "workspace busy"


class RunStatus(StrEnum):
    """Status of a run in the history of a workspace schedule."""

    SUCCESS = "success"
    ERROR = "error"
    SKIPPED = "skipped"
    RUNNING = "running"
    WAITING = "waiting"  # not begun: it waits for its turn, for a place or for a yes


def run_status(state: RunState) -> RunStatus:
    if state in FINAL:
        return RunStatus(status_of_end(state).value)
    return RunStatus.RUNNING if state in HANDED_OUT else RunStatus.WAITING


def run_error(state: RunState, error: str | None, cause: str | None) -> str:
    """Why a run did not succeed; empty for one that did, or has not ended."""
    if state is RunState.SUCCEEDED or state not in FINAL:
        return ""
    return (error or cause or state.value.replace("_", " "))[:_MOST_ERROR]


def last_error(
    status: LastStatus, last_state: str | None, error: str | None, *, skip_reason: str | None, empty_in_a_row: int
) -> str:
    """The sentence beside a status. `last_state` is that of the run that ended last, None where a skip came after it.

    `error` is what the last failure said.
    """
    ended = RunState(last_state) if last_state in frozenset(RunState) else None
    match status:
        case LastStatus.NOTHING | LastStatus.SUCCESS:
            return ""
        case LastStatus.STALE:
            return f"empty response {empty_in_a_row} consecutive times: the agent answers without a text"
        case LastStatus.SKIPPED if ended is None:
            return f"skipped: {skip_reason or 'not run'}"
        case LastStatus.SKIPPED:
            return f"skipped: {_BUSY if ended is RunState.SKIPPED else ended}"
        case LastStatus.ERROR:
            was_stopped = ended in (RunState.CANCELLED, RunState.TERMINATED)
            return run_error(ended or RunState.FAILED, None if was_stopped else error, None)
