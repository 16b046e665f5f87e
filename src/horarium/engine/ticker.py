"""Claim due schedules and decide them, batch by batch, until nothing is due.

The claim, the decisions, the runs, the events and the advance of the positions commit together, before anything
outside is touched. Every process may run a ticker; the database gives each due schedule to one of them. A batch that
cannot be decided or written because of one row is halved until that row is alone, which is then marked as broken.

A schedule whose condition reads an unknown signal is released undecided: the signal is requested meanwhile, and no row
is locked while a function of a user runs. Pauses whose time has come end before the tick decides what is due, so that
nothing is late because of a pause.

An ordinary tick is one batch in one thread. When it was full, the next ones are shared by several threads, which the
database treats as it treats several processes: while it writes one batch, another is being decided. SQLite has one
writer: one thread.
"""

from __future__ import annotations

import asyncio
import threading
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from time import process_time
from types import MappingProxyType
from typing import Final, NamedTuple

from horarium.core.decision.facts import Decision, Facts, Plan, Signal
from horarium.core.decision.guards import reads_signal
from horarium.core.decision.presence import (
    GAP_SECONDS,
    PRESENCE_BEAT_SECONDS,
    Break,
    Presence,
    clock_was_ahead,
    decided_ahead_until,
    extend_presence,
    short_breaks,
)
from horarium.core.decision.record import NewId, ScheduleSubject, ScheduleWrites, record_decisions
from horarium.core.decision.run_policies import CreationPolicies, under_policies
from horarium.core.decision.tick import (
    MAX_CATCHUP_PER_TICK,
    MAX_DECISIONS_PER_BATCH,
    Due,
    ParkedSchedule,
    PlanTime,
    plan_batch,
)
from horarium.core.document.planning import Planning
from horarium.core.document.states import Origin
from horarium.engine.loop import EngineThreads
from horarium.features.approvals import request_rows
from horarium.features.cluster.repair_rows import shorten_waits
from horarium.features.runs.end_rows import new_ids, settle_side_effects
from horarium.features.schedules import due_rows, fact_rows, pause_rows
from horarium.features.schedules.decision_rows import ScheduleRecord, park, park_without_event, write_records
from horarium.features.schedules.due_rows import Claim, ClaimTurn, Plannings
from horarium.features.schedules.pause_rows import Earliest, Paused
from horarium.features.tenants import rows as tenant_rows
from horarium.features.tenants.rows import QuotaBook
from horarium.instant import SECOND, Instant
from horarium.launchers.signals import Signals
from horarium.platform.clock import Clock
from horarium.platform.database import Connection, Database, Dialect, processes
from horarium.platform.database.errors import StoreUnavailable, is_fault_of_a_row
from horarium.platform.database.processes import AHEAD_UNTIL, BREAKS, TICKER, another_is_alive, process_rows
from horarium.platform.database.wakeups import READY
from horarium.platform.ids import id_text


class Decided(NamedTuple):
    """Decisions of a tick about one schedule, for metrics and logs."""

    namespace: str
    schedule_id: str
    schedule_uid: bytes
    entry: ScheduleWrites
    decisions: tuple[Decision, ...]
    lateness: Instant


@dataclass(frozen=True, slots=True)
class Tick:
    """`more` says that due work is left: schedules beyond the batch, or occurrences beyond the cap.

    `waiting` are schedules whose signal was asked for and has not come yet; they are not among the claimed.
    """

    claimed: int = 0
    decided: tuple[Decided, ...] = ()
    parked: tuple[tuple[str, str, str], ...] = field(default=())
    more: bool = False
    waiting: int = 0


def together(ticks: Sequence[Tick], *, more: bool) -> Tick:
    """Several ticks as one."""
    return Tick(
        sum(tick.claimed for tick in ticks),
        tuple(decided for tick in ticks for decided in tick.decided),
        tuple(parked for tick in ticks for parked in tick.parked),
        more=more,
        waiting=ticks[-1].waiting if ticks else 0,
    )


def decide_claims(
    connection: Connection,
    known: Plannings,
    claims: Sequence[Claim],
    moment: PlanTime,
    signals: Mapping[bytes, Signal] | None = None,
    quotas: QuotaBook | None = None,
) -> Tick:
    """The caller holds the locks on the claimed positions."""
    broken = [(claim, claim.planning) for claim in claims if isinstance(claim.planning, Exception)]
    planned, unplanned = _plan(connection, claims, moment, signals or {}, quotas)
    records = [
        ScheduleRecord(decided.schedule_uid, decided.namespace, claim.revision, planning, decided.entry)
        for claim, planning, decided in planned
    ]
    rendered = write_records(connection, records, now=moment.now) if records else {}
    waiting: list[bytes] = []
    for claim, planning, decided in planned:
        waiting += settle_side_effects(
            connection, known, claim.namespace, claim.schedule_uid, planning, decided.entry, moment.now
        )
    request_rows.request(connection, waiting, moment.now)
    parked = [(claim, type(wrong).__name__, str(wrong)) for claim, wrong in broken]
    parked += [(claim, why.error_class, why.error) for claim, why in unplanned]
    for claim, error_class, error in parked:
        park(connection, claim.schedule_uid, error=error, error_class=error_class, now=moment.now)
    born = ((decided.namespace, len(decided.entry.runs)) for _, _, decided in planned)
    tenant_rows.add_births(connection, born, moment.now, rendered)
    return Tick(
        claimed=len(claims),
        decided=tuple(decided for _, _, decided in planned),
        parked=tuple((claim.namespace, claim.schedule_id, error) for claim, _, error in parked),
        more=any(_is_left(decided, moment.now) for _, _, decided in planned),
    )


def _is_left(decided: Decided, now: Instant) -> bool:
    next_due = decided.entry.position.next_due
    return next_due is not None and next_due <= now


def _plan(
    connection: Connection,
    claims: Sequence[Claim],
    moment: PlanTime,
    signals: Mapping[bytes, Signal],
    quotas: QuotaBook | None,
) -> tuple[list[tuple[Claim, Planning, Decided]], list[tuple[Claim, ParkedSchedule]]]:
    sound = {claim.schedule_uid: claim for claim in claims if not isinstance(claim.planning, Exception)}
    subjects = [_subject(claim) for claim in sound.values()]
    gathered, shared = fact_rows.gather(connection, subjects, moment.now, signals=signals, quotas=quotas)
    by_namespace: dict[str, list[Claim]] = defaultdict(list)
    for claim in sound.values():
        by_namespace[claim.namespace].append(claim)
    ids = new_ids()
    planned: list[tuple[Claim, Planning, Decided]] = []
    parked: list[tuple[Claim, ParkedSchedule]] = []
    left = moment.batch_limit
    for place, (namespace, members) in enumerate(by_namespace.items()):
        batch = [_due(claim, gathered) for claim in members]
        # What one namespace leaves of its part of the work, the next ones may use.
        part = replace(moment, batch_limit=left // (len(by_namespace) - place))
        for due, plan in plan_batch(batch, gathered, shared[namespace], part):
            claim = sound[due.uid]
            if isinstance(plan, ParkedSchedule):
                parked.append((claim, plan))
            else:
                left -= len(plan.decisions)
                policies = _policies_of(claim, gathered)
                decided = _decided(claim, due.planning, policies, plan, moment.now, ids)
                planned.append((claim, due.planning, decided))
    return planned, parked


def _policies_of(claim: Claim, gathered: Mapping[bytes, Facts]) -> CreationPolicies | None:
    """One that cannot be read was parked before anything was born."""
    found = gathered[claim.schedule_uid].policies if claim.schedule_uid in gathered else None
    return found if isinstance(found, CreationPolicies) else None


def _due(claim: Claim, gathered: Mapping[bytes, Facts]) -> Due:
    """With what others say where the schedule says nothing."""
    due, policies = claim.due(), _policies_of(claim, gathered)
    return due if policies is None else due._replace(planning=under_policies(due.planning, policies))


def _decided(
    claim: Claim,
    planning: Planning,
    policies: CreationPolicies | None,
    plan: Plan,
    now: Instant,
    ids: Iterator[NewId],
) -> Decided:
    named = ScheduleSubject(claim.schedule_id, claim.revision, planning, policies=policies)
    entry = record_decisions(
        named, claim.counts, plan.decisions, plan.position, now=now, origin=Origin.SCHEDULED, ids=ids
    )
    return Decided(claim.namespace, claim.schedule_id, claim.schedule_uid, entry, plan.decisions, now - claim.next_due)


def _subject(claim: Claim) -> fact_rows.DecisionSubject:
    assert not isinstance(claim.planning, Exception)  # the broken ones were set aside
    return fact_rows.DecisionSubject(
        claim.schedule_uid, claim.namespace, claim.planning, claim.counts.active, claim.counts.held
    )


# Of a whole fleet that was paused until one instant, in one transaction.
_BATCH = 100


class PauseEnds:
    """Any number of processes may run one: what two find at once, the second finds ended under the lock."""

    def __init__(self, database: Database, known: Plannings) -> None:
        self._database = database
        self._known = known

    def step(self, now: Instant) -> bool:
        """End pauses that are over, and tell whether there may be more."""
        found = self._database.glance(partial(pause_rows.over, now=now, limit=_BATCH))
        if not found:
            return False
        try:
            self._database.write(partial(self._end, found=found, now=now))
        except Exception as wrong:  # one of them cannot be written; the others do not wait for it
            if not is_fault_of_a_row(wrong):
                raise
            for paused in found:
                self._end_alone(paused, now)
        return len(found) == _BATCH

    def _end(self, connection: Connection, found: Sequence[Paused], now: Instant) -> None:
        # In the order in which all lock positions, so that two never wait for each other.
        for paused in sorted(found, key=lambda each: each.schedule_uid):
            if pause_rows.end(connection, self._known, paused, now=now):
                self._database.notify(connection, READY)

    def _end_alone(self, paused: Paused, now: Instant) -> None:
        try:
            self._database.write(partial(self._end, found=[paused], now=now))
        except Exception as wrong:
            if not is_fault_of_a_row(wrong):
                raise
            error = f"{type(wrong).__name__}: {wrong}"
            self._database.write(partial(pause_rows.keep_paused, uid=paused.schedule_uid, error=error, now=now))


# Most crowds come each second, or each minute.
_CROWDS_RETURN = 61 * SECOND
_FIRST_OF_A_CROWD = 50


@dataclass(frozen=True, slots=True)
class TickerOptions:
    batch: int = 500
    max_catchup_per_tick: int = MAX_CATCHUP_PER_TICK
    max_decisions_per_batch: int = MAX_DECISIONS_PER_BATCH


class Ticker:
    def __init__(
        self,
        database: Database,
        clock: Clock,
        owner: str,
        options: TickerOptions | None = None,
        signals: Signals | None = None,
        quotas: QuotaBook | None = None,
    ) -> None:
        self._database = database
        self._clock = clock
        self._owner = owner
        self._options = options or TickerOptions()
        self._signals = signals
        self._quotas = quotas or QuotaBook()
        self._known = Plannings()
        self._pauses = PauseEnds(database, self._known)
        # When the next pause ends by itself; before the first look at what comes next nobody knows.
        self._pause_end: Instant | None = 0
        self._alive: tuple[Instant | None, tuple[Break, ...]] = (None, ())
        self._beat_at: Instant | None = None
        self._beating = threading.Lock()
        self._presence: Presence | None = None
        self._worked = process_time()
        self._observing = threading.Lock()
        # The last claim, while more is due than one batch holds; threads may share it.
        self._crowd: ClaimTurn | None = None
        self._crowded_until: Instant = 0

    def step(self) -> Tick:
        """Claim and decide one batch; `more` asks for another step at once."""
        self.beat()
        now = self._clock.now()
        is_rest = self._pause_end is not None and self._pause_end <= now and self._pauses.step(now)
        turn = ClaimTurn([], more=False)

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
        if turn.more:
            self._crowded_until = now + _CROWDS_RETURN
        return replace(done, more=done.more or turn.more or is_rest)

    def patient_step(self) -> Tick:
        """A step that also waits for the signals it needs, for whoever does not come back soon."""
        done = [self.step()]
        while self._signals is not None and done[-1].waiting:
            self._signals.wait()
            done.append(self.step())
        return together(done, more=done[-1].more)

    def next_due(self) -> Instant | None:
        """When there is something to do: an occurrence to decide, or a pause to end."""
        earliest = self._database.glance(pause_rows.earliest)
        self.expect(earliest)
        return earliest.moment

    def expect(self, earliest: Earliest) -> None:
        """Accept the earliest times just read: until then no step looks for pauses to end."""
        self._pause_end = earliest.pause_end

    def _claim(self, connection: Connection, now: Instant) -> ClaimTurn:
        """The most overdue; but where the last batch did not hold all, everybody in turn.

        Who was crowded lately begins with a small batch, in turn as well: what few a quiet tenant has due is
        decided, and handed out, before the crowd has its way.
        """
        batch, crowd = self._options.batch + self._open_signals, self._crowd
        if crowd is not None:
            return due_rows.claim_in_turn(connection, self._known, now, batch, crowd)
        if 0 < self._crowded_until - now <= _CROWDS_RETURN:  # farther ahead: the clock was set back
            few = min(batch, _FIRST_OF_A_CROWD + self._open_signals)
            return due_rows.claim_in_turn(connection, self._known, now, few, ClaimTurn([], more=True))
        claims = due_rows.claim(connection, self._known, now, batch)
        return ClaimTurn(claims, more=len(claims) == batch)

    @property
    def _open_signals(self) -> int:
        """Number of open signals. They are claimed again and released, and must not use up the places of others."""
        return 0 if self._signals is None else self._signals.open

    def _decide(self, connection: Connection, claims: Sequence[due_rows.Claim], now: Instant) -> Tick:
        if not claims:
            return Tick()
        options = self._options
        known, signals = self._with_signals(claims, now)
        ready = known[: options.batch]
        if not ready:
            return Tick(waiting=len(claims))
        since, breaks = self._alive
        moment = PlanTime(now, since, options.max_catchup_per_tick, options.max_decisions_per_batch, breaks)
        tick = decide_claims(connection, self._known, ready, moment, signals, self._quotas)
        if any(decided.entry.runs for decided in tick.decided):
            self._database.notify(connection, READY)
        return replace(tick, more=tick.more or len(ready) < len(known), waiting=len(claims) - len(known))

    def _with_signals(
        self, claims: Sequence[due_rows.Claim], now: Instant
    ) -> tuple[Sequence[due_rows.Claim], dict[bytes, Signal]]:
        """The claims that can be decided now, and the signals that some of them need."""
        found: dict[bytes, Signal] = {}
        if self._signals is None:
            return claims, found
        known: list[due_rows.Claim] = []
        for claim in claims:
            if not isinstance(claim.planning, Exception) and reads_signal(claim.planning):
                signal = self._signals.take(claim.namespace, claim.schedule_id, now)
                if signal is None:
                    continue
                found[claim.schedule_uid] = signal
            known.append(claim)
        return known, found

    def _halve(self, uids: Sequence[bytes], now: Instant, wrong: Exception) -> Tick:
        """Find the row that the database refuses; the others are decided on the way."""
        if len(uids) == 1:
            return Tick(1, parked=self._park_somehow(uids[0], now, wrong), more=True)
        done: list[Tick] = []
        middle = len(uids) // 2
        for half in (uids[:middle], uids[middle:]):
            try:
                done.append(self._database.write(partial(self._again, uids=half, now=now)))
            except Exception as still_wrong:  # see `step`
                if not is_fault_of_a_row(still_wrong):
                    raise
                done.append(self._halve(half, now, still_wrong))
        return together(done, more=True)

    def _again(self, connection: Connection, uids: Sequence[bytes], now: Instant) -> Tick:
        return self._decide(connection, due_rows.claim_again(connection, self._known, uids, now), now)

    def _park(
        self, connection: Connection, uid: bytes, wrong: Exception, now: Instant
    ) -> tuple[tuple[str, str, str], ...]:
        """Unless somebody else has decided it, paused it or deleted it meanwhile."""
        still_due = due_rows.claim_again(connection, self._known, [uid], now)
        error, error_class = str(wrong), type(wrong).__name__
        return tuple(
            (claim.namespace, claim.schedule_id, error)
            for claim in still_due
            if park(connection, uid, error=error, error_class=error_class, now=now)
        )

    def _park_somehow(self, uid: bytes, now: Instant, wrong: Exception) -> tuple[tuple[str, str, str], ...]:
        """Park it with its event, or without one where none can be written."""
        try:
            return self._database.write(partial(self._park, uid=uid, wrong=wrong, now=now))
        except Exception as still_wrong:  # see `step`
            if not is_fault_of_a_row(still_wrong):
                raise
        self._database.write(partial(park_without_event, schedule_uid=uid, error=str(wrong), now=now))
        return (("", id_text(uid), str(wrong)),)

    def observe(self) -> Presence:
        """Count this moment as one at which this ticker is there, also while it waits for its database."""
        with self._observing:
            before, self._worked = self._worked, process_time()
            self._presence = extend_presence(self._presence, self._clock.now(), worked_seconds=self._worked - before)
            return self._presence

    def beat(self, *, waits: bool = True) -> None:
        """Record that a ticker is there, and read since when there has been one without a break.

        Without `waits` a beat that another thread has begun is enough. A ticker that waits for a lock or a connection
        is there. One that cannot reach its database is not: the outage of a database is downtime.
        """
        if not self._beating.acquire(blocking=waits):
            return
        try:
            now = self.observe().at
            if self._beat_at is not None and 0 <= now - self._beat_at < PRESENCE_BEAT_SECONDS * SECOND:
                return
            self._alive = self._database.write_reserved(self._record_beat)
            self._beat_at = now
        except Exception as failed:
            if not (isinstance(failed, StoreUnavailable) and failed.busy):
                self._beat_at = None
                with self._observing:
                    self._presence = None
            raise
        finally:
            self._beating.release()

    def _record_beat(self, connection: Connection) -> tuple[Instant, tuple[Break, ...]]:
        before = processes.last_beat(connection, TICKER, lock=True)
        own = self.observe()  # anew: the lock may have come late
        recorded_at = None if before is None else before.beat_at
        ahead = decided_ahead_until(recorded_at, None if before is None else before.info.get(AHEAD_UNTIL), own.at)
        if clock_was_ahead(recorded_at, own.at):
            shorten_waits(connection, own.at)
        noted = None if before is None else before.info.get(BREAKS)
        accompanied = another_is_alive(process_rows(connection), TICKER, self._owner, own.at)
        breaks = short_breaks(recorded_at, noted, own, accompanied=accompanied)
        info: dict[str, object] = {} if ahead is None else {AHEAD_UNTIL: ahead}
        if breaks:
            info[BREAKS] = breaks
        return processes.beat_lease(connection, TICKER, self._owner, own.at, GAP_SECONDS, info, since=own.since), breaks


# A third would wait for the interpreter more than it works (seen in benchmarks/herd.py).
TICK_THREADS: Final[Mapping[Dialect, int]] = MappingProxyType({"postgresql": 2, "sqlite": 1})
# Batches that a thread takes before all meet: fewer leave threads idle, more keep the pulse waiting.
_BATCHES = 16


class TickShare(NamedTuple):
    """Ticks of one thread; with an `error` it stopped there, and the earlier ticks are committed."""

    ticks: tuple[Tick, ...]
    error: Exception | None = None


class ParallelTicker:
    def __init__(self, ticker: Ticker, count: int, threads: EngineThreads | None = None) -> None:
        self._ticker = ticker
        self._count = count
        self._threads = threads or EngineThreads()
        self._was_full = False

    async def step(self) -> list[TickShare]:
        """One batch; after a full one, a few for each thread."""
        if self._was_full:
            shares = await asyncio.gather(
                *(self._threads.run(lambda: self._take(_BATCHES)) for _ in range(self._count))
            )
        else:
            shares = [await self._threads.run(lambda: self._take(1))]
        self._was_full = self._count > 1 and all(share.ticks and share.ticks[-1].more for share in shares)
        return shares

    def _take(self, batches: int) -> TickShare:
        ticks: list[Tick] = []
        try:
            while len(ticks) < batches and (not ticks or ticks[-1].more):
                ticks.append(self._ticker.step())
        except Exception as error:  # told by whoever asked, after what the other threads did
            return TickShare(tuple(ticks), error)
        return TickShare(tuple(ticks))
