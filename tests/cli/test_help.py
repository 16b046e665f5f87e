"""The help of the program: one screen that names all commands, and the topics of `horarium help`."""

from __future__ import annotations

from typing import Any

import pytest
from typer.main import get_command

from horarium.cli.main import LEADING, app, main
from horarium.platform.cli.program import GROUPS, MAX_LINES, group_lines

ROOT: Any = get_command(app)


def shown(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(list(arguments)) == 0
    return capsys.readouterr().out


@pytest.fixture(autouse=True)
def screen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


def test_the_help_of_the_program_fits_on_one_screen(capsys: pytest.CaptureFixture[str]) -> None:
    lines = shown(capsys, "--help").rstrip("\n").split("\n")
    assert len(lines) <= MAX_LINES == 24
    assert max(map(len, lines)) <= 80


def test_every_command_is_in_one_group() -> None:
    grouped = [name for names in GROUPS.values() for name in names]
    visible = [name for name, command in ROOT.commands.items() if not command.hidden]
    assert sorted(grouped) == sorted(visible)


def test_the_help_of_the_program_names_every_group_and_command(capsys: pytest.CaptureFixture[str]) -> None:
    out = shown(capsys, "--help")
    words = {word.strip(",") for word in out.split()}
    assert {*GROUPS} | {name for names in GROUPS.values() for name in names} <= words
    assert "…" not in out


@pytest.mark.parametrize("added", [5, 50, 500])
def test_the_help_fits_on_one_screen_with_more_commands(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, added: int
) -> None:
    """It shows fewer names then, and says so."""
    more = {title: (*names, *(f"command-{number}" for number in range(added))) for title, names in GROUPS.items()}
    monkeypatch.setattr("horarium.platform.cli.program.GROUPS", more)
    lines = shown(capsys, "--help").rstrip("\n").split("\n")
    assert len(lines) <= MAX_LINES
    assert max(map(len, lines)) <= 80
    assert any(line.endswith(", …") for line in lines)


def test_groups_are_wrapped_between_names_and_cut_behind_one() -> None:
    groups = {"One": ("explain-cron", "list"), "Two": ("a",)}
    assert group_lines(groups, 22, 9) == ["  One  explain-cron,", "       list", "  Two  a"]
    assert group_lines(groups, 22, 2) == ["  One  …", "  Two  a"]
    assert group_lines({"One": ("list", "show", "explain-cron")}, 22, 1) == ["  One  list, …"]


def test_the_topic_options_has_what_may_precede_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert {*LEADING} <= set(shown(capsys, "help", "options").replace(",", " ").split())


def test_the_topic_commands_describes_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    lines = shown(capsys, "help", "commands").split("\n")
    described = {line.split()[0] for line in lines if line.startswith("  ") and len(line.split()) > 1}
    assert {name for names in GROUPS.values() for name in names} <= described


@pytest.mark.parametrize("path", [[], ["schedule"], ["schedule", "calendar", "attach"]], ids=" ".join)
def test_the_help_of_a_command_is_a_topic(capsys: pytest.CaptureFixture[str], path: list[str]) -> None:
    assert shown(capsys, "help", *path) == shown(capsys, *path, "--help")


def test_an_unknown_topic_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["help", "schedule", "fly"]) == 2
    assert capsys.readouterr().err == (
        "error: no help for 'schedule fly'; `horarium help commands` lists the commands\n"
    )


@pytest.mark.parametrize("path", [[], ["schedule"]], ids=" ".join)
def test_a_group_without_a_command_prints_its_help(capsys: pytest.CaptureFixture[str], path: list[str]) -> None:
    help_text = shown(capsys, *path, "--help")
    assert main(path) == 2
    assert capsys.readouterr() == ("", help_text)
