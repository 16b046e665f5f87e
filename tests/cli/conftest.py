"""A server for the commands that ask one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from certificates import Authority
from cli.served import Server, set_environment
from world import START, serving

from horarium.testing import TestService, service


@pytest.fixture(scope="session")
def one_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with the certificate of a single authority."""
    return Authority(tmp_path_factory.mktemp("trusted")).ca


@pytest.fixture(autouse=True)
def few_certificates(monkeypatch: pytest.MonkeyPatch, one_root: Path) -> None:
    """Trust one authority: each command reads all trusted certificates, also for a server without TLS."""
    monkeypatch.setenv("SSL_CERT_FILE", str(one_root))


@pytest.fixture
def server(
    horarium: TestService,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Server]:
    monkeypatch.chdir(tmp_path_factory.mktemp("here"))
    with serving(horarium.parts) as url:
        set_environment(monkeypatch, url)
        yield Server(url, horarium, capsys)


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
