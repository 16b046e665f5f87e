"""A page of a list."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from horarium.platform.wire import UnreadableRow, unreadable_rows_of

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """A page of a list. `cursor` leads to the next page (None = last page). `raw` is the answer."""

    items: tuple[T, ...]
    cursor: str | int | None = None
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def unreadable_rows(self) -> tuple[UnreadableRow, ...]:
        """Rows that the service could not read. They are not in the items."""
        return unreadable_rows_of(self.raw)

    def __iter__(self) -> Iterator[T]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)
