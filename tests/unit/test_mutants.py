"""The table of planted defects fits the source, and its lookup survives a reorganisation."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import mutants
import pytest
from mutant_table import MUTANTS, Mutant
from mutants import CannotPlant, Sources

MOST_OF_A_PACKAGE = 6
GUARD = """
LIMIT = 10

class Guard:
    def check(self, used):
        # äöü
        return used < LIMIT

def check(used):
    return used < LIMIT + 1
"""


def tree(root: Path, **modules: str) -> Path:
    for name, text in modules.items():
        path = root / mutants.PACKAGE / f"{name.replace('__', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return root


def mutant(name: str, old: str = "used < LIMIT", module: str = "policy/guard") -> Mutant:
    return Mutant("An off-by-one error", module, name, old, old.replace("<", "<="), ("unit/test_mutants.py",))


def test_each_of_the_sixty_defects_can_be_planted_and_has_its_tests() -> None:
    assert (len(MUTANTS), mutants.problems()) == (60, [])


def test_no_package_has_more_than_six_defects_and_no_defect_occurs_twice() -> None:
    packages = Counter(each.module.partition("/")[0] for each in MUTANTS)
    places = Counter((each.module, each.name, each.old) for each in MUTANTS)
    assert {name: count for name, count in packages.items() if count > MOST_OF_A_PACKAGE} == {}
    assert {place for place, count in places.items() if count > 1} == set()


@pytest.mark.parametrize(
    ("name", "old", "changed"),
    [
        ("Guard.check", "used < LIMIT", "return used <= LIMIT\n\ndef check(used):\n    return used < LIMIT + 1"),
        ("check", "used < LIMIT", "return used < LIMIT\n\ndef check(used):\n    return used <= LIMIT + 1"),
        ("LIMIT", "= 10", "= 10\n"),
    ],
)
def test_a_defect_changes_only_its_own_function(tmp_path: Path, name: str, old: str, changed: str) -> None:
    place = Sources(tree(tmp_path, policy__guard=GUARD), {}).place(mutant(name, old))
    assert changed in place.after


def test_a_module_is_found_under_its_new_path(tmp_path: Path) -> None:
    root = tree(tmp_path, core__policy__guard=GUARD, other=GUARD)
    place = Sources(root, {"policy/guard": "core/policy/guard"}).place(mutant("Guard.check"))
    assert place.path == root / mutants.PACKAGE / "core/policy/guard.py"


def test_a_function_is_found_by_its_name_in_the_only_module_that_has_it(tmp_path: Path) -> None:
    root = tree(tmp_path, policy__guard="LIMIT = 1\n", features__runs__model=GUARD)
    assert Sources(root, {}).place(mutant("check")).path == root / mutants.PACKAGE / "features/runs/model.py"


@pytest.mark.parametrize(
    ("modules", "message"),
    [
        ({"one": GUARD, "two": GUARD}, "one.py, src/horarium/two.py; add it to MOVED"),
        ({"one": "LIMIT = 10\n"}, "policy/guard:check is not in its module, and is defined in no module"),
        ({"policy__guard": "def check(used):\n    return used > LIMIT\n"}, "the pattern occurs 0 times"),
        (
            {"policy__guard": "def check(used):\n    return used < LIMIT or used < LIMIT\n"},
            "the pattern occurs 2 times",
        ),
        ({"one": GUARD + GUARD}, "add it to MOVED"),
    ],
    ids=["two modules", "no module", "other text", "text twice", "defined twice"],
)
def test_an_ambiguous_or_missing_place_is_an_error_that_names_it(
    tmp_path: Path, modules: dict[str, str], message: str
) -> None:
    with pytest.raises(CannotPlant) as wrong:
        Sources(tree(tmp_path, **modules), {}).place(mutant("check"))
    assert message in str(wrong.value)
    assert "policy/guard:check" in str(wrong.value)


def test_a_planted_defect_is_removed_with_its_bytecode(tmp_path: Path) -> None:
    place = Sources(tree(tmp_path, policy__guard=GUARD), {}).place(mutant("check"))
    stale = place.path.parent / "__pycache__" / "guard.cpython-313.pyc"
    stale.parent.mkdir()
    with mutants.planted(place):
        stale.touch()
        assert place.path.read_text("utf-8") == place.after
    assert (place.path.read_text("utf-8"), stale.exists()) == (GUARD, False)


def test_stored_outcomes_of_other_numbers_stay(tmp_path: Path) -> None:
    file = tmp_path / "mutants.json"
    one, two = (mutants.Result(number, "f", "d", "caught", "tests/a.py", 1.0) for number in (1, 2))
    mutants.store(file, [one])
    mutants.store(file, [two])
    assert [line.count('"number"') for line in file.read_text("utf-8").splitlines()].count(1) == 2
