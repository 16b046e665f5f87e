"""Hand ready runs to their launchers, and write their reports and answers.

No transaction is open during a launch, and a launch that waits costs a coroutine. Answers are collected and written
many at a time. While a launch is under way its lease is renewed; a request to stop the run is read with that renewal.

A launch reports the target's reference, the agent's card and log lines while it lasts. The reference is as valuable as
an answer: while the database is unavailable it waits, and the fence decides whether it still counts.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import OrderedDict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple, Protocol

import structlog
from structlog.typing import FilteringBoundLogger

from horarium.core.document.definition import agent_in
from horarium.core.document.json_values import is_storable
from horarium.core.document.secret_values import Redactor
from horarium.core.lifecycle.outcome import (
    GivenBack,
    LaunchAnswered,
    Nothing,
    NothingCause,
    Outcome,
    ReportTokens,
    RunCancelled,
    TargetAccepted,
    UnstorableAnswer,
    without_secrets,
)
from horarium.engine.capacity import Capacity
from horarium.engine.claimer import Claimer, ClaimResult, DispatcherOptions, InFlight
from horarium.engine.loop import OUTAGE_BACKOFF_SECONDS, EngineThreads, Loop, Pulse, Trouble, live, sleep_until_woken
from horarium.errors import HorariumError
from horarium.features.agents import rows as agent_rows
from horarium.features.agents import task_rows
from horarium.features.agents.definition import AgentDefinition
from horarium.features.agents.policy_rows import find_agents
from horarium.features.agents.rows import SeenCard
from horarium.features.agents.task_rows import UnwantedTask
from horarium.features.runs import claim_rows, update_rows
from horarium.features.runs.preparation import Preparers
from horarium.features.runs.transition_rows import (
    ReportedEvent,
    SettledRun,
    read_run_fields,
    record_event,
    record_events,
    settled,
)
from horarium.features.runs.update_rows import NewLines
from horarium.features.schedules.due_rows import Plannings
from horarium.instant import SECOND, Instant
from horarium.launchers.a2a.card import summary
from horarium.launchers.launcher import AgentLine, CardSeen, LaunchRequest
from horarium.launchers.registry import Registry
from horarium.platform.clock import Clock
from horarium.platform.database import Connection, Database
from horarium.platform.database.errors import is_fault_of_a_row
from horarium.platform.database.wakeups import READY
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
        return update_rows.append_lines(connection, self.lines, most=most) if self.lines else set()

    def append_locked(self, connection: Connection, epochs: Mapping[bytes, int], most: int) -> None:
        """`epochs` are those of runs that the caller has locked: who has another has lost its run."""
        ours = [each for each in self.lines if epochs.get(each.run_id) == each.epoch]
        update_rows.append_locked_lines(connection, ours, most=most)

    def done(self, kept: Collection[bytes] | None = None) -> None:
        """None = they all are."""
        for lines, log in zip(self.lines, self.logs, strict=True):
            if kept is None or lines.run_id in kept:
                log.done(lines.batch)


NO_LINES = UnsavedLines()


# While runs wait for places, a claim waits for so many of them, or so long.
_GATHERED = 16
_GATHER_SECONDS = 0.02
# While another process takes places at the same agents.
_CONTENDED_SECONDS = 0.05
# Of the grace at a stop, kept for asking the rest to stop, and for writing down and giving back.
_LAST_SECONDS = 2.0
# How late whoever follows a run hears of it, and how many runs one transaction writes down.
_LINES_SECONDS = 1.0
_LINES_AT_ONCE = 50


class DeliveryObserver(Protocol):
    """Whoever wants to hear what was launched and how runs ended."""

    def settled(self, runs: Sequence[SettledRun], now: Instant) -> None: ...


class LaunchAnswer(NamedTuple):
    """`outcome` None = nothing was launched, through no fault of the run: it goes back as it was."""

    of: InFlight
    outcome: Outcome | None


class Dispatcher:
    def __init__(
        self,
        database: Database,
        clock: Clock,
        registry: Registry,
        owner: str,
        options: DispatcherOptions | None = None,
        observer: DeliveryObserver | None = None,
        log: FilteringBoundLogger | None = None,
        *,
        preparers: Preparers,
        tokens: ReportTokens | None = None,
        threads: EngineThreads | None = None,
    ) -> None:
        self._log = log or structlog.get_logger()
        self._database = database
        self._clock = clock
        self._registry = registry
        self._options = options or DispatcherOptions()
        self._observer = observer
        self._threads = threads or EngineThreads()
        self._known = Plannings()
        self._claimer = Claimer(database, clock, registry, owner, self._options, tokens, preparers, self._log)
        self._unread = Trouble(self._log, "runs_read_failed", "runs_read_recovered")
        self._desk = LaunchReports(database, clock, self._threads, self._known, self._log)
        self._room = Capacity(self._options.limits)
        # By run and lease: a run that was lost and taken again is another delivery.
        self._in_flight: dict[tuple[bytes, int], InFlight] = {}
        self._answers: asyncio.Queue[LaunchAnswer] = asyncio.Queue()
        self._wake: asyncio.Event | None = None
        # Lines that are just being written are still in their logs: whoever takes the last of them waits.
        self._keeping = asyncio.Lock()
        self._somebody_waits = False
        self._working = 0
        self._freed = 0
        self._enough = 1

    @property
    def in_flight(self) -> int:
        return len(self._in_flight)

    async def step(self) -> int:
        """Claim, launch, wait for all answers, settle: one round, for tests and for `horarium tick`."""
        claimed = await self.claim()
        outcomes = await asyncio.gather(*(self._deliver(each) for each in claimed.taken))
        await self.settle([LaunchAnswer(each, outcome) for each, outcome in zip(claimed.taken, outcomes, strict=True)])
        return len(claimed.taken) + len(claimed.handed)

    async def run(self, stop: asyncio.Event, wake: asyncio.Event, grace_seconds: float, pulse: Pulse) -> None:
        """Until `stop`: then nothing more is claimed, and what is in flight may finish within the grace."""
        self._wake = wake
        settling = asyncio.create_task(self._settle_for_ever(), name="settle")
        renewing = asyncio.create_task(self._renew_for_ever(), name="renew")
        keeping = asyncio.create_task(self._keep_lines_for_ever(), name="lines")
        try:
            await live(Loop("dispatcher", self._claim_step), stop, wake, self._clock, pulse)
            await self._drain(grace_seconds)
        finally:
            for task in (renewing, settling, keeping):
                task.cancel()
            await asyncio.gather(settling, renewing, keeping, return_exceptions=True)

    # ── claiming and launching ───────────────────────────────────────────────────────────────────

    async def claim(self) -> ClaimResult:
        room, in_hand = self._room.copy(), {run_id for run_id, _ in self._in_flight}
        claimed = await self._threads.run(lambda: self._claimer.claim(room, in_hand))
        if claimed.handed and self._observer is not None:
            self._observer.settled([SettledRun(*each) for each in claimed.handed], self._clock.now())
        return claimed

    async def _claim_step(self) -> float:
        """Begin what there is room for; an answer that makes room wakes the loop where somebody waits for it."""
        if len(self._in_flight) - self._working >= self._options.limits.process:
            self._somebody_waits = True
            return 1.0  # answers that wait to be written down take up no place, but memory
        claimed = await self.claim()
        for each in claimed.taken:
            self._in_flight[each.key] = each
            self._room.enter(each.seat)
            each.task = asyncio.create_task(self._carry(each), name="launch")
        self._working += len(claimed.taken)
        self._freed, self._enough = 0, max(1, min(_GATHERED, len(claimed.taken) // 2))
        self._somebody_waits = claimed.waiting or claimed.more
        if claimed.more and (claimed.taken or claimed.handed):
            return 0
        return _CONTENDED_SECONDS if claimed.contended else 1.0

    async def _carry(self, each: InFlight) -> None:
        if isinstance(each.request, HorariumError):  # the next claim would most likely meet the same trouble
            self._unread.failed(each.request, **each.about)
            await sleep_until_woken(each.cancelled, seconds=OUTAGE_BACKOFF_SECONDS)
        outcome = await self._deliver(each)
        self._leave(each)
        if (each.stopped or each.lost) and not each.unwanted and isinstance(outcome, RunCancelled):
            if each.lost:
                self._done_with(each)  # whoever has it now goes on; nobody wanted it cancelled
            return  # `_drain` gives back what we stopped
        each.answered = True
        await self._answers.put(LaunchAnswer(each, outcome))

    async def _deliver(self, each: InFlight) -> Outcome | None:
        """Never raises: a run without an answer would keep its place, and its lease, for ever."""
        if isinstance(each.request, HorariumError):
            return None
        if not isinstance(each.request, LaunchRequest):
            return each.request
        self._unread.over()
        each.begun = True
        request = each.request
        if request.agent is not None:
            request = replace(request, holder=LaunchHolder(each, request.agent, self._desk))
        outcome = await self._registry.launch(request)
        if not request.secrets:
            return outcome
        # Of a large answer it takes a moment, which the other launches must not wait for.
        return await asyncio.to_thread(without_secrets, outcome, Redactor(request.secrets))

    def _leave(self, each: InFlight) -> None:
        """Its place is free as soon as it has its answer: the next one begins while that is being written down."""
        self._room.leave(each.seat)
        self._working -= 1
        self._wake_if_somebody_waits()

    def _done_with(self, each: InFlight) -> None:
        self._in_flight.pop(each.key, None)
        self._wake_if_somebody_waits()

    def _wake_if_somebody_waits(self) -> None:
        """When a few places are free, or a moment later: a claim for each single one would be mostly commits."""
        if not self._somebody_waits or self._wake is None:
            return
        self._freed += 1
        if self._freed >= self._enough or self._working == 0:
            self._wake.set()
        elif self._freed == 1:
            asyncio.get_running_loop().call_later(_GATHER_SECONDS, self._wake.set)

    # ── settling ─────────────────────────────────────────────────────────────────────────────────

    async def settle(self, answers: Sequence[LaunchAnswer]) -> None:
        if not answers:
            return
        now = self._clock.now()
        happened = [_answered(each) for each in answers]
        works = (each.of.work for each in answers)
        schedules = {
            work.schedule_uid for work in works if work.schedule_uid is not None and work.parent_run_id is None
        }
        if any(has_lines(each.of) for each in answers):
            async with self._keeping:  # what is answered is passed over from now on
                pass
        said = UnsavedLines.of((each.of for each in answers), last=True)
        try:
            recorded = await self._write_down(happened, now, schedules, said)
        except Exception as wrong:  # one of them cannot be written; the others must not be lost with it
            if not is_fault_of_a_row(wrong):
                raise
            recorded = [each for one in happened for each in await self._write_down_alone(one, now)]
        if self._observer is not None:
            self._observer.settled(recorded, now)

    async def _write_down(
        self,
        happened: Sequence[ReportedEvent],
        now: Instant,
        schedules: Collection[bytes] | None = None,
        said: UnsavedLines = NO_LINES,
    ) -> list[SettledRun]:
        """With what the runs have said last: whoever sees that one has ended can read it all."""

        def write(connection: Connection) -> list[SettledRun]:
            recorded = record_events(connection, self._known, happened, now=now, schedules=schedules)
            # They are locked, and this is what they were when they were judged.
            epochs = {each.run.run_id: each.run.lease_epoch for each in recorded}
            said.append_locked(connection, epochs, self._options.run_log_bytes)
            self._database.notify(connection, READY)
            return settled(connection, recorded)

        recorded = await self._threads.run(lambda: self._database.write(write))
        said.done()
        return recorded

    async def _write_down_alone(self, one: ReportedEvent, now: Instant) -> list[SettledRun]:
        try:
            return await self._write_down([one], now)
        except Exception as wrong:
            if not is_fault_of_a_row(wrong):
                raise
            assert isinstance(one.event, LaunchAnswered | GivenBack)
            unstorable = UnstorableAnswer(f"{type(wrong).__name__}: {wrong}", one.event.epoch)
        try:
            return await self._write_down([one._replace(event=unstorable)], now)
        except Exception as wrong:  # the run itself cannot be changed: its lease runs out
            if not is_fault_of_a_row(wrong):
                raise
            why = f"{type(wrong).__name__}: {wrong}"
            about = await self._threads.run(lambda: read_run_fields(self._database, one.run_id))
            self._log.error("run_result_write_failed", **about, error=why)
            return []

    async def _settle_for_ever(self) -> None:
        while True:
            answers = [await self._answers.get()]
            while len(answers) < self._options.batch and not self._answers.empty():
                answers.append(self._answers.get_nowait())
            await self._settle_patiently(answers)
            for each in answers:
                self._done_with(each.of)

    async def _settle_patiently(self, answers: Sequence[LaunchAnswer]) -> None:
        """An answer is worth keeping as long as the database is away: the fence decides whether it still counts."""
        trouble = Trouble(self._log, "run_results_write_retrying", "run_results_write_recovered")
        for pause in itertools.chain((0.1, 0.5, 1.0), itertools.repeat(OUTAGE_BACKOFF_SECONDS)):
            try:
                await self.settle(answers)
                trouble.over()
                return
            except Exception as wrong:
                if is_fault_of_a_row(wrong):  # their leases run out, and the janitor calls them unknown
                    for each in answers:
                        self._log.error("run_result_write_failed", **each.of.about, error=str(wrong))
                    return
                trouble.failed(wrong, count=len(answers))
                await asyncio.sleep(pause)

    # ── lines ────────────────────────────────────────────────────────────────────────────────────

    async def _keep_lines_for_ever(self) -> None:
        trouble = Trouble(self._log, "run_logs_write_retrying", "run_logs_write_recovered")
        while True:
            await asyncio.sleep(_LINES_SECONDS)
            try:
                await self.keep_lines()
                trouble.over()
            except Exception as wrong:  # they wait, as far as there is room, and go out with the answer at the latest
                trouble.failed(wrong)

    async def keep_lines(self) -> None:
        """Store output of runs in progress, for users who watch them."""
        async with self._keeping:
            speaking = [each for each in self._in_flight.values() if has_lines(each) and not each.answered]
            for first in range(0, len(speaking), _LINES_AT_ONCE):
                await self._keep(UnsavedLines.of(speaking[first : first + _LINES_AT_ONCE]))

    async def _keep(self, said: UnsavedLines) -> None:
        if said.lines:
            most = self._options.run_log_bytes
            said.done(await self._threads.run(lambda: self._database.write(lambda c: said.append(c, most))))

    # ── leases ───────────────────────────────────────────────────────────────────────────────────

    async def _renew_for_ever(self) -> None:
        trouble = Trouble(self._log, "lease_renewal_failed", "lease_renewal_recovered")
        pause = self._options.lease_seconds / 3
        while True:
            await asyncio.sleep(pause)
            try:
                await self.renew()
            except Exception as wrong:  # a lease that is not renewed is lost in time, and safely so
                trouble.failed(wrong)
                pause = min(pause, OUTAGE_BACKOFF_SECONDS)
            else:
                trouble.over()
                pause = self._options.lease_seconds / 3

    async def renew(self) -> None:
        """Keep what is ours; stop what somebody asked to stop or what was taken from us."""
        held = list(self._in_flight.values())
        if not held:
            return
        until = self._clock.now() + self._options.lease_seconds * SECOND
        works = [each.work for each in held]
        kept = await self._threads.run(
            lambda: self._database.write(lambda connection: claim_rows.renew(connection, works, until))
        )
        for each in held:
            renewed = kept.get(each.key)
            each.lost = renewed is None
            each.unwanted = renewed is not None and renewed.stop_requested
            if renewed is None or renewed.stop_requested:
                each.cancelled.set()

    # ── stopping ─────────────────────────────────────────────────────────────────────────────────

    async def _drain(self, grace_seconds: float) -> None:
        """Within the grace: what ends by itself is written down, the rest is stopped and given back."""
        ends_at = asyncio.get_running_loop().time() + grace_seconds
        self._log.info("draining", in_flight=len(self._in_flight), grace_seconds=grace_seconds)
        tasks = [each.task for each in self._in_flight.values() if each.task is not None]
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=max(grace_seconds / 2, grace_seconds - _LAST_SECONDS))
            for each in self._in_flight.values():
                if each.task in late:
                    each.stopped = True
                    each.cancelled.set()
            if late:
                await asyncio.wait(late, timeout=min(1.0, grace_seconds / 4))
        while any(each.answered for each in self._in_flight.values()) and asyncio.get_running_loop().time() < ends_at:
            await asyncio.sleep(0.02)
        await self._give_back([each for each in self._in_flight.values() if not each.answered])

    async def _give_back(self, left: Sequence[InFlight]) -> None:
        """Return launches.

        A run that the target may have received is settled as such; any other is as if never dispatched.
        """
        if left:
            happened = [
                ReportedEvent(each.work.run_id, GivenBack(each.work.lease_epoch, each.begun), each.rules)
                for each in left
            ]
            async with self._keeping:
                await self._write_down(happened, self._clock.now(), said=UnsavedLines.of(left, last=True))


def _answered(answer: LaunchAnswer) -> ReportedEvent:
    work, outcome = answer.of.work, answer.outcome
    event = GivenBack(work.lease_epoch, begun=False) if outcome is None else LaunchAnswered(outcome, work.lease_epoch)
    return ReportedEvent(work.run_id, event, answer.of.rules)
