"""Mends what should never be wrong: counts that differ from what they count, and active schedules without a plan.

It looks at the start, and rarely afterwards. What it mends is logged as a warning, since something went
wrong before. Held runs that a right count lets go are released by the janitor.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import structlog
from structlog.typing import FilteringBoundLogger

from horarium.clock import Clock
from horarium.schedule.position import Status
from horarium.store.database import Connection, Database
from horarium.store.database.channels import DUE
from horarium.store.schedules import repair
from horarium.store.schedules.due import Plannings
from horarium.store.schedules.repair import Replanned

PASS_SECONDS = 3_600.0
"""Delay after a completed pass."""

_LOOKS = 500
_UNPLANNED = 100


@dataclass(frozen=True, slots=True)
class Repaired:
    """Counts of one repair step; `more`: the pass continues."""

    recounted: int = 0
    planned: int = 0
    keys: int = 0
    more: bool = False


class Repair:
    """Any number of processes may run one: what two find, one mends, and the other sees it under the lock."""

    def __init__(self, database: Database, clock: Clock, log: FilteringBoundLogger | None = None) -> None:
        self._log = log or structlog.get_logger()
        self._database = database
        self._clock = clock
        self._known = Plannings()
        self._after = b""

    def step(self) -> Repaired:
        begins = not self._after
        planned, left = self._plan_again() if begins else (0, False)
        keys = self._recount_keys() if begins else 0
        looked = self._database.read(partial(repair.miscounted, after=self._after, looks=_LOOKS))
        recounted = sum(self._recount(uid) for uid in looked.uids)
        if not left:  # a full batch of lost plans: begin again with the rest of them
            self._after = looked.after or b""
        return Repaired(recounted, planned, keys, more=left or looked.after is not None)

    def _recount(self, uid: bytes) -> bool:
        found = self._database.write(partial(repair.recount, uid=uid))
        if found is None:
            return False
        self._log.warning(
            "counts_repaired",
            namespace=found.namespace,
            schedule_id=found.schedule_id,
            active=f"{found.before.active} → {found.after.active}",
            held=f"{found.before.held} → {found.after.held}",
        )
        return True

    def _recount_keys(self) -> int:
        wrong = self._database.read(repair.miscounted_keys)
        mended = 0
        for owner in wrong:
            found = self._database.write(partial(repair.recount_key, owner=owner))
            if found is not None:
                mended += 1
                self._log.warning("counts_repaired", key=owner, active=f"{found[0]} → {found[1]}")
        return mended

    def _plan_again(self) -> tuple[int, bool]:
        """Plan schedules without a plan. Return their number and whether there may be more."""
        lost = self._database.read(partial(repair.unplanned, limit=_UNPLANNED))
        mended = 0
        for uid in lost:
            found = self._database.write(partial(self._plan, uid=uid))
            if found is not None:
                mended += 1
                self._log.warning(
                    "schedule_replanned",
                    namespace=found.namespace,
                    schedule_id=found.schedule_id,
                    status=found.status.value,
                )
        return mended, mended == _UNPLANNED

    def _plan(self, connection: Connection, uid: bytes) -> Replanned | None:
        found = repair.plan_again(connection, self._known, uid, self._clock.now())
        if found is not None and found.status is Status.ACTIVE:
            self._database.notify(connection, DUE)
        return found
