"""How long loops rest stands with them; who judges whether one is stuck must know the same."""

from __future__ import annotations

from horarium.engine import chores, janitor, partitions, retention
from horarium.engine import partitions as engine_partitions
from horarium.features.cluster.service import REST_SECONDS
from horarium.platform.database import wrapper


def test_a_loop_that_rests_is_not_called_stuck() -> None:
    """The clock is measured once a minute, and asked more often whether it must be."""
    assert REST_SECONDS == {
        "archive": engine_partitions.ARCHIVE_SECONDS,
        "clock": wrapper.MEASURE_SECONDS,
        "health": chores.HEALTH_LOOK_SECONDS,
        "partitions": partitions.UPKEEP_SECONDS,
        "repair": janitor.REPAIR_SECONDS,
        "retention": retention.PASS_SECONDS,
        "tzdata": chores.TZDATA_SECONDS,
        "usage": chores.COUNT_SECONDS,
    }
