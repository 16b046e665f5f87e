"""How runs that are over move out of the way: whole trees, from `runs` to `runs_archive`, a few hundred rows at a time.

They move when they ended long enough ago and something newer has taken their place, so that what decisions ask about
is still in `runs`. Whoever has a tree in hand keeps it there: by a lock, an open question, or something that its
workflow or an agent is yet to hear of. One process at a time moves runs; the others find nothing to do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection

from horarium.ids import born_at
from horarium.instant import Instant
from horarium.schedule.run import FINAL
from horarium.store.database.set_wise import select_by_ids
from horarium.store.partitions import Week, week_of
from horarium.store.retention import Found, overtaken_runs
from horarium.store.runs.everywhere import has_archive
from horarium.store.tables import archived_columns

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
class Moved:
    """`rows` of runs, born in these `weeks`; `after` is where the next look begins, None = this was the last,
    or it is not our turn.
    """

    rows: int
    after: bytes | None
    weeks: frozenset[Week] = frozenset()


def move_some(connection: Connection, *, finished_before: Instant, after: bytes, looks: int) -> Moved:
    """Check the next `looks` root runs in creation order and move the eligible ones, as many as one transaction may."""
    if not has_archive(connection):
        return Moved(0, None)
    if not connection.exec_driver_sql(_TRY_LOCK).scalar_one():
        return Moved(0, None)
    return move(connection, overtaken_runs(connection, finished_before=finished_before, after=after, looks=looks))


def move(connection: Connection, found: Found) -> Moved:
    """Move the eligible runs of `found`. A tree that is locked or not completely settled stays for another pass."""
    steps = Counter(root for (root,) in select_by_ids(connection, _STEPS, found.ids)) if found.ids else Counter()
    roots = first_trees(found.ids, steps)
    members = _settled(connection, roots, steps) if roots else []
    if members:
        connection.exec_driver_sql(_MOVE, (members,))
    weeks = frozenset(week_of(born_at(run_id)) for run_id in members)
    return Moved(len(members), roots[-1] if len(roots) < len(found.ids) else found.after, weeks)


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
