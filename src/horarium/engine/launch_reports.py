"""Save what a launch reports while it lasts: the target's reference, the agent's card, and log lines.

The reference of the target is as valuable as an answer: while the database is unavailable it waits, and the fence
decides whether it still counts. The launch also reads here whether it should stop.
"""

from __future__ import annotations

import itertools
from collections import OrderedDict
from collections.abc import Collection, Iterable, Mapping
from typing import Final, NamedTuple

from structlog.typing import FilteringBoundLogger

from horarium.core.document.definition import agent_in
from horarium.core.document.json_values import is_storable
from horarium.core.lifecycle.event import Nothing, NothingCause, TargetAccepted
from horarium.engine.claimer import InFlight
from horarium.engine.loop import EngineThreads, sleep_until_woken
from horarium.features.agents import rows as agent_rows
from horarium.features.agents import task_rows
from horarium.features.agents.definition import AgentDefinition
from horarium.features.agents.policy_rows import find_agents
from horarium.features.agents.rows import SeenCard
from horarium.features.agents.task_rows import UnwantedTask
from horarium.features.runs import event_rows
from horarium.features.runs.event_rows import NewLines
from horarium.features.runs.transition_rows import record_event
from horarium.features.schedules.due_rows import Plannings
from horarium.instant import SECOND, Instant
from horarium.launchers.a2a.card import summary
from horarium.launchers.launcher import AgentLine, CardSeen, LaunchRequest
from horarium.platform.clock import Clock
from horarium.platform.database import Connection, Database
from horarium.platform.database.errors import is_fault_of_a_row
from horarium.platform.run_log import RunLog

MAX_REFERENCE: Final = 1_024
"""Maximum characters of a target's reference for a run."""
_PAUSES: Final = (0.1, 0.5, 1.0, 2.0, 4.0)
# What is known of an agent is written again only so often, unless it has changed; of so many agents that is remembered.
_SEEN_EVERY = 30 * SECOND
_MOST_AGENTS = 10_000


class LaunchReports:
    """Shared services with which a process's launches record data while they run."""

    def __init__(
        self, database: Database, clock: Clock, threads: EngineThreads, known: Plannings, log: FilteringBoundLogger
    ) -> None:
        self._database = database
        self._clock = clock
        self._threads = threads
        self._known = known
        self.log = log
        self._seen: OrderedDict[tuple[str, str], tuple[SeenCard, Instant]] = OrderedDict()

    async def name(self, each: InFlight, reference: str) -> None:
        """Raises what the database raises."""
        now, work = self._clock.now(), each.work

        def write(connection: Connection) -> None:
            event = TargetAccepted(reference, work.lease_epoch)
            change = record_event(connection, self._known, work.run_id, event, each.rules, now=now)
            agent_id = agent_in(work.target)
            if change == Nothing(NothingCause.TOO_LATE) and agent_id is not None:
                # It has ended while it was being sent: whoever ended it could not know what to call off.
                left = UnwantedTask(work.run_id, reference, work.namespace, agent_id)
                task_rows.add_unwanted(connection, [left], now)

        await self._threads.run(lambda: self._database.write(write))

    async def see(self, namespace: str, line: AgentLine, card: CardSeen) -> None:
        """Raises what the database raises."""
        now, key, seen = self._clock.now(), (namespace, line.agent_id), _stored_card(card)
        before = self._seen.get(key)
        if before is not None and before[0] == seen and 0 <= now - before[1] < _SEEN_EVERY:
            return

        def write(connection: Connection) -> None:
            agent = find_agents(connection, [key]).get(key)
            if isinstance(agent, AgentDefinition) and agent.url == line.url:  # what another address says is not its own
                agent_rows.save_card(connection, *key, seen, now)

        await self._threads.run(lambda: self._database.write(write))
        self._seen[key] = seen, now
        self._seen.move_to_end(key)
        while len(self._seen) > _MOST_AGENTS:
            self._seen.popitem(last=False)


def _stored_card(seen: CardSeen) -> SeenCard:
    card = summary(seen.card)
    if card is None and seen.card is not None:
        return SeenCard(None, None, seen.error or "its agent card is invalid", seen.dialect)
    return SeenCard(card, seen.etag, seen.error, seen.dialect)


class LaunchHolder:
    """The holder of one launch, as its launcher sees it (`launchers/launcher.py`)."""

    def __init__(self, each: InFlight, line: AgentLine, desk: LaunchReports) -> None:
        self._each = each
        self._line = line
        self._desk = desk

    def stop_wanted(self) -> bool:
        return self._each.unwanted

    async def taken(self, reference: str) -> None:
        each, log = self._each, self._desk.log
        about = each.about
        if not 0 < len(reference) <= MAX_REFERENCE or not is_storable(reference):
            log.error("run_reference_invalid", **about)
            return
        for pause in itertools.chain(_PAUSES, itertools.repeat(_PAUSES[-1])):
            is_last = each.cancelled.is_set()
            try:
                await self._desk.name(each, reference)
                return
            except Exception as wrong:
                if is_last or is_fault_of_a_row(wrong):
                    log.error("run_reference_write_failed", **about, error=str(wrong))
                    return
                log.warning("run_reference_write_retrying", **about, error=str(wrong))
            await sleep_until_woken(each.cancelled, seconds=pause)

    async def seen(self, card: CardSeen) -> None:
        try:
            await self._desk.see(self._each.work.namespace, self._line, card)
        except Exception as wrong:  # it is shown to people, and the next launch brings it again
            about = self._each.about
            self._desk.log.warning("agent_card_write_failed", **about, agent=self._line.agent_id, error=str(wrong))


def has_lines(run: InFlight) -> bool:
    """Most runs never say anything, and are passed over without a lock."""
    log = _log_of(run)
    return log is not None and log.touched


def _log_of(run: InFlight) -> RunLog | None:
    return run.request.log if isinstance(run.request, LaunchRequest) else None


class UnsavedLines(NamedTuple):
    """Lines of several runs, written at once; each log forgets its own when they are kept."""

    lines: tuple[NewLines, ...] = ()
    logs: tuple[RunLog, ...] = ()

    @classmethod
    def of(cls, runs: Iterable[InFlight], *, last: bool = False) -> UnsavedLines:
        """With `last` these are all that will ever come."""
        lines: list[NewLines] = []
        spoken: list[RunLog] = []
        for run in runs:
            log = _log_of(run)
            if log is None or not log.touched:
                continue
            batch = log.peek(last=last)
            if batch.lines:
                lines.append(NewLines(run.work.run_id, run.work.lease_epoch, run.work.attempt, batch))
                spoken.append(log)
        return cls(tuple(lines), tuple(spoken))

    def append(self, connection: Connection, most: int) -> set[bytes]:
        return event_rows.append_lines(connection, self.lines, most=most) if self.lines else set()

    def append_locked(self, connection: Connection, epochs: Mapping[bytes, int], most: int) -> None:
        """`epochs` are those of runs that the caller has locked: who has another has lost its run."""
        ours = [each for each in self.lines if epochs.get(each.run_id) == each.epoch]
        event_rows.append_locked_lines(connection, ours, most=most)

    def done(self, kept: Collection[bytes] | None = None) -> None:
        """None = they all are."""
        for lines, log in zip(self.lines, self.logs, strict=True):
            if kept is None or lines.run_id in kept:
                log.done(lines.batch)


NO_LINES = UnsavedLines()
