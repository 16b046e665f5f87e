"""How many runs of a schedule wait for a yes, for schedules to which those are not busy."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, func, select, text

from horarium.store.runs.states import WAITING_ROOT
from horarium.store.tables import runs


def waiting_roots(connection: Connection, uids: Sequence[bytes]) -> dict[bytes, int]:
    """By schedule, where there are any; along an index that only such runs are in."""
    if not uids:
        return {}
    # As text, so that both databases see which index is the one to use.
    mine = select(runs.c.schedule_uid, func.count()).where(text(WAITING_ROOT), runs.c.schedule_uid.in_(uids))
    rows = connection.execute(mine.group_by(runs.c.schedule_uid))
    return {uid: int(count) for uid, count in rows}
