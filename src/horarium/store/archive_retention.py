"""Which runs of the archive are forgotten one by one, though most go with their whole week.

Those of namespaces that keep runs for days of their own; and whatever is left two weeks after its time, because it
lies in no week, or because nobody may drop one.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from horarium.ids import id_at
from horarium.instant import DAY, Instant
from horarium.policy.retention import FOR_EVER, MAX_DAYS
from horarium.store.cutoffs import Cutoffs, cutoff
from horarium.store.retention import Found, Swept, delete_runs
from horarium.store.runs.everywhere import has_archive
from horarium.store.tables import namespaces, runs_archive

LEFT_AFTER = 14 * DAY
"""How long after their time runs wait for the end of their week."""

_NOTHING = Found((), None)
_ID_BYTES = 16
_LAST_ID = b"\xff" * _ID_BYTES
# Namespaces that one look goes through.
_NAMESPACES = 50
_ROOT = runs_archive.c.parent_run_id.is_(None)


def of_own_days(connection: Connection, *, finished_before: Cutoffs, after: bytes, looks: int) -> Found:
    """Next `looks` runs that are older than their namespace's own retention, in order of namespace and id.

    Each is found by the ids that are old enough. What a namespace retains is not read, however much it is.
    """
    if not has_archive(connection):
        return _NOTHING
    name, last = after[: -_ID_BYTES - 1].decode(), after[-_ID_BYTES:]
    found: list[bytes] = []
    choosy = _with_own_days(connection, finished_before, name, is_done=last == _LAST_ID)
    for each, days in choosy:
        ended_by: Instant = finished_before.now - min(days, MAX_DAYS) * DAY
        first = last if each == name else b""
        old = _old_of(each, ended_by, first).limit(looks - len(found))
        found += [row.run_id for row in connection.execute(old)]
        if len(found) == looks:
            return Found(tuple(found), _place(each, found[-1]))
    return Found(tuple(found), _place(choosy[-1][0], _LAST_ID) if len(choosy) == _NAMESPACES else None)


def _with_own_days(connection: Connection, before: Cutoffs, first: str, *, is_done: bool) -> list[tuple[str, int]]:
    """The next ones, from `first` on, or after it."""
    own, name = namespaces.c[before.kept.value], namespaces.c.namespace
    mine = sa.select(name, own).where(own > FOR_EVER, name > first if is_done else name >= first)
    return [(row[0], row[1]) for row in connection.execute(mine.order_by(name).limit(_NAMESPACES))]


def _old_of(namespace: str, ended_by: Instant, after: bytes) -> sa.Select[Any]:
    run_id = runs_archive.c.run_id
    # Nothing ends before it is born.
    mine = (runs_archive.c.namespace == namespace, run_id > after, run_id < id_at(ended_by))
    return sa.select(run_id).where(*mine, _ROOT, runs_archive.c.finished_at < ended_by).order_by(run_id)


def _place(namespace: str, run_id: bytes) -> bytes:
    return namespace.encode() + b"\0" + run_id


def left_over(connection: Connection, *, finished_before: Cutoffs, after: bytes, looks: int) -> Found:
    """The overdue runs among the next `looks` in creation order: their week should already have been dropped."""
    if finished_before.usual is None or not has_archive(connection):
        return _NOTHING
    usual = finished_before.usual - LEFT_AFTER
    late = replace(finished_before, usual=usual, latest=usual)
    old = sa.and_(*_is_old(late))
    rows = connection.execute(
        sa.select(runs_archive.c.run_id, old.label("may_go"))
        .where(runs_archive.c.run_id > after, runs_archive.c.run_id < id_at(usual), _ROOT)
        .order_by(runs_archive.c.run_id)
        .limit(looks)
    ).all()
    following = rows[-1].run_id if len(rows) == looks else None
    return Found(tuple(row.run_id for row in rows if row.may_go), following)


def _is_old(before: Cutoffs) -> tuple[sa.ColumnElement[Any], ...]:
    return (
        runs_archive.c.run_id < id_at(before.latest),
        _ROOT,
        runs_archive.c.finished_at < cutoff(before, runs_archive.c.namespace),
    )


def delete(connection: Connection, run_ids: list[bytes]) -> Swept:
    return delete_runs(connection, run_ids, runs=runs_archive)
