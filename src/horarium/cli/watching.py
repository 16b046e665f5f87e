"""Watched lists: poll a list and print new and changed rows."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from horarium.cli.present import show_columns
from horarium.cli.reading import refuse
from horarium.cli.render import Format, show_json
from horarium.cli.waiting import Patience, steadily, until_interrupted

if TYPE_CHECKING:
    from horarium.platform.wire import Answer

A = TypeVar("A", bound="Answer")

_PAUSE = 2.0


@dataclass(slots=True)
class Growing(Generic[A]):
    """A table or JSON lines that rows are appended to; columns keep their positions."""

    output: Format
    columns: Sequence[str]
    row: Callable[[A], Sequence[Any]]
    _widths: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.output in (Format.JSON, Format.YAML):
            refuse(f"-o {self.output.value} does not support an endless list; use -o jsonl")

    def show(self, items: Iterable[A]) -> None:
        found = list(items)
        if self.output is Format.JSONL:
            for item in found:
                show_json(dict(item.raw))
        elif found:
            rows = [self.row(item) for item in found]
            self._widths = show_columns(self.columns, rows, widths=self._widths)


def fresh(seen: dict[Hashable, Hashable], rows: Iterable[tuple[Hashable, Hashable, A]]) -> list[A]:
    """Return the rows (name, state, row) that are new or changed, and set `seen` to the listed rows."""
    listed = list(rows)
    news = [item for name, look, item in listed if seen.get(name) != look]
    seen.clear()
    seen.update((name, look) for name, look, _ in listed)
    return news


def watch(
    ask: Callable[[], Sequence[A]],
    look: Callable[[A], tuple[Hashable, Hashable]],
    growing: Growing[A],
    patience: Patience,
) -> None:
    """Poll until Ctrl-C and print the newest row last; the list has it first."""
    seen: dict[Hashable, Hashable] = {}
    with until_interrupted():
        while True:
            rows = steadily(ask, patience)
            growing.show(reversed(fresh(seen, [(*look(row), row) for row in rows])))
            patience.sleep(_PAUSE)
