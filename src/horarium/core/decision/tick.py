"""Plans of a tick: every due occurrence of a schedule gets one decision, the oldest first.

Due occurrences fall into two stretches. Those that came due while no ticker was there to act, and are
older than the grace, are *missed* and go by the catch-up policy; what refuses one of them refuses all
that follow, as long as it says so, in one range. The rest are on time and are decided one by one. The
work of one plan and of one batch is bounded: a position moves only past what was decided, and the next
step goes on from there.

A batch of due schedules is shared by namespaces in turn. A lane is a queue of due schedules: those of one namespace
that are old, or those that came due within the last minute. Old ones may take half of their namespace's share before
the recent ones are asked; what one lane or namespace does not need goes to the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, assert_never

from horarium.core.decision.decide import covering, decide
from horarium.core.decision.facts import (
    NO_FACTS,
    Birth,
    Covers,
    Decision,
    Facts,
    Missed,
    Plan,
    RunTally,
    SharedFacts,
    Skip,
)
from horarium.core.decision.guards import GuardQuestion, guards_for, is_given, refusal_until
from horarium.core.decision.presence import Break, alive_since
from horarium.core.document.planning import Planning
from horarium.core.document.states import Origin, Position, Reason, Status
from horarium.core.policy.queue import CatchupPolicy, spread_due
from horarium.instant import MINUTE, SECOND, Instant

MAX_CATCHUP_PER_TICK = 100
# A batch is one transaction: five hundred schedules that each catch up must not make it a long one.
MAX_DECISIONS_PER_BATCH = 1_000


class Due(NamedTuple):
    """A schedule whose time has come. `uid` seeds its jitter."""

    uid: bytes
    planning: Planning
    position: Position


@dataclass(frozen=True, slots=True)
class ParkedSchedule:
    """A schedule that could not be planned, with the reason; the others go on."""

    uid: bytes
    error: str
    error_class: str


@dataclass(frozen=True, slots=True)
class PlanTime:
    """When a plan is made. `alive_since`: from then on a ticker has been there, but for the `breaks`.

    What came due since is late because of us, not because of an outage, and is decided as on time. A break counts for
    schedules whose grace is shorter.
    `limit` is for one schedule, `batch_limit` for all of a batch together; each is asked about one at least.
    """

    now: Instant
    alive_since: Instant | None = None
    limit: int = MAX_CATCHUP_PER_TICK
    batch_limit: int = MAX_DECISIONS_PER_BATCH
    breaks: tuple[Break, ...] = ()


def plan_batch(
    batch: Iterable[Due], facts: Mapping[bytes, Facts], shared: SharedFacts, moment: PlanTime
) -> Iterator[tuple[Due, Plan | ParkedSchedule]]:
    """Each plan sees what the ones before it left of shared keys and budgets, and of the batch's work."""
    left = moment.batch_limit
    for due in batch:
        before = shared.copy() if _shares(due.planning) else None
        limit = max(1, min(moment.limit, left))
        if limit != moment.limit:
            moment = replace(moment, limit=limit)
        try:
            plan = plan_tick(due, facts.get(due.uid, NO_FACTS), shared, moment)
        except Exception as wrong:  # one bad row must never stop the others
            if before is not None:
                shared.restore(before)
            yield due, ParkedSchedule(due.uid, str(wrong)[:1_000], type(wrong).__name__)
            continue
        left -= len(plan.decisions)
        yield due, plan


def _shares(planning: Planning) -> bool:
    return planning.concurrency_key is not None or is_given(planning)


def plan_tick(due: Due, facts: Facts, shared: SharedFacts, moment: PlanTime) -> Plan:
    """A schedule that is not active gets no decisions: pause and deletion stop the clock."""
    position = due.position
    if position.status is not Status.ACTIVE:
        return Plan((), position)
    walk = _Walk(due, facts, RunTally(due.planning, position, facts, shared), moment)
    walk.catch_up()
    walk.keep_time()
    return walk.plan()


class _Walk:
    """One plan in the making: what has been decided, and up to where."""

    __slots__ = (
        "asked", "decided_until", "decisions", "facts", "guards", "moment", "next", "planning", "position", "spec",
        "tally", "uid",
    )  # fmt: skip

    def __init__(self, due: Due, facts: Facts, tally: RunTally, moment: PlanTime) -> None:
        self.uid = due.uid
        self.planning = due.planning
        self.spec = due.planning.spec
        self.position = due.position
        self.facts = facts
        self.tally = tally
        self.moment = moment
        self.guards = guards_for(due.planning, Origin.SCHEDULED)
        self.decided_until = due.position.decided_until
        self.next = self.spec.next_after(self.decided_until)  # the earliest that is undecided
        self.decisions: list[Decision] = []
        self.asked = 0

    # ── the two stretches ────────────────────────────────────────────────────────────────────────

    def catch_up(self) -> None:
        """Decide what is missed, by the catch-up policy."""
        catchup, now = self.planning.catchup, self.moment.now
        grace = now - catchup.misfire_grace_seconds * SECOND
        alive = alive_since(self.moment.alive_since, self.moment.breaks, catchup.misfire_grace_seconds)
        missed_before = grace if alive is None else min(grace, alive)
        if catchup.catchup_window_seconds is not None:
            too_old = min(missed_before, now - catchup.catchup_window_seconds * SECOND)
            self._miss(self._stretch(too_old), Reason.MISSED)
        missed = self._stretch(missed_before)
        if missed is None:
            return
        match catchup.policy:
            case CatchupPolicy.SKIP:
                self._miss(missed, Reason.MISSED)
            case CatchupPolicy.FIRE_ONCE:
                self._fire_once(missed[1])
            case CatchupPolicy.FIRE_ALL:
                self._fire_each(*missed, spread=False)
            case CatchupPolicy.SPREAD:
                self._fire_each(*missed, spread=True)
            case _:
                assert_never(catchup.policy)

    def keep_time(self) -> None:
        """Decide what is due and on time, one by one."""
        while self.next is not None and self._has_room() and self._due(self.next) <= self.moment.now:
            self._record(self._ask(self.next), self.next)

    def plan(self) -> Plan:
        if self._exhausted():
            self._miss(self._stretch(self.moment.now + 1), Reason.REMAINING_ACTIONS_EXHAUSTED)
            return self._planned(Status.DELETED, None)
        if self.next is None:
            return self._planned(Status.FINISHED, None)
        return self._planned(Status.ACTIVE, self._due(self.next))

    # ── catch-up, policy by policy ───────────────────────────────────────────────────────────────

    def _fire_once(self, last: Instant) -> None:
        """The earliest that no guard refuses gets a run, which covers it and all that follow."""
        while self.next is not None and self.next <= last and self._has_room():
            decision = self._ask(self.next, caught_up=True)
            if not isinstance(decision, Skip):
                covers = Covers(self.next, last, self.spec.count(self.next - 1, last))
                self._record(covering(decision, covers), last)
                return
            self._refuse(decision, last)

    def _fire_each(self, first: Instant, last: Instant, *, spread: bool) -> None:
        """The newest get a run each, the oldest first; what is beyond the cap is missed."""
        newest, count = self.spec.newest(first - 1, last, self.planning.catchup.max_catchup)
        if newest != first:
            before = last if newest is None else self.spec.previous_before(newest)
            assert before is not None  # `first` is one
            self._miss((first, before), Reason.CATCHUP_CAP)
        index, seconds = 0, self.planning.catchup.catchup_spread_seconds
        # A spread is planned whole, or its second half would be due before its first; its cap is small.
        while self.next is not None and self.next <= last and (spread or self._has_room()) and not self._exhausted():
            when = spread_due(index, count, now=self.moment.now, spread_seconds=seconds) if spread else None
            decision = self._ask(self.next, caught_up=True, release_at=when)
            if isinstance(decision, Skip):
                index += self._refuse(decision, last)
            else:
                self._record(decision, self.next)
                index += 1

    def _refuse(self, refusal: Skip, last: Instant) -> int:
        """Record a refusal for all that it holds for, up to `last`; how many they are."""
        first, reason = refusal.nominal, refusal.reason
        until = refusal_until(self.guards, reason, self._question(first), last)
        end = self.spec.previous_before(until + 1)
        assert end is not None  # `first` is one
        count = self.spec.count(first - 1, end)
        decision: Skip | Missed = refusal if count == 1 else Missed(first, end, count, reason, refusal.detail)
        before = self.decisions[-1] if self.decisions else None
        if isinstance(before, Skip | Missed) and before.reason is reason:
            self.decisions.pop()
            decision = _joined(before, decision)
        self._record(decision, end)
        return count

    # ── small steps ──────────────────────────────────────────────────────────────────────────────

    def _ask(self, nominal: Instant, *, caught_up: bool = False, release_at: Instant | None = None) -> Birth | Skip:
        self.asked += 1
        return decide(
            self.guards,
            self._question(nominal),
            due=self._due(nominal),
            overlap=self.planning.overlap,
            caught_up=caught_up,
            release_at=release_at,
        )

    def _question(self, nominal: Instant) -> GuardQuestion:
        return GuardQuestion(self.planning, self.facts, self.tally, nominal)

    def _record(self, decision: Decision, until: Instant) -> None:
        self.decisions.append(decision)
        self.decided_until = until
        self.next = self.spec.next_after(until)

    def _miss(self, stretch: tuple[Instant, Instant] | None, reason: Reason) -> None:
        if stretch is not None:
            first, last = stretch
            self._record(Missed(first, last, self.spec.count(first - 1, last), reason), last)

    def _stretch(self, before: Instant) -> tuple[Instant, Instant] | None:
        """The first and last undecided occurrence that was due before an instant."""
        first = self.next
        if first is None or self._due(first) >= before:
            return None
        last = self.spec.previous_before(before)
        if last is not None and self._due(last) >= before:
            last = self.spec.previous_before(last)  # jitter never reaches the next nominal time
        assert last is not None  # `first` is one
        return first, last

    def _due(self, nominal: Instant) -> Instant:
        return self.spec.due(self.uid, nominal)

    def _has_room(self) -> bool:
        return self.asked < self.moment.limit and not self._exhausted()

    def _exhausted(self) -> bool:
        most = self.planning.max_runs
        return most is not None and self.tally.runs_born >= most

    def _planned(self, status: Status, next_due: Instant | None) -> Plan:
        position = Position(
            decided_until=self.decided_until,
            next_due=next_due,
            status=status,
            generation=self.position.generation,
            runs_born=self.tally.runs_born,
            rotation_index=self.tally.rotation_index,
        )
        return Plan(tuple(self.decisions), position, more=next_due is not None and next_due <= self.moment.now)


def _joined(before: Skip | Missed, after: Skip | Missed) -> Missed:
    """Two refusals in a row for one reason; a detail that is not the same for both is left out."""
    one, two = _as_range(before), _as_range(after)
    detail = one.detail if one.detail == two.detail else None
    return Missed(one.first, two.last, one.count + two.count, one.reason, detail)


def _as_range(refusal: Skip | Missed) -> Missed:
    if isinstance(refusal, Missed):
        return refusal
    return Missed(refusal.nominal, refusal.nominal, 1, refusal.reason, refusal.detail)


# ── Shares of a batch ─────────────────────────────────────────────────────────────────────────────────


RECENT = MINUTE
"""What came due less long ago is recent."""


class DueLane(NamedTuple):
    namespace: str
    is_recent: bool


def old_shares(namespaces: Sequence[str], limit: int) -> dict[DueLane, int]:
    """Half of each namespace's part of the batch, rounded down: the other half is for what is recent."""
    parts = raise_evenly([0] * len(namespaces), limit)
    halves = {DueLane(name, is_recent=False): part // 2 for name, part in zip(namespaces, parts, strict=True)}
    return {lane: share for lane, share in halves.items() if share}


def recent_shares(namespaces: Sequence[str], taken: Mapping[str, int], limit: int) -> dict[DueLane, int]:
    """Remaining share of each namespace."""
    parts = raise_evenly([0] * len(namespaces), limit)
    rest = {
        DueLane(name, is_recent=True): part - taken.get(name, 0) for name, part in zip(namespaces, parts, strict=True)
    }
    return {lane: share for lane, share in rest.items() if share > 0}


def shares_of_the_rest(lanes: Sequence[DueLane], taken: Mapping[str, int], limit: int) -> dict[DueLane, int]:
    """The room that is left, for the lanes that have more: namespaces that took least are raised first."""
    names = list(dict.fromkeys(lane.namespace for lane in lanes))
    room = limit - sum(taken.values())
    shares: dict[DueLane, int] = {}
    for name, more in zip(names, raise_evenly([taken.get(name, 0) for name in names], room), strict=True):
        mine = [lane for lane in lanes if lane.namespace == name]
        shares |= dict(zip(mine, raise_evenly([0] * len(mine), more), strict=True))
    return {lane: share for lane, share in shares.items() if share}


def raise_evenly(levels: Sequence[int], room: int) -> list[int]:
    """Distribute `room` so that the lowest levels are raised first; the first levels get the remainder."""
    ranked = sorted(range(len(levels)), key=lambda place: levels[place])
    added = [0] * len(levels)
    for count in range(1, len(ranked) + 1):
        lowest = ranked[:count]
        here = levels[lowest[0]] + added[lowest[0]]
        height = levels[ranked[count]] - here if count < len(ranked) else room
        step = min(height, room // count)
        for place in lowest:
            added[place] += step
        room -= step * count
        if step < height:
            for place in sorted(lowest)[:room]:
                added[place] += 1
            break
    return added
