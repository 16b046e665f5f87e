"""What becomes of stored JSON that cannot be read: a value that no reader takes, and that says why."""

from __future__ import annotations

from typing import Any, Final

_DAMAGED: Final = "damaged"
UNREADABLE: Final = ("\N{NULL}unreadable",)
"""In the place of names that cannot be read: nobody has this one, so that nobody is let in by it."""


def known(names: tuple[str, ...]) -> tuple[str, ...]:
    """Those that could be read."""
    return () if names == UNREADABLE else names


class _Damage(dict[str, Any]):
    """A class of its own, since somebody's honest value may look the same."""


def damaged(why: object) -> dict[str, Any]:
    return _Damage({_DAMAGED: str(why)[:200]})


def damage_of(value: object) -> str | None:
    """None = it could be read; whether it makes sense is another question."""
    if isinstance(value, _Damage):
        return str(value[_DAMAGED])
    return "the names cannot be read" if value in (UNREADABLE, list(UNREADABLE)) else None
