"""After a clock was set back nothing waits for as long as it was ahead, and nothing becomes early."""

from __future__ import annotations

from typing import Any

import pytest
import sqlalchemy as sa
from run_rows import add_event, add_run

from horarium.features.cluster.repair_rows import shorten_waits
from horarium.instant import HOUR, MINUTE, SECOND, from_rfc3339
from horarium.platform.database import Database
from horarium.platform.database.tables import runs, subscriptions
from horarium.platform.ids import new_id

NOW = from_rfc3339("2026-03-02T00:00:00Z")
AHEAD = NOW + HOUR
CASES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "a lease from ahead": (
        {"state": "launching", "lease_until": AHEAD + 20 * SECOND, "created_at": NOW - 1},
        {"lease_until": NOW + 30 * SECOND},
    ),
    "a lease": (
        {"state": "launching", "lease_until": NOW + 20 * SECOND, "created_at": NOW - 1},
        {"lease_until": NOW + 20 * SECOND},
    ),
    "born ahead": ({"ready_at": AHEAD, "created_at": AHEAD}, {"ready_at": NOW}),
    "held ahead for a minute": (
        {"state": "held", "ready_at": AHEAD + MINUTE, "created_at": AHEAD},
        {"ready_at": NOW + MINUTE},
    ),
    "waits for long": ({"ready_at": NOW + 3 * HOUR, "created_at": NOW - 1}, {"ready_at": NOW + 3 * HOUR}),
    "asked again ahead": (
        {"state": "running", "ready_at": AHEAD, "created_at": NOW - 1},
        {"ready_at": NOW},
    ),
    "begun ahead": (
        {"state": "running", "started_at": AHEAD, "deadline": AHEAD + MINUTE, "ends_by": AHEAD + HOUR},
        {"started_at": NOW, "deadline": NOW + MINUTE, "ends_by": NOW + HOUR},
    ),
    "begun before": (
        {"state": "running", "started_at": NOW - 1, "deadline": NOW + MINUTE},
        {"started_at": NOW - 1, "deadline": NOW + MINUTE},
    ),
    "over": ({"state": "succeeded", "started_at": AHEAD, "finished_at": AHEAD}, {"started_at": AHEAD}),
}


@pytest.mark.parametrize(("given", "expected"), CASES.values(), ids=CASES)
def test_what_a_wrong_clock_has_written_is_counted_from_now(
    database: Database, given: dict[str, Any], expected: dict[str, Any]
) -> None:
    run_id = add_run(database, **given)
    database.write(lambda c: shorten_waits(c, NOW))
    statement = sa.select(runs).where(runs.c.run_id == run_id)
    row = database.read(lambda c: c.execute(statement).one())
    assert {name: getattr(row, name) for name in expected} == expected


def test_a_retry_that_was_planned_ahead_keeps_its_pause(database: Database) -> None:
    run_id = add_run(database, ready_at=AHEAD + MINUTE, created_at=NOW - HOUR)
    add_event(database, run_id, 1, NOW - HOUR)
    add_event(database, run_id, 2, AHEAD)
    database.write(lambda c: shorten_waits(c, NOW))
    assert database.read(lambda c: c.execute(sa.select(runs.c.ready_at)).scalar_one()) == NOW + MINUTE


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"lease_until": AHEAD}, (NOW + MINUTE, None)),
        ({"retry_at": AHEAD + MINUTE, "last_error_at": AHEAD}, (None, NOW + MINUTE)),
        ({"retry_at": NOW + 2 * HOUR, "last_error_at": NOW - 1}, (None, NOW + 2 * HOUR)),
    ],
    ids=["lease", "retry", "retry from before"],
)
def test_a_subscription_waits_no_longer_than_it_may(
    database: Database, given: dict[str, int], expected: tuple[int | None, int | None]
) -> None:
    row = {
        "subscription_id": new_id(), "namespace": "default", "name": "n", "kinds": "[]", "filter": "{}", "url": "u",
        "secret": "s", "version": 1, "created_at": 0, "updated_at": 0, "cursor": "0", "failures": 0,
        "delivered_count": 0, "lease_epoch": 0,
    }  # fmt: skip
    database.write(lambda c: c.execute(sa.insert(subscriptions).values(**row, **given)))
    database.write(lambda c: shorten_waits(c, NOW))
    found = sa.select(subscriptions.c.lease_until, subscriptions.c.retry_at)
    assert tuple(database.read(lambda c: c.execute(found).one())) == expected
