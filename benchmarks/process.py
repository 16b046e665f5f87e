"""How a process is started for a benchmark, watched from outside through /proc, and stopped."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from horarium.platform.database import Database, processes
from horarium.platform.database.processes import TICKER

_HERTZ = os.sysconf("SC_CLK_TCK")
_START_SECONDS = 60
_STOP_SECONDS = 30
_NONE: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Living:
    pid: int
    ready_seconds: float  # since the process was started: importing is part of it


@dataclass(frozen=True, slots=True)
class Child:
    pid: int
    line: str  # the first that it said


@contextmanager
def service(database: Database, command: str, settings: Mapping[str, str] = _NONE) -> Iterator[Living]:
    """`horarium up` or `horarium worker`. Ready = it has said so, and its ticker has looked at what is due.

    `settings` are variables of its environment; without them it has its shipped ones.
    """
    with tempfile.TemporaryDirectory(prefix="horarium-bench-") as folder:
        # The URL as it is shown: the server of the benchmarks asks for no password.
        words = ["-m", "horarium", command, "--database", database.url, "--data-dir", f"{folder}/data"]
        started = time.perf_counter()
        with talking([*words, "--port", "0"] if command == "up" else words, folder, settings) as child:
            while not _has_looked(database, child.pid):
                if time.perf_counter() - started > _START_SECONDS:
                    raise TimeoutError("the ticker has not looked once")
                time.sleep(0.01)
            yield Living(child.pid, time.perf_counter() - started)


@dataclass(frozen=True, slots=True)
class Up:
    pid: int
    address: str
    token: str  # of the admin


@contextmanager
def up(
    database: Database,
    folder: str,
    program: Sequence[str] = ("-m", "horarium"),
    settings: Mapping[str, str] = _NONE,
) -> Iterator[Up]:
    """`horarium up` with its default settings, ready to be asked; `program` may start it in a way of its own."""
    data = Path(folder) / "data"
    where = ["--port", "0", "--database", database.url, "--data-dir", str(data)]
    with talking([*program, "up", *where], folder, settings) as child:
        address = next(word for word in child.line.split() if word.startswith("http://"))
        yield Up(child.pid, address, (data / "admin.token").read_text("utf-8").strip())


@contextmanager
def talking(words: Sequence[str], folder: str, settings: Mapping[str, str] = _NONE) -> Iterator[Child]:
    """A Python process that has said its first line; stopped in good order at the end."""
    said, log = Path(folder) / "said", Path(folder) / "log"
    # Neither variables nor a settings file of this machine may have a say.
    plain = {name: value for name, value in os.environ.items() if not name.startswith("HORARIUM_")}
    # Into files, not pipes: nobody reads while the watch goes on, and a full pipe would stop the process.
    with said.open("wb") as stdout, log.open("wb") as stderr:
        started = subprocess.Popen(
            [sys.executable, *words], cwd=folder, env={**plain, **settings}, stdout=stdout, stderr=stderr
        )
    try:
        while b"\n" not in said.read_bytes():
            if started.poll() is not None:
                raise RuntimeError(f"it ended instead of starting:\n{log.read_text('utf-8')}")
            time.sleep(0.01)
        yield Child(started.pid, said.read_text("utf-8").splitlines()[0])
        for line in (said.read_text("utf-8") + log.read_text("utf-8")).splitlines():
            if "loop_step_failed" in line:
                raise RuntimeError(f"figures of an engine that fails are worth nothing: {line}")
    finally:
        started.terminate()
        started.wait(_STOP_SECONDS)


def _has_looked(database: Database, pid: int) -> bool:
    rows = database.read(processes.all_leases)
    return any(row.name == TICKER and row.owner.split(":")[1] == str(pid) for row in rows)


# ── through /proc ────────────────────────────────────────────────────────────────────────────────────


def cpu_seconds(pid: int) -> float:
    """User and system time of all its threads; a tick of the kernel is 10 ms."""
    user, system = _stat(pid)[11:13]
    return (int(user) + int(system)) / _HERTZ


def server_cpu_seconds(database: Database) -> float:
    """Of a whole PostgreSQL: its first process, the children that live, and those that have ended."""
    backend = database.read(lambda connection: connection.exec_driver_sql("SELECT pg_backend_pid()").scalar_one())
    first = int(_stat(backend)[1])
    children = Path(f"/proc/{first}/task/{first}/children").read_text("ascii").split()
    own = sum(int(ticks) for ticks in _stat(first)[11:15]) / _HERTZ
    return own + sum(cpu_seconds(int(child)) for child in children)


def resident_megabytes(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text("ascii").splitlines()
    [kibibytes] = [line.split()[1] for line in lines if line.startswith("VmRSS:")]
    return int(kibibytes) * 1_024 / 1_000_000


def _stat(pid: int) -> list[str]:
    """The fields of proc(5) from the third on: the second is a name, and may hold anything but a last bracket."""
    return Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()
