"""Schedules in the store: made once, found by id, changed under their version, listed in pages."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import pytest
from sqlalchemy import Connection

from horarium.core.decision.record import Counts
from horarium.core.document.states import Position, Status
from horarium.features.schedules import list_rows as schedule_lists
from horarium.features.schedules import rows as schedules
from horarium.features.schedules.list_rows import Cursor, Filter
from horarium.features.schedules.rows import LockedPosition, PositionChange, ScheduleRow
from horarium.features.schedules.write_rows import (
    Attribute,
    NewRevision,
    NewSchedule,
    add_revision,
    insert_schedule,
    mark_deleted,
    planning_hash,
    save_position,
)
from horarium.platform.database import Database
from horarium.platform.database.errors import UniqueConflict
from horarium.platform.database.tables import positions, schedule_attributes
from horarium.platform.database.tables import schedules as schedules_table
from horarium.platform.ids import new_id

REVISION = NewRevision(
    document={"spec": {"cron_expressions": ["0 8 * * *"]}, "n": 2**80, "name": "Grüße"},
    planning='{"spec":1}',
    name="Morning",
    workflow="report",
    attributes=frozenset({Attribute("label", "team", "blue"), Attribute("search_attribute", "Customer", "7")}),
)
POSITION = Position(decided_until=100, next_due=200)
NOW = 1_000


def make(
    database: Database, schedule_id: str = "morning", *, now: int = NOW, namespace: str = "default", **given: Any
) -> bytes:
    uid = new_id()
    values: dict[str, Any] = {"revision": REVISION, "position": POSITION, "source": "runtime"} | given
    new = NewSchedule(schedule_uid=uid, namespace=namespace, schedule_id=schedule_id, **values)
    database.write(lambda connection: insert_schedule(connection, new, now=now))
    return uid


def find(database: Database, schedule_id: str = "morning", namespace: str = "default") -> ScheduleRow | None:
    return database.read(lambda connection: schedules.find(connection, namespace, schedule_id))


def found(database: Database, schedule_id: str = "morning") -> ScheduleRow:
    row = find(database, schedule_id)
    assert row is not None
    return row


def change(database: Database, verb: Callable[[Connection, ScheduleRow], Any], schedule_id: str = "morning") -> Any:
    def work(connection: Connection) -> Any:
        row = schedules.find(connection, "default", schedule_id, lock=True)
        assert row is not None
        return verb(connection, row)

    return database.write(work)


# ── made and found ───────────────────────────────────────────────────────────────────────────────────


def test_every_column_of_schedules_and_positions_is_in_the_row() -> None:
    columns = {column.name for table in (schedules_table, positions) for column in table.columns}
    # The one is for searching, the other is asked for by the workspace routes alone.
    assert {each.name for each in fields(ScheduleRow)} == columns - {"search_text", "written_by"}


def test_a_new_schedule_is_found_as_it_was_made(database: Database) -> None:
    uid = make(database, owner="ada", paused_at=5, pause_reason="not yet")
    row = found(database)
    assert (row.schedule_uid, row.name, row.workflow, row.source, row.owner) == (
        uid,
        "Morning",
        "report",
        "runtime",
        "ada",
    )
    assert (row.revision, row.version, row.next_sequence) == (1, 1, 1)
    assert (row.created_at, row.updated_at, row.deleted_at) == (NOW, NOW, None)
    assert (row.paused_at, row.pause_reason, row.planning) == (5, "not yet", planning_hash(REVISION.planning))
    assert row.position() == POSITION
    assert row.counts() == Counts()


def test_a_prompt_to_an_agent_is_found_in_its_workspace(database: Database) -> None:
    document = {"action": {"kind": "prompt", "prompt": "p"}, "assignee_type": "agent", "assignee_id": "a1"}
    uid = make(database, revision=replace(REVISION, document=document))
    assert found(database).workspace == "a1"
    change(database, lambda c, row: add_revision(c, row, REVISION, now=NOW))
    assert (found(database).workspace, found(database).schedule_uid) == (None, uid)


def test_a_revision_keeps_its_document_exactly(database: Database) -> None:
    uid = make(database)
    revision = database.read(lambda c: schedules.find_revision(c, uid, 1))
    assert revision is not None
    assert revision.document == REVISION.document
    assert (revision.generation, revision.created_at) == (1, NOW)
    assert database.read(lambda c: schedules.planning_text(c, revision.planning)) == REVISION.planning
    assert database.read(lambda c: schedules.find_revision(c, uid, 2)) is None
    assert database.read(lambda c: schedules.planning_text(c, b"?" * 16)) is None


def test_schedules_that_plan_alike_share_one_planning_text(database: Database) -> None:
    make(database, "a")
    make(database, "b")
    assert database.read(lambda c: c.exec_driver_sql("SELECT count(*) FROM plannings").scalar()) == 1


def test_a_live_id_is_taken_in_its_namespace_only(database: Database) -> None:
    make(database)
    with pytest.raises(UniqueConflict) as taken:
        make(database)
    assert taken.value.constraint == "schedules_live_id"
    make(database, namespace="other")
    assert find(database, namespace="nobody") is None


def test_a_schedule_is_found_by_uid_in_its_own_namespace(database: Database) -> None:
    uid = make(database)
    for lock in (False, True):
        row = database.write(lambda c, lock=lock: schedules.find_by_uid(c, "default", uid, lock=lock))
        assert row is not None
        assert row.schedule_id == "morning"
    assert database.read(lambda c: schedules.find_by_uid(c, "other", uid)) is None


# ── changed ──────────────────────────────────────────────────────────────────────────────────────────


def test_a_revision_is_added_and_the_old_one_stays(database: Database) -> None:
    uid = make(database)
    edited = replace(
        REVISION,
        name="Evening",
        planning="{}",
        generation=2,
        document={"v": 2},
        attributes=frozenset({Attribute("label", "team", "red")}),
    )
    assert change(database, lambda c, row: add_revision(c, row, edited, now=NOW + 5)) == 2
    row = found(database)
    assert (row.revision, row.version, row.generation, row.name) == (2, 2, 2, "Evening")
    assert (row.planning, row.updated_at) == (planning_hash("{}"), NOW + 5)
    revisions = database.read(lambda c: schedules.all_revisions(c, uid))
    assert [(each.revision, each.document) for each in revisions] == [(1, REVISION.document), (2, {"v": 2})]
    values = database.read(lambda c: c.exec_driver_sql("SELECT value FROM schedule_attributes").scalars().all())
    assert values == ["red"]


def test_a_position_is_saved_column_by_column_and_moves_the_version(database: Database) -> None:
    uid = make(database)
    changes: PositionChange = {"status": Status.PAUSED, "paused_at": 7, "next_due": None}

    def save(connection: Connection) -> int:
        return save_position(connection, uid, changes, expected_version=1, now=NOW + 1)

    assert database.write(save) == 2
    row = found(database)
    assert (row.status, row.paused_at, row.next_due, row.version) == (Status.PAUSED, 7, None, 2)
    assert row.decided_until == POSITION.decided_until
    with pytest.raises(UniqueConflict, match=r"schedules\.version"):
        database.write(save)


def test_what_may_be_changed_and_what_is_locked_are_columns_of_the_position() -> None:
    columns = {column.name for column in positions.columns}
    assert PositionChange.__annotations__.keys() < columns - {"schedule_uid", "namespace", "schedule_id"}
    assert set(LockedPosition._fields) < columns


def test_a_stale_reader_changes_nothing(database: Database) -> None:
    make(database)
    stale = found(database)
    change(database, lambda c, row: save_position(c, row.schedule_uid, {}, expected_version=1, now=NOW))
    for verb in (
        lambda c: add_revision(c, stale, REVISION, now=NOW),
        lambda c: mark_deleted(c, stale, now=NOW),
    ):
        with pytest.raises(UniqueConflict):
            database.write(verb)
    assert found(database).version == 2


def test_a_deleted_schedule_frees_its_id_and_stays_readable(database: Database) -> None:
    old = make(database)
    change(database, lambda c, row: mark_deleted(c, row, now=NOW + 1))
    assert find(database) is None
    newest = database.read(lambda c: schedules.find_newest(c, "default", "morning"))
    assert newest is not None
    assert (newest.schedule_uid, newest.status, newest.deleted_at) == (old, Status.DELETED, NOW + 1)
    assert newest.next_due is None
    assert database.read(lambda c: c.execute(schedule_attributes.select()).all()) == []

    new = make(database, now=NOW + 2)
    assert found(database).schedule_uid == new
    newest = database.read(lambda c: schedules.find_newest(c, "default", "morning"))
    assert newest is not None
    assert newest.schedule_uid == new
    assert database.read(lambda c: schedules.find_newest(c, "default", "never")) is None
    assert database.read(lambda c: schedules.find_by_uid(c, "default", old)) is not None


def wait_until_somebody_waits(database: Database) -> None:
    waiting = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    with database.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as observer:
        for _ in range(500):
            if observer.exec_driver_sql(waiting).all():
                return
            time.sleep(0.01)
    raise AssertionError("nobody waits")


@pytest.mark.parametrize("dialect", ["postgresql"], indirect=True)
def test_who_waited_for_the_lock_sees_what_happened_meanwhile(database: Database) -> None:
    """The schedule is deleted and made anew under the same id while another one waits to lock it."""
    make(database)
    locked, seen = threading.Event(), []
    newer = NewSchedule(new_id(), "default", "morning", REVISION, POSITION, "runtime")

    def wait_for_lock() -> None:
        locked.wait(60)
        seen.append(database.write(lambda c: schedules.find(c, "default", "morning", lock=True)))

    def replace_it(connection: Connection, row: ScheduleRow) -> None:
        locked.set()
        wait_until_somebody_waits(database)
        mark_deleted(connection, row, now=NOW + 1)
        insert_schedule(connection, newer, now=NOW + 2)

    thread = threading.Thread(target=wait_for_lock)
    thread.start()
    change(database, replace_it)
    thread.join()
    assert [row and row.schedule_uid for row in seen] == [newer.schedule_uid]


# ── listed ───────────────────────────────────────────────────────────────────────────────────────────


def listed(database: Database, wanted: Filter = schedule_lists.EVERYTHING) -> list[str]:
    page = database.read(lambda c: schedule_lists.list_page(c, "default", wanted, limit=100))
    assert page.after is None
    return [row.schedule_id for row in page.rows]


def test_pages_are_newest_first_then_by_id_and_show_every_row_once(database: Database) -> None:
    for schedule_id, created_at in (("c", 1), ("b", 2), ("a", 2), ("d", 2), ("e", 3)):
        make(database, schedule_id, now=created_at)
    make(database, "foreign", namespace="other")
    after: Cursor | None = None
    pages = []
    while True:
        page = database.read(lambda c, after=after: schedule_lists.list_page(c, "default", after=after, limit=2))
        pages.append([row.schedule_id for row in page.rows])
        after = page.after
        if after is None:
            break
    assert pages == [["e", "a"], ["b", "d"], ["c"]]


def test_a_last_page_that_is_full_knows_that_it_is_the_last(database: Database) -> None:
    make(database, "a")
    make(database, "b")
    assert database.read(lambda c: schedule_lists.list_page(c, "default", limit=2)).after is None


BLUE, CUSTOMER = Attribute("label", "team", "blue"), Attribute("search_attribute", "Customer", "7")


def test_case_is_no_matter_whatever_the_letters(database: Database) -> None:
    make(database, "Straße", revision=replace(REVISION, name="ÉTÉ"))
    for text in ("été", "Été", "STRASSE", "straße"):
        assert listed(database, Filter(text=text)) == ["Straße"], text


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (Filter(), ["a", "b%"]),
        (Filter(include_deleted=True), ["a", "b%", "gone"]),
        (Filter(statuses={Status.PAUSED}), ["b%"]),
        (Filter(statuses={Status.PAUSED, Status.ACTIVE}), ["a", "b%"]),
        (Filter(statuses=()), []),
        (Filter(workflow="report"), ["a"]),
        (Filter(owner="ada"), ["b%"]),
        (Filter(source="template"), ["b%"]),
        (Filter(attributes=[BLUE]), ["a"]),
        (Filter(attributes=[BLUE, CUSTOMER]), ["a"]),
        (Filter(attributes=[BLUE, Attribute("label", "team", "red")]), []),
        (Filter(text="EVEN"), ["b%"]),
        (Filter(text="%"), ["b%"]),
        (Filter(text="_"), []),
        (Filter(text="A", workflow="report"), ["a"]),
    ],
    ids=[
        "live ones",
        "deleted ones too",
        "a status",
        "two statuses",
        "no status",
        "workflow",
        "owner",
        "source",
        "label",
        "label and search attribute",
        "two values of one label",
        "part of a name",
        "a percent sign is no wildcard",
        "an underscore is no wildcard",
        "part of an id, and workflow",
    ],
)
def test_a_list_can_be_filtered(database: Database, wanted: Filter, expected: list[str]) -> None:
    make(database, "a")
    other = replace(REVISION, name="Evening", workflow=None, attributes=frozenset())
    make(
        database,
        "b%",
        revision=other,
        owner="ada",
        source="template",
        position=POSITION._replace(status=Status.PAUSED),
    )
    make(database, "gone", revision=other)
    change(database, lambda c, row: mark_deleted(c, row, now=NOW), "gone")
    assert sorted(listed(database, wanted)) == expected


def test_every_status_is_counted(database: Database) -> None:
    make(database, "a")
    make(database, "b")
    make(database, "c", position=POSITION._replace(status=Status.BROKEN))
    make(database, "d", namespace="other")
    counted = database.read(lambda c: schedule_lists.count_by_status(c, "default"))
    assert counted == {**dict.fromkeys(Status, 0), Status.ACTIVE: 2, Status.BROKEN: 1}
