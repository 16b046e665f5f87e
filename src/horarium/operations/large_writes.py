"""Choose how a definition is written: a large one takes long to compile, and SQLite has one writer for all tenants."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from horarium.operations.resources import Resources
from horarium.store.database import Connection
from horarium.store.database.json_text import to_text

T = TypeVar("T")

LARGE_BYTES = 16_384
"""From this size of its JSON on, a definition is planned before the writer is taken."""


class Write(Protocol):
    """`Database.write` or `Database.write_planned`."""

    def __call__(self, work: Callable[[Connection], T]) -> T: ...


def write_of(resources: Resources, document: object) -> Write:
    """Plan what a large document changes before the writer is taken; write the others at once, which costs less."""
    database = resources.database
    return database.write_planned if len(to_text(document)) > LARGE_BYTES else database.write
