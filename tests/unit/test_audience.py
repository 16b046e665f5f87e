"""For whom something is: which lists are read, and who is in them."""

from __future__ import annotations

from typing import Any

import pytest

from horarium.audience import EVERYBODY, MAX_NAMESPACES, USUAL, Audience, parse_audience


@pytest.mark.parametrize(
    ("given", "inside", "outside"),
    [
        (["*"], ["default", "a", "made-tomorrow"], []),
        (["a", "b"], ["a", "b"], ["default", "A", "a ", "*", ""]),
        ([], [], ["default", "*"]),
    ],
    ids=["all", "some", "none"],
)
def test_who_is_in_an_audience(given: list[str], inside: list[str], outside: list[str]) -> None:
    audience = parse_audience(given)
    assert [name for name in (*inside, *outside) if name in audience] == inside
    assert parse_audience(audience.document()) == audience


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("default", "must be a list"),
        (["*", "a"], "must be the only entry"),
        (["a b"], "'a b' is not a valid name"),
        ([""], "'' is not a valid name"),
        ([5], "'5' is not a valid name"),
        (["a\n"], "is not a valid name"),
        (["x" * 129], "is not a valid name"),
        ([str(n) for n in range(MAX_NAMESPACES + 1)], "more than 1000"),
    ],
    ids=["text", "mixed", "blank", "empty", "number", "line", "long", "many"],
)
def test_what_is_no_list_of_namespaces_is_refused(given: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        parse_audience(given)


def test_two_audiences_together_are_for_both() -> None:
    assert USUAL | Audience(frozenset({"a"})) == Audience(frozenset({"default", "a"}))
    assert USUAL | EVERYBODY == EVERYBODY | USUAL == EVERYBODY
