"""What a person sees at the terminal, word for word.

The words of all help pages are in `docs/reference/cli.md`, which is compared with the program; here are pages of each
layout. Each transcript is a file; `HORARIUM_UPDATE_TRANSCRIPTS=1 pytest tests/cli` writes them anew. Spaces at the
ends of lines are not compared.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from pathlib import Path

import pytest
import typer.main

from horarium.cli.main import app, main
from horarium.features.schedules.definition_flags import FLAGS

TRANSCRIPTS = Path(__file__).parent / "transcripts"
SPRING = ["--tz", "America/New_York", "--after", "2026-03-07T12:00:00Z"]
WINTER = ["--after", "2026-12-01T00:00:00Z"]


def commands(group: object, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Another name of a command is hidden, and has no page of its own."""
    nested: Mapping[str, object] = getattr(group, "commands", {})
    shown = {name: child for name, child in nested.items() if not getattr(child, "hidden", False)}
    return [path, *(found for name, child in shown.items() for found in commands(child, (*path, name)))]


COMMANDS = commands(typer.main.get_command(app))
LAYOUTS: tuple[tuple[str, ...], ...] = ((), ("next",), ("schedule",), ("schedule", "create"), ("run", "list"), ("up",))
CASES: dict[str, list[str]] = {
    **{"-".join(("help", *path)): [*path, "--help"] for path in LAYOUTS},
    "topic-commands": ["help", "commands"],
    "topic-options": ["help", "options"],
    "no-arguments": [],
    "next-json": ["next", "30 2 * * *", *SPRING, "--count", "3"],
    "next-jsonl": ["next", "30 2 * * *", *SPRING, "-n", "3", "-o", "jsonl"],
    "next-yaml": ["next", "30 2 * * *", *SPRING, "-n", "3", "-o", "yaml"],
    "next-table": ["next", "30 2 * * *", *SPRING, "-n", "3", "-o", "table"],
    "next-table-prefix": ["next", "TZ=Asia/Kolkata 0 9 * * *", "--after", "2026-03-07T12:00:00Z", "-o", "table"],
    "next-skip": ["next", "30 2 * * *", *SPRING, "--dst-gap", "skip"],
    "next-hash": ["next", "H H * * *", *SPRING, "--key", "nightly-report"],
    "next-every": ["next", "@every PT90M", *SPRING, "-n", "2"],
    "bad-minute": ["next", "60 * * * *"],
    "bad-fields": ["next", "* * *"],
    "bad-weekday": ["explain-cron", "0 9 * * sat-sun"],
    "bad-zone": ["lint", "0 9 * * *", "--tz", "Europe/Istambul"],
    "bad-after": ["next", "0 9 * * *", "--after", "some day"],
    "bad-count": ["next", "0 9 * * *", "--count", "0"],
    "bad-count-word": ["next", "0 9 * * *", "--count", "many"],
    "bad-output": ["next", "0 9 * * *", "-o", "xml"],
    "bad-option": ["next", "0 9 * * *", "--timezone", "UTC"],
    "bad-command": ["nxt"],
    "missing-expression": ["next"],
    "missing-key": ["next", "H H * * *"],
    "never-fires": ["next", "0 0 30 2 *"],
    "rrule": ["next", "RRULE:FREQ=DAILY"],
    "explain": ["explain-cron", "0 9 * * 1-5", "--tz", "Europe/Istanbul"],
    "explain-hash": ["explain-cron", "H 3 * * *", "--key", "nightly-report"],
    "lint-lines": ["lint", "30 2 31 * 5", "--tz", "Europe/London", *WINTER],
    "lint-json": ["lint", "0 2 31 * *", "--tz", "Europe/London", *WINTER, "-o", "json"],
    "lint-yaml": ["lint", "0 2 31 * *", *WINTER, "-o", "yaml"],
    "lint-table": ["lint", "30 2 * * *", "--tz", "America/New_York", *WINTER, "-o", "table"],
    "lint-clean": ["lint", "7 3 * * *", "--tz", "Europe/London", *WINTER],
    "lint-clean-json": ["lint", "7 3 * * *", "--tz", "Europe/London", *WINTER, "-o", "json"],
    "condition-both-stdin": ["condition", "test", "--filter", "-", "--context", "-"],
    "condition-no-file": ["condition", "test", "--filter", "missing.json", "--context", "missing.json"],
    "showcase": ["showcase"],
}


@pytest.fixture(autouse=True)
def plain_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred columns without colours, whatever the machine that runs the tests."""
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.delenv("FORCE_COLOR", raising=False)


def transcript(arguments: list[str], code: int, out: str, err: str) -> str:
    shown = f"$ {shlex.join(['horarium', *arguments])}\n{out}"
    shown += f"--- stderr\n{err}" if err else ""
    lines = f"{shown}--- exit code {code}\n".split("\n")
    return "\n".join(line.rstrip() for line in lines)


@pytest.mark.parametrize("name", CASES)
def test_the_terminal_shows_what_the_transcript_says(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(CASES[name])
    seen = transcript(CASES[name], code, *capsys.readouterr())
    file = TRANSCRIPTS / f"{name}.txt"
    if os.environ.get("HORARIUM_UPDATE_TRANSCRIPTS"):
        file.write_text(seen, "utf-8")
    assert seen == file.read_text("utf-8")


def test_help_never_shortens_a_flag_on_a_narrow_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    main(["schedule", "create", "--help"])
    words = set(capsys.readouterr().out.replace(",", " ").split())
    assert {flag.name for flag in FLAGS} <= words


def test_every_transcript_has_a_case() -> None:
    assert {file.stem for file in TRANSCRIPTS.glob("*.txt")} == set(CASES)


@pytest.mark.parametrize("name", [name for name in CASES if name.startswith(("bad-", "missing-", "never-", "rrule"))])
def test_a_bad_question_is_one_line_on_stderr(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(CASES[name])
    out, err = capsys.readouterr()
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("error: ")


def test_every_command_has_a_help_page_with_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    for path in COMMANDS:
        words = " ".join(("horarium", *path))
        code = main([*path, "--help"])
        out, err = capsys.readouterr()
        assert (code, err) == (0, ""), words
        assert f"Usage: {words} " in out, words
        assert f"Example:\n  {words}" in out, words
