"""What happens now: every due occurrence of a schedule gets one decision, the oldest first.

Due occurrences fall into two stretches. Those that came due while nobody was there to act, and are
older than the grace, are *missed* and go by the catch-up policy. The rest are on time and are decided
one by one. The work of one plan is bounded: the position moves only past what was decided, and the
next step goes on from there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import assert_never

from horarium.decision.decide import covering, decide
from horarium.decision.facts import NO_FACTS, Facts, Shared, Tally
from horarium.decision.guards import Question, guards_for
from horarium.decision.plan import Birth, Covers, Decision, Missed, Plan, Skip
from horarium.instant import SECOND, Instant
from horarium.policy.catchup import CatchupPolicy, spread_due
from horarium.schedule.planning import Planning
from horarium.schedule.position import Position, Status
from horarium.schedule.reason import Reason
from horarium.schedule.run import Origin

MAX_CATCHUP_PER_TICK = 100


@dataclass(frozen=True, slots=True)
class Due:
    """A schedule whose time has come. `uid` seeds its jitter."""

    uid: bytes
    planning: Planning
    position: Position


@dataclass(frozen=True, slots=True)
class Parked:
    """A schedule that could not be planned, with the reason; the others go on."""

    uid: bytes
    error: str
    error_class: str


@dataclass(frozen=True, slots=True)
class Moment:
    """When a plan is made. `alive_since`: from then on a ticker has been there without a break.

    What came due since is late because of us, not because of an outage, and is decided as on time.
    """

    now: Instant
    alive_since: Instant | None = None
    limit: int = MAX_CATCHUP_PER_TICK


def plan_batch(
    batch: Iterable[Due], facts: Mapping[bytes, Facts], shared: Shared, moment: Moment
) -> Iterator[tuple[Due, Plan | Parked]]:
    """Each plan sees what the ones before it left of shared keys and budgets."""
    for due in batch:
        try:
            yield due, plan_tick(due, facts.get(due.uid, NO_FACTS), shared, moment)
        except Exception as wrong:  # one bad row must never stop the others
            yield due, Parked(due.uid, str(wrong)[:1_000], type(wrong).__name__)


def plan_tick(due: Due, facts: Facts, shared: Shared, moment: Moment) -> Plan:
    """A schedule that is not active gets no decisions: pause and deletion stop the clock."""
    position = due.position
    if position.status is not Status.ACTIVE:
        return Plan((), position)
    walk = _Walk(due, facts, Tally(due.planning, position, facts, shared), moment)
    walk.catch_up()
    walk.keep_time()
    return walk.plan()


class _Walk:
    """One plan in the making: what has been decided, and up to where."""

    def __init__(self, due: Due, facts: Facts, tally: Tally, moment: Moment) -> None:
        self.uid = due.uid
        self.planning = due.planning
        self.spec = due.planning.spec
        self.position = due.position
        self.facts = facts
        self.tally = tally
        self.moment = moment
        self.guards = guards_for(due.planning, Origin.SCHEDULED)
        self.decided_until = due.position.decided_until
        self.decisions: list[Decision] = []

    # ── the two stretches ────────────────────────────────────────────────────────────────────────

    def catch_up(self) -> None:
        """Decide what is missed, by the catch-up policy."""
        catchup, now = self.planning.catchup, self.moment.now
        grace = now - catchup.misfire_grace_seconds * SECOND
        missed_before = grace if self.moment.alive_since is None else min(grace, self.moment.alive_since)
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
                self._fire_once(*missed)
            case CatchupPolicy.FIRE_ALL:
                self._fire_each(*missed, spread=False)
            case CatchupPolicy.SPREAD:
                self._fire_each(*missed, spread=True)
            case _:
                assert_never(catchup.policy)

    def keep_time(self) -> None:
        """Decide what is due and on time, one by one."""
        nominal = self.spec.next_after(self.decided_until)
        while nominal is not None and self._has_room() and self._due(nominal) <= self.moment.now:
            self._decide(nominal)
            nominal = self.spec.next_after(nominal)

    def plan(self) -> Plan:
        if self._exhausted():
            self._miss(self._stretch(self.moment.now + 1), Reason.REMAINING_ACTIONS_EXHAUSTED)
            return self._planned(Status.DELETED, None)
        nominal = self.spec.next_after(self.decided_until)
        if nominal is None:
            return self._planned(Status.FINISHED, None)
        return self._planned(Status.ACTIVE, self._due(nominal))

    # ── catch-up, policy by policy ───────────────────────────────────────────────────────────────

    def _fire_once(self, first: Instant, last: Instant) -> None:
        """The earliest that no guard refuses gets a run, which covers it and all that follow."""
        nominal: Instant | None = first
        while nominal is not None and nominal <= last and self._has_room():
            decision = self._ask(nominal, caught_up=True)
            if not isinstance(decision, Skip):
                covers = Covers(nominal, last, self.spec.count(nominal - 1, last))
                self._record(covering(decision, covers), last)
                return
            self._record(decision, nominal)
            nominal = self.spec.next_after(nominal)

    def _fire_each(self, first: Instant, last: Instant, *, spread: bool) -> None:
        """The newest get a run each, the oldest first; what is beyond the cap is missed."""
        newest, count = self._newest(first, last)
        if newest != first:
            before = last if newest is None else self.spec.previous_before(newest)
            assert before is not None  # `first` is one
            self._miss((first, before), Reason.CATCHUP_CAP)
        nominal, index = newest, 0
        while nominal is not None and nominal <= last and self._has_room():
            seconds = self.planning.catchup.catchup_spread_seconds
            when = spread_due(index, count, now=self.moment.now, spread_seconds=seconds) if spread else None
            self._record(self._ask(nominal, caught_up=True, release_at=when), nominal)
            nominal, index = self.spec.next_after(nominal), index + 1

    def _newest(self, first: Instant, last: Instant) -> tuple[Instant | None, int]:
        """Where the newest `max_catchup` of a stretch begin, and how many they are."""
        most = self.planning.catchup.max_catchup
        if most == 0:
            return None, 0
        newest, count = last, 1
        while count < most:
            before = self.spec.previous_before(newest)
            if before is None or before < first:
                break
            newest, count = before, count + 1
        return newest, count

    # ── small steps ──────────────────────────────────────────────────────────────────────────────

    def _decide(self, nominal: Instant) -> None:
        self._record(self._ask(nominal), nominal)

    def _ask(self, nominal: Instant, *, caught_up: bool = False, release_at: Instant | None = None) -> Birth | Skip:
        return decide(
            self.guards,
            Question(self.planning, self.facts, self.tally, nominal),
            due=self._due(nominal),
            overlap=self.planning.overlap,
            caught_up=caught_up,
            release_at=release_at,
        )

    def _record(self, decision: Decision, until: Instant) -> None:
        self.decisions.append(decision)
        self.decided_until = until

    def _miss(self, stretch: tuple[Instant, Instant] | None, reason: Reason) -> None:
        if stretch is not None:
            first, last = stretch
            self._record(Missed(first, last, self.spec.count(first - 1, last), reason), last)

    def _stretch(self, before: Instant) -> tuple[Instant, Instant] | None:
        """The first and last undecided occurrence that was due before an instant."""
        first = self.spec.next_after(self.decided_until)
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
        return len(self.decisions) < self.moment.limit and not self._exhausted()

    def _exhausted(self) -> bool:
        most = self.planning.max_runs
        return most is not None and self.tally.runs_born >= most

    def _planned(self, status: Status, next_due: Instant | None) -> Plan:
        position = replace(
            self.position,
            status=status,
            decided_until=self.decided_until,
            next_due=next_due,
            runs_born=self.tally.runs_born,
            rotation_index=self.tally.rotation_index,
        )
        return Plan(tuple(self.decisions), position, more=next_due is not None and next_due <= self.moment.now)
