"""Every error has a reason code of its own, a message for a person, and a place in the tree that is drawn."""

from __future__ import annotations

import inspect
import re

import pytest

from horarium import errors
from horarium.errors import (
    BackfillTooLarge,
    ConditionError,
    CycleDetected,
    HorariumError,
    InvalidCalendar,
    InvalidDefinition,
    InvalidSpec,
    InvalidTransition,
    InvalidWorkflow,
    KindNotAvailable,
    NotAnInstant,
)

CLASSES = [each for _, each in inspect.getmembers(errors, inspect.isclass) if issubclass(each, HorariumError)]
EXAMPLES: list[HorariumError] = [
    HorariumError("m"),
    InvalidSpec("m", field="hour"),
    ConditionError("m"),
    NotAnInstant("m"),
    InvalidDefinition({"a.b": ["m", "n"], "c": ["o"]}),
    KindNotAvailable({"action.kind": ["m"]}),
    InvalidCalendar("m"),
    InvalidWorkflow("m"),
    CycleDetected(["a", "b"]),
    InvalidTransition("m"),
    BackfillTooLarge(1_001, 1_000),
]


def test_every_class_has_an_example() -> None:
    assert {type(each) for each in EXAMPLES} == set(CLASSES)


@pytest.mark.parametrize("error", EXAMPLES, ids=lambda error: type(error).__name__)
def test_an_error_carries_its_message_and_is_caught_by_the_root(error: HorariumError) -> None:
    assert str(error) == error.message != ""
    with pytest.raises(HorariumError):
        raise error


def test_reasons_are_words_and_no_two_are_the_same() -> None:
    reasons = [each.reason for each in CLASSES]
    assert len(set(reasons)) == len(reasons)
    assert all(re.fullmatch(r"[a-z]+(_[a-z]+)*", reason) for reason in reasons)


def test_the_tree_in_the_docstring_is_the_tree_of_the_classes() -> None:
    drawn = dict(re.findall(r"[├└]── (\w+) +(\w+)", errors.__doc__ or ""))
    assert drawn == {each.__name__: each.reason for each in CLASSES if each is not HorariumError}


@pytest.mark.parametrize(
    "kind", [InvalidSpec, ConditionError, InvalidDefinition, InvalidCalendar, InvalidWorkflow, BackfillTooLarge]
)
def test_what_is_wrong_with_an_input_is_a_value_error(kind: type[HorariumError]) -> None:
    assert issubclass(kind, ValueError)


def test_a_bad_spec_names_its_field_or_none() -> None:
    assert InvalidSpec("m", field="hour").field == "hour"
    assert InvalidSpec("m").field is None


def test_a_bad_definition_lists_every_field() -> None:
    given = {"a.b": ("m", "n"), "c": ("o",)}
    error = InvalidDefinition(given)
    assert error.errors == {"a.b": ["m", "n"], "c": ["o"]}
    assert error.message == "a.b: m; a.b: n; c: o"


def test_a_cycle_is_drawn_back_to_its_beginning() -> None:
    error = CycleDetected(["a", "b", "c"])
    assert error.message.endswith("a → b → c → a")
    assert error.nodes == ("a", "b", "c")


def test_a_backfill_that_is_too_large_says_how_large() -> None:
    error = BackfillTooLarge(1_001, 1_000)
    assert (error.count, error.limit) == (1_001, 1_000)
    assert "1001" in error.message
    assert "1000" in error.message


def test_a_backfill_that_nobody_counted_says_only_that_it_is_too_large() -> None:
    error = BackfillTooLarge(None, 1_000)
    assert (error.count, error.limit) == (None, 1_000)
    assert "more than 1000 occurrences" in error.message
