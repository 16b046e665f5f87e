"""Peers: who may speak with whom, in a small company and in trees that are none."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from horarium.features.agents.definition import MAX_DEPTH, may_speak

# boss ─┬─ editor ─┬─ writer
#       │          └─ checker
#       └─ seller ─── caller          lone has nobody
COMPANY: Mapping[str, str | None] = {
    "boss": None,
    "editor": "boss",
    "seller": "boss",
    "writer": "editor",
    "checker": "editor",
    "caller": "seller",
    "lone": None,
}
CIRCLE: Mapping[str, str | None] = {"a": "b", "b": "c", "c": "a", "below": "a", "beside": "a", "root": None}
DEEP: Mapping[str, str | None] = {str(n): str(n - 1) if n else None for n in range(MAX_DEPTH + 1)}


@pytest.mark.parametrize(
    ("parents", "one", "other", "may"),
    [
        pytest.param(COMPANY, "writer", "writer", True, id="itself"),
        pytest.param(COMPANY, "writer", "editor", True, id="parent"),
        pytest.param(COMPANY, "writer", "boss", True, id="an ancestor"),
        pytest.param(COMPANY, "writer", "checker", True, id="a sibling"),
        pytest.param(COMPANY, "boss", "lone", True, id="roots among themselves"),
        pytest.param(COMPANY, "writer", "caller", False, id="a cousin"),
        pytest.param(COMPANY, "writer", "seller", False, id="an uncle"),
        pytest.param(COMPANY, "writer", "lone", False, id="another tree"),
        pytest.param(COMPANY, "writer", "nobody", False, id="unknown"),
        pytest.param(COMPANY, "nobody", "nobody", False, id="unknown to itself"),
        pytest.param(COMPANY, "", "boss", False, id="no name"),
        pytest.param(CIRCLE, "a", "b", False, id="in a circle"),
        pytest.param(CIRCLE, "below", "a", False, id="below a circle"),
        pytest.param(CIRCLE, "below", "beside", False, id="siblings below a circle"),
        pytest.param(CIRCLE, "a", "a", True, id="itself in a circle"),
        pytest.param(CIRCLE, "root", "a", False, id="a root and a circle"),
        pytest.param(DEEP, "0", str(MAX_DEPTH - 1), True, id="as far as agents stand"),
        pytest.param(DEEP, "0", str(MAX_DEPTH), False, id="deeper than agents stand"),
    ],
)
def test_who_may_speak_with_whom(parents: Mapping[str, str | None], one: str, other: str, may: bool) -> None:
    assert may_speak(one, other, parents) is may
    assert may_speak(other, one, parents) is may
