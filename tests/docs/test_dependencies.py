"""What the package imports is what it says it needs, and constraints.txt pins all of it."""

from __future__ import annotations

import ast
import re
import tomllib
from functools import cache
from importlib.metadata import packages_distributions

from docs.pages import ROOT

_OURS = {"horarium"}
# Extras of those who work on the project; the others are for its users.
_DEVELOPMENT = {"dev", "bench"}
# Imported by a library that we use, and by nobody here.
_BY_OTHERS = {"redis"}


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def declared(*, development: bool) -> set[str]:
    """What the project and its extras need; the extras for development only where they are asked for."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    optional = project["optional-dependencies"]
    extras = [needs for extra, needs in optional.items() if development or extra not in _DEVELOPMENT]
    named = {canonical(re.split(r"[^\w.-]", each)[0]) for needs in (project["dependencies"], *extras) for each in needs}
    return named - _OURS  # an extra of our own is one of the others


@cache
def imported(folder: str) -> set[str]:
    """The packages behind what a folder imports, and behind the data that it reads by `resources.files`."""
    modules: set[str] = set()
    for file in (ROOT / folder).rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            match node:
                case ast.Import(names=names):
                    modules |= {alias.name.partition(".")[0] for alias in names}
                case ast.ImportFrom(module=str(module), level=0):
                    modules.add(module.partition(".")[0])
                case ast.Call(func=ast.Attribute(ast.Name("resources"), "files"), args=[ast.Constant(str(package))]):
                    modules.add(package)
    known = distributions()
    return {canonical(known[module][0]) for module in modules - _OURS if module in known}


distributions = cache(packages_distributions)


def pins() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text("utf-8").split()
    return {canonical(name): version for name, _, version in (line.partition("==") for line in lines)}


def test_every_import_is_a_declared_dependency() -> None:
    assert imported("src") - declared(development=False) == set()


def test_every_import_of_tests_and_benchmarks_is_declared_for_development() -> None:
    assert (imported("tests") | imported("benchmarks")) - declared(development=True) == set()


def test_every_dependency_is_imported() -> None:
    assert declared(development=False) - imported("src") == _BY_OTHERS


def test_every_dependency_is_pinned_to_one_version() -> None:
    assert declared(development=True) - set(pins()) == set()
    assert all(pins().values())
