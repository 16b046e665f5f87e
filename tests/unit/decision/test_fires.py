"""Fires that come and go, against a count of each of them."""

from __future__ import annotations

from itertools import takewhile
from typing import Any

import pytest

from horarium.core.decision.year import COMPARISON_HORIZON, fires_moved
from horarium.core.recurrence.spec import Spec, compile_spec
from horarium.instant import from_rfc3339

NOW = from_rfc3339("2026-03-26T10:30:00Z")  # the clocks of Europe change within the week
HOURLY: dict[str, Any] = {"cron_expressions": ["0 * * * *"]}
NIGHTLY: dict[str, Any] = {"cron_expressions": ["30 2 * * *"], "timezone": "Europe/Berlin"}
CASES: dict[str, tuple[dict[str, Any] | None, dict[str, Any] | None]] = {
    "new": (None, HOURLY),
    "gone": (NIGHTLY, None),
    "nothing": (None, None),
    "the same": (HOURLY, HOURLY),
    "half as often": (HOURLY, {"cron_expressions": ["0 */2 * * *"]}),
    "another zone": (NIGHTLY, {**NIGHTLY, "timezone": "Europe/London"}),
    "another kind": (HOURLY, {"intervals": [{"every": "PT90M"}]}),
    "one more": (HOURLY, {**HOURLY, "at": ["2026-03-27T00:00:00Z", "2026-03-27T00:00:01Z"]}),
    "a window": (
        HOURLY,
        {**HOURLY, "start_at": NOW + COMPARISON_HORIZON // 3, "end_at": NOW + COMPARISON_HORIZON // 2},
    ),
    "windows apart": (
        {**HOURLY, "end_at": NOW + COMPARISON_HORIZON // 4},
        {**HOURLY, "start_at": NOW + COMPARISON_HORIZON // 2},
    ),
}


def each(spec: Spec | None) -> set[int]:
    if spec is None:
        return set()
    return set(takewhile(lambda nominal: nominal <= NOW + COMPARISON_HORIZON, spec.occurrences(NOW)))


@pytest.mark.parametrize(("before", "after"), CASES.values(), ids=CASES)
def test_fires_are_those_of_one_and_not_of_the_other(
    before: dict[str, Any] | None, after: dict[str, Any] | None
) -> None:
    old, new = (None if given is None else compile_spec(**given) for given in (before, after))
    expected = len(each(new) - each(old)), len(each(old) - each(new))
    assert fires_moved(old, new, now=NOW) == expected


def test_a_spec_of_every_second_is_counted_by_arithmetic() -> None:
    every = compile_spec(cron_expressions=["* * * * * *"])
    assert fires_moved(every, None, now=NOW) == (0, COMPARISON_HORIZON // 1_000_000)
