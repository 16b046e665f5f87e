"""A real server on loopback in front of a service whose clock stands still, and the program that asks it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from horarium.cli.main import main
from horarium.testing import TestService
from horarium.testing.service import TOKEN

_TRUST = ("CA_FILE", "CLIENT_CERT", "CLIENT_KEY")
_ID = re.compile(r"\b[0-9A-HJKMNP-TV-Z]{26}\b")


@dataclass(frozen=True)
class Answer:
    code: int
    out: str
    err: str


@dataclass(frozen=True)
class Server:
    """`service` moves the clock; `ask` is the program, with the address and an admin's token in its environment."""

    url: str
    service: TestService
    capsys: pytest.CaptureFixture[str]

    def ask(self, *arguments: str) -> Answer:
        self.capsys.readouterr()
        code = main(arguments)
        return Answer(code, *self.capsys.readouterr())

    def told(self, *arguments: str) -> str:
        """What is on stdout of a command that succeeds."""
        answer = self.ask(*arguments)
        assert answer.code == 0, answer.err
        return answer.out


def set_environment(monkeypatch: pytest.MonkeyPatch, url: str | None = None, token: str | None = TOKEN) -> None:
    """Nothing but this, whatever the machine that runs the tests; a hundred columns without colours."""
    for name in ("SERVER", "URL", "TOKEN", "NAMESPACE", "PORT", "DATA_DIR", "CONTEXT", "TZ", *_TRUST):
        monkeypatch.delenv(f"HORARIUM_{name}", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(Path.cwd() / "config"))
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    if url is not None:
        monkeypatch.setenv("HORARIUM_SERVER", url)
    if token is not None:
        monkeypatch.setenv("HORARIUM_TOKEN", token)


class Ids:
    """Ids are drawn: a transcript shows which are the same, in as many characters."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}

    def replace(self, text: str) -> str:
        return _ID.sub(lambda found: self._known.setdefault(found[0], f"ID{len(self._known) + 1:024}"), text)

    def resolve(self, argument: str) -> str:
        """The id that a transcript calls by this name."""
        return next((real for real, name in self._known.items() if name == argument), argument)
