"""What runs by itself runs what people run: the same commands, on every Python that is promised."""

from __future__ import annotations

import re
import tomllib
from typing import Any

import yaml
from docs.pages import ROOT

MAKEFILE = (ROOT / "Makefile").read_text("utf-8")


def workflow() -> dict[str, Any]:
    read: dict[str, Any] = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text("utf-8"))
    return read


def test_the_workflow_runs_on_every_python_that_the_package_names() -> None:
    classifiers = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["classifiers"]
    named = [found[1] for each in classifiers if (found := re.fullmatch(r"Programming.* :: (3\.\d+)", each))]
    assert workflow()["jobs"]["test"]["strategy"]["matrix"]["python"] == named
    assert named


def test_the_workflow_runs_what_is_run_at_the_desk() -> None:
    commands = [step["run"] for step in workflow()["jobs"]["test"]["steps"] if "run" in step]
    assert commands == ["make test"]
    assert (ROOT / ".ci/run").read_text("utf-8").splitlines()[-1] == "make test"


def test_a_commit_is_checked_by_what_make_check_runs() -> None:
    [own] = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text("utf-8"))["repos"]
    [check] = re.findall(r"^check:.*\n((?:\t.*\n)+)", MAKEFILE, re.MULTILINE)
    tools = {line.split("/", 1)[1].split()[0] for line in check.splitlines()}
    assert own["repo"] == "local"
    assert {
        hook["entry"].removeprefix(".venv/bin/").split()[0] for hook in own["hooks"] if "stages" not in hook
    } == tools
