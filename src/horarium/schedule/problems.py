"""What is wrong with a document: every problem at once, each under the path that its author wrote."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

from horarium.errors import InvalidDefinition

# A document of ten thousand mistakes is answered with the first ones: nobody reads on.
MAX_PROBLEMS = 50
_MAX_KEY = 64


class Given(NamedTuple):
    """A value and the path it was written under; `single` = written alone where we keep an array."""

    path: str
    value: object
    single: bool = False

    def item(self, index: int) -> str:
        return self.path if self.single else f"{self.path}.{index}"


Places: TypeAlias = Mapping[str, Given]
"""What is given, by its canonical place: `spec.timezone`, `action.url`, `overlap_policy`."""


class Problems:
    """Collects; nothing is raised before everything was read."""

    def __init__(self) -> None:
        self._found: dict[str, list[str]] = {}
        self._count = 0
        self._error = InvalidDefinition

    @property
    def full(self) -> bool:
        return self._count >= MAX_PROBLEMS

    @property
    def any(self) -> bool:
        return bool(self._found)

    @property
    def found(self) -> Mapping[str, list[str]]:
        """By path."""
        return self._found

    @property
    def count(self) -> int:
        return self._count

    def add(self, path: str, text: str, error: type[InvalidDefinition] = InvalidDefinition) -> None:
        """The most special error is what is raised: it has a reason of its own."""
        if issubclass(error, self._error):
            self._error = error
        if not self.full:
            self._count += 1
            self._found.setdefault(path or "document", []).append(text)

    def raise_any(self) -> None:
        if self.any:
            raise self._error(self._found)


def shown_key(key: object) -> str:
    """A key as a part of a path: short, and made of characters that any answer can carry."""
    text = key if isinstance(key, str) else type(key).__name__
    cut = text if len(text) <= _MAX_KEY else text[: _MAX_KEY - 3] + "..."
    return cut if cut.isprintable() else ascii(cut)[1:-1]


def joined(parent: str, key: object) -> str:
    return f"{parent}.{shown_key(key)}" if parent else shown_key(key)
