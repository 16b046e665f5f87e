"""What can be in the context of a condition, and what never is."""

from __future__ import annotations

from typing import Any

import pytest

from horarium.condition import compile_condition
from horarium.core.document.condition_context import SHAPE, ContextMember, is_context, never_there

ALL = "prior_run_result, last_24h_stats, signal_rpc_result"

# A pointer, and what is said about it; None = it may be there.
POINTERS: list[tuple[str, str | None]] = [
    ("", None),
    ("/prior_run_result", None),
    ("/prior_run_result/status", None),
    ("/prior_run_result/rows/0/name", None),
    ("/last_24h_stats", None),
    ("/last_24h_stats/failed", None),
    ("/signal_rpc_result/queue/depth", None),
    ("/last_24h_stats/faild", "'/last_24h_stats/faild' never exists; did you mean /last_24h_stats/failed?"),
    ("/last_24h_stats/x", "'/last_24h_stats/x' never exists; /last_24h_stats has succeeded, failed, total"),
    ("/last_24h_stats/failed/0", "'/last_24h_stats/failed/0' never exists, because /last_24h_stats/failed is a number"),
    ("/last_24_stats/failed", "'/last_24_stats/failed' never exists; did you mean /last_24h_stats?"),
    ("/weather", f"'/weather' never exists; the context has {ALL}"),
    ("/", f"'/' never exists; the context has {ALL}"),
    ("/Last_24h_Stats", "'/Last_24h_Stats' never exists; did you mean /last_24h_stats?"),
    ("/\x1b[2J", f"'/\\x1b[2J' never exists; the context has {ALL}"),
]


@pytest.mark.parametrize(("pointer", "said"), POINTERS, ids=[repr(row[0]) for row in POINTERS])
def test_what_can_never_be_there_is_said_with_the_nearest_name(pointer: str, said: str | None) -> None:
    assert never_there(compile_condition({pointer: {"eq": 1}})) == ([] if said is None else [said])


def test_each_clause_is_looked_at_and_what_is_said_is_short() -> None:
    condition = compile_condition({f"/{n}{'x' * 1_000}": {"eq": 1} for n in range(20)})
    said = never_there(condition)
    assert len(said) == 20
    assert max(map(len, said)) < 200


def test_the_shape_knows_every_member() -> None:
    assert SHAPE.keys() == {member.value for member in ContextMember}


@pytest.mark.parametrize(
    ("value", "is_one"),
    [
        ({"last_24h_stats": {}}, True),
        ({"a": 1}, False),
        ({"last_24h_stats": {}, "a": 1}, False),
        ({}, False),
        ([], False),
    ],
)
def test_only_a_document_with_its_members_is_a_context(value: Any, is_one: bool) -> None:
    assert is_context(value) is is_one
