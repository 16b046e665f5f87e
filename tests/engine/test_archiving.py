"""The loop that moves runs to the archive: after how many days, into which weeks, and what it leaves alone."""

from __future__ import annotations

from typing import Any

import pytest
import sqlalchemy as sa
from store.test_retention import NOW, count, make_run, make_schedule
from world import FakeClock

from horarium.engine.partitions import Archiving
from horarium.engine.retention import RetentionLoop, RetentionOptions
from horarium.instant import DAY
from horarium.platform.database import Database
from horarium.platform.database.partitions import week_of
from horarium.platform.database.tables import runs, runs_archive

_WEEKS = sa.text("SELECT DISTINCT tableoid::regclass::text FROM runs_archive")


def archiving(database: Database, **options: Any) -> Archiving:
    clock = FakeClock(NOW)
    kept = RetentionOptions(keep_runs_days=options.pop("keep_runs_days", None))
    return Archiving(database, clock, RetentionLoop(database, clock, kept).cutoffs, **options)


def made(database: Database, *days_ago: int) -> None:
    uid = make_schedule(database)
    for days in (*days_ago, 0):
        make_run(database, uid, at=NOW - days * DAY)


@pytest.mark.parametrize("dialect", ["postgresql"], indirect=True)
def test_runs_move_after_some_days_each_into_its_week(database: Database) -> None:
    made(database, 30, 9, 5)
    assert archiving(database).step().rows == 2
    assert count(database, runs) == 2
    names = {f"runs_archive_{week_of(NOW - days * DAY).name}" for days in (30, 9)}
    assert set(database.read(lambda c: c.execute(_WEEKS).scalars().all())) == names


@pytest.mark.parametrize(
    ("options", "moved"), [({"days": 3}, 3), ({"days": 0}, 0), ({"keep_runs_days": 20}, 1)], ids=str
)
@pytest.mark.parametrize("dialect", ["postgresql"], indirect=True)
def test_how_many_move_is_a_matter_of_days(database: Database, options: dict[str, int], moved: int) -> None:
    """What was born before all that is kept may lie in a week that is dropped just now."""
    made(database, 30, 9, 5)
    assert archiving(database, **options).step().rows == moved
    assert count(database, runs_archive) == moved


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
def test_sqlite_has_no_archive(database: Database) -> None:
    made(database, 30)
    assert archiving(database).step().rows == 0
