"""What is known about one field of a document: what it holds and means, how it is checked, and how it is written.

The makers below give a field its check and its JSON Schema from the same numbers, so that the two cannot differ.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum, StrEnum
from functools import partial
from typing import Any, NamedTuple, TypeAlias

from horarium.policy.names import MAX_WHOLE, PolicyError, flag, parse_name, shown, text, whole_number

Check: TypeAlias = Callable[[str, object], Any]
"""From the field's name and its value to what is kept; raises PolicyError or InvalidSpec."""
Schema: TypeAlias = Mapping[str, Any]

ANYTHING: Schema = {}
MAX_TIMEOUT_SECONDS = 366 * 86_400
TEXT: Schema = {"type": "string"}


class Also(NamedTuple):
    """Another name; `read` turns what is given under it into what the field holds.

    A name is read wherever the field's own name is; `part.name` is read in that part only, `.name` at the top.
    """

    name: str
    read: Callable[[object], object] | None = None
    single: bool = False


@dataclass(frozen=True, slots=True)
class Part:
    """Several fields that make one value of a definition: `parse` is given those that were said, by their names."""

    attribute: str
    parse: Callable[[dict[str, Any]], Any]
    by_field: bool = False
    """Are its fields checked one by one? Else `parse` checks them, and says which is wrong."""
    homes: tuple[str, ...] = ()
    """Other objects that may contain its fields; the empty name is the top level of the document."""


@dataclass(frozen=True, slots=True, eq=False)
class Field:
    """`check` None = the policy that the field is a part of checks it."""

    says: str
    schema: Schema
    check: Check | None = None
    compiles: Callable[[str, object, str], Any] | None = None
    """The check of a sent document, if it does more; its third argument is the key that `H` hashes."""
    spelled: Callable[[object], object] | None = None
    """Turns every accepted spelling into the one that is kept."""
    also: tuple[str | Also, ...] = ()
    array: bool = False
    """Every item is checked by itself, so that all the bad ones are named."""
    unique: bool = False
    """Is an item that is there twice kept once?"""
    entries: bool = False
    """A small map whose keys are the user's own; every value is checked by itself."""
    part: Part | None = None
    attribute: str = ""
    """Where its value stands, if not under its own name."""
    written: Callable[[Any], object] | None = None
    """What the canonical document says, if not the plain JSON of the value; None = nothing."""
    always: bool = False
    """Is it written though it is the default?"""
    from_request: bool = False
    """Does the request say it where the document does not? Then it has no default."""
    same_as: str = ""
    """Another field of the same action that says the same thing; only that one is kept."""
    null: object = None
    """What null stands for, where it does not take away what was said before."""


# ── makers ────────────────────────────────────────────────────────────────────────────────────────


def text_field(says: str, check: Check = text, *, most: int | None = None, **more: Any) -> Field:
    bound = {} if most is None else {"maxLength": most}
    return Field(says, {"type": "string", **bound, **more.pop("schema", {})}, check, **more)


def whole_field(says: str, *, least: int = 0, most: int = MAX_WHOLE, **more: Any) -> Field:
    kind = "integer" if more.get("null") is None else ["integer", "null"]
    schema = {"type": kind, "minimum": least, "maximum": most}
    return Field(says, schema, partial(whole_number, least=least, most=most), **more)


def timeout_field(says: str, **more: Any) -> Field:
    """Whole seconds, a year at most: what hangs for longer holds its place. What was kept before may be more."""
    schema = {"type": "integer", "minimum": 1, "maximum": MAX_TIMEOUT_SECONDS}

    def compiled(field: str, value: object, _key: str) -> int:
        return whole_number(field, value, least=1, most=MAX_TIMEOUT_SECONDS)

    return Field(says, schema, partial(whole_number, least=1), compiles=compiled, **more)


def flag_field(says: str, **more: Any) -> Field:
    return Field(says, {"type": "boolean", **more.pop("schema", {})}, flag, **more)


def word_field(words: type[StrEnum], says: str, parse: Callable[..., StrEnum] | None = None, **more: Any) -> Field:
    """One of a list of words; `parse` knows others for them."""
    known = parse or (lambda value, field: parse_name(words, {}, value, field))
    schema = {"type": "string", "enum": [each.value for each in words]}

    def check(field: str, value: object) -> StrEnum:
        return known(value, field)

    return Field(says, schema, check, spelled=lambda value: known(value, "").value, **more)


def array_field(items: Schema, says: str, check: Check | None = None, *, most: int | None = None, **more: Any) -> Field:
    """With a check and a bound each item is checked by itself; else the check, or the policy, sees the whole."""
    bound = {} if most is None else {"maxItems": most}
    return Field(says, {"type": "array", "items": items, **bound}, check, array=most is not None, **more)


def map_field(values: Schema, says: str, check: Check, **more: Any) -> Field:
    return Field(says, {"type": "object", "additionalProperties": values}, check, **more)


# ── spellings and writing ─────────────────────────────────────────────────────────────────────────


def alone(value: object) -> object:
    if not isinstance(value, str):
        raise PolicyError("", f"must be a string, not {shown(value)}")
    return [value]


def negated(value: object) -> object:
    return not flag("", value)


def whole_seconds(value: object) -> object:
    """2.0 is 2; anything that is no number is left for the reader to refuse."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def from_milliseconds(value: object) -> object:
    if not isinstance(value, int) or isinstance(value, bool):
        raise PolicyError("", f"must be a whole number of milliseconds, not {shown(value)}")
    return whole_seconds(value / 1_000)


def empty_array_is_empty_object(value: object) -> object:
    """PHP writes an empty map as `[]`."""
    return {} if isinstance(value, list) and not value else value


def seconds(milliseconds: int) -> int | float:
    whole, rest = divmod(milliseconds, 1_000)
    return milliseconds / 1_000 if rest else whole


def amount(value: Decimal | int) -> int | float | str:
    """A JSON number where one says it exactly, else its digits as text."""
    number = Decimal(value)
    if number == number.to_integral_value():
        return int(number)
    near = float(number)
    return near if Decimal(repr(near)) == number else format(number.normalize(), "f")


def plain(value: object) -> object:
    """A value of a definition as JSON has it."""
    match value:
        case Enum():
            return value.value
        case Decimal():
            return amount(value)
        case tuple():
            return [plain(item) for item in value]
        case _:
            return value
