"""How a list is watched: it is asked for again and again, and what is new or has changed is printed below the rest."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from horarium.cli.present import show_columns
from horarium.cli.reading import refuse
from horarium.cli.render import Format, show_json
from horarium.cli.waiting import Patience, steadily, until_interrupted

if TYPE_CHECKING:
    from horarium.wire.answer import Answer

A = TypeVar("A", bound="Answer")

_PAUSE = 2.0


@dataclass(slots=True)
class Growing(Generic[A]):
    """Rows that come one after the other: JSON lines, or a table whose columns stay where they are."""

    output: Format
    columns: Sequence[str]
    row: Callable[[A], Sequence[Any]]
    _widths: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.output in (Format.JSON, Format.YAML):
            refuse(f"-o {self.output.value} has an end, and this has none; use -o jsonl")

    def show(self, items: Iterable[A]) -> None:
        found = list(items)
        if self.output is Format.JSONL:
            for item in found:
                show_json(dict(item.raw))
        elif found:
            rows = [self.row(item) for item in found]
            self._widths = show_columns(self.columns, rows, widths=self._widths)


def fresh(seen: dict[Hashable, Hashable], rows: Iterable[tuple[Hashable, Hashable, A]]) -> list[A]:
    """Which of the rows (name, what was seen of it, the row) are new or have changed.

    `seen` then holds these rows alone: it does not grow with what has left the list.
    """
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
    """Until Ctrl-C. The list has its newest row first; what is printed has it last."""
    seen: dict[Hashable, Hashable] = {}
    with until_interrupted():
        while True:
            rows = steadily(ask, patience)
            growing.show(reversed(fresh(seen, [(*look(row), row) for row in rows])))
            patience.sleep(_PAUSE)
