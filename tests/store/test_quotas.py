"""How much room a namespace has, on both databases: what others add is seen, and not everything is counted anew."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import pytest
import sqlalchemy as sa
from engine.builders import START, World, new_schedule
from sqlalchemy import Connection

from horarium.core.document.states import RunState
from horarium.core.lifecycle.outcome import End
from horarium.core.policy.limits import NamespaceUsage, Quota, Quotas
from horarium.features.runs.transition_rows import change_runs
from horarium.features.schedules.due_rows import Plannings
from horarium.features.schedules.write_rows import insert_schedule
from horarium.features.tenants import rows as tenant_rows
from horarium.features.tenants.rows import QuotaBook
from horarium.instant import MINUTE, SECOND
from horarium.platform.database import Database, bytes_stored, limits
from horarium.platform.database.bytes_stored import BEGIN, CountPosition
from horarium.platform.database.limits import RowLimit
from horarium.platform.database.tables import metadata, namespaces


def add(database: Database, **growth: Any) -> None:
    database.write(lambda c: tenant_rows.add_growth(c, {"default": tenant_rows.Growth(**growth)}, START))


def test_what_two_processes_bear_is_one_sum(database: Database) -> None:
    here, there = QuotaBook(Quotas(runs_per_minute=10)), QuotaBook(Quotas(runs_per_minute=10))

    def left(book: QuotaBook, now: int = START) -> int:
        return database.read(lambda c: book.rooms(c, ["default"], now))["default"].births

    add(database, births=4)
    assert (left(here), left(there)) == (6, 6)
    add(database, births=7)
    room = database.read(lambda c: here.rooms(c, ["default"], START))["default"]
    assert (room.births, room.quota, room.used) == (0, Quota.RUNS_PER_MINUTE, 11)
    assert left(there, START + MINUTE) == 10, "a new minute"
    assert left(there, START - MINUTE) == 0, "a clock that is behind"
    assert left(there, START - 2 * MINUTE) == 10, "a clock that was set back"


def test_clocks_of_which_one_is_behind_do_not_wipe_out_each_others_births(database: Database) -> None:
    def add_at(now: int) -> None:
        database.write(lambda c: tenant_rows.add_growth(c, {"default": tenant_rows.Growth(births=4)}, now))

    def left(now: int) -> int:
        book = QuotaBook(Quotas(runs_per_minute=10))
        return database.read(lambda c: book.rooms(c, ["default"], now))["default"].births

    ahead, behind = START + MINUTE, START + MINUTE - SECOND
    for now in (ahead, behind, ahead):
        add_at(now)
    assert (left(ahead), left(behind)) == (0, 0)
    assert left(ahead + MINUTE) == 10
    add_at(START - MINUTE)
    assert left(START - MINUTE) == 6, (
        "set back by more than a minute: it begins anew, and nobody waits for the old time"
    )


def test_open_runs_are_counted_once_and_then_only_near_the_limit(database: Database) -> None:
    world = World(database)
    for number in range(3):
        world.add(f"s{number}")
    book = QuotaBook(Quotas(open_runs=200_000, runs_per_minute=None))

    def left(now: int = START) -> int:
        return database.read(lambda c: book.rooms(c, ["default"], now))["default"].births

    assert left() == 200_000
    world.clock.move(60)
    world.tick()
    assert left() == 200_000 - 3
    add(database, births=100)
    assert left() == 200_000 - 103, "from above: what was added may have ended, and nobody has counted"
    add(database, births=199_400)
    assert left() == 497
    assert left(START + 2 * SECOND) == 200_000 - 3, "near the limit it is counted anew"


def test_what_lies_far_beyond_a_limit_is_not_counted_each_time(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("horarium.features.tenants.rows._COUNTED_A_SECOND", 1)
    world, book = World(database), QuotaBook(Quotas(open_runs=1, runs_per_minute=None))
    for number in range(3):
        world.add(f"s{number}")
    world.clock.move(60)
    world.tick()

    def used(now: int) -> int:
        return database.read(lambda c: book.rooms(c, ["default"], now))["default"].used

    assert used(START) == 3
    add(database, births=5)
    assert used(START + 2 * SECOND) == 8, "from above: three take three seconds to count"
    assert used(START + 3 * SECOND) == 3


def test_the_standing_of_a_namespace_has_its_own_limits(database: Database) -> None:
    database.write(lambda c: insert_schedule(c, new_schedule("a", now=START), now=START))
    database.write(lambda c: c.execute(sa.update(namespaces).values(quotas='{"schedules": 5, "open_runs": null}')))
    found = database.read(lambda c: QuotaBook().standing(c, "default", START, exact=True))
    assert found is not None
    assert found.limits == Quotas(schedules=5, open_runs=None)
    assert found.usage == NamespaceUsage(schedules=1)
    assert database.read(lambda c: QuotaBook().standing(c, "nobody", START)) is None


def test_a_large_result_is_added_when_it_comes(database: Database) -> None:
    world = World(database)
    world.add()
    world.clock.move(60)
    world.tick()
    [run_id] = [run.run_id for run in world.runs()]
    before = database.read(bytes_stored.sums)["default"]
    end = End(RunState.CANCELLED, result="x" * 50_000)
    database.write(lambda c: change_runs(c, Plannings(), [(run_id, lambda _run: end)], now=world.clock.now()))
    assert database.read(bytes_stored.sums)["default"] - before > 50_000


def counted(database: Database) -> int:
    found = 0
    place: CountPosition | None = BEGIN
    while place is not None:
        piece = database.read(partial(bytes_stored.count_some, place=place))
        assert set(piece.bytes) <= {"default"}
        found, place = found + piece.bytes.get("default", 0), piece.after
    return found


_VALUES: dict[str, Any] = {"TEXT": "x", "BIGINT": 0, "INTEGER": 1, "BOOLEAN": False, "BLOB": b"x" * 16}


def filled(of: str, **values: Any) -> dict[str, Any]:
    """A row of the table, each column that must have a value with one."""
    columns = [column for column in metadata.tables[of].columns if not column.nullable]
    return {column.name: _VALUES[str(column.type)] for column in columns} | {"namespace": "default", **values}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        *((name, "document") for name in ("calendars", "workflows", "agents", "teams", "assignments")),
        ("idempotency", "answer"),
        ("audit", "detail"),
        ("secrets", "sealed"),
        ("subscriptions", "filter"),
        ("dead_letters", "body"),
    ],
)
def test_what_requests_leave_behind_is_counted(database: Database, name: str, text: str) -> None:
    row = filled(name, **{text: "x" * 5_000})
    database.write(lambda c: c.execute(metadata.tables[name].insert().values(**row)))
    assert 5_000 < counted(database) < 6_000


def test_each_table_is_counted_or_exempt_with_a_reason() -> None:
    parts = {"definitions": "schedules", "archive": "runs_archive"}
    found = {parts.get(part.value, part.value) for part in bytes_stored.CountedPart}
    assert found.isdisjoint(bytes_stored.NOT_COUNTED)
    assert found | bytes_stored.NOT_COUNTED.keys() == {*metadata.tables, "runs_archive"}


@pytest.mark.parametrize("rows", limits.LIMITS, ids=lambda rows: rows.table.name)
def test_rows_of_a_namespace_are_limited(database: Database, rows: RowLimit) -> None:
    name, few = rows.table.name, replace(rows, most=2)
    *_, key = rows.table.primary_key.columns
    for number, expected in enumerate([False, False, True]):
        assert database.read(partial(limits.is_full, rows=few, namespace="default")) is expected
        unlike = {str: f"x{number}", bytes: bytes([number] * 16), int: number}[key.type.python_type]
        values = {key.name: unlike} | ({"sha256": str(number)} if name == "tokens" else {})
        database.write(partial(insert, name=name, row=filled(name, **values)))
    assert not database.read(partial(limits.is_full, rows=few, namespace="other"))


def insert(connection: Connection, name: str, row: dict[str, Any]) -> None:
    connection.execute(metadata.tables[name].insert().values(**row))


def test_bytes_are_counted_in_pieces_and_what_comes_meanwhile_is_added(database: Database) -> None:
    world = World(database)
    for number in range(3):
        world.add(f"s{number}", memo={"text": "x" * 1_000})
    world.clock.move(60)
    world.tick()
    base = database.read(bytes_stored.sums)
    found = counted(database)
    assert 6_000 < found < 20_000
    add(database, bytes=7)
    database.write(lambda c: bytes_stored.save(c, {"default": found}, base))

    def stored(connection: Connection) -> int:
        standing = QuotaBook().standing(connection, "default", START)
        assert standing is not None
        return standing.usage.bytes_stored

    assert database.read(stored) == found + 7
