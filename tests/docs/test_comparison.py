"""The comparison of two commits reads the tables that benchmarks print, and marks figures that differ."""

from __future__ import annotations

import io
import runpy

import pytest
from docs.pages import ROOT
from rich.console import Console
from rich.table import Table

compare = runpy.run_path(str(ROOT / "benchmarks/compare.py"))


def printed(title: str, headings: list[str], *rows: list[str]) -> str:
    table = Table(*headings, title=title)
    for row in rows:
        table.add_row(*row)
    output = io.StringIO()
    Console(file=output, width=300).print("a line before it", table, "1 line after it")
    return output.getvalue()


def test_printed_figures_are_named_by_their_words_and_heading() -> None:
    text = printed(
        "2 runs, load average before 1.5",
        ["database", "kind", "runs/s", "of the bare loop", "memory, MB", "target"],
        ["sqlite", "pull", "1,234", "0.51", "60 → 62", "≥ 0.4"],
    )
    assert compare["printed_figures"](text) == {
        "sqlite · pull · runs/s": 1234,
        "sqlite · pull · of the bare loop": 0.51,
    }


def test_a_database_in_the_title_is_part_of_the_names() -> None:
    tables = [printed(f"{dialect}, 20 schedules", ["page", "ms"], ["first", "2.5"]) for dialect in ("sqlite", "other")]
    assert compare["printed_figures"]("\n".join(tables)) == {"sqlite · first · ms": 2.5, "first · ms": 2.5}


@pytest.mark.parametrize(
    ("name", "base", "head", "mark"),
    [
        ("runs/s", [100, 102], [103, 104], ""),
        ("runs/s", [100, 102], [120, 130], "faster"),
        ("runs/s", [100, 102], [80, 90], "SLOWER"),
        ("runs/s", [100, 130], [90, 105], "SLOWER, ranges overlap"),
        ("ms a fire", [1.0, 1.1], [1.5, 1.6], "SLOWER"),
        ("median, ms", [1.0], [0.5], "faster, one round"),
        ("bytes", [10, 10], [20, 20], "greater"),
    ],
)
def test_a_ratio_outside_five_percent_is_marked(name: str, base: list[float], head: list[float], mark: str) -> None:
    assert compare["comparison"](f"benchmark · {name}", base, head)[-1] == mark
