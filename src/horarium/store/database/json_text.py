"""Values in JSON columns: compact text with keys in order, read back exactly.

The faster library does not know integers beyond 64 bits, nor half of a surrogate pair: what it cannot do the
standard library does.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import orjson

from horarium.schedule.damage import UNREADABLE, damaged

# As many digits as an integer beyond 64 bits has at least: the faster reader would make a float of it. Looked for in
# bytes whose digits are all zeros, which takes a tenth of the time of a pattern.
_LONG_NUMBER = b"0" * 19
_ZEROS = bytes.maketrans(b"123456789", b"0" * 9)


def to_text(value: object) -> str:
    """Encode a document exactly. Raise ValueError for NaN and TypeError for what JSON cannot represent."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False, default=_plain)


def event_text(value: object) -> str:
    """Encode the payload of an event; what JSON cannot represent becomes text."""
    try:
        return orjson.dumps(value, default=_plain_or_text).decode()
    except TypeError:
        return json.dumps(value, default=_plain_or_text, separators=(",", ":"))


def from_text(text: str | None) -> Any:
    if text is None:
        return None
    raw = text.encode("utf-8", "surrogatepass")
    if _LONG_NUMBER in raw.translate(_ZEROS):
        return json.loads(text)
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError:
        return json.loads(text)


def object_from_text(text: str) -> dict[str, Any]:
    """Parse an object of a row that may be damaged; anything else becomes a value that no reader accepts."""
    try:
        found = from_text(text)
    except ValueError as wrong:
        return damaged(f"it is not valid JSON: {wrong}")
    return found if isinstance(found, dict) else damaged("it is not a JSON object")


def value_from_text(text: str | None) -> Any:
    """Parse any value, as `object_from_text` does."""
    try:
        return from_text(text)
    except ValueError as wrong:
        return damaged(f"it is not valid JSON: {wrong}")


def names_from_text(text: str) -> tuple[str, ...]:
    """Parse a list of names; anything else becomes a name that does not exist."""
    try:
        found = from_text(text)
    except ValueError:
        return UNREADABLE
    is_names = isinstance(found, list) and all(isinstance(each, str) for each in found)
    return tuple(found) if is_names else UNREADABLE


def cycle_from_text(text: str) -> tuple[str, ...]:
    """Read the nodes of a cycle; of what cannot be read it is not known that there is none."""
    names = names_from_text(text)
    return ("unreadable",) if names == UNREADABLE else names


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, set | frozenset):
        return sorted(value)
    raise TypeError(f"{type(value).__name__} is not a JSON value")


def _plain_or_text(value: object) -> object:
    return _plain(value) if isinstance(value, Mapping | set | frozenset) else str(value)


def kept_text(text: str, most: int) -> str:
    """Cut a foreign text, and replace characters that a database cannot store."""
    return text[:most].replace("\x00", "\N{REPLACEMENT CHARACTER}").encode("utf-8", "replace").decode()
