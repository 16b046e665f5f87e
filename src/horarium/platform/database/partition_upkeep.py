"""Create and drop the partitions of weeks, on PostgreSQL: one process at a time, in short transactions.

A new week is created as a table of its own and then attached, which blocks no reader and no writer. Only the default
partition is locked meanwhile, since PostgreSQL checks whether it has rows of that week. A few such rows are moved into
the new partition; if there are many the week stays in the default partition. A process that cannot get a lock within
two seconds gives up, and tries again later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from sqlalchemy import Connection

from horarium.instant import Instant
from horarium.platform.database import Database
from horarium.platform.database.errors import DataError, Transient
from horarium.platform.database.partitions import (
    TABLES,
    Partition,
    column_of,
    indexes_of,
    literal,
    missing,
    read_bounds,
    weeks_wanted,
)

MOST_MOVED = 50_000
"""Maximum rows that move in one transaction, because it blocks other transactions."""

LOCK_WAIT = "2s"

LITTLE_BYTES = 100_000_000
"""What a question that no index answers may read."""

# Next to the number of the migrations' lock.
_LOCK = int.from_bytes(b"horarium", "big") + 1

_THERE = """
SELECT parent.relname, part.relname, pg_get_expr(part.relpartbound, part.oid)
FROM pg_inherits
JOIN pg_class parent ON parent.oid = inhparent
JOIN pg_class part ON part.oid = inhrelid
WHERE parent.relkind = 'p' AND inhparent = ANY (SELECT to_regclass(name)::oid FROM unnest(%s::text[]) AS name)
ORDER BY part.relname
"""
_INDEXES = """
SELECT index.relname, pg_get_indexdef(indexrelid) FROM pg_index JOIN pg_class index ON index.oid = indexrelid
WHERE indrelid = %s::regclass AND NOT indisprimary ORDER BY index.relname
"""
_KEY = "SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = %s::regclass AND contype = 'p'"
_MAY = """
SELECT has_schema_privilege(current_schema(), 'CREATE') AND pg_has_role(relowner, 'USAGE') FROM pg_class
WHERE oid = to_regclass('history')
"""


class Outcome(Enum):
    DONE = auto()
    TAKEN = auto()  # another process has done it meanwhile
    LEFT = auto()  # there is too much in the way: it stays as it is
    BUSY = auto()  # somebody else is at it, or holds a lock
    DENIED = auto()  # the role may not


@dataclass(frozen=True, slots=True)
class Weeks:
    """`until`: the end of the last week that is there; None = none is. `may_make`: whether the role is allowed to."""

    until: Instant | None
    missing: int
    may_make: bool


def there(connection: Connection) -> list[Partition]:
    """All partitions of ours; none where the tables are whole. Those that somebody made by other rules are not seen."""
    if connection.dialect.name != "postgresql":
        return []
    found: list[Partition] = []
    for table, name, text in connection.exec_driver_sql(_THERE, (list(TABLES),)):
        try:
            found.append(Partition(table, name, *read_bounds(text)))
        except ValueError:
            continue
    return found


def is_little(connection: Connection, parts: Iterable[Partition]) -> bool:
    """Tell whether the partitions are small enough to be read whole at any time."""
    sizes = "SELECT coalesce(sum(pg_relation_size(to_regclass(name))), 0) FROM unnest(%s::text[]) AS name"
    names = [each.name for each in parts]
    return bool(connection.exec_driver_sql(sizes, (names,)).scalar_one() <= LITTLE_BYTES)


def look(connection: Connection, now: Instant) -> Weeks | None:
    """Report the state of the weekly partitions of history; None = the tables are not partitioned."""
    found = [each for each in there(connection) if each.table == TABLES[0]]
    if not found:
        return None
    ends = [each.high for each in found if isinstance(each.high, int)]
    # Without those that are only made ahead: the one of today and the next.
    soon = {f"{TABLES[0]}_{week.name}" for week in weeks_wanted(now)[:2]}
    lacking = [each for each in missing(TABLES[0], found, now) if each.name in soon]
    return Weeks(max(ends, default=None), len(lacking), may(connection))


def may(connection: Connection) -> bool:
    """Tell whether the role may change partitions. Otherwise it cannot even read a single one, only whole tables."""
    return bool(connection.exec_driver_sql(_MAY).scalar_one())


def make(database: Database, new: Partition) -> Outcome:
    in_the_way = database.read(lambda connection: _count_in_default(connection, new) if may(connection) else None)
    if in_the_way is None:
        return Outcome.DENIED
    if in_the_way > MOST_MOVED:
        return Outcome.LEFT
    return in_turn(database, lambda connection: _make(connection, new, moves=in_the_way > 0))


def _count_in_default(connection: Connection, new: Partition) -> int:
    some = f"SELECT FROM {new.table}_default WHERE {within(new)} LIMIT {MOST_MOVED + 1}"
    number: int = connection.exec_driver_sql(f"SELECT count(*) FROM ({some}) AS found").scalar_one()
    return number


def within(partition: Partition) -> str:
    column = column_of(partition.table)
    bounds = [
        f"{column} {sign} {literal(bound, otherwise='')}"
        for sign, bound in ((">=", partition.low), ("<", partition.high))
        if bound is not None
    ]
    return " AND ".join(bounds) or "true"


def _make(connection: Connection, new: Partition, *, moves: bool) -> Outcome:
    # Asked anew under the lock: another process may have had its turn since we looked.
    if any(each.name == new.name for each in there(connection)):
        return Outcome.TAKEN
    rest = f"{new.table}_default"
    # Before anything else: no row of that week comes in between.
    connection.exec_driver_sql(f"LOCK TABLE {rest} IN ACCESS EXCLUSIVE MODE")
    connection.exec_driver_sql(f"CREATE TABLE {new.name} (LIKE {new.table} INCLUDING DEFAULTS INCLUDING CONSTRAINTS)")
    key = connection.exec_driver_sql(_KEY, (new.table,)).scalar_one()
    connection.exec_driver_sql(f"ALTER TABLE {new.name} ADD CONSTRAINT {new.name}_pkey {key}")
    indexes = [(row[0], row[1]) for row in connection.exec_driver_sql(_INDEXES, (new.table,))]
    for statement in indexes_of(new, indexes):
        connection.exec_driver_sql(statement.replace("%", "%%"))
    if moves:
        connection.exec_driver_sql(
            f"WITH own AS (DELETE FROM {rest} WHERE {within(new)} RETURNING *) INSERT INTO {new.name} SELECT * FROM own"
        )
    low, high = literal(new.low, otherwise="MINVALUE"), literal(new.high, otherwise="MAXVALUE")
    connection.exec_driver_sql(
        f"ALTER TABLE {new.table} ATTACH PARTITION {new.name} FOR VALUES FROM ({low}) TO ({high})"
    )
    return Outcome.DONE


# ── taking turns ─────────────────────────────────────────────────────────────────────────────────────


def in_turn(database: Database, work: Callable[[Connection], Outcome]) -> Outcome:
    """One transaction of one process at a time, that waits for locks briefly and is not repeated."""

    def locked(connection: Connection) -> Outcome:
        if not may(connection):
            return Outcome.DENIED
        connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{LOCK_WAIT}'")
        connection.exec_driver_sql("SET LOCAL statement_timeout = '60s'")
        if not connection.exec_driver_sql(f"SELECT pg_try_advisory_xact_lock({_LOCK})").scalar_one():
            return Outcome.BUSY
        try:
            return work(connection)
        except (Transient, DataError) as lost:  # a lock, or a row that came into the way
            raise _GaveUp from lost

    try:
        return database.write(locked)
    except _GaveUp:
        return Outcome.BUSY


class _GaveUp(Exception):
    """Undoes the transaction, and is no error of the database that would be tried again at once."""


# ── dropping ─────────────────────────────────────────────────────────────────────────────────────────


def take_time(connection: Connection) -> None:
    """For statements that may read a whole table, of whatever size; nobody waits for them."""
    connection.exec_driver_sql("SET LOCAL statement_timeout = '10min'")


def slowly(connection: Connection, statement: str, values: dict[str, Any]) -> list[Any]:
    """The first column of what may take a whole table."""
    take_time(connection)
    return list(connection.exec_driver_sql(statement, values).scalars())


def drop(
    database: Database, part: Partition, key: str, staying: list[Any], is_as_found: Callable[[Connection], bool]
) -> Outcome:
    """The table goes; rows with these keys move into the partition that takes the rest. If what they were found by is
    not so any more, nothing happens.
    """

    def work(connection: Connection) -> Outcome:
        if not is_as_found(connection):
            return Outcome.BUSY
        connection.exec_driver_sql(f"ALTER TABLE {part.table} DETACH PARTITION {part.name}")
        if staying:
            kept = f"SELECT * FROM {part.name} WHERE {key} = ANY(%s)"
            connection.exec_driver_sql(f"INSERT INTO {part.table}_default {kept}", (staying,))
        connection.exec_driver_sql(f"DROP TABLE {part.name}")
        return Outcome.DONE

    return in_turn(database, work)
