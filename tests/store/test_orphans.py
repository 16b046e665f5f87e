"""What nobody names any more is found a few rows at a time, and goes; what somebody is about to name stays."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy import Connection
from store.test_retention import add_events, count, make_run, make_schedule, put

from horarium.core.document.states import EventType
from horarium.features.runs.retention_rows import Found, Swept
from horarium.features.schedules import rows as schedules
from horarium.features.schedules.write_rows import NewRevision, insert_revision, planning_hash
from horarium.features.tenants import removal_rows
from horarium.platform.database import Database
from horarium.platform.database.tables import metadata, plannings, positions, schedule_revisions
from horarium.platform.ids import new_id


def add_revision(database: Database, uid: bytes, number: int = 1, text: str = "{}") -> None:
    revision = NewRevision({"a": 1}, text, "S")
    database.write(lambda c: insert_revision(c, uid, number, revision, 1))


def add_text(database: Database, text: str) -> bytes:
    put(database, plannings, [{"planning": planning_hash(text), "text": text}])
    return planning_hash(text)


def orphaned(database: Database, after: bytes = b"", looks: int = 10) -> Found:
    return database.read(lambda c: removal_rows.orphaned_revisions(c, after=after, looks=looks))


def unnamed(database: Database, after: bytes = b"", looks: int = 10) -> Found:
    return database.read(lambda c: removal_rows.unnamed_plannings(c, after=after, looks=looks))


def purge_revisions(database: Database, *uids: bytes, **given: Any) -> Swept:
    return database.write(lambda c: removal_rows.purge_revisions(c, uids, **given))


def purge_plannings(database: Database, *names: bytes) -> int:
    return database.write(lambda c: removal_rows.purge_plannings(c, names))


# ── revisions ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("named_by", ["a schedule", "its own run", "a run of it", "history"])
def test_a_revision_stays_while_something_names_it(database: Database, named_by: str) -> None:
    match named_by:
        case "a schedule":
            uid = make_schedule(database)
        case "its own run":
            uid = make_run(database, None, origin="api")
        case "a run of it":
            uid = new_id()
            make_run(database, uid, revision=1)
        case _:
            uid = new_id()
            add_events(database, uid, (EventType.CREATED, 1, None))
    if named_by != "a schedule":
        add_revision(database, uid)
    assert orphaned(database).ids == ()
    assert purge_revisions(database, uid) == Swept(0, whole=True)
    assert count(database, schedule_revisions) == 1


def test_revisions_of_nobody_go_in_small_pieces(database: Database) -> None:
    owners = sorted(new_id() for _ in range(3))
    for uid in owners:
        for number in (1, 2, 3):
            add_revision(database, uid, number)
    assert orphaned(database, looks=2) == Found((owners[0], owners[1]), owners[1])
    assert orphaned(database, after=owners[1], looks=2) == Found((owners[2],), None)
    assert purge_revisions(database, *owners, limit=5) == Swept(5, whole=False)
    assert purge_revisions(database, *owners, limit=5) == Swept(4, whole=True)
    assert count(database, schedule_revisions) == 0


# ── planning texts ───────────────────────────────────────────────────────────────────────────────────


def test_a_text_of_no_revision_and_no_position_goes(database: Database) -> None:
    named = make_schedule(database)
    lost = sorted(add_text(database, text) for text in ("one", "two", "three"))
    found = unnamed(database)
    assert found == Found(tuple(lost), None)
    assert purge_plannings(database, *lost, planning_hash("{}")) == 3
    assert count(database, plannings) == 1
    assert database.read(lambda c: schedules.find_by_uid(c, "default", named)) is not None


def test_texts_are_looked_at_a_few_at_a_time(database: Database) -> None:
    texts = sorted(add_text(database, str(n)) for n in range(5))
    assert unnamed(database, looks=2) == Found((texts[0], texts[1]), texts[1])
    assert unnamed(database, after=texts[3], looks=2) == Found((texts[4],), None)


def test_a_text_that_only_a_position_names_stays(database: Database) -> None:
    uid, text = make_schedule(database), add_text(database, "odd")
    database.write(
        lambda c: c.execute(sa.update(positions).where(positions.c.schedule_uid == uid).values(planning=text))
    )
    assert unnamed(database).ids == ()
    assert purge_plannings(database, text) == 0


def test_every_table_that_names_a_text_is_asked() -> None:
    naming = {table.name for table in metadata.sorted_tables if "planning" in table.c} - {"plannings"}
    assert {"schedule_revisions", "positions"} <= naming
    assert {column.table.name for column in removal_rows._NAMES_OF_TEXTS} == naming


@pytest.mark.parametrize("dialect", ["postgresql"])
def test_a_text_that_somebody_is_about_to_name_stays(database: Database, open_another: Callable[[], Database]) -> None:
    """His revision is not committed when we begin; the text was there, so he wrote none."""
    text, other = add_text(database, "{}"), open_another()
    named, go_on = threading.Event(), threading.Event()

    def name_it(connection: Connection) -> None:
        insert_revision(connection, new_id(), 1, NewRevision({}, "{}", "S"), 1)
        named.set()
        assert go_on.wait(60)

    writer = threading.Thread(target=lambda: other.write(name_it))
    purged: list[int] = []
    purger = threading.Thread(target=lambda: purged.append(purge_plannings(database, text)))
    writer.start()
    assert named.wait(60)
    purger.start()
    try:
        _wait_for(lambda: _somebody_waits(other))
    finally:
        go_on.set()
        writer.join()
        purger.join()
    assert (purged, count(database, plannings)) == ([0], 1)


def _somebody_waits(database: Database) -> bool:
    waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'plannings'::regclass"
    return bool(database.read(lambda c: c.exec_driver_sql(waiting).scalar_one()))


def _wait_for(happened: Callable[[], bool]) -> None:
    for _ in range(1_000):
        if happened():
            return
        time.sleep(0.01)
    raise AssertionError("it did not happen in time")
