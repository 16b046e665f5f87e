"""A service of the next release on the schema of this one: all works, and the migration runs beside its work."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from api.worlds import World, world
from later_release import LATER, become_later
from upgrade.story import Chapter, told_everywhere

from horarium.engine.retention import RetentionLoop, RetentionOptions
from horarium.instant import DAY
from horarium.platform.clock import SystemClock
from horarium.platform.database import open_database, schema
from horarium.platform.database.schema import migrate


@pytest.fixture
def older_url(empty_url: str) -> str:
    """Return the URL of a database as this release leaves it."""
    database = open_database(empty_url)
    migrate(database)
    database.close()
    return empty_url


@pytest.fixture
def here(older_url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[World]:
    """Start a service of the next release that migrates nothing, as `server` and `worker` do not."""
    become_later(monkeypatch, tmp_path)
    monkeypatch.setattr("horarium.serve.service.migrate", lambda *_: None)
    with world(older_url, keep_runs_days=0) as made:
        # Ids carry the machine's time, and retention goes by them.
        made.horarium.clock.set((SystemClock().now() // DAY + 1) * DAY)
        made.horarium.settle()
        yield made


def test_everything_works_on_the_schema_of_this_release_and_continues_when_it_is_migrated(here: World) -> None:
    database = here.horarium.resources.database
    first, second = Chapter(here, "first"), Chapter(here, "second")
    first.begin()
    first.end()
    _forget_after_days(here)
    second.begin()
    _keep_weeks_and_archive(here)
    before = told_everywhere(here)
    assert not schema.has(database, LATER)
    assert not _may_use_what_is_new(here)

    assert migrate(database, here.horarium.clock) == [LATER]

    assert schema.has(database, LATER)
    assert told_everywhere(here) == before
    assert not _may_use_what_is_new(here)
    here.horarium.clock.advance(30)
    assert _may_use_what_is_new(here)
    second.end()
    here.horarium.sleep(days=8)
    assert [number > 0 for number in _keep_weeks_and_archive(here)] == [database.dialect == "postgresql"] * 2
    told_everywhere(here)
    _forget_after_days(here)


def _may_use_what_is_new(here: World) -> bool:
    now = here.horarium.clock.now()
    return here.horarium.resources.database.write(lambda connection: schema.may_use(connection, LATER, now))


def _keep_weeks_and_archive(here: World) -> tuple[int, int]:
    """Return how many weeks were created, and how many runs moved to the archive."""
    engine, made, moved = here.horarium.parts.engine, 0, 0
    while (upkept := engine.partitions.step()).more:
        made += upkept.made
    for _ in range(3):
        moved += engine.archiving.step().rows
        here.horarium.clock.advance(30)
    return made + upkept.made, moved


def _forget_after_days(here: World) -> None:
    here.horarium.sleep(days=3)
    here.horarium.settle()
    born = len(here.horarium.runs())
    options = RetentionOptions(keep_history_days=1, keep_runs_days=1)
    chore = RetentionLoop(here.horarium.resources.database, here.horarium.clock, options)
    while chore.step().more:
        pass
    assert len(here.horarium.runs()) < born
    assert here.horarium.verify() == []
