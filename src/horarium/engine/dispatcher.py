"""Hands ready runs to their launchers and writes down the answers; no transaction is open in between.

Claims are bounded by the hands that are free. Answers are collected and settled many at a time. While a
launch is under way its lease is renewed; whoever asks a run to stop reaches it through that renewal.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import structlog
from sqlalchemy import Connection
from structlog.typing import FilteringBoundLogger

from horarium.clock import Clock
from horarium.engine.loop import Loop, Pulse, live
from horarium.engine.requests import Definitions, build_request, key_of
from horarium.engine.settle import settle_all
from horarium.engine.settlement import Settlement, plan_given_back, plan_settlement, plan_unstorable
from horarium.instant import SECOND, Instant
from horarium.launchers.registry import Registry
from horarium.life.outcome import Outcome, Refused, RunCancelled
from horarium.policy.retry import LaunchRetry, RetryPolicy
from horarium.schedule.definition import ActionKind, Definition
from horarium.store import runs
from horarium.store.channels import READY
from horarium.store.database import Database
from horarium.store.due import Plannings
from horarium.store.errors import CommitUnknown, StoreUnavailable
from horarium.store.runs import Work

# Launchers that do the work in this process: their runs are `running`, not `launching`, meanwhile.
_WORKS_HERE = frozenset({ActionKind.PYTHON.value, ActionKind.COMMAND.value})


class Telling(Protocol):
    """Whoever wants to hear what was launched and how runs ended."""

    def settled(self, answers: Sequence[tuple[Work, Settlement]], now: Instant) -> None: ...


@dataclass(frozen=True, slots=True)
class DispatcherOptions:
    concurrency: int = 32
    per_kind: dict[str, int] = field(default_factory=dict)
    lease_seconds: int = 30
    launch_retry: LaunchRetry = field(default_factory=LaunchRetry)
    batch: int = 100


@dataclass(slots=True)
class _InHand:
    """`begun`: the target may have heard of it. `stopped`: we ended it ourselves, because we must stop.
    `answered`: its answer waits to be written down.
    """

    work: Work
    cancelled: asyncio.Event
    task: asyncio.Task[None] | None = None
    begun: bool = False
    stopped: bool = False
    answered: bool = False


class Dispatcher:
    def __init__(
        self,
        database: Database,
        clock: Clock,
        registry: Registry,
        owner: str,
        options: DispatcherOptions | None = None,
        telling: Telling | None = None,
        log: FilteringBoundLogger | None = None,
    ) -> None:
        self._log = log or structlog.get_logger()
        self._database = database
        self._clock = clock
        self._registry = registry
        self._owner = owner
        self._options = options or DispatcherOptions()
        self._telling = telling
        self._known = Plannings()
        self._definitions = Definitions()
        self._in_hand: dict[bytes, _InHand] = {}
        self._wake: asyncio.Event | None = None
        self._answers: asyncio.Queue[tuple[Work, Outcome]] = asyncio.Queue()

    @property
    def in_hand(self) -> int:
        return len(self._in_hand)

    async def step(self) -> int:
        """Claim, launch, wait for all answers, settle: one round, for tests and for `horarium tick`."""
        works = await self.claim()
        outcomes = await asyncio.gather(*(self._deliver(_InHand(work, asyncio.Event())) for work in works))
        await self.settle(list(zip(works, outcomes, strict=True)))
        return len(works)

    async def run(self, stop: asyncio.Event, wake: asyncio.Event, grace_seconds: float, pulse: Pulse) -> None:
        """Until `stop`: then nothing more is claimed, and what is in hand may finish within the grace."""
        self._wake = wake
        settling = asyncio.create_task(self._settle_for_ever(), name="settle")
        renewing = asyncio.create_task(self._renew_for_ever(), name="renew")
        try:
            await live(Loop("dispatcher", self._claim_step), stop, wake, self._clock, pulse)
            await self._drain(grace_seconds)
        finally:
            renewing.cancel()
            settling.cancel()
            await asyncio.gather(settling, renewing, return_exceptions=True)

    # ── claiming and launching ───────────────────────────────────────────────────────────────────

    async def claim(self) -> list[Work]:
        free = self._options.concurrency - len(self._in_hand)
        if free <= 0:
            return []
        now = self._clock.now()
        busy = Counter(held.work.kind for held in self._in_hand.values())

        def work(connection: Connection) -> list[Work]:
            claimed = runs.claim_ready(
                connection,
                owner=self._owner,
                now=now,
                lease_seconds=self._options.lease_seconds,
                limit=min(free, self._options.batch),
                full=[kind for kind, limit in self._options.per_kind.items() if busy[kind] >= limit],
            )
            kept, surplus = self._within_limits(claimed, busy)
            runs.release_leases(connection, surplus)
            self._definitions.load(connection, kept)
            runs.mark_running(connection, [work for work in kept if self._is_done_here(work)], now)
            return kept

        return await asyncio.to_thread(self._database.write, work)

    def _within_limits(self, claimed: Sequence[Work], busy: Mapping[str, int]) -> tuple[list[Work], list[Work]]:
        """A claim sees which kinds are full, not how many more of a kind there is room for."""
        taken = Counter(busy)
        kept: list[Work] = []
        surplus: list[Work] = []
        for work in sorted(claimed, key=lambda each: (each.nominal, each.run_id)):
            limit = self._options.per_kind.get(work.kind)
            (kept if limit is None or taken[work.kind] < limit else surplus).append(work)
            taken[work.kind] += 1
        return kept, surplus

    async def _claim_step(self) -> float:
        """Start what there are hands for; an answer that frees a hand wakes the loop."""
        works = await self.claim()
        for work in works:
            held = _InHand(work, asyncio.Event())
            self._in_hand[work.run_id] = held
            held.task = asyncio.create_task(self._carry(held), name="launch")
        return 0 if works else 1.0

    async def _carry(self, held: _InHand) -> None:
        outcome = await self._deliver(held)
        if held.stopped and isinstance(outcome, RunCancelled):
            return  # nobody wanted it cancelled: `_drain` gives it back
        held.answered = True
        await self._answers.put((held.work, outcome))

    async def _deliver(self, held: _InHand) -> Outcome:
        """Never raises: a run without an answer would keep its hand, and its lease, for ever."""
        work = held.work
        try:
            definition = self._definitions.of(work)
            if isinstance(definition, Exception):
                return Refused(f"the definition of this run cannot be read: {definition}")
            request = build_request(work, definition, held.cancelled)
        except Exception as wrong:  # one corrupt row is one run's trouble
            return Refused(f"no request can be made of this run: {type(wrong).__name__}: {wrong}")
        held.begun = True
        return await self._registry.launch(request)

    def _is_done_here(self, work: Work) -> bool:
        definition = self._definitions.of(work)
        return isinstance(definition, Definition) and self._registry.resolve(definition.action) in _WORKS_HERE

    # ── settling ─────────────────────────────────────────────────────────────────────────────────

    async def settle(self, answers: Sequence[tuple[Work, Outcome]]) -> None:
        if not answers:
            return
        now = self._clock.now()
        settled = [(work, self._plan(work, outcome, now)) for work, outcome in answers]
        try:
            counted = await self._write_down(settled, now)
        except (StoreUnavailable, CommitUnknown):
            raise
        except Exception:  # one of them cannot be written; the others must not be lost with it
            counted = [each for work, one in settled for each in await self._write_down_alone(work, one, now)]
        if self._telling is not None:
            self._telling.settled(counted, now)

    async def _write_down(
        self, settled: Sequence[tuple[Work, Settlement]], now: Instant
    ) -> list[tuple[Work, Settlement]]:
        def write(connection: Connection) -> list[tuple[Work, Settlement]]:
            counted = settle_all(connection, self._known, settled, now)
            self._database.notify(connection, READY)
            return counted

        return await asyncio.to_thread(self._database.write, write)

    async def _write_down_alone(self, work: Work, settled: Settlement, now: Instant) -> list[tuple[Work, Settlement]]:
        try:
            return await self._write_down([(work, settled)], now)
        except (StoreUnavailable, CommitUnknown):
            raise
        except Exception as wrong:
            return await self._write_down([(work, plan_unstorable(wrong))], now)

    def _plan(self, work: Work, outcome: Outcome, now: Instant) -> Settlement:
        try:
            return self._plan_sound(work, outcome, now)
        except Exception as wrong:  # a cost that is no number, a wait that is none: launchers of other packages
            return plan_unstorable(wrong)

    def _plan_sound(self, work: Work, outcome: Outcome, now: Instant) -> Settlement:
        definition = self._definitions.of(work)
        retry = definition.retry if isinstance(definition, Definition) else RetryPolicy(max_retries=0)
        launch_retry = self._options.launch_retry
        return plan_settlement(outcome, work, key=key_of(work), retry=retry, launch_retry=launch_retry, now=now)

    async def _settle_for_ever(self) -> None:
        while True:
            answers = [await self._answers.get()]
            while len(answers) < self._options.batch and not self._answers.empty():
                answers.append(self._answers.get_nowait())
            await self._settle_patiently(answers)
            for work, _ in answers:
                self._in_hand.pop(work.run_id, None)
            if self._wake is not None:
                self._wake.set()

    async def _settle_patiently(self, answers: Sequence[tuple[Work, Outcome]]) -> None:
        """An answer is worth keeping as long as the database is away: the fence decides whether it still counts."""
        for pause in itertools.chain((0.1, 0.5, 1.0, 2.0), itertools.repeat(4.0)):
            try:
                await self.settle(answers)
                return
            except (StoreUnavailable, CommitUnknown):
                await asyncio.sleep(pause)
            except Exception as wrong:  # their leases run out, and the janitor calls them unknown
                self._log.error("answers cannot be written", count=len(answers), error=str(wrong))
                return

    # ── leases ───────────────────────────────────────────────────────────────────────────────────

    async def _renew_for_ever(self) -> None:
        while True:
            await asyncio.sleep(self._options.lease_seconds / 3)
            try:
                await self.renew()
            except Exception:  # a lease that is not renewed is lost in time, and safely so
                continue

    async def renew(self) -> None:
        """Keep what is ours; stop what somebody asked to stop or what was taken from us."""
        held = list(self._in_hand.values())
        if not held:
            return
        until = self._clock.now() + self._options.lease_seconds * SECOND
        works = [each.work for each in held]
        kept = await asyncio.to_thread(self._database.write, lambda connection: runs.renew(connection, works, until))
        for each in held:
            answer = kept.get(each.work.run_id)
            if answer is None or answer.stop_requested:
                each.cancelled.set()

    async def _drain(self, grace_seconds: float) -> None:
        tasks = [held.task for held in self._in_hand.values() if held.task is not None]
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=grace_seconds)
            for held in self._in_hand.values():
                if held.task in late:
                    held.stopped = True
                    held.cancelled.set()
            if late:
                await asyncio.wait(late, timeout=1.0)
        for _ in range(50):
            if not any(held.answered for held in self._in_hand.values()):
                break
            await asyncio.sleep(0.1)
        await self._give_back([held for held in self._in_hand.values() if not held.answered])

    async def _give_back(self, left: Sequence[_InHand]) -> None:
        """What the target may have heard of is settled as such; the rest is as if nobody had touched it."""
        if not left:
            return
        now = self._clock.now()
        untouched = [held.work for held in left if not held.begun]
        settled = [(held.work, plan_given_back(held.work, now)) for held in left if held.begun]

        def write(connection: Connection) -> None:
            settle_all(connection, self._known, settled, now)
            runs.release_leases(connection, untouched)

        await asyncio.to_thread(self._database.write, write)
