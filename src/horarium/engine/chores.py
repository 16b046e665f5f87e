"""Rare chores of a process: its heartbeat, changes of schedule health, counts of stored bytes, and new zone rules.

The heartbeat is one row that tells who the process is, what it does, whether it is leaving, and when each of its loops
last completed a step. It is deleted last, when the process ends in good order.

The health watch looks at schedules that may be unhealthy and at those that were, never at the others. Where they are
very many it continues from one look to the next, so that many of one tenant do not hide another's. One process at a
time writes, and judges by what is recorded then: a change is reported once, however many processes look.

Stored bytes are counted a piece of every table at each step, by one process at a time. Between two passes what is
written is added to the last count, so that an estimate is never older than a pass for what grows.

After an upgrade of tzdata, plans that it moves are made anew: in the background, a few hundred schedules at a step, and
only for times in the future. Then the new version is stored. Processes of two versions may run side by side for a
while: each looks once, when it starts, so they never undo each other's work.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial

import structlog
from structlog.typing import FilteringBoundLogger

from horarium.core.decision.health import HealthReport, judge, needs_notice
from horarium.core.decision.presence import BEAT_SECONDS
from horarium.core.document.states import NoticeType
from horarium.core.recurrence.zone import tzdata_version
from horarium.engine.loop import EngineThreads, Loop, Pulse, live, sleep_until_woken
from horarium.engine.ticker import Ticker
from horarium.errors import HorariumError
from horarium.features.cluster import repair_rows
from horarium.features.cluster.repair_rows import MovedPlan
from horarium.features.history import rows as history_rows
from horarium.features.history.rows import Notice
from horarium.features.schedules import health_rows as stored
from horarium.features.schedules.due_rows import Plannings
from horarium.features.schedules.rows import ScheduleRow
from horarium.instant import SECOND, Instant
from horarium.platform.clock import Clock
from horarium.platform.database import Connection, Database, bytes_stored, installation, processes
from horarium.platform.database.bytes_stored import BEGIN, CountPosition
from horarium.platform.database.processes import About, Process
from horarium.platform.database.wakeups import DUE
from horarium.platform.database.wrapper import SharedClock

_FIRST_BEAT_SECONDS = 0.1
# How often the clock is looked at; a step back by less changes nothing that matters.
_LOOK_SECONDS = 1.0
_STEP_BACK: Instant = 5 * SECOND
_NAME = "heartbeat"
TICKER, DISPATCHER = "ticker", "dispatcher"


class ProcessHeartbeat:
    """`serves` says what can be launched here, if this process comes to hand out runs."""

    def __init__(
        self,
        database: Database,
        clock: SharedClock,
        threads: EngineThreads,
        pulse: Pulse,
        *,
        owner: str,
        about: About,
        serves: Callable[[], object],
    ) -> None:
        self._database = database
        self._clock = clock
        self._threads = threads
        self._pulse = pulse
        self._owner = owner
        self._about = about
        self._serves = serves
        self._draining = False
        self._ticker: Ticker | None = None
        self._hurry = asyncio.Event()
        self._looked_at = clock.now()

    def beats_for(self, ticker: Ticker) -> None:
        """Record that the ticker is there as well, also while its own step waits for the database."""
        self._ticker = ticker

    def takes_part(self, *roles: str) -> None:
        """Add roles of this process; one that it already has is not repeated."""
        self._about = replace(self._about, roles=tuple(dict.fromkeys([*self._about.roles, *roles])))

    async def run(self, over: asyncio.Event, stop: asyncio.Event) -> None:
        """Until it is over; from `stop` on whoever looks at the processes sees at once that this one takes no more."""
        self._about = replace(self._about, started_at=self._clock.now())
        beside = [
            asyncio.create_task(self._drain(stop), name="drain"),
            asyncio.create_task(self._look(over), name="presence"),
        ]
        try:
            await live(Loop(_NAME, self.step), over, self._hurry, self._clock, self._pulse)
        finally:
            for task in beside:
                task.cancel()
            await asyncio.gather(*beside, return_exceptions=True)
            with suppress(HorariumError):  # the row grows old then
                await self._threads.run(
                    lambda: self._database.write_reserved(lambda c: processes.delete_process(c, self._owner))
                )

    async def step(self) -> float:
        completed = {name: at for name, at in self._pulse.completed.items() if name != _NAME}
        serves = self._serves() if DISPATCHER in self._about.roles else None
        process = Process(self._about, completed, serves, self._draining, self._clock.offset())
        now, owner = self._clock.now(), self._owner
        await self._threads.run(
            lambda: self._database.write_reserved(lambda c: processes.beat_process(c, owner, process, now))
        )
        ticker = self._ticker
        if ticker is not None and not self._draining:
            await self._threads.run(lambda: ticker.beat(waits=False))
        # Until a tick is done the process does not look ready: record the first one, and the first after a fault, soon.
        if TICKER not in self._about.roles or self._draining:
            return BEAT_SECONDS
        ticked_at = completed.get(TICKER)
        if ticked_at is None:
            return _FIRST_BEAT_SECONDS
        return BEAT_SECONDS if now - ticked_at <= BEAT_SECONDS * SECOND else _LOOK_SECONDS

    def look(self) -> None:
        """Count the ticker as present, and notice a clock that was set back: what it left ahead must not look alive."""
        now = self._clock.now()
        if self._ticker is not None:
            self._ticker.observe()
        # A clock that was ahead only between two looks shows in the steps that were completed meanwhile.
        if max((self._looked_at, *self._pulse.completed.values())) - now > _STEP_BACK:
            self._pulse.set_back(now)
            self._hurry.set()
        self._looked_at = now

    async def _look(self, over: asyncio.Event) -> None:
        """In no thread and without the database: both may be what everything else waits for."""
        while not over.is_set():
            self.look()
            await sleep_until_woken(over, seconds=_LOOK_SECONDS)

    async def _drain(self, stop: asyncio.Event) -> None:
        await stop.wait()
        self._draining = True
        self._hurry.set()


HEALTH_LOOK_SECONDS = 10.0
MOST = 1_000
"""Maximum schedules of each health status that one check reads."""


class HealthWatch:
    def __init__(self, database: Database, clock: Clock, failing_after: int) -> None:
        self._failing_after = failing_after
        self._database = database
        self._clock = clock
        self._known = Plannings()
        self._after = b""

    def step(self) -> int:
        """Report changes of health and return their number."""
        now = self._clock.now()
        judged, gone = self._database.read(lambda connection: self._look(connection, now))
        if not judged and not gone:
            return 0
        return self._database.write(lambda connection: _tell(connection, judged, gone, now))

    def _look(self, connection: Connection, now: Instant) -> tuple[list[tuple[ScheduleRow, HealthReport]], list[bytes]]:
        """Those whose health has changed, and those that are remembered and no longer there."""
        remembered = stored.reported_page(connection, after=self._after, limit=MOST)
        self._after = max(remembered) if len(remembered) == MOST else b""
        uids = sorted({*stored.suspects(connection, None, now, self._failing_after, MOST, untold=True), *remembered})
        rows = [row for row, _ in stored.find_live(connection, uids)]
        vitals = stored.vitals_of(connection, self._known, rows, self._failing_after)
        judged = [(row, judge(each, now)) for row, each in zip(rows, vitals, strict=True)]
        live = {row.schedule_uid for row in rows}
        changed = [
            (row, health) for row, health in judged if needs_notice(remembered.get(row.schedule_uid), health.status)
        ]
        return changed, [uid for uid in remembered if uid not in live]


def _tell(
    connection: Connection, judged: list[tuple[ScheduleRow, HealthReport]], gone: list[bytes], now: Instant
) -> int:
    if not stored.claim_reports(connection):
        return 0  # another process tells it at this moment
    remembered = stored.reported(connection, [row.schedule_uid for row, _ in judged])
    changed = [(row, health) for row, health in judged if needs_notice(remembered.get(row.schedule_uid), health.status)]
    told = [
        Notice(
            NoticeType.SCHEDULE_HEALTH,
            row.namespace,
            row.schedule_uid,
            None,
            {"status": health.status.value, "was": remembered.get(row.schedule_uid), "sentence": health.sentence},
        )
        for row, health in changed
    ]
    history_rows.append_notices(connection, told, now=now)
    stored.clear_reported(connection, [*gone, *(row.schedule_uid for row, _ in changed)])
    stored.set_reported(
        connection, [(row.schedule_uid, row.namespace, health.status) for row, health in changed], now=now
    )
    return len(told)


COUNT_SECONDS = 60.0
"""Delay after a completed pass, and the time that other processes leave to one that has started."""


class UsageCount:
    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._place: CountPosition | None = None
        self._bytes: Counter[str] = Counter()
        self._base: dict[str, int] = {}

    def step(self) -> bool:
        """Count a part of the stored bytes, and tell whether there is more to count now."""
        if self._place is None and not self._begin():
            return False
        assert self._place is not None  # it has begun
        place = self._place
        piece = self._database.read(lambda connection: bytes_stored.count_some(connection, place))
        self._bytes.update(piece.bytes)
        self._place = piece.after
        if self._place is None:
            found, base = dict(self._bytes), self._base
            self._database.write(lambda connection: bytes_stored.save(connection, found, base))
        return self._place is not None

    def _begin(self) -> bool:
        """Unless somebody has begun a moment ago, and will tell."""
        now = self._clock.now()

        def claim(connection: Connection) -> dict[str, int] | None:
            since = now - installation.bytes_counted_at(connection)
            if 0 <= since < COUNT_SECONDS * SECOND:
                return None
            installation.set_bytes_counted_at(connection, now)
            return bytes_stored.sums(connection)

        base = self._database.write(claim)
        if base is None:
            return False
        self._place, self._bytes, self._base = BEGIN, Counter(), base
        return True


TZDATA_SECONDS = 86_400.0
"""There is nothing to do after the first pass: a process cannot change its tzdata."""

_LOOKS = 200


class TzdataUpgrade:
    def __init__(self, database: Database, clock: Clock, log: FilteringBoundLogger | None = None) -> None:
        self._log = log or structlog.get_logger()
        self._database = database
        self._clock = clock
        self._known = Plannings()
        self._after: bytes | None = b""
        self._moved = 0

    def step(self) -> bool:
        """Plan some schedules again after an upgrade of tzdata, and tell whether there are more."""
        if self._after is None:
            return False
        version = tzdata_version()
        before = self._database.read(installation.planned_with)
        if before == version:
            self._after = None
            return False
        now = self._clock.now()
        look = partial(repair_rows.look_at_plans, known=self._known, now=now, after=self._after, looks=_LOOKS)
        looked = self._database.read(look)
        for uid, namespace in looked.moving:
            self._moved += self._move(uid, namespace, f"tzdata {before or 'unknown'} → {version}") is not None
        if looked.after is None:
            self._database.write(partial(installation.set_planned_with, version=version))
            self._log.info("tzdata_upgraded", before=before, version=version, moved=self._moved)
        self._after = looked.after
        return self._after is not None

    def _move(self, uid: bytes, namespace: str, because: str) -> MovedPlan | None:
        """A transaction for each: a schedule that a ticker holds is waited for, and no other with it."""

        def work(connection: Connection) -> MovedPlan | None:
            now = self._clock.now()
            moved = repair_rows.move_plan(connection, self._known, uid, namespace, now=now, because=because)
            if moved is not None:
                self._database.notify(connection, DUE)
            return moved

        return self._database.write(work)
