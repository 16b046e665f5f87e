"""How an answer becomes a value: known keys by their declared types, everything else ignored and kept in `raw`.

A client is often older or newer than its server. A key that is missing, null or of another type leaves
the field's default; no answer is refused for what it says beyond our knowledge.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from functools import cache
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from horarium.errors import InvalidSpec
from horarium.instant import from_rfc3339, to_datetime

A = TypeVar("A", bound="Answer")
T = TypeVar("T")

_UNREADABLE = object()
_Reader = Callable[[Any], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """`raw` is the JSON object as it came."""

    raw: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)


def read(kind: type[A], body: object) -> A:
    """Every field of `kind` has a default."""
    given = body if isinstance(body, dict) else {}
    readers: Mapping[str, _Reader] = _readers(kind)  # type: ignore[arg-type]  # a class can be hashed
    values = {name: reader(given[name]) for name, reader in readers.items() if name in given}
    known = {name: value for name, value in values.items() if value is not _UNREADABLE}
    return kind(**known, raw=given)


def moment(text: object) -> datetime | None:
    """None for what is no RFC 3339 time."""
    try:
        return to_datetime(from_rfc3339(text)) if isinstance(text, str) else None
    except InvalidSpec:
        return None


@cache  # as many entries as there are kinds of answers
def _readers(kind: type[Answer]) -> Mapping[str, _Reader]:
    hints = get_type_hints(kind)
    return {each.name: _reader(hints[each.name]) for each in fields(kind) if each.name != "raw"}


def _reader(hint: Any) -> _Reader:
    origin, parts = get_origin(hint), get_args(hint)
    if hint is Any:
        return lambda value: value
    if origin in (types.UnionType, Union):
        [inner] = [part for part in parts if part is not type(None)]
        return _optional(_reader(inner))
    if origin is tuple:
        return _several(_reader(parts[0]))
    if hint is datetime:
        return lambda value: _UNREADABLE if (read_moment := moment(value)) is None else read_moment
    if isinstance(hint, type) and issubclass(hint, Answer):
        return lambda value: read(hint, value) if isinstance(value, dict) else _UNREADABLE
    return _plain(dict if origin is not None else hint)


def _optional(reader: _Reader) -> _Reader:
    return lambda value: None if value is None else reader(value)


def _several(reader: _Reader) -> _Reader:
    def several(value: Any) -> Any:
        if not isinstance(value, list):
            return _UNREADABLE
        return tuple(item for item in map(reader, value) if item is not _UNREADABLE)

    return several


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
