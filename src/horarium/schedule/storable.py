"""Whether a document can be kept at all: JSON of a bounded size whose text every store can spell.

The walk is the first thing that happens to a document, so everything after it may recurse, print and
compare without fear. It stops at the first bound that is passed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, Final

from horarium.schedule.json_limits import DOCUMENT, JsonLimit
from horarium.schedule.problems import Problems, shown_key

MAX_BYTES = 1_048_576
# The Durable Workflow client gives these keys a meaning at any depth of an answer: one schedule that
# carries them would break the listing of all.
RESERVED: Final = frozenset({"external_payload", "external_storage", "result_envelope"})

_LONG = 2**63


class _TooMuch(Exception):
    """A bound of the whole document is passed; there is no use in going on."""


def check_storable(document: object, problems: Problems, limit: JsonLimit = DOCUMENT) -> None:
    try:
        _Walk(problems, limit).look(document)
    except _TooMuch as bound:
        problems.add("document", str(bound))


class _Walk:
    """Depth first, so that no more than one branch is held at a time."""

    def __init__(self, problems: Problems, limit: JsonLimit) -> None:
        self._problems = problems
        self._limit = limit
        self._bytes = 0
        self._values = 0
        self._path: list[object] = []

    def look(self, value: object) -> None:
        match value:
            case None | bool():
                pass
            case str():
                self._text(value)
            case int():
                if not -_LONG <= value < _LONG:
                    self._problem("the number does not fit in 64 bits")
            case float():
                if not math.isfinite(value):
                    self._problem("NaN and infinite numbers are not JSON")
            case dict() | list() | tuple() | Mapping():
                self._enter(value)
            case _:
                self._problem(f"a {type(value).__name__} is not JSON")

    def _enter(self, container: Mapping[Any, object] | list[object] | tuple[object, ...]) -> None:
        if len(self._path) >= self._limit.depth:
            raise _TooMuch(f"is nested deeper than {self._limit.depth} levels")
        self._values += len(container)
        if self._values > self._limit.values:
            raise _TooMuch(f"contains more than {self._limit.values} values")
        self._size(4 * len(container))
        keyed = isinstance(container, Mapping)
        pairs: Iterable[tuple[object, object]] = (
            container.items() if isinstance(container, Mapping) else enumerate(container)
        )
        for key, item in pairs:
            self._path.append(key)
            if keyed:
                self._key(key)
            self.look(item)
            self._path.pop()

    def _key(self, key: object) -> None:
        if not isinstance(key, str):
            self._problem(f"the key is a {type(key).__name__}; keys must be strings")
        elif key in RESERVED:
            self._problem("the key is reserved for the Durable Workflow client")
        else:
            self._text(key)

    def _text(self, text: str) -> None:
        self._size(len(text))
        # PostgreSQL stores neither; the size bounds what is searched and encoded here.
        if "\x00" in text:
            self._problem("contains the character U+0000, which cannot be stored")
        if not text.isascii():
            try:
                self._size(len(text.encode()) - len(text))
            except UnicodeEncodeError:
                self._problem("contains an unpaired surrogate character")

    def _size(self, more: int) -> None:
        self._bytes += more
        if self._bytes > MAX_BYTES:
            raise _TooMuch(f"is larger than {MAX_BYTES} bytes")

    def _problem(self, text: str) -> None:
        self._problems.add(".".join(str(key) if isinstance(key, int) else shown_key(key) for key in self._path), text)
        if self._problems.full:
            raise _TooMuch("has more problems, which are not listed")


def is_storable(value: object) -> bool:
    problems = Problems()
    check_storable(value, problems)
    return not problems.any


def same_json(one: object, other: object) -> bool:
    """1 is 1.0 but not true, unlike in Python."""
    match one, other:
        case bool(), bool():
            return one is other
        case (bool(), _) | (_, bool()):
            return False
        case Mapping(), Mapping():
            return one.keys() == other.keys() and all(same_json(one[key], other[key]) for key in one)
        case ((list() | tuple()), (list() | tuple())):
            return len(one) == len(other) and all(same_json(a, b) for a, b in zip(one, other, strict=True))
        case _:
            return one == other
