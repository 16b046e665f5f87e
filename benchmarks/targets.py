"""What the benchmarks deliver to: small HTTP/1.1 servers on loopback, each in a process of its own.

- `answering` says 200 with a small JSON at once and closes the connection. What arrived can be read from a
  file: one line for each request with the path, the nominal time of the event, and when it came, in
  microseconds of the machine's clock;
- `hanging` listens on many addresses of the loopback network, takes every request and never answers.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, TextIO

from process import talking

from horarium.instant import Instant, from_rfc3339

_HERE = Path(__file__).absolute().parent
_PROGRAM = f"import sys; sys.path.insert(0, {str(_HERE)!r}); from targets import main; main()"
_BODY = b'{"taken": true}'
_ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%b" % (
    len(_BODY),
    _BODY,
)
_BACKLOG = 4_096


class Arrival(NamedTuple):
    path: str
    nominal: Instant
    at: Instant


# ── as a benchmark sees them ─────────────────────────────────────────────────────────────────────────


@contextmanager
def answering(folder: str, *, arrivals: Path | None = None) -> Iterator[str]:
    """The URL of a target that answers at once."""
    told = [] if arrivals is None else ["--arrivals", str(arrivals)]
    with talking(["-c", _PROGRAM, "--address", "127.0.0.1", *told], _own(folder, "answering")) as child:
        yield f"http://127.0.0.1:{child.line}"


@contextmanager
def hanging(folder: str, count: int) -> Iterator[list[str]]:
    """The URLs of targets that never answer: each has an address of its own, as hosts have."""
    addresses = [f"127.0.{1 + number // 250}.{1 + number % 250}" for number in range(count)]
    words = [word for address in addresses for word in ("--address", address)]
    with talking(["-c", _PROGRAM, "--hang", *words], _own(folder, "hanging")) as child:
        yield [f"http://{address}:{child.line}" for address in addresses]


def read_arrivals(file: Path) -> list[Arrival]:
    lines = [line.split() for line in file.read_text("utf-8").splitlines()]
    return [Arrival(path, int(nominal), int(at)) for path, nominal, at in lines]


def _own(folder: str, name: str) -> str:
    """Each child writes what it says into a folder of its own."""
    place = Path(folder) / name
    place.mkdir()
    return str(place)


# ── in the child ─────────────────────────────────────────────────────────────────────────────────────


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--address", action="append", required=True)
    parser.add_argument("--hang", action="store_true")
    parser.add_argument("--arrivals", type=Path)
    arguments = parser.parse_args(words)
    # A target that hangs keeps a file open for each request.
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    asyncio.run(_serve(arguments.address, hangs=arguments.hang, arrivals=arguments.arrivals))


async def _serve(addresses: Sequence[str], *, hangs: bool, arrivals: Path | None) -> None:
    log = None if arrivals is None else arrivals.open("a", buffering=1, encoding="utf-8")
    answer = _hang if hangs else _Answer(log)
    first = await asyncio.start_server(answer, addresses[0], 0, backlog=_BACKLOG)
    port = first.sockets[0].getsockname()[1]
    others = [await asyncio.start_server(answer, address, port, backlog=_BACKLOG) for address in addresses[1:]]
    print(port, flush=True)
    await asyncio.gather(*(server.serve_forever() for server in (first, *others)))


async def _hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Until the caller has had enough of it."""
    try:
        while await reader.read(65_536):
            pass
    except ConnectionError:
        pass
    writer.close()


class _Answer:
    def __init__(self, log: TextIO | None) -> None:
        self._log = log

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            length = head.lower().partition(b"content-length:")[2].split(b"\r\n", 1)[0]
            body = await reader.readexactly(int(length or 0))
            if self._log is not None:
                path, at = head.split(b" ", 2)[1].decode(), time.time_ns() // 1_000
                self._log.write(f"{path} {from_rfc3339(json.loads(body)['time'])} {at}\n")
            writer.write(_ANSWER)
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        writer.close()
