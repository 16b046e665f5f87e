"""Many tickers, dispatchers and janitors on one database: each occurrence is decided once, each run held by one."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
import sqlalchemy as sa
from acceptance import crowd_main
from acceptance.processes import finish, start
from engine.builders import START, account, insert_all, new_schedule

from horarium.instant import SECOND
from horarium.store.database import Database
from horarium.store.tables import counters, runs

PROCESSES, THREADS = 4, 2  # of each kind: eight tickers, eight dispatchers, eight janitors


def populate(database: Database, schedules: int, occurrences: int) -> None:
    """Most may run at will; a few wait for each other, and all of those for one key."""
    end = {"end_at": f"2026-03-02T00:{occurrences // 60:02d}:{occurrences % 60:02d}Z"}
    free = {"intervals": [{"every": "PT1S"}], "overlap_policy": "allow_all", **end}
    tight = {"intervals": [{"every": "PT1S"}], "overlap_policy": "buffer_all", "concurrency_key": "k", **end}
    news = [
        new_schedule(f"s{n}", now=START, **(tight | {"concurrency_limit": 3} if n % 20 == 0 else free))
        for n in range(schedules)
    ]
    insert_all(database, news, now=START)


@pytest.mark.parametrize("dialect", ["postgresql"])
@pytest.mark.parametrize(
    ("schedules", "occurrences"),
    [(40, 25), pytest.param(200, 50, marks=pytest.mark.long)],
    ids=["a thousand", "ten thousand"],
)
def test_each_occurrence_is_decided_once_and_each_run_held_by_one(
    database: Database, database_url: str, tmp_path: Path, schedules: int, occurrences: int
) -> None:
    populate(database, schedules, occurrences)
    (tmp_path / "held").mkdir()
    now = START + occurrences * SECOND
    crowd = [
        start(crowd_main.work, database_url, now, str(tmp_path), f"p{number}", THREADS) for number in range(PROCESSES)
    ]
    assert finish(crowd, 60) == [0] * PROCESSES
    account(database)
    states = database.read(lambda c: c.execute(sa.select(runs.c.state, sa.func.count()).group_by(runs.c.state)).all())
    assert [tuple(row) for row in states] == [("succeeded", schedules * occurrences)]
    delivered = Counter(key for path in tmp_path.glob("deliveries-*") for key in path.read_text().split())
    assert len(delivered) == delivered.total() == schedules * occurrences
    assert not (tmp_path / "overlaps").exists()
    # Nobody had it all to himself, and the key was given back as often as it was taken.
    assert len(list(tmp_path.glob("deliveries-*"))) > 1
    values = database.read(lambda c: list(c.execute(sa.select(counters.c.value)).scalars()))
    assert values == [0]
    epochs = database.read(lambda c: set(c.execute(sa.select(runs.c.lease_epoch)).scalars()))
    assert epochs == {2}  # claimed once, ended once
