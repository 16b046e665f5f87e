"""What a clause saw is a sentence that says what was wanted and what stands there."""

from __future__ import annotations

from typing import Any

import pytest

from horarium.condition import compile_condition
from horarium.core.document.descriptions import MAX_SHOWN, describe_clause

CONTEXT: dict[str, Any] = {"stats": {"failed": 1}, "tags": ["eu"], "nothing": None}
ROWS: dict[str, tuple[str, dict[str, Any], str]] = {
    "holds": ("/stats/failed", {"lt": 3}, "true: /stats/failed is less than 3; the value is 1"),
    "does not": ("/stats/failed", {"gt": 3}, "false: /stats/failed is greater than 3; the value is 1"),
    "nothing there": ("/stats/total", {"eq": 0}, "false: /stats/total equals 0; the value is missing"),
    "null is there": ("/nothing", {"eq": None}, "true: /nothing equals null; the value is null"),
    "nothing is not that": ("/gone", {"neq": "x"}, 'true: /gone does not equal "x"; the value is missing'),
    "a member": ("/tags", {"contains": "eu"}, 'true: /tags contains "eu"; the value is ["eu"]'),
    "all of it": ("", {"eq": {}}, "false: the whole context equals {}; "
                  'the value is {"nothing":null,"stats":{"failed":1},"tags":["eu"]}'),
}  # fmt: skip


@pytest.mark.parametrize(("pointer", "wanted", "sentence"), ROWS.values(), ids=ROWS)
def test_a_clause_says_what_it_saw(pointer: str, wanted: dict[str, Any], sentence: str) -> None:
    [found] = compile_condition({pointer: wanted}).explain(CONTEXT)
    assert describe_clause(found).sentence == sentence


def test_what_is_long_is_cut() -> None:
    [found] = compile_condition({"/a": {"eq": "x" * 5_000}}).explain({"a": ["y" * 5_000]})
    told = describe_clause(found)
    assert len(told.wanted) == len(told.seen) == MAX_SHOWN
    assert len(told.sentence) < 3 * MAX_SHOWN
