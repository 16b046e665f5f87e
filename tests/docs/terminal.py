"""A shell in which a page is read from top to bottom: its directory, its variables and what runs in it last as long.

Pages speak of the usual port, and some of others; here every page has its own, and nobody sees the difference.
"""

from __future__ import annotations

import os
import re
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from types import TracebackType

USUAL_PORT = "8765"
_DONE = "the-command-has-ended"
_COMMAND_SECONDS = 60
_STOP_SECONDS = 10
_TRIED = count()


def environment(**more: str) -> dict[str, str]:
    """Without the settings of whoever runs the tests, without colour, with our own programs first."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("HORARIUM_")}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {**inherited, "NO_COLOR": "1", "COLUMNS": "120", "LC_ALL": "C.UTF-8", "PATH": path, **more}


class Terminal:
    def __init__(self, directory: Path, variables: Mapping[str, str], other_ports: Sequence[str] = ()) -> None:
        self._ports = {usual: _free_port() for usual in (USUAL_PORT, *other_ports)}
        self.port = self._ports[USUAL_PORT]
        self._shell = subprocess.Popen(
            ["bash"],
            cwd=directory,
            env=environment(
                HORARIUM_PORT=self.port,
                HORARIUM_CHECK_ADDRESSES="false",  # an example prints the same where no name can be resolved
                XDG_CONFIG_HOME=str(directory / "config"),
                **variables,
            ),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # so that whatever a page starts can be ended with it
        )
        assert self._shell.stdout is not None
        self._output = self._shell.stdout.fileno()
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._output, selectors.EVENT_READ)

    def __enter__(self) -> Terminal:
        return self

    def run(self, command: str, *, lines: int = 0) -> str:
        """What it prints. One that goes to the background (`&`) is awaited until it has printed so many lines."""
        assert self._shell.stdin is not None
        # Nothing may read from us: it would swallow the commands to come.
        sent = f"{{ {self.localised(command)}\n}} </dev/null\nprintf '\\n%s\\n' {_DONE}\n"
        self._shell.stdin.write(sent.encode())
        self._shell.stdin.flush()
        mark = f"\n{_DONE}\n"
        printed = self._read_until(lambda text: mark in text)
        before, _, after = printed.partition(mark)
        printed = before + after
        if command.rstrip().endswith("&"):
            printed += self._read_until(lambda text: (printed + text).count("\n") >= lines)
        return _replaced(printed, {own: usual for usual, own in self._ports.items()})

    def localised(self, text: str) -> str:
        return _replaced(text, self._ports)

    def _read_until(self, enough: Callable[[str], bool]) -> str:
        end, seen = time.monotonic() + _COMMAND_SECONDS, b""
        while not enough(seen.decode(errors="replace")):
            left = end - time.monotonic()
            if left <= 0 or not self._selector.select(left):
                raise TimeoutError(f"not done after {_COMMAND_SECONDS} s; printed: {seen.decode(errors='replace')}")
            chunk = os.read(self._output, 65_536)
            if not chunk:
                raise EOFError(f"the shell has ended; printed: {seen.decode(errors='replace')}")
            seen += chunk
        return seen.decode()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        group = self._shell.pid
        with suppress(ProcessLookupError):
            os.killpg(group, signal.SIGTERM)
        self._shell.wait(_STOP_SECONDS)
        end = time.monotonic() + _STOP_SECONDS
        with suppress(ProcessLookupError):
            while time.monotonic() < end:
                os.killpg(group, 0)
                time.sleep(0.05)
            os.killpg(group, signal.SIGKILL)
        self._selector.close()
        for pipe in (self._shell.stdin, self._shell.stdout):
            if pipe is not None:
                pipe.close()


def _replaced(text: str, words: Mapping[str, str]) -> str:
    return re.sub(rf"\b({'|'.join(words)})\b", lambda found: words[found[0]], text)


def _free_port() -> str:
    """Bound later, by what a page starts. So it is one that the system gives to nobody by itself (it takes those
    from 32768 on), and each process of a test session begins to look at another place."""
    for number in range(1_000):
        port = 20_000 + (os.getpid() * 37 + next(_TRIED) + number) % 12_000
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return str(port)
    raise AssertionError("no port is free")
