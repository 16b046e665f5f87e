"""The migrations make exactly the tables that the code believes in, once, on both databases."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from databases import MIGRATED_AT
from later_release import LATER, become_later
from sqlalchemy import Connection, inspect
from store.schema import BOOKKEEPING, definitions

from horarium.core.recurrence.zone import tzdata_version
from horarium.instant import from_datetime, from_rfc3339
from horarium.platform.database import Database, open_database
from horarium.platform.database.errors import DataError, SchemaMissing, SchemaTooNew, SchemaTooOld, UniqueConflict
from horarium.platform.database.schema import check_exact_schema, check_schema, migrate
from horarium.platform.database.tables import metadata, postgres_metadata
from horarium.platform.ids import id_text, new_id

REVISIONS = ["0021"]


def test_an_empty_database_is_missing_its_schema_until_it_is_migrated(empty_url: str) -> None:
    database = open_database(empty_url)
    with pytest.raises(SchemaMissing, match="no Horarium tables"):
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
    assert dict(facts) == {"tzdata": tzdata_version()}


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


@pytest.mark.parametrize("has_both", [True, False])
def test_a_schema_from_before_the_first_release_is_refused_and_left_alone(database: Database, has_both: bool) -> None:
    def age(connection: Connection) -> None:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '0018'")
        connection.exec_driver_sql("UPDATE schema_revision SET version_num = '0020'")
        if not has_both:
            connection.exec_driver_sql("DROP TABLE schema_revision")

    database.write(age)
    revision = "0020" if has_both else "0018"
    for attempt in (check_schema, check_exact_schema, migrate):
        with pytest.raises(SchemaTooOld) as refused:
            attempt(database)
        assert refused.value.message == (
            f"The database was created by an unreleased version (schema revision {revision}) and cannot be migrated; "
            "use a new database"
        )
    assert database.read(lambda c: c.exec_driver_sql("SELECT version_num FROM alembic_version").scalar()) == "0018"


@pytest.mark.parametrize(
    ("statements", "message"),
    [
        (
            ["INSERT INTO alembic_version VALUES ('1975ea83b712')"],
            "The schema revision of the database is 1975ea83b712, which is not one of Horarium; use a new database",
        ),
        (
            ["INSERT INTO alembic_version VALUES ('ab12')", "INSERT INTO alembic_version VALUES ('cd34')"],
            "The schema revision of the database is ab12, cd34, which is not one of Horarium; use a new database",
        ),
        (
            ["ALTER TABLE alembic_version RENAME version_num TO head", "INSERT INTO alembic_version VALUES ('x')"],
            "The schema revision of the database is unreadable, which is not one of Horarium; use a new database",
        ),
        (
            ["CREATE TABLE runs (id integer)"],
            "The database has tables with names of Horarium (runs) but no schema revision; use a new database, or "
            "restore a backup if it is damaged",
        ),
        (
            ["DROP TABLE alembic_version", "CREATE TABLE schema_revision (version_num text)"],
            "The database has tables with names of Horarium (schema_revision) but no schema revision; use a new "
            "database, or restore a backup if it is damaged",
        ),
    ],
    ids=["another revision", "two revisions", "another column", "a table and no revision", "half a revision"],
)
def test_a_database_of_another_program_is_refused_and_left_alone(
    empty_url: str, statements: list[str], message: str
) -> None:
    database = open_database(empty_url)
    database.write(lambda c: c.exec_driver_sql("CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL)"))
    for statement in statements:
        database.write(lambda c, statement=statement: c.exec_driver_sql(statement))
    before = database.read(lambda c: inspect(c).get_table_names())
    for attempt in (check_schema, check_exact_schema, migrate):
        with pytest.raises(SchemaTooOld) as refused:
            attempt(database)
        assert refused.value.message == message
    assert database.read(lambda c: inspect(c).get_table_names()) == before
    database.close()


def test_a_database_without_all_its_tables_is_not_called_current(database: Database) -> None:
    database.write(lambda c: c.exec_driver_sql("DROP TABLE dead_letters"))
    with pytest.raises(SchemaTooOld) as refused:
        migrate(database)
    assert refused.value.message == (
        "The database lacks tables of its schema revision (dead_letters); restore a backup"
    )


def test_a_migration_notes_itself_in_the_audit(
    database: Database, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    become_later(monkeypatch, tmp_path)
    assert migrate(database) == [LATER]
    noted = "SELECT detail FROM audit WHERE act = 'database_migrated'"
    [detail] = database.read(lambda c: c.exec_driver_sql(noted).scalars().all())
    assert json.loads(detail) == {"before": REVISIONS[-1], "after": LATER}


def test_a_migration_that_fails_leaves_nothing_behind(empty_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    database = open_database(empty_url)

    def fail(*_: object) -> None:
        raise RuntimeError("after the last table")

    monkeypatch.setattr("horarium.platform.database.schema._seed", fail)
    with pytest.raises(RuntimeError, match="after the last table"):
        migrate(database)
    assert database.read(lambda c: inspect(c).get_table_names()) == []
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
    with pytest.raises(UniqueConflict) as refused:
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
