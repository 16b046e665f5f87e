"""Whether a trigger by hand starts a run: the guards about permission and overlap, not calendar or condition.

It never moves the position: a trigger by hand is nobody's occurrence. To do an ended run once more is a trigger by
hand, too, of work that was frozen when the first one was born.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from horarium.decision.decide import decide
from horarium.decision.facts import Facts, Shared, Tally
from horarium.decision.guards import Question, guards_for
from horarium.decision.plan import Birth, Covers, Skip
from horarium.instant import Instant
from horarium.policy.overlap import OverlapPolicy
from horarium.schedule.planning import Planning
from horarium.schedule.position import Position, Status
from horarium.schedule.run import Origin


def decide_trigger(
    planning: Planning,
    position: Position,
    facts: Facts,
    shared: Shared,
    *,
    now: Instant,
    overlap_policy: OverlapPolicy | None = None,
    even_if_paused: bool = False,
) -> Birth | Skip:
    """The nominal time of the run is now."""
    tally = Tally(planning, position, facts, shared)
    if even_if_paused and tally.status is Status.PAUSED:
        tally.status = Status.ACTIVE
    overlap = planning.overlap
    if overlap_policy is not None:
        overlap = replace(overlap, policy=overlap_policy)
    question = Question(planning, facts, tally, now)
    return decide(guards_for(planning, Origin.MANUAL), question, due=now, overlap=overlap)


@dataclass(frozen=True, slots=True)
class Ended:
    """Data that a rerun copies from the run that it repeats."""

    nominal: Instant
    rotation_index: int | None
    covers: Covers | None
    needs_approval: bool


def rerun_planning(frozen: Planning, current: Planning, ended: Ended) -> Planning:
    """The work as it was; whether it may be done is a question of today. Whoever asks for an approval is heard."""
    needs_approval = frozen.needs_approval or current.needs_approval or ended.needs_approval
    return replace(
        frozen,
        overlap=current.overlap,
        budget=current.budget,
        max_runs=current.max_runs,
        needs_approval=needs_approval,
    )


def decide_rerun(
    planning: Planning,
    position: Position,
    facts: Facts,
    shared: Shared,
    ended: Ended,
    *,
    now: Instant,
    overlap_policy: OverlapPolicy | None = None,
    even_if_paused: bool = False,
) -> Birth | Skip:
    """The run is about the same occurrence, with the same place in the rotation, and due now."""
    decided = decide_trigger(
        planning, position, facts, shared, now=now, overlap_policy=overlap_policy, even_if_paused=even_if_paused
    )
    if isinstance(decided, Skip):
        return decided._replace(nominal=ended.nominal)
    return decided._replace(nominal=ended.nominal, rotation_index=ended.rotation_index, covers=ended.covers)
