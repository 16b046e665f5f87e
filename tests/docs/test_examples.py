"""Every example in the documentation is run, and says what it said when it was written."""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from docs.pages import ROOT, Block, blocks, blocks_of

CONSOLE = blocks("console")
PYTHON = blocks("python")


def transcript(block: Block) -> list[tuple[str, str]]:
    """Each command with the output that the page shows for it."""
    parts = re.split(r"^\$ (.*)\n", block.text, flags=re.MULTILINE)
    assert not parts[0].strip(), f"{block.name}: output before the first command"
    return list(zip(parts[1::2], parts[2::2], strict=True))


def run(command: str) -> str:
    environment = {**os.environ, "NO_COLOR": "1", "COLUMNS": "120", "LC_ALL": "C.UTF-8"}
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=60,
        check=False,  # a page may show a refusal
    )
    return done.stdout


def fits(shown: str, printed: str) -> bool:
    """A line `…` stands for any number of lines."""
    lines = [r"(?:.*\n)*" if line == "…\n" else re.escape(line) for line in shown.splitlines(keepends=True)]
    return re.fullmatch("".join(lines), printed) is not None


@pytest.mark.parametrize("block", CONSOLE, ids=lambda block: block.name)
def test_every_console_block_prints_what_it_shows(block: Block) -> None:
    commands = transcript(block)
    assert commands, f"{block.name}: no command; a command starts with `$ `"
    for command, shown in commands:
        printed = run(command)
        assert fits(shown, printed), f"{block.name}: $ {command}\n{printed}"


@pytest.mark.parametrize("block", PYTHON, ids=lambda block: block.name)
def test_every_python_block_runs(block: Block) -> None:
    if ">>> " not in block.text:
        exec(compile(block.text, block.name, "exec"), {"__name__": "__docs__"})
        return
    test = doctest.DocTestParser().get_doctest(block.text, {}, block.name, str(block.page), block.line)
    report: list[str] = []
    failed, tried = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=report.append)
    assert tried
    assert not failed, "".join(report)


def test_the_readme_and_the_explanations_have_examples() -> None:
    pages = {str(block.page.relative_to(ROOT)) for block in CONSOLE}
    assert {"README.md", "docs/explanation/time-and-dst.md", "docs/reference/conditions.md"} <= pages


@pytest.mark.parametrize(
    ("shown", "printed", "expected"),
    [
        ("a\n", "a\n", True),
        ("a\n", "a\nb\n", False),
        ("a.c\n", "abc\n", False),
        ("a\n…\nd\n", "a\nb\nc\nd\n", True),
        ("…\n", "", True),
        ("…\nd\n", "a\nb\n", False),
    ],
)
def test_only_a_line_of_dots_stands_for_anything(shown: str, printed: str, expected: bool) -> None:
    assert fits(shown, printed) is expected


def test_a_block_is_found_with_its_line() -> None:
    [block] = blocks_of(Path("page.md"), "words\n\n```console\n$ true\n$ echo a\na\n```\n")
    assert (block.line, block.language) == (3, "console")
    assert transcript(block) == [("true", ""), ("echo a", "a\n")]
