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
from horarium.instant import DAY
from horarium.policy.retention import FOR_EVER
from horarium.store.cutoffs import Cutoffs, cutoff
from horarium.store.retention import Found, Swept, delete_runs
from horarium.store.runs.everywhere import has_archive
from horarium.store.tables import namespaces, runs_archive

LEFT_AFTER = 14 * DAY
"""How long after their time runs wait for the end of their week."""

_NOTHING = Found((), None)
_ID_BYTES = 16
_LAST = b"\xff" * _ID_BYTES
# Namespaces that one look goes through.
_NAMESPACES = 20
_ROOT = runs_archive.c.parent_run_id.is_(None)


def of_own_days(connection: Connection, *, finished_before: Cutoffs, after: bytes, looks: int) -> Found:
    """Of the next few namespaces with days of their own what they have kept for longer, `looks` runs at most.

    One namespace after the other, each along its index: all that the others have is never read.
    """
    if not has_archive(connection):
        return _NOTHING
    begin, last = after[: -_ID_BYTES - 1].decode(), after[-_ID_BYTES:]
    own, name = namespaces.c[finished_before.kept.value], namespaces.c.namespace
    some = sa.select(name).where(own > FOR_EVER, name >= begin).order_by(name).limit(_NAMESPACES)
    names = list(connection.execute(some).scalars())
    found: list[bytes] = []
    for each in names:
        mine = (runs_archive.c.namespace == each, runs_archive.c.run_id > (last if each == begin else b""))
        old = sa.select(runs_archive.c.run_id).where(*mine, *_is_old(finished_before))
        page = old.order_by(runs_archive.c.run_id).limit(looks - len(found))
        found += connection.execute(page).scalars()
        if len(found) == looks:
            return Found(tuple(found), _place(each, found[-1]))
    return Found(tuple(found), _place(names[-1], _LAST) if len(names) == _NAMESPACES else None)


def _place(namespace: str, run_id: bytes) -> bytes:
    """In a namespace, behind a run of it."""
    return namespace.encode() + b"\0" + run_id


def left_over(connection: Connection, *, finished_before: Cutoffs, after: bytes, looks: int) -> Found:
    """Of the next `looks` in the order of their birth those whose week ought to be gone by now."""
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
