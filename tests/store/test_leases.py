"""Heartbeats: a name is alive without a break as long as no beat comes later than the gap."""

from __future__ import annotations

import pytest

from horarium.instant import SECOND
from horarium.platform.database import Database, processes
from horarium.platform.database.processes import LeaseRow

GAP = 10


def beat(database: Database, at_seconds: float, owner: str = "one", name: str = "ticker") -> float:
    now = round(at_seconds * SECOND)
    return database.write(lambda c: processes.beat_lease(c, name, owner, now, GAP, {"at": at_seconds})) / SECOND


@pytest.mark.parametrize(
    ("beats", "since"),
    [
        ([100], 100),
        ([100, 105, 115], 100),
        ([100, 110], 100),
        ([100, 110.000001], 110.000001),
        ([100, 150, 155], 150),
        ([100, 90, 105], 100),
    ],
    ids=["first", "steady", "at the gap", "after the gap", "alive again", "a clock that is behind"],
)
def test_a_name_is_alive_since_the_last_break(database: Database, beats: list[float], since: float) -> None:
    answers = [beat(database, at) for at in beats]
    assert answers[-1] == since
    assert database.read(lambda c: processes.alive_since(c, "ticker")) == round(since * SECOND)


def test_several_owners_keep_one_name_alive(database: Database) -> None:
    assert [beat(database, 100, "one"), beat(database, 108, "two"), beat(database, 116, "one")] == [100, 100, 100]


def test_a_beat_never_moves_a_lease_back(database: Database) -> None:
    beat(database, 100)
    beat(database, 95, "late")
    (row,) = database.read(processes.all_leases)
    assert row == LeaseRow("ticker", "late", 100 * SECOND, 100 * SECOND, 110 * SECOND, {"at": 95})


def test_nobody_has_been_alive(database: Database) -> None:
    assert database.read(lambda c: processes.alive_since(c, "ticker")) is None
    assert database.read(processes.all_leases) == []


def test_a_lease_is_forgotten_by_its_owner_or_by_age(database: Database) -> None:
    beat(database, 100, "one", "a")
    beat(database, 200, "two", "b")
    assert not database.write(lambda c: processes.delete_lease(c, "a", "two"))
    assert database.write(lambda c: processes.delete_lease(c, "a", "one"))
    assert database.write(lambda c: processes.purge_leases(c, beat_before=200 * SECOND)) == 0
    assert database.write(lambda c: processes.purge_leases(c, beat_before=200 * SECOND + 1)) == 1
