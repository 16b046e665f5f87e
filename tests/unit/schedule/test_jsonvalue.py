"""JSON values: what could not be written out again is refused on the way in."""

from __future__ import annotations

import json
from datetime import date

import pytest

from horarium.core.document.json_values import OBJECT, checked_object
from horarium.core.policy.queue import PolicyError


def nested(depth: int) -> dict[str, object]:
    value: dict[str, object] = {}
    for _ in range(depth - 1):
        value = {"in": value}
    return value


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"a": [1, 2.5, None, True, "ü", {"b": []}]},
        {"long": 2**4_095},
        nested(OBJECT.depth),
        {"many": [0] * (OBJECT.values - 2)},
    ],
    ids=["empty", "all types", "long integer", "deepest", "most values"],
)
def test_what_json_can_say_is_kept(value: dict[str, object]) -> None:
    kept = checked_object("action", value)
    assert kept == value
    assert json.loads(json.dumps(kept)) == value


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (None, "must be an object"),
        ([], "must be an object"),
        ("{}", "must be an object"),
        ({"a": float("nan")}, "NaN"),
        ({"a": [float("-inf")]}, "NaN or an infinite number"),
        ({"a": 2**4_096}, "more than 64 bits"),
        ({"a": "\ud800"}, "surrogate"),
        ({"\udfff": 1}, "surrogate"),
        ({1: 1}, "a key of type int"),
        ({"a": {None: 1}}, "a key of type NoneType"),
        ({"a": date(2026, 1, 1)}, "a date"),
        ({"a": b"bytes"}, "a bytes"),
        (nested(OBJECT.depth + 1), "more than 32 deep"),
        (nested(100_000), "more than 32 deep"),
        ({"many": [0] * (OBJECT.values - 1)}, "more than 10000 values"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_json_cannot_say_is_refused(value: object, message: str) -> None:
    with pytest.raises(PolicyError, match=message) as refused:
        checked_object("action", value)
    assert refused.value.field == "action"


def test_the_outer_object_is_a_copy() -> None:
    original: dict[str, object] = {"kind": "http"}
    kept = checked_object("action", original)
    original["kind"] = "command"
    assert kept == {"kind": "http"}
