"""What the end of a run means for its schedule: failures are counted, and enough in a row pause it."""

from __future__ import annotations

from dataclasses import dataclass

from horarium.schedule.planning import Planning
from horarium.schedule.position import Status
from horarium.schedule.run import UNSUCCESSFUL, RunState

# Ended by somebody's wish: it neither breaks a row of failures nor lengthens it.
_NEUTRAL = frozenset({RunState.CANCELLED, RunState.TERMINATED, RunState.REJECTED, RunState.EXPIRED, RunState.SKIPPED})


@dataclass(frozen=True, slots=True)
class Ending:
    failed: bool
    failures_in_a_row: int
    pause_reason: str | None = None


def plan_ending(planning: Planning, status: Status, failures_in_a_row: int, state: RunState) -> Ending:
    if state in _NEUTRAL:
        return Ending(failed=False, failures_in_a_row=failures_in_a_row)
    if state not in UNSUCCESSFUL:
        return Ending(failed=False, failures_in_a_row=0)
    row = failures_in_a_row + 1
    limit = planning.pause_on_failure
    if limit is not None and row >= limit and status in (Status.ACTIVE, Status.FINISHED):
        return Ending(True, row, f"paused after {row} failed runs in a row")
    return Ending(failed=True, failures_in_a_row=row)
