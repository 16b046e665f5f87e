"""Whether a trigger by hand starts a run: the guards about permission and overlap, not calendar or condition.

It never moves the position: a trigger by hand is nobody's occurrence.
"""

from __future__ import annotations

from dataclasses import replace

from horarium.decision.decide import decide
from horarium.decision.facts import Facts, Shared, Tally
from horarium.decision.guards import Question, guards_for
from horarium.decision.plan import Birth, Skip
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
