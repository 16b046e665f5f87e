"""When there will be something to do, seen from now: for who decides when to look again."""

from __future__ import annotations

from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy import Connection

from horarium.instant import Instant
from horarium.schedule.run import OPEN
from horarium.store.runs.states import OPEN_ROOT, sql_list
from horarium.store.schedules.pauses import Earliest, earliest

# With the conditions of the indexes `runs_open` and `runs_steps`, which are nearly empty while nothing happens.
_LOOK = sa.text(
    f"""
SELECT EXISTS (SELECT 1 FROM runs WHERE {OPEN_ROOT})
  OR EXISTS (SELECT 1 FROM runs WHERE root_run_id IS NOT NULL AND state IN {sql_list(OPEN)})
  OR EXISTS (SELECT 1 FROM step_changes)
"""
)


class Outlook(NamedTuple):
    """`has_open_runs`: or one that has ended, and of which something is yet to be noted."""

    earliest: Earliest
    has_open_runs: bool

    @property
    def next_due(self) -> Instant | None:
        """When a schedule has to be decided or a pause to be ended next, or since when one has."""
        return self.earliest.moment

    def is_quiet(self, now: Instant) -> bool:
        """Nothing can happen by itself before `next_due`."""
        return not self.has_open_runs and (self.next_due is None or self.next_due > now)


def look_ahead(connection: Connection) -> Outlook:
    return Outlook(earliest(connection), bool(connection.execute(_LOOK).scalar_one()))
