"""Every example in the documentation is run, and says what it said when it was written.

The blocks of most pages stand alone and are run one by one, in the root of the project. Pages with the comment
`<!-- stage: own directory -->` are walked as a reader would: in the order in which the README and then the index name
them, each from top to bottom in a shell of its own, all in one directory that is empty at first. So what one page
leaves behind may not be in the way of the next. Who comes from another scheduler begins in a directory of their own
(`<!-- stage: fresh directory -->`). The ordinary run walks three pages, then the next three in another directory; a
full run walks all in one. With `<!-- stage: own directory, postgresql -->` the variable
`HORARIUM_DATABASE` names an empty PostgreSQL database. There, a block whose first line is a comment with a file's name
is that file.
"""

from __future__ import annotations

import doctest
import os
import re
import shlex
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from databases import empty_postgres
from docs.pages import PAGES, ROOT, Block, blocks_of, stage_of
from docs.terminal import Terminal, environment

from horarium.cli.main import main

ALONE = [block for page in PAGES if stage_of(page) is None for block in blocks_of(page, page.read_text("utf-8"))]
CONSOLE = [block for block in ALONE if block.language == "console"]
PYTHON = [block for block in ALONE if block.language == "python"]
# A cluster is too much for a page among others: `test_cluster_page.py` reads it alone.
STAGED = [page for page in PAGES if stage_of(page) not in (None, "cluster")]
INDEX = ROOT / "docs/README.md"
STRETCH = 3
# What a shell would do with a command, outside of single quotes.
SHELL = re.compile(r"^(?:[^']|'[^']*')*?[|&;<>$`*?~\\\n]")


def transcript(block: Block) -> list[tuple[str, str]]:
    """Each command with the output that the page shows for it; a command goes on after `> `."""
    parts = re.split(r"^\$ (.*(?:\n> .*)*)\n", block.text, flags=re.MULTILINE)
    assert not parts[0].strip(), f"{block.name}: output before the first command"
    commands = [command.replace("\n> ", "\n") for command in parts[1::2]]
    assert commands, f"{block.name}: no command; a command starts with `$ `"
    return list(zip(commands, parts[2::2], strict=True))


def run(command: str) -> str:
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=ROOT,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=60,
        check=False,  # a page may show a refusal
    )
    return done.stdout


def fits(shown: str, printed: str) -> bool:
    """A line `…` stands for any number of lines; inside a line it stands for any text. The last line may be unended."""
    lines = [
        r"(?:.*\n)*" if line == "…\n" else r".*".join(re.escape(part) for part in line.split("…"))
        for line in shown.splitlines(keepends=True)
    ]
    ended = printed if printed.endswith("\n") or not printed else f"{printed}\n"
    return re.fullmatch("".join(lines), ended) is not None


# ── blocks that stand alone ──────────────────────────────────────────────────────────────────────────


@pytest.fixture
def printed_here(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[[str], str]:
    """Run a `horarium` command in this process, in the directory and with the variables that a process would have."""
    for name in os.environ:
        if name.startswith("HORARIUM_"):
            monkeypatch.delenv(name)
    for name, value in environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(ROOT)

    def printed(command: str) -> str:
        main(shlex.split(command)[1:])
        return "".join(capsys.readouterr())

    return printed


@pytest.mark.parametrize("block", CONSOLE, ids=lambda block: block.name)
def test_every_console_block_prints_what_it_shows(block: Block, printed_here: Callable[[str], str]) -> None:
    """A process takes 20 times as long to start as its command to run, so only a line for the shell gets one."""
    for command, shown in transcript(block):
        is_for_the_shell = not command.startswith("horarium ") or SHELL.search(command) is not None
        printed = run(command) if is_for_the_shell else printed_here(command)
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


# ── pages that are read from top to bottom ───────────────────────────────────────────────────────────


def walk() -> list[Path]:
    """The README, then the pages that are read at work, as the index orders them."""
    named = [INDEX.parent / name for name in re.findall(r"\]\(([\w/-]+\.md)\)", INDEX.read_text("utf-8"))]
    return [page for page in [ROOT / "README.md", *named] if page in STAGED]


def stretches() -> list[list[Path]]:
    """Neighbours among the pages that share a directory; whoever begins in a directory of their own is alone."""
    together = [page for page in walk() if stage_of(page) != "fresh directory"]
    alone = [[page] for page in walk() if page not in together]
    return [together[place : place + STRETCH] for place in range(0, len(together), STRETCH)] + alone


WALKS = [*stretches(), pytest.param(walk(), marks=pytest.mark.long, id="all in one directory")]


@pytest.mark.first
@pytest.mark.parametrize("pages", WALKS, ids=lambda pages: pages[0].stem)
def test_a_reader_can_walk_the_pages_in_their_order(
    pages: list[Path], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """That no page is in the way of one much later is seen in the full run."""
    for page in pages:
        stage = stage_of(page)
        directory = tmp_path / (page.stem if stage == "fresh directory" else "walk")
        if not directory.exists():
            directory.mkdir()
            (directory / "docs").symlink_to(ROOT / "docs")
        with _variables(stage, request) as variables, Terminal(directory, variables) as terminal:
            _read(page, terminal, directory)


def _read(page: Path, terminal: Terminal, directory: Path) -> None:
    for block in blocks_of(page, page.read_text("utf-8")):
        name = _file_of(block)
        if name is not None:
            (directory / name).write_text(terminal.localised(block.text), "utf-8")
        elif block.language == "console":
            _type(terminal, block)
        elif block.language == "python":
            _run_python(terminal, block, directory)


def test_the_walk_leaves_no_page_out() -> None:
    assert sorted(walk()) == sorted(STAGED)
    assert sorted(page for pages in stretches() for page in pages) == sorted(STAGED)


@contextmanager
def _variables(stage: str | None, request: pytest.FixtureRequest) -> Iterator[dict[str, str]]:
    if stage == "own directory, postgresql":
        with empty_postgres(request.getfixturevalue("postgres_server")) as url:
            yield {"HORARIUM_DATABASE": url}
    else:
        assert stage in ("own directory", "fresh directory")
        yield {}


def _file_of(block: Block) -> str | None:
    found = re.match(r"# ([\w./-]+\.(?:py|toml|yaml|crontab))\n", block.text)
    return found[1] if found else None


def _type(terminal: Terminal, block: Block) -> None:
    for command, shown in transcript(block):
        printed = terminal.run(command, lines=shown.count("\n"))
        assert fits(shown, printed), f"{block.name}: $ {command}\n{printed}"


def _run_python(terminal: Terminal, block: Block, directory: Path) -> None:
    """In a process of its own, which has to say nothing."""
    is_session = ">>> " in block.text
    file = directory / f"line_{block.line}.{'txt' if is_session else 'py'}"
    file.write_text(terminal.localised(block.text), "utf-8")
    printed = terminal.run(f"python {'-m doctest -o ELLIPSIS ' if is_session else ''}{file.name}")
    assert printed == "", f"{block.name}\n{printed}"


# ── the runner itself ────────────────────────────────────────────────────────────────────────────────


def test_the_readme_and_the_explanations_have_examples() -> None:
    pages = {str(block.page.relative_to(ROOT)) for block in CONSOLE}
    assert {"docs/explanation/time-and-dst.md", "docs/reference/conditions.md"} <= pages
    staged = {str(page.relative_to(ROOT)) for page in STAGED}
    assert {"README.md", "docs/tutorial/first-schedule.md"} <= staged


@pytest.mark.parametrize(
    ("shown", "printed", "expected"),
    [
        ("a\n", "a\n", True),
        ("a\n", "a\nb\n", False),
        ("a.c\n", "abc\n", False),
        ("a\n…\nd\n", "a\nb\nc\nd\n", True),
        ("…\n", "", True),
        ("…\nd\n", "a\nb\n", False),
        ("a…c\n", "a.b.c\n", True),
        ("a…c\n", "a\nc\n", False),
        ("a\n", "a", True),
        ("a\n", "", False),
    ],
)
def test_only_dots_stand_for_anything(shown: str, printed: str, expected: bool) -> None:
    assert fits(shown, printed) is expected


def test_a_block_is_found_with_its_line() -> None:
    [block] = blocks_of(Path("page.md"), "words\n\n```console\n$ true\n$ echo a \\\n>   b\na b\n```\n")
    assert (block.line, block.language) == (3, "console")
    assert transcript(block) == [("true", ""), ("echo a \\\n  b", "a b\n")]


def test_a_terminal_remembers_and_speaks_of_the_usual_port(tmp_path: Path) -> None:
    with Terminal(tmp_path, {"GIVEN": "8765"}) as terminal:
        assert terminal.run("export X=1; cd /; printf half") == "half"
        assert (
            terminal.run("echo $X $PWD $GIVEN; echo http://127.0.0.1:8765; cat") == "1 / 8765\nhttp://127.0.0.1:8765\n"
        )
        assert terminal.run("(sleep 0.2; echo later) &", lines=1) == "later\n"
        assert terminal.run("echo $HORARIUM_PORT") == "8765\n"
        assert terminal.port != "8765"


def test_what_a_page_has_started_ends_with_it(tmp_path: Path) -> None:
    with Terminal(tmp_path, {}) as terminal:
        pid = terminal.run("sleep 600 & echo $!").strip()
    assert not Path(f"/proc/{pid}").exists()


def fails(text: str) -> Any:
    return Block(ROOT / "page.md", 1, "console", text)


def test_a_block_without_a_command_is_a_mistake() -> None:
    with pytest.raises(AssertionError, match="before the first command"):
        transcript(fails("output alone\n"))
    with pytest.raises(AssertionError, match="no command"):
        transcript(fails("\n"))
