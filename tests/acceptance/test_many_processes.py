"""Many tickers, dispatchers and janitors on one database: each occurrence is decided once, each run held by one."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from acceptance import crowd_main
from acceptance.processes import finish, start
from engine.builders import START, account, insert_all, new_schedule

from horarium.instant import SECOND
from horarium.platform.database import Database
from horarium.platform.database.tables import counters, history, runs

PROCESSES, THREADS = 4, 2  # of each kind: eight tickers, eight dispatchers, eight janitors


_DECIDED = (
    sa.select(sa.func.count(sa.distinct(sa.tuple_(history.c.schedule_uid, history.c.nominal))))
    .where(history.c.nominal.is_not(None))
    .select_from(history)
)


def populate(database: Database, schedules: int, occurrences: int) -> None:
    """Some may run at will, most skip what they are too busy for, and a few wait for one key that all of them share."""
    common: dict[str, Any] = {
        "intervals": [{"every": "PT1S"}],
        "end_at": f"2026-03-02T00:{occurrences // 60:02d}:{occurrences % 60:02d}Z",
    }
    kinds = [{"overlap_policy": "skip"}, {"overlap_policy": "allow_all"}, {"overlap_policy": "skip"}]
    tight: dict[str, Any] = {"overlap_policy": "buffer_all", "concurrency_key": "k", "concurrency_limit": 3}
    news = [
        new_schedule(f"s{n}", now=START, **common, **(tight if n % 40 == 0 else kinds[n % 3])) for n in range(schedules)
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
    assert finish(crowd, 120) == [0] * PROCESSES
    account(database)
    states = database.read(lambda c: list(c.execute(sa.select(runs.c.state)).scalars()))
    assert set(states) == {"succeeded"}
    delivered = Counter(key for path in tmp_path.glob("deliveries-*") for key in path.read_text().split())
    assert len(delivered) == delivered.total() == len(states)
    assert not (tmp_path / "overlaps").exists()
    # Nobody had it all to himself, and the key was given back as often as it was taken.
    assert len(list(tmp_path.glob("deliveries-*"))) > 1
    values = database.read(lambda c: list(c.execute(sa.select(counters.c.value)).scalars()))
    assert values == [0]
    epochs = database.read(lambda c: set(c.execute(sa.select(runs.c.lease_epoch)).scalars()))
    assert epochs == {2}  # claimed once, ended once
    decided = database.read(lambda c: c.execute(_DECIDED).scalar_one())
    assert decided == schedules * occurrences
