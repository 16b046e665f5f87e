"""Start programs of two releases side by side."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from horarium.platform.database.schema import DIRECTORY, OLDEST_SCHEMA

_ROOT = Path(__file__).parents[2]
OWN_SOURCE = _ROOT / "src"
_MIGRATIONS = "src/horarium/platform/database/migrations/versions"
TOKEN = "hor_upgrade"
_KEY = "k" * 43


def previous_source(into: Path) -> Path:
    """Return the source of the previous release; this one, where there is none yet.

    Skip the test where the history of the repository does not have it.
    """
    after = f"{int(OLDEST_SCHEMA) + 1:04}"
    if not list((DIRECTORY / "versions").glob(f"r{after}_*.py")):
        return OWN_SOURCE
    packed = subprocess.run(
        ["git", "archive", _commit_before(after), "src/horarium"], cwd=_ROOT, capture_output=True, check=True
    )
    subprocess.run(["tar", "-x", "-C", str(into)], input=packed.stdout, check=True)
    made = sorted(path.name for path in (into / _MIGRATIONS).glob("r*.py"))
    assert made[-1].startswith(f"r{OLDEST_SCHEMA}_")
    return into / "src"


def _commit_before(revision: str) -> str:
    """Return the last commit before the first migration that the previous release does not know."""
    if shutil.which("git") is None or not (_ROOT / ".git").exists():
        pytest.skip("the previous release is in the history of the repository, which is not here")
    found = _git("log", "--diff-filter=A", "--format=%H", "--", f"{_MIGRATIONS}/r{revision}_*.py").split()
    if not found or _git("rev-parse", "--is-shallow-repository").strip() == "true":
        pytest.skip("the history of the repository does not reach back to the previous release")
    return f"{found[-1]}^"


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=_ROOT, capture_output=True, text=True, check=False)
    return done.stdout


@dataclass
class Process:
    """`http` speaks with it as an admin, where it has a door."""

    process: subprocess.Popen[str]
    http: httpx.Client
    log: Path

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)

    def send(self, path: str, body: dict[str, Any]) -> None:
        answer = self.http.post(path, json=body)
        assert answer.is_success, answer.text


def run(source: Path, directory: Path, database: str, *command: str) -> None:
    """Run a program of either release to its end, which must be a success."""
    environment = _environment(source, database)
    subprocess.run([sys.executable, "-m", "horarium", *command], cwd=directory, env=environment, check=True)


def _environment(source: Path, database: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("HORARIUM_")}
    told = {"DATABASE": database, "TOKEN": TOKEN, "SECRET_KEY": _KEY, "ALLOW_LOOPBACK_TARGETS": "true"}
    return {**kept, **{f"HORARIUM_{name}": value for name, value in told.items()}, "PYTHONPATH": str(source)}


@contextmanager
def started(source: Path, directory: Path, database: str, *command: str) -> Iterator[Process]:
    """A program of either release; killed at the end, if nobody has stopped it."""
    log = directory / f"{source.parent.name}.log"
    with log.open("a") as stderr:
        process = subprocess.Popen(
            [sys.executable, "-m", "horarium", *command],
            cwd=directory,
            env=_environment(source, database),
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
        )
    assert process.stdout is not None
    try:
        line = process.stdout.readline()  # it says one when it is ready
        assert line, log.read_text()
        address = re.search(r"http://\S+", line)
        headers = {"Authorization": f"Bearer {TOKEN}"}
        url = "" if address is None else address[0]
        with httpx.Client(base_url=url, headers=headers, trust_env=False, timeout=60) as http:
            yield Process(process, http, log)
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        process.stdout.close()
