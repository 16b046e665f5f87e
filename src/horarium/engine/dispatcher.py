"""Hands ready runs to their launchers and writes down the answers; no transaction is open in between.

Claims are bounded by the hands that are free. Answers are collected and settled many at a time. While a
launch is under way its lease is renewed; whoever asks a run to stop reaches it through that renewal.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from sqlalchemy import Connection

from horarium.clock import Clock
from horarium.engine.loop import Loop, Pulse, live
from horarium.engine.requests import Definitions, build_request, key_of
from horarium.engine.settle import settle_all
from horarium.engine.settlement import Settlement, plan_settlement
from horarium.instant import SECOND, Instant
from horarium.launchers.launcher import Outcome, Refused
from horarium.launchers.registry import Registry
from horarium.policy.retry import LaunchRetry, RetryPolicy
from horarium.schedule.definition import ActionKind, Definition
from horarium.store import runs
from horarium.store.channels import READY
from horarium.store.database import Database
from horarium.store.due import Plannings
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
    work: Work
    cancelled: asyncio.Event
    task: asyncio.Task[Outcome] | None = None


class Dispatcher:
    def __init__(
        self,
        database: Database,
        clock: Clock,
        registry: Registry,
        owner: str,
        options: DispatcherOptions | None = None,
        telling: Telling | None = None,
    ) -> None:
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
        outcomes = await asyncio.gather(*(self._deliver(work) for work in works))
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
        full = self._full_kinds()

        def work(connection: Connection) -> list[Work]:
            claimed = runs.claim_ready(
                connection,
                owner=self._owner,
                now=now,
                lease_seconds=self._options.lease_seconds,
                limit=min(free, self._options.batch),
                full=full,
            )
            self._definitions.load(connection, claimed)
            return claimed

        return await asyncio.to_thread(self._database.write, work)

    def _full_kinds(self) -> list[str]:
        busy = Counter(held.work.kind for held in self._in_hand.values())
        return [kind for kind, limit in self._options.per_kind.items() if busy[kind] >= limit]

    async def _claim_step(self) -> float:
        """Start what there are hands for; an answer that frees a hand wakes the loop."""
        works = await self.claim()
        for work in works:
            held = _InHand(work, asyncio.Event())
            self._in_hand[work.run_id] = held
            held.task = asyncio.create_task(self._carry(held), name="launch")
        return 0 if works else 1.0

    async def _carry(self, held: _InHand) -> Outcome:
        outcome = await self._deliver(held.work, held.cancelled)
        await self._answers.put((held.work, outcome))
        return outcome

    async def _deliver(self, work: Work, cancelled: asyncio.Event | None = None) -> Outcome:
        definition = self._definitions.of(work)
        if isinstance(definition, Exception):
            return Refused(f"the definition of this run cannot be read: {definition}")
        request = build_request(work, definition, cancelled or asyncio.Event())
        if self._registry.resolve(request.action) in _WORKS_HERE:
            now = self._clock.now()
            begun = await asyncio.to_thread(
                self._database.write, lambda connection: runs.mark_running(connection, work, now)
            )
            if not begun:
                return Refused("the lease was lost before the work began")
        return await self._registry.launch(request)

    # ── settling ─────────────────────────────────────────────────────────────────────────────────

    async def settle(self, answers: Sequence[tuple[Work, Outcome]]) -> None:
        if not answers:
            return
        now = self._clock.now()
        settled = [(work, self._plan(work, outcome, now)) for work, outcome in answers]

        def write(connection: Connection) -> list[tuple[Work, Settlement]]:
            counted = settle_all(connection, self._known, settled, now)
            self._database.notify(connection, READY)
            return counted

        counted = await asyncio.to_thread(self._database.write, write)
        if self._telling is not None:
            self._telling.settled(counted, now)

    def _plan(self, work: Work, outcome: Outcome, now: Instant) -> Settlement:
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
        """An answer is worth keeping while its lease lives: the database may come back in time."""
        for pause in (0.1, 0.5, 1.0, 2.0, 4.0):
            try:
                await self.settle(answers)
                return
            except Exception:  # the lease outlives these pauses; after it another process takes over
                await asyncio.sleep(pause)

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
                    held.cancelled.set()
            if late:
                await asyncio.wait(late, timeout=1.0)
        for _ in range(50):
            if self._answers.empty() and not any(held.task and held.task.done() for held in self._in_hand.values()):
                break
            await asyncio.sleep(0.1)
        left = [held.work for held in self._in_hand.values()]
        if left:
            await asyncio.to_thread(self._database.write, lambda connection: runs.release_leases(connection, left))
