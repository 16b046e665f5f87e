"""A package that is installed brings a kind of action: it is read, checked, shown, launched and documented."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).with_name("foreign_main.py")
LAUNCHER = """
from horarium.launchers.launcher import Launcher
from horarium.core.lifecycle.outcome import Finished
from horarium.core.document.field import text_field
from horarium.core.document.reader import Kind


class EchoLauncher(Launcher):
    declares = Kind("echo", {"text": text_field("What to say.")}, ("text",), timeout_seconds=7)
    kind = declares.name
    honours_key = True
    concurrency = None
    can_poll = False

    async def launch(self, request):
        return Finished({"said": request.action.target["text"]})
"""
METADATA = "Metadata-Version: 2.1\nName: horarium-echo\nVersion: 1.0\n"
ENTRY_POINTS = "[horarium.launchers]\necho = horarium_echo:EchoLauncher\n"


def asked(data_dir: Path, *packages: Path) -> dict[str, Any]:
    path = os.pathsep.join([*map(str, packages), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, str(SCRIPT), str(data_dir)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env={**os.environ, "PYTHONPATH": path.rstrip(os.pathsep)},
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], dict[str, Any]]:
    """With the package, and then without it on the same database."""
    package, data = tmp_path_factory.mktemp("package"), tmp_path_factory.mktemp("data")
    (package / "horarium_echo.py").write_text(LAUNCHER)
    about = package / "horarium_echo-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(METADATA)
    (about / "entry_points.txt").write_text(ENTRY_POINTS)
    return asked(data, package), asked(data)


@pytest.fixture
def installed(answers: tuple[dict[str, Any], dict[str, Any]]) -> dict[str, Any]:
    return answers[0]


@pytest.fixture
def gone(answers: tuple[dict[str, Any], dict[str, Any]]) -> dict[str, Any]:
    return answers[1]


def test_its_actions_are_accepted_nested_flat_and_guessed(installed: dict[str, Any]) -> None:
    for name in ("created", "flat", "guessed"):
        assert (installed[name]["code"], installed[name].get("warnings")) == (201, None), installed[name]
    assert installed["described"]["action"] == {"kind": "echo", "text": "hello"}
    assert installed["patched"]["changed_fields"] == ["note"]


@pytest.mark.parametrize(
    ("name", "path", "text"),
    [
        ("wrong_type", "action.text", "must be a string, not 5"),
        ("missing", "action.text", "is required: an action of kind echo needs text"),
        ("of_another_kind", "action.text", "belongs to an action of kind echo, not http; null clears it"),
    ],
)
def test_its_fields_are_checked(installed: dict[str, Any], name: str, path: str, text: str) -> None:
    refused = installed[name]
    assert (refused["code"], refused["reason"]) == (422, "validation_failed")
    assert refused["errors"] == {path: [text]}


def test_it_is_shown_beside_the_shipped_kinds(installed: dict[str, Any]) -> None:
    assert installed["kinds"] == ["workflow", "prompt", "http", "celery", "python", "command", "pull", "echo"]
    assert installed["text"] == {"type": "string", "description": "What to say."}
    assert "echo" in installed["delivery"]


def test_its_runs_are_launched(installed: dict[str, Any]) -> None:
    run = {"state": "succeeded", "result": {"said": "hello"}, "error": None, "kind": "echo"}
    assert installed["run"] == run


def test_without_the_package_the_kind_is_refused_with_those_that_are_there(gone: dict[str, Any]) -> None:
    refused = gone["flat"]
    assert (refused["code"], refused["reason"]) == (422, "kind_not_available")
    shipped = "workflow, prompt, http, celery, python, command, pull"
    assert refused["errors"]["kind"] == [
        f"must be one of {shipped}, not 'echo'; no installed launcher declares this kind"
    ]
    assert gone["kinds"] == shipped.split(", ")
    assert "echo" not in gone["delivery"]


def test_without_the_package_what_was_written_is_still_read_and_its_runs_say_why_they_fail(
    gone: dict[str, Any],
) -> None:
    assert gone["described"]["action"] == {"kind": "echo", "text": "hello"}
    assert gone["run"]["state"] == "launch_failed"
    assert "no launcher for 'echo' is installed; installed: command, http, prompt, pull, python" in gone["run"]["error"]


def test_without_the_package_all_but_its_action_can_be_edited(gone: dict[str, Any]) -> None:
    edited = {name: gone[name] for name in gone if name.startswith("edit_")}
    assert len(edited) == 7
    assert {name: each for name, each in edited.items() if each["code"] != 200} == {}
    assert gone["kept"] == {"kind": "echo", "text": "hello"}
    assert (gone["moved"]["code"], gone["moved"]["changed_fields"]) == (200, ["action"])
    assert [gone[name]["reason"] for name in ("change", "upsert_new")] == ["kind_not_available"] * 2


def test_without_the_package_the_answers_are_still_as_described(gone: dict[str, Any]) -> None:
    assert gone["shown"]["kind"]["type"] == "string"
    assert "enum" not in gone["shown"]["kind"]
    assert "type" not in gone["shown"]["url"]
