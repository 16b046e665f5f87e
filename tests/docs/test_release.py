"""What the image is made of is locked: every package that we need, at the version that was tested, with its hashes."""

from __future__ import annotations

import re
import runpy
from importlib.metadata import requires
from typing import Any

import pytest
from docs.pages import ROOT
from docs.test_dependencies import canonical, declared, pins
from packaging.requirements import Requirement

AUDIT = runpy.run_path(str(ROOT / "release/audit.py"))
LOCKS = ("runtime.txt", "build.txt", "development.txt")
ENVIRONMENTS = sorted(each.name for each in ROOT.glob("constraints-*.txt"))


def lock_text(name: str) -> str:
    return (ROOT / name if name in ENVIRONMENTS else ROOT / "release" / name).read_text("utf-8")


def locked(name: str) -> dict[str, tuple[str, list[str]]]:
    """Version and hashes by package."""
    text = lock_text(name).replace("\\\n", " ")
    lines = [line.split() for line in text.splitlines() if line.strip()]
    found = [
        (Requirement(_without_hashes(line)), [each for each in line if each.startswith("--hash=")]) for line in lines
    ]
    return {canonical(each.name): (str(each.specifier).removeprefix("=="), hashes) for each, hashes in found}


def _without_hashes(parts: list[str]) -> str:
    return " ".join(part for part in parts if not part.startswith("--hash="))


def everything_needed(names: set[str]) -> set[str]:
    """The packages behind packages, as they are installed here."""
    found: set[str] = set()
    left = {(name, "") for name in names} | {("pyjwt", "crypto"), ("psycopg", "binary")}
    while left:
        name, extra = left.pop()
        found.add(name)
        for need in map(Requirement, requires(name) or ()):
            if need.marker is None or need.marker.evaluate({"extra": extra}):
                left |= {(canonical(need.name), each) for each in {"", *need.extras}} - {(each, "") for each in found}
    return found


def test_whatever_the_service_needs_is_locked() -> None:
    assert everything_needed(declared(development=False)) - set(locked("runtime.txt")) == set()


@pytest.mark.parametrize("name", LOCKS)
def test_what_is_locked_is_what_was_tested(name: str) -> None:
    """What other systems need alone is not installed where the tests run."""
    known = pins()
    versions = {package: version for package, (version, _hashes) in locked(name).items() if package in known}
    assert versions == {package: known[package] for package in versions}
    assert versions


def test_whatever_development_needs_is_locked() -> None:
    """What `make bench` alone needs is installed without hashes."""
    needed, lock = declared(development=True), set(locked("development.txt"))
    assert needed - lock == {"matplotlib"}
    assert everything_needed(needed & lock) - lock == set()


def test_what_is_installed_is_held_against_its_hash() -> None:
    """The last line installs the project itself, for which everything is there already."""
    recipe = re.search(r"^\$\(INSTALLED\):.*\n((?:\t.+\n)+)", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    assert recipe is not None
    *checked, own = [line.strip() for line in recipe[1].splitlines() if "$(PIP)" in line]
    assert all("--no-deps" in line and "--require-hashes" in line for line in checked)
    assert {line.split()[-1] for line in checked} == {"release/build.txt", "release/development.txt"}
    assert own == "$(PIP) --no-deps --no-build-isolation --editable ."


@pytest.mark.parametrize("name", [*LOCKS, *ENVIRONMENTS])
def test_every_package_has_hashes_and_nothing_names_a_registry(name: str) -> None:
    assert all(hashes for _version, hashes in locked(name).values())
    assert not re.search(r"https?://|file:|--(?:extra-)?index|--find-links", lock_text(name))


def flaw(*mended: str) -> dict[str, Any]:
    return {"id": "PYSEC-1", "fix_versions": list(mended)}


@pytest.mark.parametrize(
    ("answers", "code", "said"),
    [
        ([], 3, "no advisory source could be asked"),
        ([{"name": "a", "skip_reason": "not found"}], 3, "no advisory source could be asked"),
        ([{"name": "a", "version": "1", "vulns": []}], 0, "1 packages were looked at"),
        ([{"name": "a", "version": "1", "vulns": [flaw("2")]}], 1, "a 1: PYSEC-1, mended in 2"),
        ([{"name": "a", "version": "1", "vulns": [flaw()]}], 1, "a 1: PYSEC-1, mended in no version"),
        ([{"name": "a", "version": "1", "vulns": []}, {"name": "b"}], 0, "not known to the source: b"),
    ],
    ids=["silence", "nothing known", "clean", "found", "found and not mended", "one not known"],
)  # fmt: skip
def test_an_audit_that_nobody_answered_is_no_pass(answers: list[dict[str, Any]], code: int, said: str) -> None:
    found, lines = AUDIT["verdict"](answers)
    assert found == code
    assert said in "\n".join(lines)
