"""Decisions about single occurrences, and changes of a schedule outside of a tick.

`decide` evaluates the guards in turn, then overlap; a run is created, buffered or refused.

- A manual trigger is subject to the guards about permission and overlap, not to calendar or condition. It never moves
  the position, since it is no occurrence of the schedule. A rerun of an ended run is a trigger too, of work that was
  frozen when the first one was created.
- A backfill runs each past occurrence of its window once, in order. The window is cut at the position, so the ticker
  and a backfill never race for the same occurrence.

The changes are an edit, a pause, a resume, the end of a run, and the release of buffered runs. The past never fires
because of an edit, a pause or a resume. Enough failed runs in a row pause the schedule.

When there is room, the buffered runs of a backfill start first, in its order, then the others by nominal time. None
starts before its time. A pause holds back scheduled buffered runs, and not a backfill, which is explicit. A request
that would start more than a thousand runs at once needs a confirmation.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice, takewhile
from typing import assert_never

from horarium.core.decision.facts import Birth, Covers, Detail, Facts, Fire, Hold, Missed, RunTally, SharedFacts, Skip
from horarium.core.decision.guards import DecisionGuard, GuardQuestion, first_refusal, guards_for
from horarium.core.document.planning import Planning
from horarium.core.document.states import UNSUCCESSFUL, Origin, Position, Reason, RunState, Status
from horarium.core.policy.approval import WhileWaiting
from horarium.core.policy.queue import Buffer, Overlap, OverlapPolicy, Refuse, Start, decide_overlap
from horarium.core.recurrence.spec import Spec
from horarium.errors import BackfillTooLarge, InvalidSpec
from horarium.instant import MINUTE, SECOND, Instant, to_rfc3339

# ── Position ──────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class PositionEdit:
    """The new position, and the undecided occurrences that the change overtook."""

    position: Position
    superseded: Missed | None = None


def begin_position(planning: Planning, uid: bytes, *, now: Instant, paused: bool = False) -> Position:
    """The position of a new schedule: everything up to now counts as decided."""
    status = Status.PAUSED if paused else Status.ACTIVE
    return replan(planning.spec, uid, Position(decided_until=now, next_due=None, status=status), now)


def replan(spec: Spec, uid: bytes, position: Position, after: Instant) -> Position:
    """Plan strictly after an instant; a schedule without a future is finished."""
    nominal = spec.next_after(after)
    next_due = None if nominal is None else spec.due(uid, nominal)
    status = position.status
    if status is Status.ACTIVE and nominal is None:
        status = Status.FINISHED
    elif status is Status.FINISHED and nominal is not None:
        status = Status.ACTIVE
    return position._replace(decided_until=after, next_due=next_due, status=status)


def edit_position(
    old: Planning,
    new: Planning,
    uid: bytes,
    position: Position,
    *,
    now: Instant,
    spec_changed: bool,
    rotation_changed: bool = False,
) -> PositionEdit:
    """An edit that leaves the spec equal leaves the plan alone; one that changes it starts a generation."""
    if position.status is Status.BROKEN:
        position = position._replace(status=Status.ACTIVE)
        spec_changed = True  # whatever was broken is mended from now on, not from then
    if rotation_changed or old.rotation != new.rotation:
        position = position._replace(rotation_index=0)
    if not spec_changed:
        return PositionEdit(position)
    superseded = _undecided(old.spec, position, now) if position.status is Status.ACTIVE else None
    moved = position._replace(generation=position.generation + 1)
    return PositionEdit(replan(new.spec, uid, moved, max(now, position.decided_until)), superseded)


def pause_position(planning: Planning, position: Position, *, now: Instant) -> PositionEdit:
    """Pause a schedule and account for what was due and undecided; `next_due` stays readable."""
    if position.status is Status.PAUSED:
        return PositionEdit(position)
    missed = _undecided(planning.spec, position, now)
    paused = position._replace(status=Status.PAUSED, decided_until=max(position.decided_until, now))
    return PositionEdit(paused, missed)


def resume_position(planning: Planning, uid: bytes, position: Position, *, now: Instant) -> PositionEdit:
    """Pause is not downtime: the plan goes on from now. What was broken is mended from now on, too."""
    if position.status not in (Status.PAUSED, Status.BROKEN):
        return PositionEdit(position)
    overtaken = _undecided(planning.spec, position, now) if position.status is Status.BROKEN else None
    active = position._replace(status=Status.ACTIVE)
    return PositionEdit(replan(planning.spec, uid, active, max(now, position.decided_until)), overtaken)


def end_pause(planning: Planning, uid: bytes, position: Position, *, until: Instant) -> Position:
    """As a resume at that instant would, whenever it is written down: an occurrence at `until` itself fires.

    What has come due since then was not in the pause: the catch-up policy decides.
    """
    return resume_position(planning, uid, position, now=until - 1).position


def delete_position(planning: Planning, position: Position, *, now: Instant) -> PositionEdit:
    """Soft: the row and its history stay; only the clock stops."""
    ticking = position.status in (Status.ACTIVE, Status.BROKEN)
    missed = _undecided(planning.spec, position, now) if ticking else None
    decided = max(position.decided_until, now)
    return PositionEdit(position._replace(status=Status.DELETED, next_due=None, decided_until=decided), missed)


def _undecided(spec: Spec, position: Position, now: Instant) -> Missed | None:
    """The occurrences up to now that no tick has decided yet, as one range."""
    first = spec.next_after(position.decided_until)
    if first is None or first > now:
        return None
    last = spec.previous_before(now + 1)
    assert last is not None  # `first` is one
    return Missed(first, last, spec.count(first - 1, last), Reason.SUPERSEDED)


# ── Ends of runs ──────────────────────────────────────────────────────────────────────────────────────


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


# ── Release of buffered runs ──────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class BufferedRun:
    """Ids are in the order of birth, which is the order that a backfill was asked for."""

    run_id: str
    nominal: Instant
    release_at: Instant | None = None
    backfilled: bool = False

    @property
    def turn(self) -> tuple[int, str, Instant]:
        return (0, self.run_id, 0) if self.backfilled else (1, "", self.nominal)


@dataclass(frozen=True, slots=True)
class ActiveRun:
    """`asked_to_stop_at` is when `cancel_other` asked it to end; None where nobody did."""

    run_id: str
    asked_to_stop_at: Instant | None = None


@dataclass(frozen=True, slots=True)
class Release:
    """`terminate` are runs whose grace to stop by themselves is over; they end with this release."""

    release: tuple[str, ...]
    terminate: tuple[str, ...] = ()


NO_RELEASE = Release(())


def plan_release(
    planning: Planning,
    status: Status,
    held: Sequence[BufferedRun],
    active: Sequence[ActiveRun],
    shared: SharedFacts,
    now: Instant,
) -> Release:
    """Asked whenever a run ends, a schedule resumes, or a time that somebody waits for has come."""
    if status is Status.PAUSED:
        held = [run for run in held if run.backfilled]
    if not held:
        return NO_RELEASE
    terminate = tuple(run.run_id for run in active if _grace_is_over(planning.overlap, run, now))
    running = len(active) - len(terminate)
    _give_back_keys(planning, shared, len(terminate))
    capacity = planning.overlap.capacity
    released: list[str] = []
    for run in sorted(held, key=lambda each: each.turn):
        if capacity is not None and running >= capacity:
            break
        if run.backfilled and running and _one_by_one(planning):
            continue
        if run.release_at is not None and run.release_at > now:
            # Later ones of a spread are later still, but others may stand behind it with no time to wait for.
            continue
        if not _take_key(planning, shared):
            break
        released.append(run.run_id)
        running += 1
    return Release(tuple(released), terminate)


def _one_by_one(planning: Planning) -> bool:
    """A schedule without a limit has held a backfill only because the request asked for one after the other."""
    return planning.overlap.capacity is None and planning.concurrency_key is None


def _grace_is_over(overlap: Overlap, run: ActiveRun, now: Instant) -> bool:
    """Whoever asked it to stop - the policy, a caller's own policy, a person - somebody waits for its place."""
    return run.asked_to_stop_at is not None and now - run.asked_to_stop_at >= overlap.cancel_grace_seconds * SECOND


def _give_back_keys(planning: Planning, shared: SharedFacts, count: int) -> None:
    key = planning.concurrency_key
    if key is not None and count:
        shared.active_by_key[key] = max(0, shared.active_by_key.get(key, 0) - count)


def _take_key(planning: Planning, shared: SharedFacts) -> bool:
    key = planning.concurrency_key
    if key is None:
        return True
    taken = shared.active_by_key.get(key, 0)
    if taken >= planning.concurrency_limit:
        return False
    shared.active_by_key[key] = taken + 1
    return True


# ── Confirmation ──────────────────────────────────────────────────────────────────────────────────────


MOST_AT_ONCE = 1_000
"""As many as a backfill may ask for, too."""


def released_at_once(planning: Planning, *, active: int, held: int) -> int:
    """Count buffered runs of an active schedule that can start now: the others wait for their turn."""
    limits = [held]
    if planning.overlap.capacity is not None:
        limits.append(planning.overlap.capacity - active)
    if planning.concurrency_key is not None:
        limits.append(planning.concurrency_limit)
    return max(0, min(limits))


def released_by_edit(
    before: Planning | None, after: Planning, status: Status, *, active: int, held: int, paused_until: Instant | None
) -> int:
    """Count the held runs that only the new definition releases; `before` None = the old one could not be read.

    The end of a pause releases them without another request. Until then the old definition releases none, so an edit
    that raises their number counts all of them: several small edits would otherwise need no confirmation.
    """
    paused = status is Status.PAUSED and paused_until is not None
    if not paused and status not in (Status.ACTIVE, Status.FINISHED):
        return 0
    running = 0 if paused else active  # has ended by the end of the pause, or is counted as if it had
    old = 0 if before is None else released_at_once(before, active=running, held=held)
    new = released_at_once(after, active=running, held=held)
    return 0 if new <= old else new if paused else new - old


def due_within_a_minute(positions: Iterable[Position], now: Instant) -> int:
    """Schedules whose next occurrence is about to fire."""
    return sum(
        position.status is Status.ACTIVE and position.next_due is not None and position.next_due <= now + MINUTE
        for position in positions
    )


def must_be_confirmed(runs: int) -> bool:
    return runs > MOST_AT_ONCE


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
