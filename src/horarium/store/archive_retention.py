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
_ROOT = runs_archive.c.parent_run_id.is_(None)


def of_own_days(connection: Connection, *, finished_before: Cutoffs, after: bytes, looks: int) -> Found:
    """Of the next `looks` that namespaces with days of their own have kept for longer, in the order of those."""
    if not has_archive(connection):
        return _NOTHING
    own = namespaces.c[finished_before.kept.value]
    choosy = sa.select(namespaces.c.namespace).where(own > FOR_EVER)
    key = (runs_archive.c.namespace, runs_archive.c.run_id)
    name, run_id = after[: -_ID_BYTES - 1].decode(), after[-_ID_BYTES:]
    rows = connection.execute(
        sa.select(*key)
        .where(
            runs_archive.c.namespace.in_(choosy),
            sa.tuple_(*key) > sa.tuple_(sa.literal(name), sa.literal(run_id)),
            *_is_old(finished_before),
        )
        .order_by(*key)
        .limit(looks)
    ).all()
    following = rows[-1].namespace.encode() + b"\0" + rows[-1].run_id if len(rows) == looks else None
    return Found(tuple(row.run_id for row in rows), following)


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
