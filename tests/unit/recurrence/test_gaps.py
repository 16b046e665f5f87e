"""How close together the occurrences of a spec are."""

from __future__ import annotations

from typing import Any

import pytest

from horarium.core.recurrence.lint import shortest_gap
from horarium.core.recurrence.spec import compile_spec
from horarium.instant import from_rfc3339

NOW = from_rfc3339("2026-03-01T00:00:00Z")
CASES: list[tuple[str, dict[str, Any], int | None]] = [
    ("every minute", {"cron_expressions": ["* * * * *"]}, 60),
    ("every second", {"cron_expressions": ["* * * * * *"]}, 1),
    ("at the turn of the minute", {"cron_expressions": ["0,59 * * * * *"]}, 1),
    ("two crons a second apart", {"cron_expressions": ["0 * * * * *", "1 * * * * *"]}, 1),
    ("dense in December only", {"cron_expressions": ["0 * * * *", "* * * * 12 *", "30 0 1 1 *"]}, 1),
    ("an interval", {"intervals": [{"every": "PT5S"}]}, 5),
    ("once", {"at": ["2026-04-01T00:00:00Z"]}, None),
    ("three times", {"at": ["2026-04-01T00:00:00Z", "2026-04-01T00:00:07Z", "2027-01-01T00:00:00Z"]}, 7),
    ("a window of one", {"cron_expressions": ["* * * * * *"], "start_at": NOW, "end_at": NOW}, None),
]


@pytest.mark.parametrize(("spec", "gap"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_the_shortest_gap_is_found(spec: dict[str, Any], gap: int | None) -> None:
    assert shortest_gap(compile_spec(**spec), after=NOW - 1, enough=0) == gap


def test_a_gap_that_is_short_enough_ends_the_search() -> None:
    assert shortest_gap(compile_spec(cron_expressions=["0,30,45 * * * * *"]), after=NOW, enough=60) == 30
