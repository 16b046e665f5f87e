"""How values are kept in JSON columns: compact text, exact in both directions.

The standard library's writer, not the faster one: documents may hold integers beyond 64 bits, which
must come back as they were.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def to_text(value: object) -> str:
    """Keys keep their order. Raises ValueError for NaN and TypeError for what JSON has no word for."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False, default=_plain)


def from_text(text: str | None) -> Any:
    return None if text is None else json.loads(text)


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, set | frozenset):
        return sorted(value)
    raise TypeError(f"{type(value).__name__} is not a JSON value")


def kept_text(text: str, most: int) -> str:
    """As much of a text from outside as is worth keeping, without what a database cannot hold."""
    return text[:most].replace("\x00", "\N{REPLACEMENT CHARACTER}").encode("utf-8", "replace").decode()
