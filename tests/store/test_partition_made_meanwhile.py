"""A row that is on its way to the partition which takes the rest, while somebody makes the one where it belongs."""

from __future__ import annotations

import threading

import pytest
from agents.house import until
from sqlalchemy import Connection

from horarium.platform.database import Database
from horarium.platform.database.errors import DataError

pytestmark = pytest.mark.parametrize("dialect", ["postgresql"], indirect=True)

_TABLES = (
    "CREATE TABLE parted (n int CHECK (n < 100)) PARTITION BY RANGE (n)",
    "CREATE TABLE rest PARTITION OF parted DEFAULT",
    "CREATE TABLE ones (LIKE parted INCLUDING CONSTRAINTS)",
)
_WAITING = """
SELECT 1 FROM pg_locks JOIN pg_database ON pg_database.oid = pg_locks.database
WHERE datname = current_database() AND NOT granted
"""


def test_it_is_written_again_to_where_it_belongs(database: Database) -> None:
    for statement in _TABLES:
        database.write(lambda c, statement=statement: c.exec_driver_sql(statement))
    writer = threading.Thread(target=lambda: database.write(lambda c: _insert(c, 3)))
    with database.engine.begin() as maker:
        maker.exec_driver_sql("ALTER TABLE parted ATTACH PARTITION ones FOR VALUES FROM (0) TO (10)")
        writer.start()
        until(lambda: database.read(lambda c: c.exec_driver_sql(_WAITING).scalar()), "the writer waits")
    writer.join(60)
    assert database.read(lambda c: c.exec_driver_sql("SELECT n FROM ones").scalars().all()) == [3]
    with pytest.raises(DataError, match="parted_n_check"):  # a value that no table takes is still the row's fault
        database.write(lambda c: _insert(c, 100))


def _insert(connection: Connection, n: int) -> None:
    connection.exec_driver_sql("INSERT INTO parted VALUES (%s)", (n,))
