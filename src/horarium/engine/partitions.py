"""Keeps what grows with time in tables of a week each: makes those of the coming weeks before they begin.

Any number of processes may run one; a transaction is the turn of one of them. Where the database has no partitions,
or the role may not make any, everything goes on without: rows are in the partition that takes the rest.
"""

from __future__ import annotations

from dataclasses import dataclass

import structlog
from structlog.typing import FilteringBoundLogger

from horarium.clock import Clock
from horarium.store import partition_upkeep
from horarium.store.database import Database
from horarium.store.partition_upkeep import Outcome
from horarium.store.partitions import TABLES, Partition, missing

UPKEEP_SECONDS = 3_600.0
"""How long to rest when all is done."""

FIRST_SECONDS = 60.0
"""After the start, and after somebody else was found at it."""


@dataclass(frozen=True, slots=True)
class Upkept:
    """The tables of a week that one step made; `more`: something is left to do, soon."""

    made: int = 0
    more: bool = False


class PartitionUpkeep:
    def __init__(self, database: Database, clock: Clock, log: FilteringBoundLogger | None = None) -> None:
        self._database = database
        self._clock = clock
        self._log = log or structlog.get_logger()
        self._told: set[str] = set()

    def step(self) -> Upkept:
        return self._make()

    def _make(self) -> Upkept:
        now = self._clock.now()
        there = self._database.read(partition_upkeep.there)
        # Tables that an older release has are whole: there is nothing to add to.
        parted = {each.table for each in there if each.is_default}
        made = 0
        for new in (each for table in TABLES if table in parted for each in missing(table, there, now)):
            match partition_upkeep.make(self._database, new):
                case Outcome.DONE:
                    made += 1
                    self._log.info("a table for a week was made", table=new.name)
                case Outcome.LEFT:
                    self._tell_left(new)
                case Outcome.BUSY:
                    return Upkept(made, more=True)
                case Outcome.DENIED:
                    self._tell_denied()
                    break
        return Upkept(made)

    def _tell_left(self, new: Partition) -> None:
        if new.name not in self._told:
            self._told.add(new.name)
            self._log.info("a week stays in the default partition, which has much of it already", table=new.name)

    def _tell_denied(self) -> None:
        if "denied" not in self._told:
            self._told.add("denied")
            self._log.warning(
                "tables for the coming weeks cannot be made",
                remedy="let the role of the service own its tables, and GRANT CREATE ON SCHEMA to it",
            )
