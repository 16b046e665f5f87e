"""Fields of a document: the check, the JSON Schema, the meaning and the written form of each.

The makers give a field its check and its JSON Schema from the same numbers, so that the two cannot differ. Checks of
other packages are guarded: whatever they do, a field is refused or the value is JSON. `MemberReader` reads the
members of an object, each by its check, and collects problems under their paths instead of raising them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum, StrEnum
from functools import partial
from typing import Any, NamedTuple, TypeAlias, TypeVar

from horarium.core.document.json_values import DocumentProblems, is_storable
from horarium.core.policy.queue import MAX_WHOLE, PolicyError, flag, parse_name, read_object, shown, text, whole_number
from horarium.errors import InvalidSpec

Check: TypeAlias = Callable[[str, object], Any]
"""From the field's name and its value to what is kept; raises PolicyError or InvalidSpec."""
Schema: TypeAlias = Mapping[str, Any]

ANYTHING: Schema = {}
MAX_TIMEOUT_SECONDS = 366 * 86_400
TEXT: Schema = {"type": "string"}


class FieldSpelling(NamedTuple):
    """Another name; `read` turns what is given under it into what the field holds.

    A name is read wherever the field's own name is; `part.name` is read in that part only, `.name` at the top.
    """

    name: str
    read: Callable[[object], object] | None = None
    single: bool = False


@dataclass(frozen=True, slots=True)
class FieldPart:
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
    also: tuple[str | FieldSpelling, ...] = ()
    array: bool = False
    """Every item is checked by itself, so that all the bad ones are named."""
    unique: bool = False
    """Is an item that is there twice kept once?"""
    entries: bool = False
    """A small map whose keys are the user's own; every value is checked by itself."""
    part: FieldPart | None = None
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


# ── Checks of other packages ──────────────────────────────────────────────────────────────────────────


# An answer may carry many of these.
_MAX_TEXT = 300


def guarded(kind: str, check: Check | None) -> Check:
    """Without a check any JSON is kept as it is."""

    def call(field: str, value: object) -> object:
        try:
            kept = value if check is None else check(field, value)
        except InvalidSpec:
            raise
        except PolicyError as wrong:
            raise PolicyError(_text_of_error(wrong.field), _text_of_error(wrong.text)) from None
        except Exception as error:
            raise PolicyError(field, _text_of_error(f"the check of kind {kind} failed: {message_of(error)}")) from None
        if not is_storable(kept):
            what = type(kept).__name__
            raise PolicyError(
                field, _text_of_error(f"the check of kind {kind} failed: it returned a {what}, which is not JSON")
            )
        # Also of a mapping or a word of its own the plain value is kept.
        return json.loads(json.dumps(kept, default=dict))

    return call


def guarded_spelling(kind: str, spelled: Callable[[object], object] | None) -> Callable[[object], object] | None:
    if spelled is None:
        return None
    check = guarded(kind, lambda _field, value: spelled(value))
    return lambda value: check("", value)


def message_of(error: Exception) -> str:
    """Describe an error, also one whose text raises another."""
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:
        return type(error).__name__


def _text_of_error(text: object) -> str:
    """Bounded, and of characters that any answer can carry."""
    cut = text[:_MAX_TEXT] if isinstance(text, str) else type(text).__name__
    return cut if cut.isprintable() else ascii(cut)[1:-1][:_MAX_TEXT]


# ── Members of an object ──────────────────────────────────────────────────────────────────────────────


T = TypeVar("T")


class MemberReader:
    def __init__(self, problems: DocumentProblems) -> None:
        self.problems = problems

    def members(self, path: str, value: object, keys: Sequence[str], aliases: Mapping[str, str]) -> dict[str, object]:
        """Read an object's members by their canonical names; unknown members are reported."""
        if not isinstance(value, Mapping):
            self.problems.add(path or "document", f"must be an object, not {shown(value)}")
            return {}
        found: dict[str, object] = {}
        for key, item in value.items():
            try:
                said = read_object({key: item}, "", keys, aliases)
            except PolicyError as wrong:
                self.problems.add(_inside(path, wrong.field), wrong.text)
                continue
            for name, each in said.items():
                if name in found:
                    self.problems.add(_inside(path, name), "is specified twice in different spellings")
                found[name] = each
        return found

    def array(self, field: str, given: Mapping[str, object], most: int) -> Sequence[object]:
        value = given.get(field, ())
        if not isinstance(value, list | tuple):
            self.problems.add(field, f"must be an array, not {shown(value)}")
        elif len(value) > most:
            self.problems.add(field, f"{len(value)} {field}; at most {most} are allowed per workflow")
        else:
            return value
        return ()

    def one(
        self,
        path: str,
        name: str,
        given: Mapping[str, Any],
        check: Callable[[str, object], T],
        default: T,
        *,
        needed: bool = False,
    ) -> T:
        if given.get(name) is None and not needed:
            return default
        found = self.checked(path, lambda: check(name, given.get(name)))
        return default if found is None else found

    def checked(self, path: str, read: Callable[[], T]) -> T | None:
        try:
            return read()
        except PolicyError as wrong:
            self.problems.add(_inside(path, wrong.field), wrong.text)
            return None

    def policy(self, name: str, given: Mapping[str, object], parse: Callable[[object], T], path: str = "") -> T | None:
        """A parser stops at its first refusal; it is asked again without that key."""
        value = given.get(name)
        if value is None:
            return None
        left: object = dict(value) if isinstance(value, Mapping) else value
        while True:
            try:
                return parse(left)
            except PolicyError as wrong:
                inside = _inside(path, name)
                self.problems.add(inside if wrong.field in ("", name) else f"{inside}.{wrong.field}", wrong.text)
                blamed = (
                    [key for key in left if _plain_value(key) == _plain_value(wrong.field)]
                    if isinstance(left, dict)
                    else []
                )
                if not isinstance(left, dict) or not blamed or self.problems.full:
                    return None
                for key in blamed:
                    del left[key]


def _plain_value(key: object) -> str:
    return str(key).replace("_", "").lower()


def _inside(path: str, name: str) -> str:
    return f"{path}.{name}" if path and name else path or name or "document"
