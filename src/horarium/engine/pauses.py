"""Ends pauses whose time has come, before the tick decides what is due: nothing is late because of a pause."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from horarium.instant import Instant
from horarium.store.database import Connection, Database
from horarium.store.database.channels import READY
from horarium.store.errors import is_fault_of_a_row
from horarium.store.schedules import pauses
from horarium.store.schedules.due import Plannings
from horarium.store.schedules.pauses import Paused

# Of a whole fleet that was paused until one instant, in one transaction.
_BATCH = 100


class PauseEnds:
    """Any number of processes may run one: what two find at once, the second finds ended under the lock."""

    def __init__(self, database: Database, known: Plannings) -> None:
        self._database = database
        self._known = known

    def step(self, now: Instant) -> bool:
        """End pauses that are over, and tell whether there may be more."""
        found = self._database.glance(partial(pauses.over, now=now, limit=_BATCH))
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
            if pauses.end(connection, self._known, paused, now=now):
                self._database.notify(connection, READY)

    def _end_alone(self, paused: Paused, now: Instant) -> None:
        try:
            self._database.write(partial(self._end, found=[paused], now=now))
        except Exception as wrong:
            if not is_fault_of_a_row(wrong):
                raise
            error = f"{type(wrong).__name__}: {wrong}"
            self._database.write(partial(pauses.keep_paused, uid=paused.schedule_uid, error=error, now=now))
