"""Read runs from `runs` and from the archive, to which runs move some time after they end.

Only PostgreSQL has an archive. A tree of runs moves as a whole, in one transaction, and an open tree never moves. So
`runs` is read first, then the archive: a tree that moves between the two statements is found by the second at the
latest.

A statement about both is a function of the table that it reads, which builds each half explicitly. Inside of it `runs`
is the parameter and not the table. A statement that is a text is built in the same way, from the name of the table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import sqlalchemy as sa
from sqlalchemy import Connection

from horarium.platform.database.statements import select_by_ids
from horarium.platform.database.tables import runs, runs_archive

RunsTable: TypeAlias = sa.FromClause
"""`runs` or `ARCHIVED`."""

RunsStatement: TypeAlias = Callable[[RunsTable], sa.Select[Any]]

ARCHIVED: Final = runs_archive.alias(runs.name)
"""The archive under the name of `runs`, since conditions that name an index are written as text."""


class RunsText(NamedTuple):
    of_runs: str
    of_archive: str


def runs_text(statement: Callable[[str], str]) -> RunsText:
    """Build a statement that is a text for both; in both its columns may be named `runs.…`."""
    return RunsText(statement(runs.name), statement(f"{runs_archive.name} AS {runs.name}"))


def has_archive(connection: Connection) -> bool:
    return connection.dialect.name == "postgresql"


def tables(connection: Connection) -> tuple[sa.Table, ...]:
    """Where runs are, the first of which is `runs`."""
    return (runs, runs_archive) if has_archive(connection) else (runs,)


def row_anywhere(connection: Connection, statement: RunsStatement) -> Any:
    """The one row that there can be; None = there is none."""
    found = connection.execute(statement(runs)).one_or_none()
    if found is None and has_archive(connection):
        found = connection.execute(statement(ARCHIVED)).one_or_none()
    return found


def rows_everywhere(
    connection: Connection,
    statement: RunsStatement,
    values: Mapping[str, Any] | None = None,
    *,
    most: int | None = None,
) -> list[Any]:
    """Rows of both, those that have not moved first; `most` = more cannot be there, so that these are enough."""
    found = list(connection.execute(statement(runs), values))
    if (most is None or len(found) < most) and has_archive(connection):
        found += connection.execute(statement(ARCHIVED), values)
    return found


def rows_by_ids_everywhere(connection: Connection, statement: RunsText, ids: Sequence[bytes]) -> list[Sequence[Any]]:
    """As `select_by_ids` does it, where each id is that of a run at most."""
    found = select_by_ids(connection, statement.of_runs, ids)
    if len(found) < len(ids) and has_archive(connection):
        found += select_by_ids(connection, statement.of_archive, ids)
    return found


def rows_of_tree(
    connection: Connection, statement: RunsStatement, run_id: bytes, values: Mapping[str, Any] | None = None
) -> list[Any]:
    """Rows of the tree that this run is in, which is all in one place."""
    found = list(connection.execute(statement(runs), values))
    if not found and is_archived(connection, run_id):
        found = list(connection.execute(statement(ARCHIVED), values))
    return found


def is_archived(connection: Connection, run_id: bytes) -> bool:
    """Whoever knows the id knows the week: the others are not looked at."""
    if not has_archive(connection):
        return False
    there = sa.exists().where(runs_archive.c.run_id == run_id)
    return bool(connection.execute(sa.select(there)).scalar_one())


def lock_archived(connection: Connection, statement: RunsText, run_ids: Sequence[bytes]) -> list[Sequence[Any]]:
    """Lock archived runs in sorted order until the transaction ends, which keeps them from being deleted."""
    if not run_ids or not has_archive(connection):
        return []
    return select_by_ids(connection, statement.of_archive, run_ids, "ORDER BY run_id FOR UPDATE")
