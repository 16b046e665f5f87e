"""Which past occurrences a backfill runs: each once, in order, by explicit request.

Only what the clock has already passed can be filled in: the window is cut at the position, so the
ticker and a backfill never race for the same occurrence.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import islice, takewhile

from horarium.decision.decide import decide
from horarium.decision.facts import Facts, Shared, Tally
from horarium.decision.guards import Question, guards_for
from horarium.decision.plan import Birth, Detail, Skip
from horarium.errors import BackfillTooLarge, InvalidSpec
from horarium.instant import Instant, to_rfc3339
from horarium.policy.overlap import Overlap, OverlapPolicy
from horarium.schedule.planning import Planning
from horarium.schedule.position import Position, Status
from horarium.schedule.reason import Reason
from horarium.schedule.run import Origin

MAX_OCCURRENCES = 1_000
_FORGOTTEN: Detail = {
    "retention": True,
    "text": "retention deleted the decision about this occurrence; it may have run already",
}
# A buffer is flow control for a stream of live occurrences; here it would only fill up.
_BUFFERS = (OverlapPolicy.BUFFER_ONE, OverlapPolicy.BUFFER_ALL)


@dataclass(frozen=True, slots=True)
class BackfillPlan:
    """A decision for each occurrence, in the order in which they start, and the position after them."""

    decisions: tuple[Birth | Skip, ...]
    position: Position


def occurrences_to_fill(planning: Planning, position: Position, start: Instant, end: Instant) -> list[Instant]:
    """The nominal times in [start, end) that the clock has passed."""
    if end <= start:
        raise InvalidSpec("end_time: must be after start_time", field="end_time")
    until = min(end - 1, position.decided_until)
    spec = planning.spec
    passed = takewhile(lambda nominal: nominal <= until, spec.occurrences(start - 1))
    found = list(islice(passed, MAX_OCCURRENCES + 1))
    if len(found) > MAX_OCCURRENCES:
        # One part is counted by arithmetic; how many a hundred parts have together, nobody should wait for.
        exact = spec.count(start - 1, until) if len(spec.parts) == 1 else None
        raise BackfillTooLarge(exact, MAX_OCCURRENCES)
    return found


def remark(planning: Planning, start: Instant, end: Instant, found: Sequence[Instant]) -> str | None:
    """Remark for a caller who requested more than was `found`: the occurrences that are to be filled."""
    spec = planning.spec
    if not found:
        first = spec.next_after(start - 1)
        if first is None or first >= end:
            return "The window contains no occurrences."
        return f"All occurrences in this window are in the future; the first is {to_rfc3339(first)}."
    later = spec.next_after(found[-1])
    if later is None or later >= end:
        return None
    return f"The window extends into the future; occurrences from {to_rfc3339(later)} on run as scheduled."


def plan_backfill(
    planning: Planning,
    position: Position,
    facts: Facts,
    shared: Shared,
    occurrences: Collection[Instant],
    *,
    taken: Collection[Instant],
    forgotten_until: Instant | None = None,
    overlap_policy: OverlapPolicy | None = None,
    reverse: bool = False,
) -> BackfillPlan:
    """`taken` are those that have had a run: asking twice is harmless. `max_runs` ends the list.

    Up to `forgotten_until` nobody knows any more which had one, so none is run: never is better than twice.
    """
    tally = Tally(planning, position, facts, shared)
    if tally.status is Status.PAUSED:
        tally.status = Status.ACTIVE  # a backfill is explicit
    guards = guards_for(planning, Origin.BACKFILL)
    overlap = _overlap(planning.overlap, overlap_policy)
    decisions: list[Birth | Skip] = []
    for nominal in sorted(occurrences, reverse=reverse):
        if nominal in taken:
            decisions.append(Skip(nominal, Reason.ALREADY_EXISTS))
            continue
        if forgotten_until is not None and nominal <= forgotten_until:
            decisions.append(Skip(nominal, Reason.ALREADY_EXISTS, _FORGOTTEN))
            continue
        question = Question(planning, facts, tally, nominal)
        decision = decide(guards, question, due=nominal, overlap=overlap, supersedes=False)
        if isinstance(decision, Skip) and decision.reason is Reason.REMAINING_ACTIONS_EXHAUSTED:
            break
        decisions.append(decision)
    exhausted = planning.max_runs is not None and tally.runs_born >= planning.max_runs
    after = position._replace(runs_born=tally.runs_born, rotation_index=tally.rotation_index)
    if exhausted:
        after = after._replace(status=Status.DELETED, next_due=None)
    return BackfillPlan(tuple(decisions), after)


def _overlap(own: Overlap, override: OverlapPolicy | None) -> Overlap:
    """`skip` is one after the other, however many they are: a window is not skipped against itself."""
    policy = own.policy if override is None else override
    if policy is OverlapPolicy.SKIP:
        return replace(own, policy=OverlapPolicy.BUFFER_ALL, max_buffered=None)
    return replace(own, policy=OverlapPolicy.ALLOW_ALL if policy in _BUFFERS else policy)
