"""How generated secrets end: with the schedule, or the run without one, whose credentials they hold.

Which they are stands in what is stored of their owner. One of which the owner is alive again, because somebody made
a new schedule of the same id, stays.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import sqlalchemy as sa
from sqlalchemy import Connection

from horarium.ids import id_text
from horarium.schedule.credentials import is_generated_for, of_run, of_schedule
from horarium.schedule.secret import KEY, found_in
from horarium.store.database.json_text import from_text
from horarium.store.runs import everywhere
from horarium.store.tables import run_definitions, runs, schedule_revisions, schedules, secrets

# Of one schedule, the newest: each may have a megabyte.
_MOST_REVISIONS = 50
_NAMES_ONE = f'%"{KEY}"%'


def forget_of_schedule(connection: Connection, uid: bytes, namespace: str, schedule_id: str) -> None:
    """For whoever deletes it."""
    mine = (schedule_revisions.c.schedule_uid == uid, schedule_revisions.c.document.like(_NAMES_ONE))
    newest = sa.select(schedule_revisions.c.document).where(*mine).order_by(schedule_revisions.c.revision.desc())
    texts = connection.execute(newest.limit(_MOST_REVISIONS)).scalars()
    _forget(connection, namespace, of_schedule(schedule_id), texts.all())


def forget_of_schedules(connection: Connection, uids: Collection[bytes]) -> None:
    """For whoever takes their rows away: those that have no schedule of the same id beside them."""
    if not uids:
        return
    other = schedules.alias()
    again = sa.exists().where(
        other.c.namespace == schedules.c.namespace,
        other.c.schedule_id == schedules.c.schedule_id,
        other.c.schedule_uid.not_in(list(uids)),
    )
    named = sa.exists().where(
        schedule_revisions.c.schedule_uid == schedules.c.schedule_uid, schedule_revisions.c.document.like(_NAMES_ONE)
    )
    columns = sa.select(schedules.c.schedule_uid, schedules.c.namespace, schedules.c.schedule_id)
    for row in connection.execute(columns.where(schedules.c.schedule_uid.in_(list(uids)), ~again, named)).all():
        forget_of_schedule(connection, row.schedule_uid, row.namespace, row.schedule_id)


def forget_of_runs(connection: Connection, run_ids: Collection[bytes]) -> None:
    """The same for runs that no schedule asked for."""
    found = everywhere.every(
        connection,
        sa.select(runs.c.run_id, runs.c.namespace, run_definitions.c.document)
        .join_from(run_definitions, runs, runs.c.run_id == run_definitions.c.run_id)
        .where(run_definitions.c.run_id.in_(list(run_ids)), run_definitions.c.document.like(_NAMES_ONE)),
    )
    for row in found:
        _forget(connection, row.namespace, of_run(id_text(row.run_id)), [row.document])


def _forget(connection: Connection, namespace: str, owner: str, texts: Sequence[str]) -> None:
    named = {str(each[KEY]) for text in texts for _, each in found_in(from_text(text))}
    names = [name for name in named if is_generated_for(owner, name)]
    if names:
        mine = (secrets.c.namespace == namespace, secrets.c.generated, secrets.c.name.in_(names))
        connection.execute(sa.delete(secrets).where(*mine))
