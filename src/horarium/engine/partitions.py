"""Create partitions of coming weeks, drop old ones, and move ended runs to the archive.

Any number of processes may run one; one transaction at a time works. Where the database has no partitions, or the role
may not create any, rows stay in the default partition and are deleted one by one. So are those of a week of which too
much has to stay.

Runs move to the archive some days after they ended, some at each step, unless there is no archive or a live process
does not know of it yet.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import structlog
from structlog.typing import FilteringBoundLogger

from horarium.features.history.week_rows import ArchiveWeek, HistoryWeek, WeekOfRuns
from horarium.features.runs import archive_rows
from horarium.features.runs.archive_rows import LIMIT, MovedRuns
from horarium.instant import DAY, HOUR, Instant
from horarium.platform.clock import Clock
from horarium.platform.database import Connection, Database, partition_upkeep
from horarium.platform.database.errors import SchemaMissing
from horarium.platform.database.limits import Cutoffs
from horarium.platform.database.partition_upkeep import Outcome
from horarium.platform.database.partitions import (
    ARCHIVE,
    HISTORY,
    TABLES,
    Partition,
    Week,
    has_same,
    missing,
    missing_of,
    past,
)
from horarium.platform.database.tables import run_events, run_logs, runs_archive
from horarium.platform.ids import id_at

UPKEEP_SECONDS = 3_600.0
"""Delay after a completed pass."""

FIRST_SECONDS = 60.0
"""Delay after the start, and after another process was found at work."""

# Those that were born at the end of a week have ended by then, but for a few.
_LAST_RUNS = DAY
BESIDE_RUNS = {"run_events": run_events, "run_logs": run_logs}
# A week of which too much has to stay is looked at again after this time.
_LOOK_AGAIN = DAY

OldBefore: TypeAlias = Callable[[Instant], tuple[Cutoffs | None, Cutoffs | None]]
"""Retention of history and runs; None = unlimited."""


@dataclass(frozen=True, slots=True)
class UpkeepResult:
    """The tables of a week that one step made and dropped.

    `more`: the pass goes on. `busy`: it ended early, since somebody else was at it or held a lock.
    """

    made: int = 0
    dropped: int = 0
    more: bool = False
    busy: bool = False


def runs_forgotten_by(before: Cutoffs) -> Instant | None:
    """When a week of runs must have ended to be dropped; None = none is.

    By the days that hold for most: those of namespaces that keep less go one by one, and never make a week go into
    which others' runs are still moving.
    """
    return None if before.usual is None else before.usual - _LAST_RUNS


class _Drop(Protocol):
    def step(self) -> Outcome | None: ...


class PartitionUpkeep:
    def __init__(
        self, database: Database, clock: Clock, old_before: OldBefore, log: FilteringBoundLogger | None = None
    ) -> None:
        self._database = database
        self._clock = clock
        self._old_before = old_before
        self._log = log or structlog.get_logger()
        self._told: set[str] = set()
        self._left: dict[str, Instant] = {}
        self._pass: Iterator[UpkeepResult] | None = None

    def step(self) -> UpkeepResult:
        """A transaction or a few; with the last step of a pass the next one begins anew."""
        if self._pass is None:
            self._pass = self._go()
        try:
            done = next(self._pass, UpkeepResult())
        except BaseException:
            self._pass = None
            raise
        if not done.more:
            self._pass = None
        return done

    def _go(self) -> Iterator[UpkeepResult]:
        now = self._clock.now()
        if self._is_denied():
            return
        made = self._make(now)
        if made.busy:
            yield made
            return
        yield UpkeepResult(made.made, more=True)
        for table, before, ended_by in self._tables(now):
            there = self._database.read(partition_upkeep.there)
            for part in past([each for each in there if each.table == table], ended_by):
                if self._left.get(part.name, now) > now or (table in BESIDE_RUNS and has_same(ARCHIVE, part, there)):
                    outcome = Outcome.LEFT  # what belongs to runs goes after them
                else:
                    outcome = yield from self._drop(part, before, now)
                if outcome in (Outcome.BUSY, Outcome.DENIED):
                    yield UpkeepResult(busy=outcome is Outcome.BUSY)
                    return
                if outcome is Outcome.LEFT and table == HISTORY:
                    break  # which is forgotten from the front

    def _is_denied(self) -> bool:
        """Whoever may not make tables leaves all of it to others."""

        def look(connection: Connection) -> bool:
            return bool(partition_upkeep.there(connection)) and not partition_upkeep.may(connection)

        denied = self._database.read(look)
        if denied:
            self._tell_denied()
        return denied

    def _tables(self, now: Instant) -> Iterator[tuple[str, Cutoffs, Instant]]:
        """Each with the instant before which a week of it must have ended."""
        history, runs = self._old_before(now)
        if history is not None:
            yield HISTORY, history, history.latest
        if runs is not None and (ended_by := runs_forgotten_by(runs)) is not None:
            for table in (ARCHIVE, *BESIDE_RUNS):
                yield table, runs, ended_by

    def _job(self, part: Partition, before: Cutoffs, now: Instant) -> _Drop:
        if part.table == HISTORY:
            return HistoryWeek(self._database, part, before, now=now)
        if part.table == ARCHIVE:
            return ArchiveWeek(self._database, part, before)
        return WeekOfRuns(self._database, part, BESIDE_RUNS[part.table])

    def _drop(self, part: Partition, before: Cutoffs, now: Instant) -> Generator[UpkeepResult, None, Outcome]:
        try:
            job = self._job(part, before, now)
            while (outcome := job.step()) is None:
                yield UpkeepResult(more=True)
        except SchemaMissing:
            if any(each.name == part.name for each in self._database.read(partition_upkeep.there)):
                raise
            outcome = Outcome.TAKEN
        if outcome is Outcome.DONE:
            self._log.info("partition_dropped", table=part.name)
            yield UpkeepResult(dropped=1, more=True)
        elif outcome is Outcome.LEFT:
            self._left[part.name] = now + _LOOK_AGAIN
            self._log.info("partition_deleted_by_row", table=part.name)
        elif outcome is Outcome.DENIED:
            self._tell_denied()
        return outcome

    # ── the coming weeks ─────────────────────────────────────────────────────────────────────────

    def _make(self, now: Instant) -> UpkeepResult:
        there = self._database.read(partition_upkeep.there)
        # SQLite has no partitions.
        parted = {each.table for each in there if each.is_default}
        made = 0
        for new in (each for table in TABLES if table in parted for each in missing(table, there, now)):
            match partition_upkeep.make(self._database, new):
                case Outcome.DONE:
                    made += 1
                    self._log.info("partition_created", table=new.name)
                case Outcome.TAKEN:
                    continue
                case Outcome.LEFT:
                    self._tell_left(new)
                case Outcome.BUSY:
                    return UpkeepResult(made, busy=True)
                case Outcome.DENIED:
                    self._tell_denied()
                    break
        return UpkeepResult(made)

    def _tell_left(self, new: Partition) -> None:
        if new.name not in self._told:
            self._told.add(new.name)
            self._log.info("partition_not_created", table=new.name)

    def _tell_denied(self) -> None:
        if "denied" not in self._told:
            self._told.add("denied")
            self._log.warning(
                "partition_create_denied",
                remedy="make the database role the owner of the tables and GRANT it CREATE ON SCHEMA",
            )


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

    def step(self) -> MovedRuns:
        """Move some runs in one transaction; after the last of a pass the next one begins anew."""
        if self._database.dialect != "postgresql" or not self._days:
            return MovedRuns(0, None)
        now = self._clock.now()
        after = max(self._after or b"", self._first(now))
        moved = self._database.write(
            lambda connection: archive_rows.move_some(
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
