"""Run a write against a private overlay of a SQLite snapshot, and record its statements.

SQLite has one writer for all tenants. A write that compiles thousands of schedules between its statements would hold
it for as long. A rehearsal runs the same code on a read-only connection instead: each table that the code writes to
becomes a temporary view, which shows the rows of the snapshot except those that the rehearsal has changed, and the
changed and new rows from a temporary table. The recorded statements are then executed once under the write lock, which
takes microseconds each. Every read is repeated there: where one answers differently, the rehearsal was stale.

What a rehearsal does not support, such as a change that begins with a common table expression, raises NotRehearsable.
"""

from __future__ import annotations

import re
import sqlite3
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

_ROWS, _GONE = "__rows", "__gone"
# Reads of these are not repeated: heartbeats change every second and are only used for warnings, and the sums of a
# namespace are an estimate by design (`features/tenants/rows.py`).
UNCHECKED: Final = ("leases", "namespace_usage")

_CHANGE = re.compile(r"(INSERT INTO|UPDATE|DELETE FROM)\s+\"?(\w+)\"?\s*(.*)", re.DOTALL | re.IGNORECASE)
_UNRECORDED = re.compile(r"(BEGIN|COMMIT|ROLLBACK$|PRAGMA)", re.IGNORECASE)
_ROLLBACK_TO = re.compile(r"ROLLBACK TO", re.IGNORECASE)
_SAVEPOINT = re.compile(r"(SAVEPOINT|RELEASE|ROLLBACK TO)", re.IGNORECASE)
_READ = re.compile(r"\s*(SELECT|WITH)\b", re.IGNORECASE)
_HIDDEN_CHANGE = re.compile(r"\b(INSERT INTO|UPDATE \w+ SET|DELETE FROM)\b", re.IGNORECASE)
_UPSERT = re.compile(
    r"\((?P<columns>[^()]*)\)\s*VALUES\s*\((?P<marks>[^()]*)\)\s*ON CONFLICT\s*(?:\((?P<target>[^()]*)\))?\s*DO\b",
    re.DOTALL | re.IGNORECASE,
)
_UNCHECKED = re.compile(rf"\b({'|'.join(UNCHECKED)})\b")

Rows = list[tuple[Any, ...]]


class NotRehearsable(Exception):
    """A statement whose effect an overlay cannot show."""


@dataclass(frozen=True, slots=True)
class RecordedStatement:
    """One executed statement. `rows` is the answer of a read or of RETURNING, `changed` the row count of a change."""

    sql: str
    values: Any
    many: bool
    rows: Rows | None
    changed: int


@dataclass(slots=True)
class Recording:
    """The statements of a rehearsal in their order."""

    steps: list[RecordedStatement] = field(default_factory=list)
    _reads: dict[tuple[str, Any], Rows] = field(default_factory=dict)

    @property
    def changes(self) -> int:
        """Count the statements that change rows."""
        return sum(_CHANGE.match(each.sql) is not None for each in self.steps)

    def add(self, step: RecordedStatement) -> None:
        """Leave out a read that was already answered alike: its base rows are compared once."""
        if step.rows is not None and not step.many and _READ.match(step.sql):
            if _UNCHECKED.search(step.sql):
                return
            key = step.sql, tuple(step.values)
            if self._reads.get(key) == step.rows:
                return
            self._reads[key] = step.rows
        self.steps.append(step)


def execute(connection: sqlite3.Connection, recording: Recording) -> bool:
    """Execute the steps; return False where an answer differs, and then the caller rolls back."""
    cursor = connection.cursor()
    for step in recording.steps:
        if step.many:
            cursor.executemany(step.sql, step.values)
        else:
            cursor.execute(step.sql, step.values)
        if step.rows is not None:
            if cursor.fetchall() != step.rows:
                return False
        elif cursor.rowcount != step.changed:
            return False
    return True


def open_overlay(path: Path, timeout: float) -> Overlay:
    """Open a connection that can write to nothing but its own temporary tables."""
    return sqlite3.connect(
        f"{path.as_uri()}?mode=ro",
        uri=True,
        isolation_level=None,
        timeout=timeout,
        check_same_thread=False,
        factory=Overlay,
    )


class Overlay(sqlite3.Connection):
    """A read-only connection whose changes go to temporary tables, which end with the connection."""

    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        self.recording = Recording()
        self._covered: set[str] = set()

    def cursor(self, factory: Any = None) -> Any:
        """Return a recording cursor, whatever `factory` is asked for."""
        return super().cursor(RecordingCursor)

    def plain(self) -> sqlite3.Cursor:
        """Return a cursor that records nothing."""
        return super().cursor()

    def cover(self, table: str) -> None:
        """Put the view of a table in the place of the table."""
        if table in self._covered:
            return
        cursor = self.plain()
        made = cursor.execute("SELECT sql FROM main.sqlite_master WHERE type = 'table' AND name = ?", (table,))
        found = made.fetchone()
        if found is None:  # the error names the missing table
            return
        _, body = found[0].split("(", 1)
        cursor.execute(f'CREATE TEMP TABLE "{table}{_ROWS}" ({body}')
        cursor.execute(f'CREATE TEMP TABLE "{table}{_GONE}" (id INTEGER PRIMARY KEY)')
        listed = "SELECT name, sql FROM main.sqlite_master WHERE type = 'index' AND tbl_name = ? AND sql IS NOT NULL"
        for name, sql in cursor.execute(listed, (table,)).fetchall():
            head, rest = sql.split("(", 1)
            unique = "UNIQUE " if "UNIQUE" in head.upper() else ""
            cursor.execute(f'CREATE {unique}INDEX temp."{name}{_ROWS}" ON "{table}{_ROWS}" ({rest}')
        names = ", ".join(f'"{name}"' for name in self.columns(table))
        cursor.execute(
            f'CREATE TEMP VIEW "{table}" AS SELECT {names} FROM main."{table}" '
            f'WHERE rowid NOT IN (SELECT id FROM "{table}{_GONE}") UNION ALL SELECT {names} FROM "{table}{_ROWS}"'
        )
        self._covered.add(table)

    def columns(self, table: str) -> list[str]:
        """List the columns of the stored table, in their order."""
        return [row[1] for row in self.plain().execute(f'PRAGMA main.table_info("{table}")')]

    def key(self, table: str) -> list[str]:
        """List the columns of the primary key."""
        found = [(row[5], row[1]) for row in self.plain().execute(f'PRAGMA main.table_info("{table}")') if row[5]]
        return [name for _, name in sorted(found)]

    def take(self, table: str, condition: str, values: Iterable[Sequence[Any]]) -> None:
        """Move the stored rows that a change concerns into the temporary table, where the change finds them."""
        cursor = self.plain()
        wanted = (
            f'SELECT rowid, * FROM main."{table}" AS "{table}" '
            f'WHERE "{table}".rowid NOT IN (SELECT id FROM "{table}{_GONE}") AND ({condition})'
        )
        for each in values:
            found = cursor.execute(wanted, each).fetchall()
            if found:
                marks = ", ".join("?" * (len(found[0]) - 1))
                cursor.executemany(f'INSERT INTO "{table}{_ROWS}" VALUES ({marks})', [row[1:] for row in found])
                cursor.executemany(f'INSERT INTO "{table}{_GONE}" VALUES (?)', [row[:1] for row in found])

    def forget_rolled_back(self) -> None:
        """Forget the views that a rolled back savepoint took away."""
        views = self.plain().execute("SELECT name FROM temp.sqlite_master WHERE type = 'view'")
        self._covered = {row[0] for row in views}


@dataclass(frozen=True, slots=True)
class _Change:
    """`sql` changes the temporary table. `condition` finds the rows it concerns by the values from `skip` on."""

    table: str
    sql: str
    condition: str | None = None
    skip: int = 0
    upsert: tuple[tuple[str, ...], tuple[str, ...] | None] | None = None
    """The inserted columns and those of the conflict target; None = the primary key."""


@lru_cache(maxsize=1_024)
def _change(sql: str) -> _Change:
    verb, table, rest = _CHANGE.match(sql).groups()  # type: ignore[union-attr]  # asked before
    target = f'temp."{table}{_ROWS}" AS "{table}"'
    changed = f"{verb} {target} {rest}"
    if verb.upper() == "INSERT INTO":
        if "ON CONFLICT" not in rest.upper():
            return _Change(table, changed)
        found = _UPSERT.match(rest)
        if found is None or set(found["marks"].replace(",", " ").split()) != {"?"}:
            raise NotRehearsable(sql)
        wanted = None if found["target"] is None else _names(found["target"])
        return _Change(table, changed, upsert=(_names(found["columns"]), wanted))
    place = _where(rest)
    if place is None and "WHERE" not in rest.upper():
        return _Change(table, changed, "1", rest.count("?"))
    if place is None:
        raise NotRehearsable(sql)
    condition = re.split(r"\sRETURNING\s", rest[place + len("WHERE") :], flags=re.IGNORECASE)[0]
    return _Change(table, changed, condition, rest[:place].count("?"))


def _names(text: str) -> tuple[str, ...]:
    return tuple(each.strip().strip('"') for each in text.split(","))


def _where(text: str) -> int | None:
    """Find the WHERE of the statement itself, outside all parentheses."""
    depth = 0
    for found in re.finditer(r"[()]|\bWHERE\b", text, flags=re.IGNORECASE):
        if found[0] in "()":
            depth += 1 if found[0] == "(" else -1
        elif depth == 0:
            return found.start()
    return None


class RecordingCursor(sqlite3.Cursor):
    """Redirects changes, and keeps each statement with its answer."""

    _rows: deque[tuple[Any, ...]]
    connection: Overlay

    def execute(self, sql: str, values: Any = ()) -> RecordingCursor:
        if _UNRECORDED.match(sql):
            super().execute(sql, values)
            self._rows = deque(super().fetchall())
        elif _SAVEPOINT.match(sql):
            super().execute(sql, values)
            if _ROLLBACK_TO.match(sql):
                self.connection.forget_rolled_back()
            self.connection.recording.add(RecordedStatement(sql, (), False, None, -1))
        else:
            self._do(sql, values)
        return self

    def executemany(self, sql: str, many: Any) -> RecordingCursor:
        values = list(many)
        change = self._prepared(sql, values)
        with _own_names():
            super().executemany(change, values)
        self._rows = deque()
        self.connection.recording.add(RecordedStatement(sql, values, True, None, self.rowcount))
        return self

    def fetchone(self) -> Any:
        return self._rows.popleft() if self._rows else None

    def fetchmany(self, size: int | None = 1) -> Rows:
        return [self._rows.popleft() for _ in range(min(size or 1, len(self._rows)))]

    def fetchall(self) -> Rows:
        found = list(self._rows)
        self._rows.clear()
        return found

    def _do(self, sql: str, values: Any) -> None:
        if _CHANGE.match(sql):
            redirected = self._prepared(sql, [values])
            with _own_names():
                super().execute(redirected, values)
            answers = self.description is not None
        elif _READ.match(sql) and not _HIDDEN_CHANGE.search(sql):
            super().execute(sql, values)
            answers = True
        else:
            raise NotRehearsable(sql)
        rows = super().fetchall() if answers else None
        self._rows = deque(rows or ())
        self.connection.recording.add(RecordedStatement(sql, values, False, rows, self.rowcount))

    def _prepared(self, sql: str, many: Sequence[Any]) -> str:
        if not _CHANGE.match(sql):
            raise NotRehearsable(sql)
        change, overlay = _change(sql), self.connection
        overlay.cover(change.table)
        if change.condition is not None:
            overlay.take(change.table, change.condition, (values[change.skip :] for values in many))
        elif change.upsert is not None:
            columns, target = change.upsert
            wanted = target or tuple(overlay.key(change.table))
            places = [columns.index(name) for name in wanted]
            condition = " AND ".join(f'"{name}" = ?' for name in wanted)
            overlay.take(change.table, condition, ([values[place] for place in places] for values in many))
        return change.sql


class _own_names:  # noqa: N801 - a context, as in contextlib
    """Name the stored table in what SQLite says about a temporary one."""

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, sqlite3.Error) and error.args and _ROWS in str(error.args[0]):
            error.args = (str(error.args[0]).replace(_ROWS, ""), *error.args[1:])
