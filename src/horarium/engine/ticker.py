"""Keeps time: claims what is due and decides it, batch by batch, until nothing is due.

Every process may run one; the database hands each due schedule to one of them. A batch that cannot be
decided or written for the sake of one row is halved until that row is alone, which is then parked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from horarium.clock import Clock
from horarium.decision.tick import MAX_CATCHUP_PER_TICK, MAX_DECISIONS_PER_BATCH, PlanTime
from horarium.engine.batch import Tick, decide_claims
from horarium.instant import SECOND, Instant
from horarium.store import leases
from horarium.store.database import Connection, Database
from horarium.store.database.channels import READY
from horarium.store.errors import is_fault_of_a_row
from horarium.store.schedules import due, turns
from horarium.store.schedules.broken import park
from horarium.store.schedules.due import Plannings
from horarium.store.schedules.turns import Turn

LEASE = "ticker"
BEAT_SECONDS = 5
# A ticker that was away for longer than this was down: what came due meanwhile was missed.
GAP_SECONDS = 30


@dataclass(frozen=True, slots=True)
class TickerOptions:
    batch: int = 500
    max_catchup_per_tick: int = MAX_CATCHUP_PER_TICK
    max_decisions_per_batch: int = MAX_DECISIONS_PER_BATCH


class Ticker:
    def __init__(self, database: Database, clock: Clock, owner: str, options: TickerOptions | None = None) -> None:
        self._database = database
        self._clock = clock
        self._owner = owner
        self._options = options or TickerOptions()
        self._known = Plannings()
        self._alive_since: Instant | None = None
        self._beat_at: Instant | None = None
        # The last claim, while more is due than one batch holds; threads may share it.
        self._crowd: Turn | None = None

    def step(self) -> Tick:
        """Claim and decide one batch; `more` asks for another step at once."""
        self.beat()
        now = self._clock.now()
        turn = Turn([], more=False)

        def tick(connection: Connection) -> Tick:
            nonlocal turn
            turn = self._claim(connection, now)
            return self._decide(connection, turn.claims, now)

        try:
            done = self._database.write(tick)
        except Exception as wrong:  # what one row can bring about must not stop the others
            if not turn.claims or not is_fault_of_a_row(wrong):
                raise
            return self._halve([claim.schedule_uid for claim in turn.claims], now, wrong)
        self._crowd = turn._replace(claims=[]) if turn.more else None
        return Tick(done.claimed, done.decided, done.parked, more=done.more or turn.more)

    def next_due(self) -> Instant | None:
        return self._database.glance(due.earliest_due)

    def _claim(self, connection: Connection, now: Instant) -> Turn:
        """The most overdue; but where the last batch did not hold all, everybody in turn."""
        batch, crowd = self._options.batch, self._crowd
        if crowd is not None:
            return turns.claim_in_turn(connection, self._known, now, batch, crowd)
        claims = due.claim(connection, self._known, now, batch)
        return Turn(claims, more=len(claims) == batch)

    def _decide(self, connection: Connection, claims: Sequence[due.Claim], now: Instant) -> Tick:
        if not claims:
            return Tick()
        options = self._options
        moment = PlanTime(now, self._alive_since, options.max_catchup_per_tick, options.max_decisions_per_batch)
        tick = decide_claims(connection, self._known, claims, moment)
        if any(decided.entry.runs for decided in tick.decided):
            self._database.notify(connection, READY)
        return tick

    def _halve(self, uids: Sequence[bytes], now: Instant, wrong: Exception) -> Tick:
        """Find the row that the database refuses; the others are decided on the way."""
        if len(uids) == 1:
            parked = self._database.write(partial(self._park, uid=uids[0], wrong=wrong, now=now))
            return Tick(1, parked=parked, more=True)
        done: list[Tick] = []
        middle = len(uids) // 2
        for half in (uids[:middle], uids[middle:]):
            try:
                done.append(self._database.write(partial(self._again, uids=half, now=now)))
            except Exception as still_wrong:  # see `step`
                if not is_fault_of_a_row(still_wrong):
                    raise
                done.append(self._halve(half, now, still_wrong))
        return Tick(
            sum(tick.claimed for tick in done),
            tuple(decided for tick in done for decided in tick.decided),
            tuple(parked for tick in done for parked in tick.parked),
            more=True,
        )

    def _again(self, connection: Connection, uids: Sequence[bytes], now: Instant) -> Tick:
        return self._decide(connection, due.claim_again(connection, self._known, uids, now), now)

    def _park(
        self, connection: Connection, uid: bytes, wrong: Exception, now: Instant
    ) -> tuple[tuple[str, str, str], ...]:
        """Unless somebody else has decided it, paused it or deleted it meanwhile."""
        still_due = due.claim_again(connection, self._known, [uid], now)
        error, error_class = str(wrong), type(wrong).__name__
        return tuple(
            (claim.namespace, claim.schedule_id, error)
            for claim in still_due
            if park(connection, uid, error=error, error_class=error_class, now=now)
        )

    def beat(self) -> None:
        """Say that a ticker is here, and learn since when there has been one without a break."""
        now = self._clock.now()
        if self._beat_at is not None and 0 <= now - self._beat_at < BEAT_SECONDS * SECOND:
            return

        def beat(connection: Connection) -> Instant:
            return leases.beat(connection, LEASE, self._owner, now, GAP_SECONDS, {})

        self._alive_since = self._database.write(beat)
        self._beat_at = now
