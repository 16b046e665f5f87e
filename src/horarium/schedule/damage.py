"""Mark stored values that cannot be read: JSON inside of a row, and whole rows of a list."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

_DAMAGED: Final = "damaged"
UNREADABLE: Final = ("\N{NULL}unreadable",)
"""A substitute for unreadable names that no principal has, so it grants no access."""


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
    return "the stored names cannot be read" if value in (UNREADABLE, list(UNREADABLE)) else None


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A row of a list that cannot be read: the name by which it is known, and what is wrong with it."""

    key: object
    detail: str


class Marked:
    """The mark of a row of which some columns cannot be read and hold stand-ins."""

    unreadable: Unreadable


def mark(row: Marked, unreadable: Unreadable) -> None:
    """Set the mark; rows are frozen."""
    object.__setattr__(row, "unreadable", unreadable)


def unreadable_of(item: object) -> Unreadable | None:
    """Return why an item of a list cannot be shown; it may be or hold a marked row. None = it can be read."""
    if isinstance(item, Unreadable):
        return item
    for each in (item, *(getattr(item, name, None) for name in ("row", "run", "event"))):
        if isinstance(each, Marked):
            return each.unreadable
    return None
