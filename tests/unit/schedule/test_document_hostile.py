"""Whatever comes in is refused with a clear path and in bounded time; nothing but InvalidDefinition is raised."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from horarium.core.document.document import from_canonical, merge_patch, parse_definition, replace_parts, to_document
from horarium.core.document.places import NAMES as WRITTEN
from horarium.core.document.places import SHIPPED_NAMES
from horarium.errors import InvalidDefinition
from horarium.instant import from_rfc3339

TOP, OBJECTS = SHIPPED_NAMES.top, SHIPPED_NAMES.objects
NOW = from_rfc3339("2026-01-01T00:00:00Z")
GOOD: dict[str, Any] = {"schedule_id": "s", "cron_expr": "0 2 * * *", "prompt": "x"}
# The bound of the house is 10 ms; a slow machine gets ten times as long before a test fails.
PATIENCE_SECONDS = 1.0


def errors_of(read: Callable[[], object]) -> dict[str, list[str]]:
    began = time.process_time()
    with pytest.raises(InvalidDefinition) as refused:
        read()
    assert time.process_time() - began < PATIENCE_SECONDS
    # An answer must carry it.
    refused.value.message.encode()
    assert all(len(path) < 1_000 for path in refused.value.errors)
    return refused.value.errors


def parse(document: object) -> object:
    return parse_definition(document, now=NOW)


def nested(depth: int, innermost: object = None) -> object:
    value = innermost
    for _ in range(depth):
        value = [value]
    return value


def circle() -> dict[str, Any]:
    document = dict(GOOD)
    document["memo"] = document
    return document


def wide_circle() -> list[Any]:
    values: list[Any] = []
    values.extend([values] * 1_000)
    return values


BOUNDS: dict[str, tuple[Callable[[], object], str]] = {
    "a string of 10 MB": (lambda: GOOD | {"note": "x" * 10_000_000}, "larger than"),
    "a key of 10 MB": (lambda: GOOD | {"k" * 10_000_000: 1}, "larger than"),
    "a prompt of 2 MB in three-byte characters": (lambda: GOOD | {"prompt": "€" * 700_000}, "larger than"),
    "an array of ten million": (lambda: GOOD | {"inputs": [0] * 10_000_000}, "more than"),
    "many small arrays": (lambda: GOOD | {"inputs": [[0] * 100] * 1_000}, "more than"),
    "10,000 levels": (lambda: GOOD | {"inputs": nested(10_000)}, "nested deeper"),
    "65 levels": (lambda: GOOD | {"inputs": nested(64)}, "nested deeper"),
    "a circle": (circle, "nested deeper"),
    "a wide circle": (wide_circle, "more than"),
    "100,000 unknown fields": (lambda: {f"k{n}": n for n in range(100_000)}, "more than"),
}


@pytest.mark.parametrize(("document", "text"), BOUNDS.values(), ids=BOUNDS)
def test_a_document_beyond_a_bound_is_refused_as_a_whole(document: Callable[[], object], text: str) -> None:
    value = document()
    assert text in errors_of(lambda: parse(value))["document"][0]


def test_a_document_within_the_depth_is_read() -> None:
    parse(GOOD | {"inputs": nested(63)})


VALUES: dict[str, tuple[object, str]] = {
    "NaN": (float("nan"), "NaN"),
    "infinity": (float("-inf"), "NaN"),
    "a number of 65 bits": (2**63, "64 bits"),
    "a negative number of 65 bits": (-(2**63) - 1, "64 bits"),
    "a number of 100,000 digits": (10**100_000, "64 bits"),
    "U+0000": ("a\x00b", "U+0000"),
    "a lone surrogate": ("a\ud800b", "surrogate"),
    "bytes": (b"x", "not JSON"),
    "a datetime": (datetime(2026, 1, 1, tzinfo=UTC), "not JSON"),
    "a Decimal": (Decimal(1), "not JSON"),
    "a set": ({1}, "not JSON"),
}
SPOTS: dict[str, tuple[Callable[[object], dict[str, Any]], str]] = {
    "a field": (lambda value: GOOD | {"note": value}, "note"),
    "an input": (lambda value: GOOD | {"inputs": [{"a": [0, value]}]}, "inputs.0.a.1"),
    "a memo": (lambda value: GOOD | {"memo": {"deep": {"er": value}}}, "memo.deep.er"),
    "an unknown field": (lambda value: GOOD | {"zzz": value}, "zzz"),
}


@pytest.mark.parametrize(("place", "path"), SPOTS.values(), ids=SPOTS)
@pytest.mark.parametrize(("value", "text"), VALUES.values(), ids=VALUES)
def test_a_value_that_cannot_be_kept_is_refused_wherever_it_is(
    value: object, text: str, place: Callable[[object], dict[str, Any]], path: str
) -> None:
    document = place(value)
    assert text in errors_of(lambda: parse(document))[path][0]


KEYS: dict[str, tuple[object, str, str]] = {
    "U+0000": ("a\x00", "memo.a\\x00", "U+0000"),
    "a lone surrogate": ("\udfff", "memo.\\udfff", "surrogate"),
    "a number": (5, "memo.5", "keys must be strings"),
    "null": (None, "memo.NoneType", "keys must be strings"),
}


@pytest.mark.parametrize(("key", "path", "text"), KEYS.values(), ids=KEYS)
def test_a_key_that_cannot_be_kept_is_refused(key: object, path: str, text: str) -> None:
    assert text in errors_of(lambda: parse(GOOD | {"memo": {key: 1}}))[path][0]


@pytest.mark.parametrize("value", [None, "x"], ids=repr)
def test_the_largest_and_smallest_numbers_are_kept(value: object) -> None:
    parse(GOOD | {"inputs": [2**63 - 1, -(2**63), 1.7e308, value]})


def test_a_long_unknown_key_is_cut_in_its_path() -> None:
    (path,) = errors_of(lambda: parse(GOOD | {"k" * 10_000: 1}))
    assert path == "k" * 61 + "..."


def test_many_unknown_fields_are_answered_in_time() -> None:
    errors_of(lambda: parse({f"schedule_idd_{n}": n for n in range(20_000)}))


def test_many_unknown_fields_of_a_part_are_answered_in_time() -> None:
    errors_of(lambda: parse(GOOD | {"action": {f"schedule_idd_{n}": n for n in range(15_000)}}))


def test_many_values_that_cannot_be_kept_are_counted_to_fifty() -> None:
    errors = errors_of(lambda: parse(GOOD | {"inputs": ["\x00"] * 15_000}))
    assert list(errors) == [f"inputs.{n}" for n in range(50)]


def test_many_bad_moments_are_answered_in_time() -> None:
    errors_of(lambda: parse({"schedule_id": "s", "prompt": "x", "at": ["nonsense"] * 10_000}))
    errors_of(lambda: parse({"schedule_id": "s", "prompt": "x", "at": ["2020-01-01T00:00:00Z"] * 10_001}))


NAMES = [("", name) for name in (*TOP, *OBJECTS)] + [(part, name) for part in OBJECTS for name in OBJECTS[part]]
ODD = [[], {}, "", "x" * 10_000, -1, 0, 2**62, 1.5, True, False, [None], [[]], [{}], {"a": {}}, [5], ["x"], "\u202e"]


@pytest.mark.parametrize("value", ODD, ids=ascii)
def test_wrong_types_anywhere_are_refused_or_read_but_never_raise_anything_else(value: object) -> None:
    for part, name in NAMES:
        document = GOOD | ({part: {name: value}} if part else {name: value})
        for read in (parse, lambda given: merge_patch({}, given), lambda given: replace_parts({}, given)):
            with suppress(InvalidDefinition):
                read(document)


PLACES = [(name, None) for name in WRITTEN] + [
    (part, name) for part in OBJECTS if part in WRITTEN for name in OBJECTS[part]
]
DAMAGE: list[object] = [
    *ODD,
    None,
    float("nan"),
    10**5_000,
    b"x",
    Decimal(1),
    {5: 5},
    {None: 1},
    nested(5_000),
    "\ud800",
]


@pytest.mark.parametrize("value", DAMAGE, ids=range(len(DAMAGE)))
def test_a_damaged_row_raises_only_invalid_definition(value: object) -> None:
    stored = to_document(parse_definition(GOOD, now=NOW).definition)
    for part, name in PLACES:
        old: Any = stored.get(part)
        damaged = stored | {part: value if name is None else {**(old if isinstance(old, dict) else {}), name: value}}
        with suppress(InvalidDefinition):
            from_canonical(damaged)


@pytest.mark.parametrize(
    "document", [None, 5, "x", [], [1], {}, {5: 5}, {"spec": 5}, {"spec.timezone": "UTC"}], ids=repr
)
def test_what_is_no_canonical_document_at_all_raises_invalid_definition(document: object) -> None:
    assert errors_of(lambda: from_canonical(document))


def test_a_stored_row_with_another_spelling_is_damaged() -> None:
    stored = to_document(parse_definition(GOOD, now=NOW).definition)
    assert errors_of(lambda: from_canonical(stored | {"cron_expr": "0 2 * * *"})) == {"cron_expr": ["unknown field"]}
    assert list(errors_of(lambda: from_canonical(stored | {"action": {"kind": "prompt", "prmpt": "x"}}))) == [
        "action.prmpt",
        "action.prompt",
    ]


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=10,
)


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(st.sampled_from([*TOP, *OBJECTS]), anything, max_size=6))
def test_any_json_under_known_names_is_read_or_refused(document: dict[str, Any]) -> None:
    try:
        parsed = parse_definition(document, now=NOW, generated_id="g")
    except InvalidDefinition:
        return
    assert from_canonical(to_document(parsed.definition)) == parsed.definition
