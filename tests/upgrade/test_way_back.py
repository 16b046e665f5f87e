"""The way back that the page describes brings runs home and lets older programs in again."""

from __future__ import annotations

import psycopg
import pytest
import sqlalchemy as sa
from docs.pages import ROOT, blocks_of, section
from run_rows import add_run

from horarium.store.database import Connection, Database
from horarium.store.migrate import OLDEST_SCHEMA, newest_revision
from horarium.store.schema_state import SchemaState, read_state, set_oldest_code
from horarium.store.tables import runs, runs_archive

PAGE = ROOT / "docs/how-to/upgrade.md"


@pytest.mark.parametrize("dialect", ["postgresql"])
def test_archived_runs_come_back_and_older_programs_may_start(database: Database, database_url: str) -> None:
    run_id = add_run(database, state="succeeded")

    def archive(connection: Connection) -> None:
        connection.execute(runs_archive.insert().from_select(runs.columns.keys(), sa.select(runs)))
        connection.execute(runs.delete())
        set_oldest_code(connection, newest_revision())

    before = database.read(lambda c: c.execute(sa.select(runs)).one())
    database.write(archive)
    [block] = blocks_of(PAGE, section(PAGE, "Back to the version before"))
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(block.text.encode())
    assert database.read(read_state) == SchemaState(newest_revision(), OLDEST_SCHEMA)
    assert database.read(lambda c: c.execute(sa.select(runs).where(runs.c.run_id == run_id)).one()) == before
    assert database.read(lambda c: c.execute(sa.select(runs_archive)).all()) == []
