"""Follows an upgrade of tzdata: at the first start under other rules, plans that they move are made anew.

It happens in the background, a few hundred schedules at a step. Only times in the future are moved. When
all have been looked at, the new version is stored, and the next start has nothing to do. Processes of
two versions may run side by side for a while: each looks once, when it starts, so they never quarrel.
"""

from __future__ import annotations

from functools import partial

import structlog
from structlog.typing import FilteringBoundLogger

from horarium.clock import Clock
from horarium.recurrence.zone import tzdata_version
from horarium.store import installation
from horarium.store.database import Connection, Database
from horarium.store.database.channels import DUE
from horarium.store.schedules import zone_rules
from horarium.store.schedules.due import Plannings
from horarium.store.schedules.zone_rules import Moved

REST_SECONDS = 86_400.0
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
        look = partial(zone_rules.look, known=self._known, now=now, after=self._after, looks=_LOOKS)
        looked = self._database.read(look)
        for uid, namespace in looked.moving:
            self._moved += self._move(uid, namespace, f"tzdata {before or 'unknown'} → {version}") is not None
        if looked.after is None:
            self._database.write(partial(installation.set_planned_with, version=version))
            self._log.info("tzdata_upgraded", before=before, version=version, moved=self._moved)
        self._after = looked.after
        return self._after is not None

    def _move(self, uid: bytes, namespace: str, because: str) -> Moved | None:
        """A transaction for each: a schedule that a ticker holds is waited for, and no other with it."""

        def work(connection: Connection) -> Moved | None:
            now = self._clock.now()
            moved = zone_rules.move(connection, self._known, uid, namespace, now=now, because=because)
            if moved is not None:
                self._database.notify(connection, DUE)
            return moved

        return self._database.write(work)
