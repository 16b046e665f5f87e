"""ARCHITECTURE.md names the rooms and guards that exist, no more and no fewer, in their order."""

from __future__ import annotations

import re
import tomllib

import pytest
from docs.pages import ROOT, first_cells, section

from horarium.core.decision.guards import GUARDS
from horarium.core.document.states import Origin
from horarium.core.policy.queue import CatchupPolicy, OverlapPolicy

PAGE = ROOT / "ARCHITECTURE.md"
PACKAGE = ROOT / "src" / "horarium"
# `__init__` holds the public names, `__main__` calls the cli: neither is a room.
_NO_ROOMS = {"__init__", "__main__"}


def rooms() -> set[str]:
    inside = [entry for entry in PACKAGE.iterdir() if entry.suffix == ".py" or any(entry.glob("*.py"))]
    return {entry.stem for entry in inside} - _NO_ROOMS


def rows() -> dict[str, str]:
    """Each room of the table with its row."""
    lines = section(PAGE, "Packages").splitlines()
    return {name: next(line for line in lines if f"| `{name}` |" in line) for name in first_cells("\n".join(lines))}


def test_the_table_of_rooms_is_the_package() -> None:
    here = {name for name, row in rows().items() if "| planned: " not in row}
    assert here == {f"{room}/" if (PACKAGE / room).is_dir() else f"{room}.py" for room in rooms()}


def test_the_rooms_stand_in_the_order_and_on_the_level_that_are_enforced() -> None:
    configuration = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    [layers] = [c["layers"] for c in configuration["tool"]["importlinter"]["contracts"] if c["type"] == "layers"]
    enforced = [
        (room, level)
        for level, layer in zip(range(len(layers), 0, -1), layers, strict=True)
        for room in re.findall(r"\w+", layer)
    ]
    shown = [(name.removesuffix("/").removesuffix(".py"), int(row.split("|")[2])) for name, row in rows().items()]
    assert shown == enforced


def test_the_guards_stand_in_the_order_in_which_they_ask() -> None:
    assert first_cells(section(PAGE, "Decisions")) == [guard.reason.value for guard in GUARDS]


@pytest.mark.parametrize("guard", GUARDS, ids=lambda guard: guard.reason.value)
def test_the_page_says_for_whom_each_guard_is_asked(guard) -> None:
    [row] = [line for line in section(PAGE, "Decisions").splitlines() if line.startswith(f"| `{guard.reason.value}`")]
    columns = [cell.strip() for cell in row.strip("|").split("|")]
    assert {origin for origin in Origin if origin.value in columns[2]} == guard.asked_of
    assert columns[3] == ("–" if guard.fact is None else f"`{guard.fact.value}`")


@pytest.mark.parametrize("name", [*OverlapPolicy, *CatchupPolicy], ids=str)
def test_every_overlap_and_catchup_policy_is_mentioned(name: str) -> None:
    assert f"`{name}`" in PAGE.read_text("utf-8")
