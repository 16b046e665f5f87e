"""The rules by which the chaos test judges: each finds what breaks it, and nothing else is found in sound books."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from acceptance import chaos_books
from engine.builders import World
from sqlalchemy import text

from horarium.platform.database import Database

postgres_only = pytest.mark.parametrize("dialect", ["postgresql"])

# One row is changed by hand, as no part of ours would.
_ANY_RUN = "(SELECT min(encode(run_id, 'hex')) FROM runs)"
_DAMAGE: Mapping[str, str] = {
    "every run has ended": f"UPDATE runs SET state = 'ready' WHERE encode(run_id, 'hex') = {_ANY_RUN}",
    "what has ended says when, and nobody holds it": "UPDATE runs SET lease_owner = 'somebody'",
    "active and held are the open runs of a schedule": "UPDATE positions SET active = active + 1",
    "runs_born are the runs of a schedule": "UPDATE positions SET runs_born = runs_born + 1",
    "fires_count are the fires that history tells of": "UPDATE positions SET fires_count = fires_count - 1",
    "skipped_count are the skips that history tells of": "UPDATE positions SET skipped_count = 7",
    "a concurrency key counts the active runs that hold it": "UPDATE counters SET value = 1 WHERE kind = 'key'",
    "history is numbered from 1 without gaps": "DELETE FROM history WHERE sequence = 2",
    "the events of a run have no gaps": "UPDATE runs SET next_event = next_event + 1",
    "a run ends once, and as its last state says": "UPDATE runs SET state = 'failed'",
    # Both are of the same minute.
    "an occurrence has one run": """
        DROP INDEX runs_one_per_occurrence;
        UPDATE runs SET schedule_uid = (SELECT schedule_uid FROM runs LIMIT 1)
    """,
}


@pytest.fixture
def world(database: Database) -> World:
    """A few runs that have all ended, one of them after it had waited for a key."""
    world = World(database)
    for name in ("a", "b"):
        world.add(name, concurrency_key="k", concurrency_limit=1, overlap_policy="buffer_all")
    world.clock.move(60)
    world.tick()
    for _ in range(3):
        world.dispatch()
        world.tidy()
    return world


def test_every_rule_is_tried() -> None:
    assert _DAMAGE.keys() == chaos_books.RULES.keys()


@postgres_only
def test_sound_books_break_no_rule(world: World) -> None:
    assert len(world.runs()) == 2
    assert chaos_books.problems(world.database) == []
    assert chaos_books.open_runs(world.database) == {}
    assert chaos_books.summary(world.database) == {("http", "succeeded"): 2}


@postgres_only
@pytest.mark.parametrize("rule", _DAMAGE)
def test_what_breaks_a_rule_is_found(world: World, rule: str) -> None:
    world.write(lambda connection: connection.execute(text(_DAMAGE[rule])))
    assert any(rule in problem for problem in chaos_books.problems(world.database))
