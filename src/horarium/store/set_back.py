"""Shorten what waits for a time that a clock which ran ahead has set.

After the clock was set back, a lease that a dead process took on the wrong time would last as long as the clock was
ahead, and so would the pause of a retry. Decided occurrences stay decided: they are not touched here.
"""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy import Connection

from horarium.instant import SECOND, Instant
from horarium.store.runs.states import HANDED_OUT_LIST
from horarium.store.subscriptions.deliveries import LEASE_SECONDS
from horarium.store.tables import runs, subscriptions

MOST_LEASE_SECONDS = 30
"""No setting allows a longer lease of a run."""

_NOTED = "COALESCE((SELECT max(recorded_at) FROM run_events WHERE run_events.run_id = runs.run_id), created_at)"
# As long after the present as it was after the moment at which it was written.
_WAITING = sa.text(
    f"UPDATE runs SET ready_at = ready_at - ({_NOTED} - :now) "
    f"WHERE state IN ('ready', 'held') AND ready_at > :now AND {_NOTED} > :now"
)
# A run in the hands of its target is only asked how it is: too early does no harm.
_ASKED = sa.text(
    "UPDATE runs SET ready_at = :now WHERE state IN ('running', 'queued') AND lease_until IS NULL AND ready_at > :now"
)
_TIMED = sa.text(
    "UPDATE runs SET deadline = deadline - (started_at - :now), ends_by = ends_by - (started_at - :now), "
    f"started_at = :now WHERE state IN {HANDED_OUT_LIST} AND started_at > :now"
)


def bring_back(connection: Connection, now: Instant) -> None:
    """Change each time that the wrong clock has written into one counted from now."""
    longest = now + MOST_LEASE_SECONDS * SECOND
    connection.execute(sa.update(runs).where(runs.c.lease_until > longest).values(lease_until=longest))
    for statement in (_WAITING, _ASKED, _TIMED):
        connection.execute(statement, {"now": now})
    longest = now + LEASE_SECONDS * SECOND
    held = sa.update(subscriptions).where(subscriptions.c.lease_until > longest)
    connection.execute(held.values(lease_until=longest))
    failed = sa.update(subscriptions).where(subscriptions.c.last_error_at > now, subscriptions.c.retry_at.is_not(None))
    shifted = subscriptions.c.retry_at - (subscriptions.c.last_error_at - now)
    connection.execute(failed.values(retry_at=shifted, last_error_at=now))
