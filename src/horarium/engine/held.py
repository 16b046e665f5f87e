"""What a launch may say and ask while it lasts: what the target calls it, what its agent says of itself, why to stop.

What the target calls it is worth as much as an answer: while the database is away it waits, and the fence decides
whether it still counts.
"""

from __future__ import annotations

import itertools
from collections import OrderedDict
from typing import Final

from structlog.typing import FilteringBoundLogger

from horarium.clock import Clock
from horarium.engine.claimer import InFlight
from horarium.engine.loop import sleep_until_woken
from horarium.engine.threads import Threads
from horarium.instant import SECOND, Instant
from horarium.launchers.a2a.card import summary
from horarium.launchers.launcher import AgentLine, CardSeen
from horarium.life.change import Nothing, Why
from horarium.life.event import Taken
from horarium.schedule.agent import Agent
from horarium.schedule.storable import is_storable
from horarium.schedule.target import agent_in
from horarium.store import agent_cards
from horarium.store.agent_cards import SeenCard
from horarium.store.database import Connection, Database
from horarium.store.errors import is_fault_of_a_row
from horarium.store.policies import find_agents
from horarium.store.runs import unwanted_tasks
from horarium.store.runs.unwanted_tasks import UnwantedTask
from horarium.store.runs.writer import record_event
from horarium.store.schedules.due import Plannings

MAX_REFERENCE: Final = 1_024
"""Maximum characters of a target's reference for a run."""
_PAUSES: Final = (0.1, 0.5, 1.0, 2.0, 4.0)
# What is known of an agent is written again only so often, unless it has changed; of so many agents that is remembered.
_SEEN_EVERY = 30 * SECOND
_MOST_AGENTS = 10_000


class HoldersDesk:
    """Shared services with which a process's launches record data while they run."""

    def __init__(
        self, database: Database, clock: Clock, threads: Threads, known: Plannings, log: FilteringBoundLogger
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
            event = Taken(reference, work.lease_epoch)
            change = record_event(connection, self._known, work.run_id, event, each.rules, now=now)
            agent_id = agent_in(work.target)
            if change == Nothing(Why.TOO_LATE) and agent_id is not None:
                # It has ended while it was being sent: whoever ended it could not know what to call off.
                left = UnwantedTask(work.run_id, reference, work.namespace, agent_id)
                unwanted_tasks.add(connection, [left], now)

        await self._threads.run(lambda: self._database.write(write))

    async def see(self, namespace: str, line: AgentLine, card: CardSeen) -> None:
        """Raises what the database raises."""
        now, key, seen = self._clock.now(), (namespace, line.agent_id), _kept(card)
        before = self._seen.get(key)
        if before is not None and before[0] == seen and 0 <= now - before[1] < _SEEN_EVERY:
            return

        def write(connection: Connection) -> None:
            agent = find_agents(connection, [key]).get(key)
            if isinstance(agent, Agent) and agent.url == line.url:  # what another address says is not its own
                agent_cards.keep(connection, *key, seen, now)

        await self._threads.run(lambda: self._database.write(write))
        self._seen[key] = seen, now
        self._seen.move_to_end(key)
        while len(self._seen) > _MOST_AGENTS:
            self._seen.popitem(last=False)


def _kept(seen: CardSeen) -> SeenCard:
    card = summary(seen.card)
    if card is None and seen.card is not None:
        return SeenCard(None, None, seen.error or "its agent card is invalid", seen.dialect)
    return SeenCard(card, seen.etag, seen.error, seen.dialect)


class Held:
    """The holder of one launch, as its launcher sees it (`launchers/launcher.py`)."""

    def __init__(self, each: InFlight, line: AgentLine, desk: HoldersDesk) -> None:
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
