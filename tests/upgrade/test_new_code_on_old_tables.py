"""A service of this release on the tables of the release before: all works, and the migration finds it at work."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from api.worlds import World, world
from upgrade.story import Chapter, told_everywhere

from horarium.clock import SystemClock
from horarium.engine.retention import Retention, RetentionOptions
from horarium.instant import DAY
from horarium.store import schema_state
from horarium.store.database import open_database
from horarium.store.migrate import OLDEST_SCHEMA, migrate, newest_revision


@pytest.fixture
def older_url(empty_url: str) -> str:
    """The URL of a database as the release before has left it."""
    database = open_database(empty_url)
    migrate(database, until=OLDEST_SCHEMA)
    database.close()
    return empty_url


@pytest.fixture
def here(older_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """A service that migrates nothing, as `server` and `worker` do not."""
    monkeypatch.setattr("horarium.serve.service.migrate", lambda *_: None)
    with world(older_url, keep_runs_days=0) as made:
        # Ids carry the machine's time, and what is forgotten goes by them.
        made.horarium.clock.set((SystemClock().now() // DAY + 1) * DAY)
        made.horarium.settle()
        yield made


def test_everything_works_on_the_tables_of_the_release_before_and_goes_on_when_they_are_migrated(here: World) -> None:
    database = here.horarium.resources.database
    first, second = Chapter(here, "first"), Chapter(here, "second")
    first.begin()
    first.end()
    _forget_after_days(here)
    second.begin()
    assert _use_what_is_new(here) == (0, 0)
    before = told_everywhere(here)
    assert not schema_state.has(database, newest_revision())

    assert migrate(database, here.horarium.clock)[-1] == newest_revision()

    assert schema_state.has(database, newest_revision())
    assert told_everywhere(here) == before
    second.end()
    here.horarium.sleep(days=8)
    assert [number > 0 for number in _use_what_is_new(here)] == [database.dialect == "postgresql"] * 2
    told_everywhere(here)
    _forget_after_days(here)


def _use_what_is_new(here: World) -> tuple[int, int]:
    """How many weeks were made, and how many runs went into the archive."""
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
    chore = Retention(here.horarium.resources.database, here.horarium.clock, options)
    while chore.step().more:
        pass
    assert len(here.horarium.runs()) < born
    assert here.horarium.verify() == []
