"""Tells the feed when a schedule begins or ceases to need somebody: it fails, is late, waits for an approval.

It looks every `LOOK_SECONDS` at those that may be unwell and at those that were, never at the others. Where they are
very many it goes on from one look to the next, so that nobody's crowd hides somebody else's schedule. One process at a
time writes, and judges by what is remembered then: a change is told once, however many processes look.
"""

from __future__ import annotations

from horarium.clock import Clock
from horarium.decision.health import Health, judge, must_be_told
from horarium.instant import Instant
from horarium.schedule.event import NoticeType
from horarium.store.database import Connection, Database
from horarium.store.history import notices
from horarium.store.history.notices import Notice
from horarium.store.schedules import health as stored
from horarium.store.schedules import unwell
from horarium.store.schedules.due import Plannings
from horarium.store.schedules.rows import ScheduleRow

LOOK_SECONDS = 10.0
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

    def _look(self, connection: Connection, now: Instant) -> tuple[list[tuple[ScheduleRow, Health]], list[bytes]]:
        """Those whose health has changed, and those that are remembered and no longer there."""
        remembered = unwell.page(connection, after=self._after, limit=MOST)
        self._after = max(remembered) if len(remembered) == MOST else b""
        uids = sorted({*stored.suspects(connection, None, now, self._failing_after, MOST, untold=True), *remembered})
        rows = [row for row, _ in stored.find_live(connection, uids)]
        vitals = stored.vitals_of(connection, self._known, rows, self._failing_after)
        judged = [(row, judge(each, now)) for row, each in zip(rows, vitals, strict=True)]
        live = {row.schedule_uid for row in rows}
        changed = [
            (row, health) for row, health in judged if must_be_told(remembered.get(row.schedule_uid), health.status)
        ]
        return changed, [uid for uid in remembered if uid not in live]


def _tell(connection: Connection, judged: list[tuple[ScheduleRow, Health]], gone: list[bytes], now: Instant) -> int:
    if not unwell.claim(connection):
        return 0  # another process tells it at this moment
    remembered = unwell.remembered(connection, [row.schedule_uid for row, _ in judged])
    changed = [(row, health) for row, health in judged if must_be_told(remembered.get(row.schedule_uid), health.status)]
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
    notices.append(connection, told, now=now)
    unwell.forget(connection, [*gone, *(row.schedule_uid for row, _ in changed)])
    unwell.remember(connection, [(row.schedule_uid, row.namespace, health.status) for row, health in changed], now=now)
    return len(told)
