"""The migrations make exactly the tables that the code believes in, once, on both databases."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.operations import Operations
from alembic.runtime.migration import MigrationContext
from databases import MIGRATED_AT
from sqlalchemy import Connection, inspect
from store.schema import BOOKKEEPING, definitions

from horarium.ids import id_text, new_id
from horarium.instant import from_datetime, from_rfc3339
from horarium.recurrence.zone import tzdata_version
from horarium.store.database import Database, open_database
from horarium.store.errors import Conflict, DataError, SchemaMissing, SchemaTooNew
from horarium.store.migrate import OLDEST_SCHEMA, check_schema, migrate
from horarium.store.migrations.versions import (
    r0007_installation,
    r0008_note,
    r0009_health,
    r0010_bundles,
    r0011_fleet,
    r0012_workers,
    r0013_secrets,
    r0014_quotas,
    r0015_audit,
    r0016_callers,
    r0019_partitions,
    r0020_bounds,
)
from horarium.store.tables import metadata, postgres_metadata

REVISIONS = [f"{number:04}" for number in range(1, 21)]


def test_an_empty_database_is_missing_its_schema_until_it_is_migrated(empty_url: str) -> None:
    database = open_database(empty_url)
    with pytest.raises(SchemaMissing, match="no tables"):
        check_schema(database)
    assert migrate(database) == REVISIONS
    check_schema(database)
    assert migrate(database) == []
    database.close()


@pytest.mark.parametrize("dialect", ["postgresql"])
def test_a_migration_may_take_longer_than_a_statement(empty_url: str) -> None:
    """Here it waits for another that migrates; a large table would take as long."""
    database, other = open_database(empty_url, statement_timeout_seconds=1), open_database(empty_url)
    waits = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
    with other.engine.begin() as connection:
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({int.from_bytes(b'horarium', 'big')})")
        applied: list[list[str]] = []
        migrating = threading.Thread(target=lambda: applied.append(migrate(database)))
        migrating.start()
        while not connection.exec_driver_sql(waits).scalar_one():
            time.sleep(0.01)
        time.sleep(1.2)
    migrating.join()
    assert applied == [REVISIONS]
    database.close()
    other.close()


def test_a_statement_on_an_empty_database_says_that_the_schema_is_missing(empty_url: str) -> None:
    database = open_database(empty_url)
    with pytest.raises(SchemaMissing, match="migrated"):
        database.read(lambda connection: connection.exec_driver_sql("SELECT * FROM runs").all())
    database.close()


def test_the_tables_in_code_and_the_migrated_ones_do_not_differ(database: Database) -> None:
    def differences(connection: Connection) -> list[Any]:
        wanted, left_out = metadata, set()
        if database.dialect == "postgresql":
            wanted = sa.MetaData()
            for table in (*metadata.sorted_tables, *postgres_metadata.sorted_tables):
                table.to_metadata(wanted)
            partitions = "SELECT relname FROM pg_class WHERE relispartition"
            left_out = set(connection.exec_driver_sql(partitions).scalars())

        def is_ours(_object: object, name: str | None, kind: str, *_: object) -> bool:
            return kind != "index" and name not in {*left_out, *BOOKKEEPING}

        options = {"compare_type": True, "include_object": is_ours}
        return list(compare_metadata(MigrationContext.configure(connection, opts=options), wanted))

    assert database.read(differences) == []


@pytest.mark.parametrize("dialect", ["postgresql"])
def test_the_archive_has_the_columns_of_runs_in_their_order(database: Database) -> None:
    """Rows go from one to the other as they are; defaults too, for whoever adds a column to both."""
    columns = (
        "SELECT attname, format_type(atttypid, atttypmod), attnotnull, pg_get_expr(adbin, adrelid) FROM pg_attribute "
        "LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum "
        "WHERE attrelid = '{}'::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum"
    )
    of_runs, of_archive = (
        database.read(lambda c, name=name: c.exec_driver_sql(columns.format(name)).all())
        for name in ("runs", "runs_archive")
    )
    assert of_archive == of_runs


def test_indexes_and_checks_are_written_alike_in_code_and_migrations(database: Database, empty_url: str) -> None:
    """Autogeneration looks neither at conditions and orders of indexes nor at CHECK constraints."""
    created = open_database(empty_url)
    created.write(metadata.create_all)
    wanted, found = created.read(definitions), database.read(definitions)
    created.close()
    assert len(wanted) > 40
    if database.dialect == "postgresql":
        wanted |= _PARTITIONED
        found = {name: text for name, text in found.items() if "runs_archive" not in name}
    assert found == wanted


# A unique index of a partitioned table holds the column by which it is partitioned.
_PARTITIONED = {
    "history_pkey": "CREATE UNIQUE INDEX history_pkey ON public.history USING btree (feed_id, recorded_at)",
    "history.history_pkey": "PRIMARY KEY (feed_id, recorded_at)",
    "history_in_order": (
        "CREATE UNIQUE INDEX history_in_order ON public.history USING btree (schedule_uid, sequence, recorded_at)"
    ),
}


def test_a_new_database_has_the_default_namespace_and_knows_its_tzdata(database: Database) -> None:
    namespaces = database.read(lambda c: c.exec_driver_sql("SELECT namespace, created_at FROM namespaces").all())
    facts = database.read(lambda c: c.exec_driver_sql("SELECT name, value FROM installation").all())
    assert namespaces == [("default", from_rfc3339(MIGRATED_AT))]
    assert dict(facts) == {"tzdata": tzdata_version(), "plain_credentials": "[0, null, 0, true]"}


def test_many_may_start_at_once_and_one_of_them_migrates(empty_url: str) -> None:
    applied: list[list[str]] = []
    start = threading.Barrier(8)

    def boot() -> None:
        database = open_database(empty_url)
        start.wait()
        applied.append(migrate(database))
        check_schema(database)
        database.close()

    threads = [threading.Thread(target=boot) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(applied) == [[]] * 7 + [REVISIONS]


def test_a_newer_schema_is_refused_and_left_alone(database: Database) -> None:
    database.write(lambda c: c.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'"))
    for attempt in (check_schema, migrate):
        with pytest.raises(SchemaTooNew, match="revision 9999"):
            attempt(database)
    assert database.read(lambda c: c.exec_driver_sql("SELECT version_num FROM alembic_version").scalar()) == "9999"


def test_an_older_schema_is_named_by_its_revision(older: Callable[[str], Database]) -> None:
    with pytest.raises(SchemaMissing, match=f"revision 0001 and {OLDEST_SCHEMA} or newer is needed"):
        check_schema(older("0001"))


@pytest.fixture
def older(empty_url: str) -> Iterator[Callable[[str], Database]]:
    """A database as an older program left it."""
    opened: list[Database] = []

    def make(revision: str) -> Database:
        opened.append(open_database(empty_url))
        migrate(opened[-1], until=revision)
        return opened[-1]

    yield make
    for each in opened:
        each.close()


def insert(database: Database, table: str, **values: Any) -> None:
    columns: tuple[Any, ...] = (*(sa.column(name) for name in values),)
    database.write(lambda c: c.execute(sa.insert(sa.table(table, *columns)).values(**values)))


def test_what_was_there_before_can_be_searched_for(older: Callable[[str], Database]) -> None:
    database = older("0002")
    values = {"schedule_uid": new_id(), "namespace": "default", "schedule_id": "Old", "revision": 1, "version": 1}
    insert(database, "schedules", **values, name="Été", source="runtime", created_at=1, updated_at=1)
    assert migrate(database)[0] == "0003"
    assert database.read(lambda c: c.exec_driver_sql("SELECT search_text FROM schedules").all()) == [("old\nété",)]
    database.close()


@pytest.mark.parametrize(("before", "after"), [(7, 7), (5_000, 100), (-(2**31), -100)])
def test_a_priority_is_brought_within_its_bounds(older: Callable[[str], Database], before: int, after: int) -> None:
    database, uid = older("0003"), new_id()
    insert(database, "schedule_revisions", schedule_uid=uid, revision=1, generation=1, planning=b"p" * 16,
           document=json.dumps({"priority": before, "name": "x"}), created_at=0)  # fmt: skip
    migrate(database)
    (row,) = database.read(lambda c: c.exec_driver_sql("SELECT document FROM schedule_revisions").all())
    assert json.loads(row[0]) == {"priority": after, "name": "x"}


def test_a_run_of_no_schedule_stops_posing_as_one(older: Callable[[str], Database]) -> None:
    database, run_id = older("0003"), new_id()
    texts = {"namespace": "default", "kind": "http", "state": "ready", "delivery": "at_least_once", "origin": "api"}
    numbers = ("nominal", "due", "ready_at", "timeout_seconds", "priority", "attempt", "launches", "lease_epoch",
               "reserved", "cost", "tokens", "tool_calls", "next_event", "created_at")  # fmt: skip
    insert(database, "runs", run_id=run_id, schedule_uid=run_id, revision=1, needs_approval=False, **texts,
           **dict.fromkeys(numbers, 0))  # fmt: skip
    insert(database, "schedule_revisions", schedule_uid=run_id, revision=1, generation=1, planning=b"p" * 16,
           document="{}", created_at=0)  # fmt: skip
    migrate(database)
    look = "SELECT schedule_uid, revision, target FROM runs"
    assert database.read(lambda c: c.exec_driver_sql(look).all()) == [(None, None, "http:")]
    assert database.read(lambda c: c.exec_driver_sql("SELECT * FROM run_definitions").all()) == [(run_id, "{}")]
    assert database.read(lambda c: c.exec_driver_sql("SELECT * FROM schedule_revisions").all()) == []


def test_what_is_said_of_the_installation_survives_the_way_back(database: Database) -> None:
    def back_and_forth(connection: Connection) -> list[Any]:
        with Operations.context(MigrationContext.configure(connection)):
            r0007_installation.downgrade()
            before = connection.exec_driver_sql("SELECT name, value FROM facts").all()
            r0007_installation.upgrade()
        return [dict(before), dict(connection.exec_driver_sql("SELECT name, value FROM installation").all())]

    before, after = database.write(back_and_forth)
    assert before == after
    assert before["tzdata"] == tzdata_version()


def test_the_way_back_is_open_to_a_database_with_views(database: Database) -> None:
    steps = [
        r0020_bounds, r0019_partitions, r0016_callers, r0015_audit, r0014_quotas, r0013_secrets, r0012_workers,
        r0011_fleet, r0010_bundles, r0009_health, r0008_note,
    ]  # fmt: skip

    def back_and_forth(connection: Connection) -> dict[str, str]:
        with Operations.context(MigrationContext.configure(connection)):
            for step in steps:
                step.downgrade()
            for step in reversed(steps):
                step.upgrade()
        return definitions(connection)

    before = database.read(definitions)
    assert database.write(back_and_forth).keys() == before.keys()


def test_a_migration_that_fails_leaves_nothing_behind(empty_url: str) -> None:
    database = open_database(empty_url)
    database.write(lambda c: c.exec_driver_sql("CREATE TABLE tokens (id integer)"))
    with pytest.raises(Exception, match="tokens"):
        migrate(database)
    assert database.read(lambda c: inspect(c).get_table_names()) == ["tokens"]
    database.close()


def test_no_statement_can_launch_a_run_that_nobody_approved(database: Database) -> None:
    def insert(connection: Connection, state: str) -> None:
        row = _run_row(needs_approval=True, state=state)
        connection.execute(metadata.tables["runs"].insert().values(**row))

    for state in ("ready", "launching", "queued", "running"):
        with pytest.raises(DataError):
            database.write(lambda c, state=state: insert(c, state))
    for state in ("held", "awaiting_approval", "rejected"):
        database.write(lambda c, state=state: insert(c, state))
    assert database.read(lambda c: c.exec_driver_sql("SELECT count(*) FROM runs").scalar()) == 3


def test_an_occurrence_cannot_have_two_runs(database: Database) -> None:
    uid = new_id()

    def insert(connection: Connection) -> None:
        connection.execute(metadata.tables["runs"].insert().values(**_run_row(schedule_uid=uid, nominal=7)))

    database.write(insert)
    with pytest.raises(Conflict) as refused:
        database.write(insert)
    assert refused.value.constraint == "runs_one_per_occurrence"


def test_the_views_show_ids_as_the_api_does_and_instants_as_times(database: Database) -> None:
    row = _run_row(nominal=1_767_225_600_250_000, node_path="sub/c1", workflow_version=3)
    database.write(lambda c: c.execute(metadata.tables["runs"].insert().values(**row)))
    statement = "SELECT run_id, nominal, finished_at, approval_id FROM v_runs"
    run_id, nominal, finished_at, approval_id = database.read(lambda c: c.exec_driver_sql(statement).one())
    assert run_id == id_text(row["run_id"])
    if database.dialect == "postgresql":
        assert from_datetime(nominal) == row["nominal"]
    else:
        assert nominal == "2026-01-01T00:00:00.250Z"
    assert (finished_at, approval_id) == (None, None)
    of_step = "SELECT node_path, workflow_version FROM v_runs"
    assert database.read(lambda c: c.exec_driver_sql(of_step).one()) == ("sub/c1", 3)


@pytest.mark.parametrize("view", ["v_schedules", "v_runs", "v_history"])
def test_every_view_can_be_read(database: Database, view: str) -> None:
    assert database.read(lambda c: c.exec_driver_sql(f"SELECT * FROM {view}").all()) == []


def _run_row(**given: Any) -> dict[str, Any]:
    columns = metadata.tables["runs"].columns
    defaults: dict[str, Any] = {"INTEGER": 0, "BIGINT": 0, "TEXT": "x", "BOOLEAN": False}
    row = {column.name: defaults.get(str(column.type)) for column in columns if not column.nullable}
    return row | {"run_id": new_id(), "origin": "scheduled", "state": "ready"} | given
