"""What a clause of a condition saw, as a sentence, and its values no longer than somebody reads."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from horarium.condition import ClauseResult, Operator
from horarium.policy.json_text import canonical_json

MAX_SHOWN: Final = 1_000
_IN_WORDS: Final = {
    Operator.EQ: "equals",
    Operator.NEQ: "does not equal",
    Operator.GT: "is greater than",
    Operator.LT: "is less than",
    Operator.CONTAINS: "contains",
}


class ToldClause(NamedTuple):
    """`wanted` is the operand and `seen` what stands there; a long one is a text that was cut."""

    wanted: Any
    seen: Any
    sentence: str


def tell_clause(found: ClauseResult) -> ToldClause:
    wanted, seen = _text(found.operand), _text(found.value)
    clause = f"{found.pointer or 'the whole context'} {_IN_WORDS[found.operator]} {wanted}"
    there = f"the value is {seen}" if found.found else "the value is missing"
    sentence = f"true: {clause}; {there}" if found.holds else f"false: {clause}; {there}"
    return ToldClause(_value(found.operand, wanted), _value(found.value, seen), sentence)


def _text(value: object) -> str:
    text = canonical_json(value)
    return text if len(text) <= MAX_SHOWN else f"{text[: MAX_SHOWN - 1]}…"


def _value(value: object, text: str) -> object:
    return value if len(text) < MAX_SHOWN else text
