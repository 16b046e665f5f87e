"""Decisions about single occurrences: by the clock, by a trigger, and by a backfill.

`decide` evaluates the guards in turn, then overlap; a run is created, buffered or refused.

A manual trigger is subject to the guards about permission and overlap, not to calendar or condition. It never moves
the position, since it is no occurrence of the schedule. A rerun of an ended run is a trigger too, of work that was
frozen when the first one was created.

A backfill runs each past occurrence of its window once, in order, by explicit request. Only what the clock has
already passed can be filled in: the window is cut at the position, so the ticker and a backfill never race for the
same occurrence.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import islice, takewhile
from typing import assert_never

from horarium.core.decision.facts import Birth, Covers, Detail, Facts, Fire, Hold, RunTally, SharedFacts, Skip
from horarium.core.decision.guards import DecisionGuard, GuardQuestion, first_refusal, guards_for
from horarium.core.document.planning import Planning
from horarium.core.document.states import Origin, Position, Reason, Status
from horarium.core.policy.approval import WhileWaiting
from horarium.core.policy.queue import Buffer, Overlap, OverlapPolicy, Refuse, Start, decide_overlap
from horarium.errors import BackfillTooLarge, InvalidSpec
from horarium.instant import Instant, to_rfc3339


def decide(
    guards: tuple[DecisionGuard, ...],
    question: GuardQuestion,
    *,
    due: Instant,
    overlap: Overlap,
    caught_up: bool = False,
    release_at: Instant | None = None,
    supersedes: bool = True,
) -> Birth | Skip:
    """The tally is left as the next decision must see it; a skip leaves it as it was.

    `supersedes`: it is newer than what waits for a yes, and asks in its place where the schedule wants that.
    """
    refusal = first_refusal(guards, question)
    if refusal is not None:
        return Skip(question.nominal, *refusal)
    nominal, tally = question.nominal, question.tally
    if release_at is not None:
        # Spread out on purpose: whether there is room is asked when its time has come.
        return _hold_or_fire(tally, nominal, due, release_at=release_at)
    wants_newest = question.planning.while_waiting is WhileWaiting.SUPERSEDE
    active = tally.active if wants_newest and not supersedes else tally.busy
    outcome = decide_overlap(overlap, active=active, held=tally.held, backfilled=tally.backfilled, caught_up=caught_up)
    match outcome:
        case Refuse(reason):
            return Skip(nominal, Reason(reason), {"active": tally.active, "held": tally.held})
        case Buffer(cancel_active):
            return _hold_or_fire(tally, nominal, due, cancel_active=cancel_active)
        case Start(terminate_active):
            superseded = tally.waiting if wants_newest and supersedes and not terminate_active else 0
            if not key_is_free(tally, ending=tally.active if terminate_active else superseded):
                return _hold_or_fire(tally, nominal, due)
            member = tally.member()
            used = tally.bear(held=False, terminated=terminate_active, superseded=superseded)
            return Fire(nominal, due, used, terminate_active=terminate_active, superseded=superseded, member=member)
        case _:
            assert_never(outcome)


def _hold_or_fire(
    tally: RunTally, nominal: Instant, due: Instant, *, cancel_active: bool = False, release_at: Instant | None = None
) -> Hold:
    member = tally.member()  # before the next one has the turn
    used = tally.bear(held=True)
    return Hold(nominal, due, used, cancel_active=cancel_active, release_at=release_at, member=member)


def key_is_free(tally: RunTally, *, ending: int = 0) -> bool:
    """Tell whether the concurrency key, which other schedules may share, allows one more run.

    `ending` are runs of this schedule that end for it in the same transaction.
    """
    planning = tally.planning
    if planning.concurrency_key is None:
        return True
    return tally.shared.active_by_key.get(planning.concurrency_key, 0) - ending < planning.concurrency_limit


def covering(birth: Birth, covers: Covers) -> Birth:
    """The same birth, standing for a range of missed occurrences."""
    return birth._replace(covers=covers)


# ── Triggers ──────────────────────────────────────────────────────────────────────────────────────────


def decide_trigger(
    planning: Planning,
    position: Position,
    facts: Facts,
    shared: SharedFacts,
    *,
    now: Instant,
    overlap_policy: OverlapPolicy | None = None,
    even_if_paused: bool = False,
) -> Birth | Skip:
    """The nominal time of the run is now."""
    tally = RunTally(planning, position, facts, shared)
    if even_if_paused and tally.status is Status.PAUSED:
        tally.status = Status.ACTIVE
    overlap = planning.overlap
    if overlap_policy is not None:
        overlap = replace(overlap, policy=overlap_policy)
    question = GuardQuestion(planning, facts, tally, now)
    return decide(guards_for(planning, Origin.MANUAL), question, due=now, overlap=overlap)


@dataclass(frozen=True, slots=True)
class EndedRun:
    """Data that a rerun copies from the run that it repeats."""

    nominal: Instant
    rotation_index: int | None
    covers: Covers | None
    needs_approval: bool


def rerun_planning(frozen: Planning, current: Planning, ended: EndedRun) -> Planning:
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
    shared: SharedFacts,
    ended: EndedRun,
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


# ── Backfills ─────────────────────────────────────────────────────────────────────────────────────────


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
    shared: SharedFacts,
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
    tally = RunTally(planning, position, facts, shared)
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
        question = GuardQuestion(planning, facts, tally, nominal)
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
