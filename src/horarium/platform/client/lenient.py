"""Read answers leniently: known keys by their declared types; other keys are kept in `raw`.

A client may be older or newer than its server. A key that is missing, null or of another type gets the default of
the field, or an empty value of its type. No answer is rejected because of unknown content.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from datetime import datetime
from enum import StrEnum
from functools import cache
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec.structs import FieldInfo, fields

from horarium.errors import InvalidSpec
from horarium.instant import from_rfc3339, to_datetime
from horarium.platform.wire import Answer, is_unreadable, with_raw

A = TypeVar("A", bound=Answer)

_UNREADABLE = object()
_Reader = Callable[[Any], Any]


def read(kind: type[A], body: object) -> A:
    given = body if isinstance(body, dict) else {}
    values: dict[str, Any] = {}
    for name, written, reader, fallback in _fields(kind):
        value = reader(given[written]) if written in given else _UNREADABLE
        values[name] = fallback() if value is _UNREADABLE else value
    made = kind(**values)
    with_raw(made, given)
    return made


def moment(text: object) -> datetime | None:
    """None for what is no RFC 3339 time."""
    try:
        return to_datetime(from_rfc3339(text)) if isinstance(text, str) else None
    except InvalidSpec:
        return None


@cache  # as many entries as there are kinds of answers
def _fields(kind: type[Answer]) -> tuple[tuple[str, str, _Reader, Callable[[], Any]], ...]:
    """Each with its name on the wire, which may be a word that Python keeps for itself."""
    hints = get_type_hints(kind)
    return tuple(
        (each.name, each.encode_name, _reader(hints[each.name]), _fallback(hints[each.name], each))
        for each in fields(kind)
    )


def _fallback(hint: Any, field: FieldInfo) -> Callable[[], Any]:
    """Make the value for a field that the server did not send, or sent in an unreadable form."""
    if not field.required:
        factory: Callable[[], Any] = field.default_factory
        return factory if field.default is msgspec.NODEFAULT else lambda: field.default
    nothing = _nothing(hint)
    return lambda: nothing


def _nothing(hint: Any) -> Any:
    origin, parts = get_origin(hint), get_args(hint)
    # A time that nobody told is none, whatever the server promises: any other would be a lie.
    if hint in (Any, datetime) or (origin in (types.UnionType, Union) and type(None) in parts):
        return None
    if origin in (types.UnionType, Union):
        return _nothing(parts[0])
    if origin is tuple:
        return ()
    if isinstance(hint, type) and issubclass(hint, Answer):
        return read(hint, {})
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return ""
    return {} if origin is not None else hint()


def _reader(hint: Any) -> _Reader:
    origin, parts = get_origin(hint), get_args(hint)
    if hint is Any:
        return lambda value: value
    if origin is Annotated:
        return _reader(parts[0])
    if origin in (types.UnionType, Union):
        return _either([_reader(part) for part in parts if part is not type(None)], type(None) in parts)
    if origin is tuple:
        return _several(_reader(parts[0]))
    if hint is datetime:
        return lambda value: _UNREADABLE if (read_moment := moment(value)) is None else read_moment
    if isinstance(hint, type) and issubclass(hint, Answer):
        return lambda value: read(hint, value) if isinstance(value, dict) else _UNREADABLE
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return _word(hint)
    if origin is not None and parts and isinstance(parts[1], type) and issubclass(parts[1], Answer):
        return _named(_reader(parts[1]))
    return _plain(dict if origin is not None else hint)


def _either(readers: list[_Reader], nullable: bool) -> _Reader:
    def either(value: Any) -> Any:
        if value is None and nullable:
            return None
        found = (reader(value) for reader in readers)
        return next((each for each in found if each is not _UNREADABLE), _UNREADABLE)

    return either


def _several(reader: _Reader) -> _Reader:
    def several(value: Any) -> Any:
        if not isinstance(value, list):
            return _UNREADABLE
        rows = (each for each in value if not is_unreadable(each))
        return tuple(item for item in map(reader, rows) if item is not _UNREADABLE)

    return several


def _named(reader: _Reader) -> _Reader:
    def named(value: Any) -> Any:
        if not isinstance(value, dict):
            return _UNREADABLE
        found = {name: reader(each) for name, each in value.items()}
        return {name: each for name, each in found.items() if each is not _UNREADABLE}

    return named


def _word(kind: type[StrEnum]) -> _Reader:
    """A word that this program does not know yet is kept as it is."""

    def word(value: Any) -> Any:
        if not isinstance(value, str):
            return _UNREADABLE
        known: Mapping[Any, Any] = kind._value2member_map_
        return known.get(value, value)

    return word


def _plain(kind: type) -> _Reader:
    def plain(value: Any) -> Any:
        if kind is float and isinstance(value, int | str) and not isinstance(value, bool):
            return _number(value)
        # JSON keeps true and 1 apart; Python does not.
        fits = isinstance(value, kind) and isinstance(value, bool) is (kind is bool)
        return value if fits else _UNREADABLE

    return plain


def _number(value: int | str) -> Any:
    """An amount that no float says exactly comes as text."""
    try:
        return float(value)
    except (ValueError, OverflowError):
        return _UNREADABLE
