"""The durations of the last runs of a schedule, from which a forecast estimates when runs end."""

from __future__ import annotations

from typing import Any

import pytest
import sqlalchemy as sa

from horarium.features.schedules.next_run_rows import run_times
from horarium.instant import HOUR, MINUTE, SECOND
from horarium.platform.database import Database
from horarium.platform.database.tables import positions, runs
from horarium.platform.ids import new_id

START = 1_700_000_000 * SECOND


def row(table: sa.Table, **values: Any) -> dict[str, Any]:
    zeros: dict[str, Any] = {"TEXT": "x", "BOOLEAN": False, "BLOB": b""}
    return {column.name: zeros.get(str(column.type), 0) for column in table.columns if not column.nullable} | values


def finished(uid: bytes, place: int, seconds: int, **values: Any) -> dict[str, Any]:
    began = START + place * HOUR
    given = {"nominal": began, "created_at": began, "started_at": began, "finished_at": began + seconds * SECOND}
    return {
        **row(runs, run_id=new_id(), schedule_uid=uid, namespace="default", state="succeeded"),
        **given,
        "parent_run_id": None,
        "node_id": None,
        **values,
    }


def stored(database: Database, uid: bytes, values: list[dict[str, Any]]) -> None:
    database.write(lambda c: c.execute(sa.insert(positions).values(row(positions, schedule_uid=uid, status="active"))))
    for start in range(0, len(values), 200):
        database.write(lambda c, part=values[start : start + 200]: c.execute(sa.insert(runs), part))


@pytest.mark.parametrize("steps", [0, 40, 400])
def test_the_median_is_that_of_the_last_thirty_runs_however_many_steps_they_have(
    database: Database, steps: int
) -> None:
    uid, values = new_id(), []
    for place in range(34):
        root = finished(uid, place, seconds=9_000 if place < 4 else 60 + place, origin="scheduled")
        values.append(root)
        many = steps if place > 30 or steps < 100 else 0
        own = {"origin": "step", "parent_run_id": root["run_id"]}
        values += [finished(uid, place, 1, **own, node_id=f"n{number}") for number in range(many)]
    stored(database, uid, values)
    found = database.read(lambda c: run_times(c, [uid], START + 99 * HOUR))
    assert found[uid].open == ()
    assert found[uid].median == MINUTE + 18 * SECOND
