"""How a newer occurrence makes room for itself: the active runs of its schedule are ended, or asked to stop."""

from __future__ import annotations

from sqlalchemy import Connection, update

from horarium.instant import Instant
from horarium.life.change import End
from horarium.life.event import ApprovalExpired, Terminated
from horarium.life.live_run import NO_RULES
from horarium.life.react import react
from horarium.policy.deciding import SUPERSEDED
from horarium.store.runs.changes import write_changes
from horarium.store.runs.descendants import end_below
from horarium.store.runs.states import ACTIVE_LIST, ACTIVE_NAMES, WAITING_ROOT
from horarium.store.runs.step_changes import note_stops
from horarium.store.runs.work import COLUMNS, as_works
from horarium.store.tables import runs

_SELECT = (
    f"SELECT {COLUMNS} FROM runs WHERE schedule_uid = {{mark}} AND parent_run_id IS NULL AND state IN {ACTIVE_LIST} "
)


def end_active(
    connection: Connection, schedule_uid: bytes, *, now: Instant, keep: frozenset[bytes] = frozenset()
) -> int:
    """Terminate what is active, for `terminate_other`; the caller's plan has counted them out already."""
    postgres = connection.dialect.name == "postgresql"
    statement = _SELECT.format(mark="%s" if postgres else "?") + ("FOR UPDATE" if postgres else "")
    works = as_works(connection.exec_driver_sql(statement, (schedule_uid,)))
    replaced = Terminated("replaced by a newer occurrence", "terminate_other")
    changes = [(work, react(work, replaced, NO_RULES, now)) for work in works if work.run_id not in keep]
    ended = [(work, change) for work, change in changes if isinstance(change, End)]
    write_changes(connection, end_below(connection, ended, now).ended, now)
    return len(ended)


_WAITING = f"SELECT {COLUMNS} FROM runs WHERE schedule_uid = {{mark}} AND {WAITING_ROOT} "


def end_waiting(
    connection: Connection, schedule_uid: bytes, *, now: Instant, keep: frozenset[bytes] = frozenset()
) -> int:
    """End what waits for a yes, for `while_waiting: supersede`, with its question; the caller counts them out."""
    postgres = connection.dialect.name == "postgresql"
    statement = _WAITING.format(mark="%s" if postgres else "?") + ("FOR UPDATE" if postgres else "")
    works = as_works(connection.exec_driver_sql(statement, (schedule_uid,)))
    newer = ApprovalExpired(SUPERSEDED)
    changes = [(work, react(work, newer, NO_RULES, now)) for work in works if work.run_id not in keep]
    ended = [(work, change) for work, change in changes if isinstance(change, End)]
    write_changes(connection, end_below(connection, ended, now).ended, now)
    return len(ended)


def ask_active_to_stop(connection: Connection, schedule_uid: bytes, now: Instant) -> None:
    """For `cancel_other`: the runs are asked; after the grace they are terminated by a release."""
    asked = connection.execute(
        update(runs)
        .where(
            runs.c.schedule_uid == schedule_uid,
            runs.c.parent_run_id.is_(None),
            runs.c.state.in_(ACTIVE_NAMES),
            runs.c.stop_requested_at.is_(None),
        )
        .values(stop_requested_at=now)
        .returning(runs.c.run_id)
    )
    note_stops(connection, list(asked.scalars()))
