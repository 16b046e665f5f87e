"""The decision about one occurrence: guards in turn, then overlap, then a run is born, held or refused."""

from __future__ import annotations

from typing import assert_never

from horarium.decision.facts import Tally
from horarium.decision.guards import Guard, Question, first_refusal
from horarium.decision.plan import Birth, Covers, Fire, Hold, Skip
from horarium.instant import Instant
from horarium.policy.approval import WhileWaiting
from horarium.policy.overlap import Buffer, Overlap, Refuse, Start, decide_overlap
from horarium.schedule.reason import Reason


def decide(
    guards: tuple[Guard, ...],
    question: Question,
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
        return _held(tally, nominal, due, release_at=release_at)
    wants_newest = question.planning.while_waiting is WhileWaiting.SUPERSEDE
    active = tally.active if wants_newest and not supersedes else tally.busy
    outcome = decide_overlap(overlap, active=active, held=tally.held, backfilled=tally.backfilled, caught_up=caught_up)
    match outcome:
        case Refuse(reason):
            return Skip(nominal, Reason(reason), {"active": tally.active, "held": tally.held})
        case Buffer(cancel_active):
            return _held(tally, nominal, due, cancel_active=cancel_active)
        case Start(terminate_active):
            superseded = tally.waiting if wants_newest and supersedes and not terminate_active else 0
            if not key_is_free(tally, ending=tally.active if terminate_active else superseded):
                return _held(tally, nominal, due)
            member = tally.member()
            used = tally.bear(held=False, terminated=terminate_active, superseded=superseded)
            return Fire(nominal, due, used, terminate_active=terminate_active, superseded=superseded, member=member)
        case _:
            assert_never(outcome)


def _held(
    tally: Tally, nominal: Instant, due: Instant, *, cancel_active: bool = False, release_at: Instant | None = None
) -> Hold:
    member = tally.member()  # before the next one has the turn
    used = tally.bear(held=True)
    return Hold(nominal, due, used, cancel_active=cancel_active, release_at=release_at, member=member)


def key_is_free(tally: Tally, *, ending: int = 0) -> bool:
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
