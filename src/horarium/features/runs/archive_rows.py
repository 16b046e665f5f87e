"""SQL of the archive: move whole trees of ended runs to `runs_archive`, and delete old ones.

Runs move when they ended long enough ago and a newer one has taken their place, so that decisions still find what they
ask for in `runs`. A tree stays while something needs it: a lock, an open approval request, or a change that its
workflow or an agent has yet to learn of. One process at a time moves runs; the others find nothing to do.

Most archived runs are dropped with their whole week. Two kinds are deleted one by one: those of namespaces with
retention days of their own, and those left two weeks after their time, in no week or where no role may drop one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from horarium.core.document.states import FINAL
from horarium.core.policy.limits import FOR_EVER, MAX_DAYS
from horarium.features.runs.retention_rows import Found, Swept, delete_runs, overtaken_runs
from horarium.instant import DAY, Instant
from horarium.platform.database.limits import Cutoffs, cutoff
from horarium.platform.database.partitions import Week, week_of
from horarium.platform.database.run_archive import has_archive
from horarium.platform.database.statements import select_by_ids
from horarium.platform.database.tables import archived_columns, namespaces, runs_archive
from horarium.platform.ids import created_at, id_at

LIMIT = 500
"""Rows that one transaction moves, at most, unless a single tree has more."""

# Held by whoever moves runs, until its transaction ends. The number is arbitrary, and nobody else's.
_ONE_AT_A_TIME = 7_201_900_001
_TRY_LOCK = f"SELECT pg_try_advisory_xact_lock({_ONE_AT_A_TIME})"

_COLUMNS = ", ".join(archived_columns)
_MOVE = f"""
WITH gone AS (DELETE FROM runs WHERE run_id = ANY(%s) RETURNING {_COLUMNS})
INSERT INTO runs_archive ({_COLUMNS}) SELECT {_COLUMNS} FROM gone
"""
_STEPS = "SELECT root_run_id FROM runs WHERE root_run_id <> run_id AND root_run_id"
_LOCK_ROOTS = "SELECT run_id, run_id, state FROM runs WHERE run_id"
_LOCK_STEPS = "SELECT run_id, root_run_id, state FROM runs WHERE root_run_id <> run_id AND root_run_id"
_FOR_UPDATE = "ORDER BY run_id FOR UPDATE SKIP LOCKED"
# What somebody is yet to answer, to take note of, or to be told.
_UNSETTLED = (
    "SELECT run_id FROM approvals WHERE decision = 'pending' AND run_id",
    "SELECT run_id FROM step_changes WHERE run_id",
    "SELECT run_id FROM unwanted_tasks WHERE run_id",
)


@dataclass(frozen=True, slots=True)
class MovedRuns:
    """`rows` of runs, born in these `weeks`; `after` is where the next look begins, None = this was the last,
    or it is not our turn.
    """

    rows: int
    after: bytes | None
    weeks: frozenset[Week] = frozenset()


def move_some(connection: Connection, *, finished_before: Instant, after: bytes, looks: int) -> MovedRuns:
    """Check the next `looks` root runs in creation order and move the eligible ones, as many as one transaction may."""
    if not has_archive(connection):
        return MovedRuns(0, None)
    if not connection.exec_driver_sql(_TRY_LOCK).scalar_one():
        return MovedRuns(0, None)
    return move(connection, overtaken_runs(connection, finished_before=finished_before, after=after, looks=looks))


def move(connection: Connection, found: Found) -> MovedRuns:
    """Move the eligible runs of `found`. A tree that is locked or not completely settled stays for another pass."""
    steps = Counter(root for (root,) in select_by_ids(connection, _STEPS, found.ids)) if found.ids else Counter()
    roots = first_trees(found.ids, steps)
    members = _settled(connection, roots, steps) if roots else []
    if members:
        connection.exec_driver_sql(_MOVE, (members,))
    weeks = frozenset(week_of(created_at(run_id)) for run_id in members)
    return MovedRuns(len(members), roots[-1] if len(roots) < len(found.ids) else found.after, weeks)


def first_trees(roots: Sequence[bytes], steps: Mapping[bytes, int], most: int = LIMIT) -> Sequence[bytes]:
    """As many as have `most` rows together, one at least: a tree moves whole, however large it is."""
    rows = 0
    for place, root in enumerate(roots):
        rows += 1 + steps.get(root, 0)
        if rows > most:
            return roots[: max(place, 1)]
    return roots


def _settled(connection: Connection, roots: Sequence[bytes], steps: Mapping[bytes, int]) -> list[bytes]:
    """Lock trees and return the ids of their rows; a tree that another transaction has locked is left out."""
    locked = select_by_ids(connection, _LOCK_ROOTS, roots, _FOR_UPDATE)
    ours = [root for root, _, _ in locked]
    if with_steps := [root for root in ours if steps.get(root)]:
        locked += select_by_ids(connection, _LOCK_STEPS, with_steps, _FOR_UPDATE)
    tree_of = {run_id: root for run_id, root, _ in locked}
    rows = Counter(tree_of.values())
    unsettled = {root for _, root, state in locked if state not in FINAL}
    unsettled |= {root for root in ours if rows[root] != 1 + steps.get(root, 0)}
    for statement in _UNSETTLED:
        unsettled |= {tree_of[run_id] for (run_id,) in select_by_ids(connection, statement, [*tree_of])}
    return sorted(run_id for run_id, root in tree_of.items() if root not in unsettled)


LEFT_AFTER = 14 * DAY
"""How long after their time runs wait for the end of their week."""

_NOTHING = Found((), None)
_ID_BYTES = 16
_LAST_ID = b"\xff" * _ID_BYTES
# Namespaces that one look goes through.
_NAMESPACES = 50
_ROOT = runs_archive.c.parent_run_id.is_(None)


def archived_of_own_days(connection: Connection, *, finished_before: Cutoffs, after: bytes, looks: int) -> Found:
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


def archived_left_over(connection: Connection, *, finished_before: Cutoffs, after: bytes, looks: int) -> Found:
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


def delete_archived(connection: Connection, run_ids: list[bytes]) -> Swept:
    return delete_runs(connection, run_ids, runs=runs_archive)
