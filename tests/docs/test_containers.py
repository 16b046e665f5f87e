"""The files for containers pass their linters, and name only what exists."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from docs.pages import ROOT

from horarium.platform.settings import PREFIX, Settings

CONTAINERFILE = (ROOT / "Containerfile").read_text("utf-8")
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text("utf-8"))
OURS = {name: each for name, each in COMPOSE["services"].items() if each["image"] == "horarium"}
SETTINGS = {PREFIX + name.upper() for name in Settings.model_fields}


@pytest.mark.parametrize(
    "command",
    [
        ["hadolint", "Containerfile"],
        ["check-jsonschema", "--builtin-schema", "vendor.compose-spec", "compose.yaml"],
    ],
    ids=lambda command: command[0],
)
def test_the_linter_has_nothing_to_say(command: list[str]) -> None:
    program = Path(sys.executable).parent / command[0]
    done = subprocess.run([program, *command[1:]], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_file_that_is_copied_exists_and_is_not_ignored() -> None:
    copied = [
        name for line in re.findall(r"^COPY (?!--from)(.+)$", CONTAINERFILE, re.MULTILINE) for name in line.split()[:-1]
    ]
    kept = re.findall(r"^!(.+)$", (ROOT / ".dockerignore").read_text("utf-8"), re.MULTILINE)
    assert copied
    assert set(kept) == {name.removeprefix("./") for name in copied}
    assert all((ROOT / name).exists() for name in copied)


def test_every_variable_is_a_setting() -> None:
    named = set(re.findall(r"\b(HORARIUM_\w+)=", CONTAINERFILE))
    named |= {name for each in OURS.values() for name in each["environment"]}
    assert named
    assert named <= SETTINGS


def test_every_service_runs_a_command_of_ours() -> None:
    page = (ROOT / "docs/reference/cli.md").read_text("utf-8")
    assert {"migrate", "server", "worker"} == {each["command"][0] for each in OURS.values()}
    assert all(f"## horarium {each['command'][0]}\n" in page for each in OURS.values())
