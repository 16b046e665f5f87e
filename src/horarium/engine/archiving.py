"""Moves runs that ended some days ago to the archive, some at each step, then rests until the next pass.

Any number of processes may run one: one of them moves at a time. Where there is no archive, or somebody alive does not
know of it yet, nothing happens.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from horarium.clock import Clock
from horarium.engine.partitions import OldBefore, runs_forgotten_by
from horarium.ids import id_at
from horarium.instant import DAY, HOUR, Instant
from horarium.store import archive, partition_upkeep
from horarium.store.archive import LIMIT, Moved
from horarium.store.database import Database
from horarium.store.partition_upkeep import Outcome
from horarium.store.partitions import Week, missing_of
from horarium.store.tables import runs_archive

ARCHIVE_SECONDS = 60.0
"""Delay after a completed pass."""

ARCHIVE_AFTER_DAYS = 7
"""Default delay between the end of a run and its move to the archive."""


# Whoever drops a week may be a little ahead of whoever moves runs.
_MARGIN = HOUR


class Archiving:
    def __init__(self, database: Database, clock: Clock, old_before: OldBefore, days: int = ARCHIVE_AFTER_DAYS) -> None:
        """`days` 0 = nothing ever moves."""
        self._database = database
        self._old_before = old_before
        self._clock = clock
        self._days = days
        self._after: bytes | None = b""
        self._weeks: set[Week] = set()

    def step(self) -> Moved:
        """Move some runs in one transaction; after the last of a pass the next one begins anew."""
        if self._database.dialect != "postgresql" or not self._days:
            return Moved(0, None)
        now = self._clock.now()
        after = max(self._after or b"", self._first(now))
        moved = self._database.write(
            lambda connection: archive.move_some(
                connection, finished_before=now - self._days * DAY, after=after, looks=LIMIT
            )
        )
        self._after = moved.after
        self._make(moved.weeks - self._weeks)
        return moved

    def _first(self, now: Instant) -> bytes:
        """Those born before are of weeks that may be dropped just now, with whatever moves into them. What is left of
        them ran for as long as runs are kept, and stays where it is.
        """
        _, runs = self._old_before(now)
        ended_by = None if runs is None else runs_forgotten_by(runs)
        return b"" if ended_by is None else id_at(ended_by + _MARGIN)

    def _make(self, weeks: AbstractSet[Week]) -> None:
        """Create missing tables of earlier weeks.

        Their first runs are in the default partition, from which they move when the week gets a table. A role that
        may not create tables leaves them there.
        """
        if not weeks:
            return
        there = self._database.read(partition_upkeep.there)
        for new in missing_of(runs_archive.name, there, sorted(weeks, key=lambda week: week.start)):
            if partition_upkeep.make(self._database, new) is Outcome.BUSY:
                return  # with the next runs of that week
        self._weeks |= weeks
