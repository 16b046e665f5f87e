"""Poll runs that a target has accepted, where the launcher can, and stop those that are no longer wanted.

Agents and workers are notified of tasks that ended runs have left with them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import structlog
from structlog.typing import FilteringBoundLogger

from horarium.core.document.definition import RunDefinition, connection_in
from horarium.core.document.document import run_part_of
from horarium.core.document.reader import CELERY, PROMPT
from horarium.core.document.secret_values import Redactor
from horarium.core.lifecycle.outcome import (
    CancelledOutside,
    LaunchAnswered,
    Outcome,
    Refused,
    StillRunning,
    UnstorableAnswer,
    without_secrets,
)
from horarium.core.policy.approval import LaunchRetry
from horarium.core.policy.limits import RunLimits
from horarium.engine.loop import EngineThreads
from horarium.engine.requests import build_request, rules_of
from horarium.features.agents import task_rows
from horarium.features.agents.preparation import find_lines
from horarium.features.agents.task_rows import UnwantedTask
from horarium.features.runs import work_rows
from horarium.features.runs.definition_rows import Definitions
from horarium.features.runs.transition_rows import ReportedEvent, fields_of_run, read_run_fields, record_events
from horarium.features.runs.work_rows import RunWork
from horarium.features.schedules.due_rows import Plannings
from horarium.features.secrets.preparation import fetch_secrets, named_secrets
from horarium.features.secrets.rows import openable
from horarium.instant import SECOND
from horarium.launchers.launcher import AgentLine, CancelsTasks, EndsTasks
from horarium.launchers.registry import Registry
from horarium.platform.clock import Clock
from horarium.platform.database import Connection, Database
from horarium.platform.database.errors import is_fault_of_a_row
from horarium.platform.database.installation import Sealer
from horarium.platform.database.wakeups import READY

_BATCH = 50
# A look at a result costs little, and runs that do not report wait for it.
_MAX_POLLED = 250
_FIRST_PAUSE_SECONDS = 2
_LONGEST_PAUSE_SECONDS = 60
# For one question to one target.
_PATIENCE_SECONDS = 30
# For telling an agent that a task is not wanted.
_CANCEL_SECONDS = 10

_NOT_STOPPED = "run_cancel_request_failed"

Followed = tuple[RunWork, RunDefinition | Exception]


class Follower:
    def __init__(
        self,
        database: Database,
        clock: Clock,
        registry: Registry,
        launch_retry: LaunchRetry | None = None,
        threads: EngineThreads | None = None,
        sealer: Sealer | None = None,
        caps: RunLimits | None = None,
        log: FilteringBoundLogger | None = None,
    ) -> None:
        self._log = log or structlog.get_logger()
        self._database = database
        self._clock = clock
        self._registry = registry
        self._launch_retry = launch_retry or LaunchRetry()
        self._threads = threads or EngineThreads()
        self._sealer = sealer
        self._definitions = Definitions(run_part_of, caps)
        self._known = Plannings()

    async def step(self) -> int:
        return await self._ask() + await self._stop() + await self._tell_unwanted()

    async def _ask(self) -> int:
        kinds = [kind for kind in self._registry if self._registry.get(kind).can_poll]
        now = self._clock.now()

        def take(connection: Connection) -> list[Followed]:
            works = work_rows.to_follow(connection, kinds, now, _MAX_POLLED)
            work_rows.ask_later(connection, [(work, now + _pause(work, now) * SECOND) for work in works])
            return self._defined(connection, works)

        followed = await self._threads.run(lambda: self._database.write(take)) if kinds else []
        answers = await asyncio.gather(*(self._poll(*each) for each in followed))
        for (work, definition), answer in zip(followed, answers, strict=True):
            if not isinstance(answer, StillRunning):
                await self._settle(work, definition, await self._without_secrets(work, definition, answer))
        return len(followed)

    async def _without_secrets(self, work: RunWork, definition: RunDefinition | Exception, answer: Outcome) -> Outcome:
        """A target may repeat what it was sent at the launch."""
        names = named_secrets(work, definition)
        if not names:
            return answer
        found = await self._threads.run(
            lambda: self._database.glance(lambda connection: fetch_secrets(connection, [(work.namespace, names)]))
        )
        return without_secrets(answer, Redactor(openable(self._sealer, found[work.namespace].values())))

    def _defined(self, connection: Connection, works: Sequence[RunWork]) -> list[Followed]:
        definitions = self._definitions.load(connection, works)
        return [(work, definitions[work.run_id]) for work in works]

    async def _poll(self, work: RunWork, definition: RunDefinition | Exception) -> Outcome | StillRunning:
        if isinstance(definition, Exception):
            return StillRunning()  # the deadline will end it
        try:
            request = build_request(work, definition)
            launcher = self._registry.launcher_for(request.action, request.namespace)
            async with asyncio.timeout(_PATIENCE_SECONDS):
                return await launcher.poll(request, work.reference)
        except Exception as wrong:  # one bad target must not keep us from the others
            self._tell("a target could not be asked", work, definition, wrong)
            return StillRunning()

    async def _settle(self, work: RunWork, definition: RunDefinition | Exception, outcome: Outcome) -> None:
        rules = rules_of(work, definition, self._launch_retry)
        try:
            await self._record([ReportedEvent(work.run_id, LaunchAnswered(outcome, work.lease_epoch), rules)])
        except Exception as wrong:
            if not is_fault_of_a_row(wrong):
                raise
            unstorable = UnstorableAnswer(f"{type(wrong).__name__}: {wrong}", work.lease_epoch)
            await self._record_each([ReportedEvent(work.run_id, unstorable, rules)])

    async def _stop(self) -> int:
        """Stop unwanted runs that no process holds: notify the target, then record them as cancelled."""

        def take(connection: Connection) -> list[Followed]:
            return self._defined(connection, work_rows.taken_and_unwanted(connection, _BATCH))

        followed = await self._threads.run(lambda: self._database.read(take))
        await asyncio.gather(*(self._cancel(*each) for each in followed))
        over = CancelledOutside("Cancelled on request")
        return await self._record_each([ReportedEvent(work.run_id, over) for work, _ in followed])

    async def _tell_unwanted(self) -> int:
        """Whoever still works for runs that are over: each is told, and told again if that fails."""
        now = self._clock.now()

        def take(connection: Connection) -> list[tuple[UnwantedTask, AgentLine | Refused | None]]:
            tasks = task_rows.take_unwanted(connection, now, _BATCH, _CANCEL_SECONDS)
            agents = {(task.namespace, task.agent_id) for task in tasks if connection_in(task.agent_id) is None}
            lines = find_lines(connection, self._sealer, agents)
            return [(task, lines.get((task.namespace, task.agent_id))) for task in tasks]

        if not await self._threads.run(lambda: self._database.glance(lambda c: task_rows.is_any_due(c, now))):
            return 0
        taken = await self._threads.run(lambda: self._database.write(take))
        told = await asyncio.gather(*(self._call_off(*each) for each in taken))
        later = self._clock.now()

        def write(connection: Connection) -> None:
            for (task, _), is_over in zip(taken, told, strict=True):
                if is_over:
                    task_rows.delete_unwanted(connection, task)
                else:
                    task_rows.postpone(connection, task, later)

        if taken:
            await self._threads.run(lambda: self._database.write(write))
        return len(taken)

    async def _call_off(self, task: UnwantedTask, line: AgentLine | Refused | None) -> bool:
        """Cancel a task and tell whether the matter is closed, which includes targets that cannot be reached at all."""
        kind = PROMPT.name if connection_in(task.agent_id) is None else CELERY.name
        launcher: object = self._registry.get(kind) if kind in self._registry else None
        try:
            async with asyncio.timeout(_CANCEL_SECONDS):
                if isinstance(launcher, EndsTasks):
                    return await launcher.end_tasks(task.agent_id, [task.reference])
                if isinstance(launcher, CancelsTasks) and isinstance(line, AgentLine):
                    return await launcher.cancel_task(task.namespace, line, task.reference)
                return isinstance(line, Refused)  # another process may be able to
        except Exception as wrong:  # one bad target must not keep us from the others
            why = f"{type(wrong).__name__}: {wrong}"
            about = await self._threads.run(lambda: read_run_fields(self._database, task.run_id))
            self._log.warning(_NOT_STOPPED, **about, target=task.agent_id, error=why)
            return False

    async def _record_each(self, happened: Sequence[ReportedEvent]) -> int:
        """Record together; where the database refuses it record each alone, and return how many it accepts."""
        try:
            await self._record(happened)
            return len(happened)
        except Exception as wrong:
            if not is_fault_of_a_row(wrong):
                raise
            if len(happened) > 1:
                return sum([await self._record_each([one]) for one in happened])
            why = f"{type(wrong).__name__}: {wrong}"
            about = await self._threads.run(lambda: read_run_fields(self._database, happened[0].run_id))
            self._log.error("run_update_failed", **about, error=why)
            return 0

    async def _record(self, happened: Sequence[ReportedEvent]) -> None:
        if not happened:
            return
        now = self._clock.now()

        def write(connection: Connection) -> None:
            record_events(connection, self._known, happened, now=now)
            self._database.notify(connection, READY)

        await self._threads.run(lambda: self._database.write(write))

    async def _cancel(self, work: RunWork, definition: RunDefinition | Exception) -> None:
        """The target is told; whether it listens is its own affair."""
        if isinstance(definition, Exception):
            return
        try:
            request = build_request(work, definition)
            launcher = self._registry.launcher_for(request.action, request.namespace)
            async with asyncio.timeout(_PATIENCE_SECONDS):
                await launcher.cancel(request, work.reference)
        except Exception as wrong:
            self._tell(_NOT_STOPPED, work, definition, wrong)

    def _tell(self, what: str, work: RunWork, definition: RunDefinition, wrong: Exception) -> None:
        schedule_id = None if work.schedule_uid is None else definition.schedule_id
        about = fields_of_run(work.run_id, work.namespace, schedule_id)
        self._log.warning(what, **about, error=f"{type(wrong).__name__}: {wrong}")


def _pause(work: RunWork, now: int) -> int:
    """Ask soon at first, then ever more rarely: a tenth of how long it has been running."""
    age = (now - (work.started_at or work.created_at)) // SECOND
    return max(_FIRST_PAUSE_SECONDS, min(_LONGEST_PAUSE_SECONDS, age // 10))
