"""What runs by itself runs what people run: the same commands, on every Python that is promised."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from docs.pages import ROOT

MAKEFILE = (ROOT / "Makefile").read_text("utf-8")
# Each workflow with the command that it runs.
WORKFLOWS = {"ci.yml": "make test", "nightly.yml": "make test-full"}


def workflow(file: str) -> dict[Any, Any]:
    read: dict[Any, Any] = yaml.safe_load((ROOT / ".github/workflows" / file).read_text("utf-8"))
    return read


def recipe(target: str) -> str:
    [found] = re.findall(rf"^{target}:.*\n((?:\t.*\n)+)", MAKEFILE, re.MULTILINE)
    return str(found)


@pytest.mark.parametrize("file", WORKFLOWS)
def test_a_workflow_runs_on_every_python_that_the_package_names(file: str) -> None:
    classifiers = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["classifiers"]
    named = [found[1] for each in classifiers if (found := re.fullmatch(r"Programming.* :: (3\.\d+)", each))]
    assert workflow(file)["jobs"]["test"]["strategy"]["matrix"]["python"] == named
    assert named


@pytest.mark.parametrize(("file", "command"), WORKFLOWS.items(), ids=WORKFLOWS)
def test_a_workflow_runs_what_is_run_at_the_desk(file: str, command: str) -> None:
    assert [step["run"] for step in workflow(file)["jobs"]["test"]["steps"] if "run" in step] == [command]


def test_every_push_runs_the_tests_of_a_commit() -> None:
    assert {file.name for file in (ROOT / ".github/workflows").iterdir()} == set(WORKFLOWS)
    assert set(workflow("ci.yml")[True]) == {"push", "pull_request"}  # YAML 1.1 reads `on` as true
    assert (ROOT / ".ci/run").read_text("utf-8").splitlines()[-1] == "make test"


def test_the_full_run_is_scheduled_and_holds_up_no_push() -> None:
    triggers = workflow("nightly.yml")[True]
    assert set(triggers) == {"schedule", "workflow_dispatch"}
    assert [each["cron"] for each in triggers["schedule"]]


def test_only_the_full_run_measures_coverage_and_it_compares_it_with_the_minimums() -> None:
    assert "--cov" not in recipe("test")
    assert " --cov\n" in recipe("test-full")
    assert "$(MAKE) --no-print-directory floors\n" in recipe("test-full")
    assert "-m" not in recipe("test-full").split()


@pytest.mark.parametrize(("minimum", "code"), [(50, 0), (51, 2)], ids=["reached", "missed"])
def test_a_package_below_its_minimum_of_coverage_fails(minimum: int, code: int, tmp_path: Path) -> None:
    package = tmp_path / "src/horarium/sample"
    package.mkdir(parents=True)
    (package / "half.py").write_text('if __name__ == "elsewhere":\n    never = True\n')
    programs = Path(sys.executable).parent
    subprocess.run([programs / "coverage", "run", package / "half.py"], cwd=tmp_path, check=True)
    floors = (f"FLOORS=sample:{minimum} sample:1", f"BIN={programs}")
    command = ["make", "--makefile", str(ROOT / "Makefile"), "floors", *floors]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    assert done.stdout.count("coverage of sample: 50") == 2


def test_a_commit_is_checked_by_what_make_check_runs() -> None:
    [own] = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text("utf-8"))["repos"]
    tools = {line.split("/", 1)[1].split()[0] for line in recipe("check").splitlines()}
    assert own["repo"] == "local"
    assert {
        hook["entry"].removeprefix(".venv/bin/").split()[0] for hook in own["hooks"] if "stages" not in hook
    } == tools
