"""The house that is hurt: two servers and two workers, the real programs, and whatever happens to them.

One server and one worker have a clock of their own, which a file moves. Everything that a program says is kept.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from acceptance import skewed_main
from acceptance.hurt_postgres import Server

TOKEN = "chaos-admin"
STOP_SECONDS = 60
_LAST_WORDS = 10
# Short, so that what a dead process held comes back within the test.
_SETTINGS = {
    "TOKEN": TOKEN, "LEASE_SECONDS": "3", "JANITOR_SECONDS": "0.5", "SHUTDOWN_SECONDS": "3", "POOL_SIZE": "5",
    "ALLOW_LOOPBACK_TARGETS": "true", "LOG_FORMAT": "json",
    "RATE_LIMIT_PER_SECOND": "100000", "RATE_LIMIT_BURST": "100000",
}  # fmt: skip


class Program:
    """One of the processes: started, killed, stopped, and started again."""

    def __init__(self, name: str, words: Sequence[str], folder: Path, environment: Mapping[str, str]) -> None:
        self.name = name
        self.log = folder / f"{name}.log"
        self._words, self._folder, self._environment = words, folder, environment
        self._process: subprocess.Popen[bytes] | None = None
        self._began = 0  # where in the log this life begins
        self.died_by_itself: list[str] = []

    def start(self) -> None:
        assert self._process is None
        with self.log.open("ab") as file:
            self._began = file.tell()
            self._process = subprocess.Popen(
                self._words, cwd=self._folder, env=self._environment, stdout=file, stderr=subprocess.STDOUT
            )

    def end(self, how: signal.Signals) -> None:
        """A program that ignores SIGTERM for ever is killed, and that is told."""
        if self._process is None:
            return
        self._process.send_signal(how)
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.died_by_itself.append(f"{self.name} did not end within {STOP_SECONDS} s of {how.name}")
            self._process.kill()
            self._process.wait()
        self._process = None

    def look_after(self) -> None:
        """Start it again if it has ended. One that had come up must not have: nothing but a signal ends it."""
        if self._process is None:
            self.start()
        elif self._process.poll() is not None:
            if self.was_up:
                how = f"{self.name} ended by itself with code {self._process.returncode}, after it had said:"
                self.died_by_itself.append("\n".join([how, *self._said()[-_LAST_WORDS:]]))
            self._process = None
            self.start()

    @property
    def was_up(self) -> bool:
        """Whether it has said, in this life, that it is ready."""
        return any(line.startswith("Horarium ") for line in self._said())

    def _said(self) -> list[str]:
        """In this life."""
        return self.log.read_bytes()[self._began :].decode("utf-8", "replace").splitlines()

    def tail(self, lines: int) -> str:
        said = self.log.read_text("utf-8", "replace").splitlines() if self.log.exists() else []
        return "\n".join([f"── {self.name} ──", *said[-lines:]])


class House:
    def __init__(self, folder: Path, postgres: Server) -> None:
        self.folder, self.postgres = folder, postgres
        self.notes = folder / "notes.txt"
        self.notes.touch()
        self._environment = _environment(self.notes)
        self.clocks = {name: folder / f"{name}.clock" for name in ("server-2", "worker-2")}
        for name in self.clocks:
            self.set_clock(name, 0)
        ports = [_free_port(), _free_port()]
        self.urls = [f"http://127.0.0.1:{port}" for port in ports]
        self.servers = [
            self._program(f"server-{n}", "server", "--port", str(port)) for n, port in enumerate(ports, start=1)
        ]
        app = ("--app", "acceptance.chaos_jobs:app")
        self.workers = [self._program(f"worker-{n}", "worker", *app) for n in (1, 2)]

    @property
    def programs(self) -> list[Program]:
        return [*self.servers, *self.workers]

    def _program(self, name: str, *words: str) -> Program:
        skewed = (
            [str(Path(skewed_main.__file__)), str(self.clocks[name])] if name in self.clocks else ["-m", "horarium"]
        )
        where = ("--database", self.postgres.url, "--data-dir", str(self.folder / "data"))
        return Program(name, [sys.executable, *skewed, *words, *where], self.folder, self._environment)

    def set_clock(self, name: str, seconds: int) -> None:
        """In one step: its reader must not find half a file."""
        passing = self.clocks[name].with_suffix(".new")
        passing.write_text(str(seconds))
        passing.replace(self.clocks[name])

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """A command of the same program, from beginning to end."""
        where = ("--database", self.postgres.url, "--data-dir", str(self.folder / "data"))
        command = [sys.executable, "-m", "horarium", *words, *where]
        return subprocess.run(
            command, cwd=self.folder, env=self._environment, capture_output=True, text=True, timeout=300, check=False
        )

    @contextmanager
    def open(self) -> Iterator[House]:
        migrated = self.run("migrate")
        assert migrated.returncode == 0, migrated.stderr
        try:
            for program in self.programs:
                program.start()
            yield self
        finally:
            for program in self.programs:
                program.end(signal.SIGKILL)


def _environment(notes: Path) -> dict[str, str]:
    plain = {name: value for name, value in os.environ.items() if not name.startswith("HORARIUM_")}
    ours = {f"HORARIUM_{name}": value for name, value in _SETTINGS.items()}
    path = os.pathsep.join(path for path in sys.path if path)
    return {**plain, **ours, "PYTHONPATH": path, "PYTHONUNBUFFERED": "1", "CHAOS_NOTES": str(notes)}


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
        return port
