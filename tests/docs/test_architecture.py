"""ARCHITECTURE.md names exactly the packages and guards that exist, in their order, and features keep their layers."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from docs.pages import ROOT, first_cells, section

from horarium.core.decision.guards import GUARDS
from horarium.core.document.states import Origin
from horarium.core.policy.queue import CatchupPolicy, OverlapPolicy

PAGE = ROOT / "ARCHITECTURE.md"
PACKAGE = ROOT / "src" / "horarium"
# `__init__` holds the public names, `__main__` calls the cli: neither is a package.
_NO_PACKAGES = {"__init__", "__main__"}


def packages() -> set[str]:
    inside = [entry for entry in PACKAGE.iterdir() if entry.suffix == ".py" or any(entry.glob("*.py"))]
    return {entry.stem for entry in inside} - _NO_PACKAGES


def rows() -> dict[str, str]:
    """Each package of the table with its row."""
    lines = section(PAGE, "Packages").splitlines()
    return {name: next(line for line in lines if f"| `{name}` |" in line) for name in first_cells("\n".join(lines))}


def test_the_table_of_packages_is_the_package() -> None:
    here = {name for name, row in rows().items() if "| planned: " not in row}
    assert here == {f"{package}/" if (PACKAGE / package).is_dir() else f"{package}.py" for package in packages()}


def test_the_packages_stand_in_the_order_and_on_the_level_that_are_enforced() -> None:
    configuration = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    contracts = configuration["tool"]["importlinter"]["contracts"]
    [layers] = [contract["layers"] for contract in contracts if contract.get("containers") == ["horarium"]]
    enforced = [
        (package, level)
        for level, layer in zip(range(len(layers), 0, -1), layers, strict=True)
        for package in re.findall(r"\w+", layer)
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


# ── inside a feature ─────────────────────────────────────────────────────────────────────────────────

_SQL = {"alembic", "psycopg", "sqlalchemy", "sqlite3"}
_KINDS = {
    "definition": 0,
    "values": 0,
    "words": 0,
    "model": 0,
    "calls": 1,
    "rows": 1,
    "routes": 3,
    "views": 3,
    "examples": 3,
    "commands": 4,
    "output": 4,
}
_SERVICE = 2


def level(module: str) -> int:
    """The level of a module of a feature by the last word of its name; other nouns are services."""
    return _KINDS.get(module.rpartition(".")[2].rpartition("_")[2], _SERVICE)


def imports(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        match node:
            case ast.Import(names=names):
                yield from (each.name for each in names)
            case ast.ImportFrom(module=str(module), names=names):
                yield module
                yield from (f"{module}.{each.name}" for each in names)


def test_a_module_of_a_feature_imports_only_levels_below_it_and_only_rows_contain_sql() -> None:
    wrong = []
    for file in sorted(PACKAGE.glob("features/*/*.py")):
        own = f"horarium.features.{file.parent.name}."
        for name in imports(file):
            if name.split(".")[0] in _SQL and not file.stem.endswith("rows"):
                wrong.append(f"{file.parent.name}/{file.name} imports {name}")
            inside = name.startswith(own) and (file.parent / f"{name.removeprefix(own)}.py").exists()
            if inside and level(name) > level(file.stem):
                wrong.append(f"{file.parent.name}/{file.name} imports {name}, which is above it")
    assert wrong == []
