"""Read runs from `runs` and from the archive, to which runs move some time after they end.

Only PostgreSQL has an archive. A tree of runs moves as a whole, in one transaction, and an open tree never moves. So
`runs` is read first, then the archive: a tree that moves between the two statements is found by the second at the
latest.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeVar, cast

import sqlalchemy as sa
from sqlalchemy import Connection
from sqlalchemy.sql.visitors import replacement_traverse

from horarium.platform.database.statements import select_by_ids
from horarium.platform.database.tables import runs, runs_archive

_FROM = re.compile(r"\bFROM runs\b")
S = TypeVar("S", bound=sa.Select[Any])


def has_archive(connection: Connection) -> bool:
    return connection.dialect.name == "postgresql"


def tables(connection: Connection) -> tuple[sa.Table, ...]:
    """Where runs are, the first of which is `runs`."""
    return (runs, runs_archive) if has_archive(connection) else (runs,)


def of_archive(statement: S) -> S:
    """The same question about runs that have moved."""
    return cast("S", replacement_traverse(statement, {}, _moved))


def _moved(element: Any, **_: Any) -> Any:
    """Archive counterpart of a table or a column of `runs`, under any name; None = there is no counterpart."""
    if isinstance(element, sa.Column):
        table = _archived(element.table)
        return None if table is None else table.c[element.key]
    return _archived(element)


def _archived(table: Any) -> sa.FromClause | None:
    if table is runs:
        return _alias(runs.name)  # since conditions that name an index are written as text
    if isinstance(table, sa.Alias) and table.element is runs:
        return _alias(table.name)
    return None


@lru_cache(maxsize=64)
def _alias(name: str) -> sa.FromClause:
    return runs_archive.alias(name)


@lru_cache(maxsize=64)
def text_of_archive(statement: str) -> str:
    """The same of a statement that is a text."""
    return _FROM.sub("FROM runs_archive AS runs", statement)


def row_anywhere(connection: Connection, statement: sa.Select[Any], values: Mapping[str, Any] | None = None) -> Any:
    """The one row that there can be; None = there is none."""
    found = connection.execute(statement, values).one_or_none()
    if found is None and has_archive(connection):
        found = connection.execute(of_archive(statement), values).one_or_none()
    return found


def rows_everywhere(
    connection: Connection,
    statement: sa.Select[Any],
    values: Mapping[str, Any] | None = None,
    *,
    most: int | None = None,
) -> list[Any]:
    """Rows of both, those that have not moved first; `most` = more cannot be there, so that these are enough."""
    found = list(connection.execute(statement, values))
    if (most is None or len(found) < most) and has_archive(connection):
        found += connection.execute(of_archive(statement), values)
    return found


def rows_by_ids_everywhere(
    connection: Connection, statement: str, ids: Sequence[bytes], tail: str = ""
) -> list[Sequence[Any]]:
    """As `select_by_ids` does it, where each id is that of a run at most."""
    found = select_by_ids(connection, statement, ids, tail)
    if len(found) < len(ids) and has_archive(connection):
        found += select_by_ids(connection, text_of_archive(statement), ids, tail)
    return found


def rows_of_tree(
    connection: Connection, statement: sa.Select[Any], run_id: bytes, values: Mapping[str, Any] | None = None
) -> list[Any]:
    """Rows of the tree that this run is in, which is all in one place."""
    found = list(connection.execute(statement, values))
    if not found and is_archived(connection, run_id):
        found = list(connection.execute(of_archive(statement), values))
    return found


def is_archived(connection: Connection, run_id: bytes) -> bool:
    """Whoever knows the id knows the week: the others are not looked at."""
    if not has_archive(connection):
        return False
    there = sa.exists().where(runs_archive.c.run_id == run_id)
    return bool(connection.execute(sa.select(there)).scalar_one())


def lock_archived(connection: Connection, statement: str, run_ids: Sequence[bytes]) -> list[Sequence[Any]]:
    """Lock archived runs in sorted order until the transaction ends, which keeps them from being deleted."""
    if not run_ids or not has_archive(connection):
        return []
    return select_by_ids(connection, text_of_archive(statement), run_ids, "ORDER BY run_id FOR UPDATE")
