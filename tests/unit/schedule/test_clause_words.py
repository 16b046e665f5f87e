"""What a clause saw is a sentence that says what was wanted and what stands there."""

from __future__ import annotations

from typing import Any

import pytest

from horarium.condition import compile_condition
from horarium.schedule.clause_words import MAX_SHOWN, tell_clause

CONTEXT: dict[str, Any] = {"stats": {"failed": 1}, "tags": ["eu"], "nothing": None}
ROWS: dict[str, tuple[str, dict[str, Any], str]] = {
    "holds": ("/stats/failed", {"lt": 3}, "/stats/failed is less than 3: it is 1"),
    "does not": ("/stats/failed", {"gt": 3}, "it does not hold that /stats/failed is greater than 3: it is 1"),
    "nothing there": ("/stats/total", {"eq": 0}, "it does not hold that /stats/total equals 0: nothing is there"),
    "null is there": ("/nothing", {"eq": None}, "/nothing equals null: it is null"),
    "nothing is not that": ("/gone", {"neq": "x"}, '/gone does not equal "x": nothing is there'),
    "a member": ("/tags", {"contains": "eu"}, '/tags contains "eu": it is ["eu"]'),
    "all of it": ("", {"eq": {}}, "it does not hold that the whole context equals {}: "
                  'it is {"nothing":null,"stats":{"failed":1},"tags":["eu"]}'),
}  # fmt: skip


@pytest.mark.parametrize(("pointer", "wanted", "sentence"), ROWS.values(), ids=ROWS)
def test_a_clause_says_what_it_saw(pointer: str, wanted: dict[str, Any], sentence: str) -> None:
    [found] = compile_condition({pointer: wanted}).explain(CONTEXT)
    assert tell_clause(found).sentence == sentence


def test_what_is_long_is_cut() -> None:
    [found] = compile_condition({"/a": {"eq": "x" * 5_000}}).explain({"a": ["y" * 5_000]})
    told = tell_clause(found)
    assert len(told.wanted) == len(told.seen) == MAX_SHOWN
    assert len(told.sentence) < 3 * MAX_SHOWN
