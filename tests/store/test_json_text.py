"""JSON in columns: read back exactly as it was written, whichever library could do it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from horarium.platform.database.statements import event_text, from_text, to_text

_VALUES = {
    "plain": {"b": 1, "a": [True, None, "é", 1.5]},
    "the largest of 64 bits": 2**64 - 1,
    "beyond 64 bits": {"n": [2**64, -(2**70)]},
    "digits in a text": "12345678901234567890",
    "half of a pair": "half \ud800 pair",
    "nul": "nul \x00",
    "a long fraction": 0.1234567890123456789,
    "empty": {},
}


@pytest.mark.parametrize("value", _VALUES.values(), ids=_VALUES)
def test_every_json_value_is_read_as_it_was_written(value: Any) -> None:
    assert from_text(to_text(value)) == value
    assert from_text(event_text(value)) == value


@pytest.mark.parametrize("text", ["[1e400]", "NaN", "-Infinity"])
def test_what_only_the_standard_library_reads_is_read_by_it(text: str) -> None:
    assert repr(from_text(text)) == repr(json.loads(text))


def test_no_text_is_no_value() -> None:
    assert from_text(None) is None


def test_a_document_is_exact_or_refused() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        to_text(float("nan"))
    with pytest.raises(TypeError, match="object is not a JSON value"):
        to_text(object())


def test_an_event_tells_as_text_what_json_has_no_word_for() -> None:
    assert from_text(event_text({"at": frozenset({2, 1}), "big": 2**70, "thing": 1j})) == {
        "at": [1, 2], "big": 2**70, "thing": "1j",
    }  # fmt: skip
