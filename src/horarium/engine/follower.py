"""Follows runs that a target has taken: asks how they are doing where the launcher can, and stops the unwanted."""

from __future__ import annotations

import asyncio
from functools import partial

import structlog
from sqlalchemy import Connection

from horarium.clock import Clock
from horarium.engine.requests import Definitions, build_request, key_of
from horarium.engine.settle import settle_one
from horarium.engine.settlement import Settlement, plan_settlement, plan_unstorable
from horarium.ids import id_text
from horarium.instant import SECOND, Instant
from horarium.launchers.registry import Registry
from horarium.life.outcome import Outcome, StillRunning
from horarium.policy.retry import LaunchRetry, RetryPolicy
from horarium.schedule.definition import Definition
from horarium.schedule.run import RunState
from horarium.store import ends, runs
from horarium.store.closing import End
from horarium.store.database import Database
from horarium.store.due import Plannings
from horarium.store.errors import CommitUnknown, StoreUnavailable
from horarium.store.runs import Work

_BATCH = 50
_FIRST_PAUSE_SECONDS = 2
_LONGEST_PAUSE_SECONDS = 60
# For one question to one target.
_PATIENCE_SECONDS = 30


class Follower:
    def __init__(self, database: Database, clock: Clock, registry: Registry) -> None:
        self._database = database
        self._clock = clock
        self._registry = registry
        self._definitions = Definitions()
        self._known = Plannings()

    async def step(self) -> int:
        return await self._ask() + await self._stop()

    async def _ask(self) -> int:
        kinds = [kind for kind in self._registry if self._registry.get(kind).can_poll]
        now = self._clock.now()

        def take(connection: Connection) -> list[Work]:
            works = runs.to_follow(connection, kinds, now, _BATCH)
            self._definitions.load(connection, works)
            for work in works:
                runs.ask_later(connection, work, now + _pause(work, now) * SECOND)
            return works

        works = await asyncio.to_thread(self._database.write, take) if kinds else []
        answers = await asyncio.gather(*(self._poll(work) for work in works))
        for work, answer in zip(works, answers, strict=True):
            if not isinstance(answer, StillRunning):
                await self._settle(work, answer)
        return len(works)

    async def _poll(self, work: Work) -> Outcome | StillRunning:
        definition = self._definitions.of(work)
        if isinstance(definition, Exception):
            return StillRunning()  # the deadline will end it
        try:
            request = build_request(work, definition)
            launcher = self._registry.launcher_for(request.action)
            async with asyncio.timeout(_PATIENCE_SECONDS):
                return await launcher.poll(request, work.reference)
        except Exception as wrong:  # one bad target must not keep us from the others
            _tell("a target could not be asked", work, wrong)
            return StillRunning()

    async def _settle(self, work: Work, outcome: Outcome) -> None:
        now = self._clock.now()
        definition = self._definitions.of(work)
        retry = definition.retry if isinstance(definition, Definition) else RetryPolicy(max_retries=0)
        try:
            settled = plan_settlement(outcome, work, key=key_of(work), retry=retry, launch_retry=LaunchRetry(), now=now)
            await self._write_down(work, settled, now)
        except (StoreUnavailable, CommitUnknown):
            raise
        except Exception as wrong:
            await self._write_down(work, plan_unstorable(wrong), now)

    async def _write_down(self, work: Work, settled: Settlement, now: Instant) -> None:
        await asyncio.to_thread(
            self._database.write, lambda connection: settle_one(connection, self._known, work, settled, now)
        )

    async def _stop(self) -> int:
        """What nobody in this house holds and somebody wants stopped: tell the target, then call it cancelled."""
        now = self._clock.now()

        def take(connection: Connection) -> list[Work]:
            works = runs.taken_and_unwanted(connection, _BATCH)
            self._definitions.load(connection, works)
            return works

        def call_it_cancelled(connection: Connection, work: Work) -> bool:
            end = End(RunState.CANCELLED, error="cancelled on request")
            return ends.end_run(connection, self._known, work.run_id, end, now=now)

        works = await asyncio.to_thread(self._database.read, take)
        await asyncio.gather(*(self._cancel(work) for work in works))
        for work in works:
            await asyncio.to_thread(self._database.write, partial(call_it_cancelled, work=work))
        return len(works)

    async def _cancel(self, work: Work) -> None:
        """The target is told; whether it listens is its own affair."""
        definition = self._definitions.of(work)
        if isinstance(definition, Exception):
            return
        try:
            request = build_request(work, definition)
            launcher = self._registry.launcher_for(request.action)
            async with asyncio.timeout(_PATIENCE_SECONDS):
                await launcher.cancel(request, work.reference)
        except Exception as wrong:
            _tell("a target could not be told to stop", work, wrong)


def _tell(what: str, work: Work, wrong: Exception) -> None:
    structlog.get_logger().warning(what, run=id_text(work.run_id), error=f"{type(wrong).__name__}: {wrong}")


def _pause(work: Work, now: int) -> int:
    """Ask soon at first, then ever more rarely: a tenth of how long it has been running."""
    age = (now - (work.started_at or work.created_at)) // SECOND
    return max(_FIRST_PAUSE_SECONDS, min(_LONGEST_PAUSE_SECONDS, age // 10))
