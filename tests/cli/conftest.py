"""A server for the commands that ask one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from cli.served import START, Server, serving, set_environment

from horarium.life.outcome import Outcome
from horarium.testing import Accepted, TestService, service


@pytest.fixture
def answer() -> Outcome:
    """What every target says: runs stay open until a test ends them."""
    return Accepted()


@pytest.fixture
def server(
    answer: Outcome, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[Server]:
    monkeypatch.chdir(tmp_path)
    with service(at=START, answer=answer) as running, serving(running.parts) as url:
        set_environment(monkeypatch, url)
        yield Server(url, running, capsys)


@pytest.fixture(scope="module")
def lasting() -> Iterator[tuple[str, TestService]]:
    with service(at=START) as running, serving(running.parts) as url:
        yield url, running


@pytest.fixture
def empty_server(
    lasting: tuple[str, TestService],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> Server:
    """One for all tests of a file that are refused, and so leave nothing behind."""
    monkeypatch.chdir(tmp_path)
    url, running = lasting
    set_environment(monkeypatch, url)
    return Server(url, running, capsys)
