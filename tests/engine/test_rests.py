"""How long loops rest stands with them; who judges whether one is stuck must know the same."""

from __future__ import annotations

from horarium.engine import archiving, health_watch, partitions, repair, retention, tzdata, usage_count
from horarium.features.cluster.service import REST_SECONDS
from horarium.store.database import shared_clock


def test_a_loop_that_rests_is_not_called_stuck() -> None:
    """The clock is measured once a minute, and asked more often whether it must be."""
    assert REST_SECONDS == {
        "archive": archiving.ARCHIVE_SECONDS,
        "clock": shared_clock.MEASURE_SECONDS,
        "health": health_watch.LOOK_SECONDS,
        "partitions": partitions.UPKEEP_SECONDS,
        "repair": repair.PASS_SECONDS,
        "retention": retention.PASS_SECONDS,
        "tzdata": tzdata.REST_SECONDS,
        "usage": usage_count.PASS_SECONDS,
    }
