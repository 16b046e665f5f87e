"""A server for the commands that ask one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from cli.served import START, Server, serving, set_environment

from horarium.launchers.launcher import Outcome
from horarium.testing import Accepted, service


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
