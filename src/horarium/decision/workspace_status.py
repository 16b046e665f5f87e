"""How the schedules of a workspace tell what came of them: `success`, `error`, `skipped`, `stale`, or nothing yet."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from horarium.instant import Instant
from horarium.schedule.run import FINAL, HANDED_OUT, RunState

STALE_AFTER = 3
"""Answers without a text, one after the other, that make a schedule stale."""
_MOST_ERROR = 1_000


class LastStatus(StrEnum):
    NONE = ""
    SUCCESS = "success"
    ERROR = "error"
    SKIPPED = "skipped"
    STALE = "stale"


class RunStatus(StrEnum):
    """Of one row of the history."""

    SUCCESS = "success"
    ERROR = "error"
    SKIPPED = "skipped"
    RUNNING = "running"
    WAITING = "waiting"  # not begun: it waits for its turn, for a place or for a yes


@dataclass(frozen=True, slots=True)
class Ended:
    """The end of a run; `error` and `cause` as it has them."""

    at: Instant
    state: RunState
    error: str | None = None
    cause: str | None = None


@dataclass(frozen=True, slots=True)
class NotRun:
    """An occurrence that had no run."""

    at: Instant
    reason: str


@dataclass(frozen=True, slots=True)
class Last:
    status: LastStatus
    error: str
    at: Instant | None


NOTHING: Final = Last(LastStatus.NONE, "", None)


def last_of(ended: Ended | None, not_run: NotRun | None, *, empty_in_a_row: int) -> Last:
    """What happened last; of both at one instant the skip, which was decided while the run was there."""
    if not_run is not None and (ended is None or not_run.at >= ended.at):
        return Last(LastStatus.SKIPPED, f"skipped: {not_run.reason}", not_run.at)
    if ended is None:
        return NOTHING
    match run_status(ended.state):
        case RunStatus.SUCCESS:
            return Last(LastStatus.SUCCESS, "", ended.at)
        case RunStatus.SKIPPED:
            return Last(LastStatus.SKIPPED, f"skipped: {ended.cause or 'it was not run'}", ended.at)
        case _ if empty_in_a_row >= STALE_AFTER:
            text = f"empty response {empty_in_a_row} consecutive times: the agent answers without a text"
            return Last(LastStatus.STALE, text, ended.at)
        case _:
            return Last(LastStatus.ERROR, error_of(ended.state, ended.error, ended.cause), ended.at)


def run_status(state: RunState) -> RunStatus:
    if state is RunState.SUCCEEDED:
        return RunStatus.SUCCESS
    if state is RunState.SKIPPED:
        return RunStatus.SKIPPED
    if state in FINAL:
        return RunStatus.ERROR
    return RunStatus.RUNNING if state in HANDED_OUT else RunStatus.WAITING


def error_of(state: RunState, error: str | None, cause: str | None) -> str:
    """Why a run did not succeed, where it did not; never blank for one that has failed."""
    if state is RunState.SUCCEEDED or state not in FINAL:
        return ""
    return (error or cause or state.value.replace("_", " "))[:_MOST_ERROR]
