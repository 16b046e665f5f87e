"""What becomes of stored JSON that cannot be read: a value that no reader takes, and that says why."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

_DAMAGED: Final = "damaged"
UNREADABLE: Final = ("\N{NULL}unreadable",)
"""In the place of names that cannot be read: nobody has this one, so that nobody is let in by it."""


def known(names: tuple[str, ...]) -> tuple[str, ...]:
    """Those that could be read."""
    return () if names == UNREADABLE else names


def damaged(why: object) -> dict[str, Any]:
    return {_DAMAGED: str(why)[:200]}


def damage_of(value: object) -> str | None:
    """None = it could be read; whether it makes sense is another question."""
    if isinstance(value, Mapping):
        return value[_DAMAGED] if len(value) == 1 and isinstance(value.get(_DAMAGED), str) else None
    return "the names cannot be read" if value in (UNREADABLE, list(UNREADABLE)) else None
