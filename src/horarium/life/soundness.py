"""Whether a run is as it must be: it can still move or end, nothing outlives what it is part of, and a yes came first.

Every transaction leaves runs so; a check of the whole ledger asks it of each, in case a row was changed by hand or
restored, or a fault of ours slipped through.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from horarium.schedule.run import FINAL, OPEN, RunState


class Unsound(StrEnum):
    """Faults of a run."""

    STUCK = "stuck"  # it can neither move nor end
    OUTLIVES = "outlives"  # the workflow that it is a step of has ended, or is gone
    UNREADABLE = "unreadable"  # a value of its row cannot be read
    UNAPPROVED = "unapproved"  # it was let go, and nobody has said yes to its inputs


@dataclass(frozen=True, slots=True)
class Answer:
    """Approval that released the run, compared with this run and its inputs."""

    yes: bool
    same_run: bool
    same_inputs: bool


@dataclass(frozen=True, slots=True)
class RunFacts:
    """`parent` is the state of the run that it is a step of, None = it is gone; of a root it is not asked."""

    state: RunState
    is_step: bool = False
    parent: RunState | None = None
    is_workflow: bool = False
    has_open_steps: bool = False
    has_changes: bool = False
    is_asked_about: bool = False
    is_to_stop: bool = False
    needs_approval: bool = False
    answer: Answer | None = None


# Where a run that waits for a yes can be, or can end, without one.
_WITHOUT_YES = frozenset(
    {
        RunState.HELD,
        RunState.AWAITING_APPROVAL,
        RunState.REJECTED,
        RunState.EXPIRED,
        RunState.CANCELLED,
        RunState.SKIPPED,
    }
)


def unsound(run: RunFacts) -> tuple[Unsound, ...]:
    found = []
    if _is_stuck(run):
        found.append(Unsound.STUCK)
    if run.is_step and run.state in OPEN and (run.parent is None or run.parent in FINAL):
        found.append(Unsound.OUTLIVES)
    if run.needs_approval and run.state not in _WITHOUT_YES and not _has_yes(run.answer):
        found.append(Unsound.UNAPPROVED)
    return tuple(found)


def _is_stuck(run: RunFacts) -> bool:
    """Whoever is asked to stop is ended by the janitor. What runs outside has a lease or a deadline."""
    if run.state is RunState.AWAITING_APPROVAL:
        return not (run.is_asked_about or run.is_to_stop)
    return run.state is RunState.RUNNING and run.is_workflow and not (run.has_open_steps or run.has_changes)


def _has_yes(answer: Answer | None) -> bool:
    return answer is not None and answer.yes and answer.same_run and answer.same_inputs
