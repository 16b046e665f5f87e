"""Agents for the benchmark: many of them in one process of its own, each on a port of its own, in plain asyncio.

They speak A2A 1.0. A prompt takes as long as they were told, and nothing but time. Whoever asks the first one for
`/counts` hears how many prompts all were sent, how many of them with an id that had come before, and how many one
agent had at once at most.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any, NamedTuple
from urllib.request import urlopen

from process import talking

_HERE = Path(__file__).absolute().parent
_PROGRAM = f"import sys; sys.path.insert(0, {str(_HERE)!r}); from prompt_targets import main; main()"
_BACKLOG = 1_024
_WORKING, _COMPLETED = "TASK_STATE_WORKING", "TASK_STATE_COMPLETED"


class Counts(NamedTuple):
    sent: int
    again: int
    most_at_once: int


# ── as a benchmark sees them ─────────────────────────────────────────────────────────────────────────


@contextmanager
def agents(folder: str, count: int, seconds: float) -> Iterator[list[str]]:
    """Their addresses."""
    place = Path(folder) / "agents"
    place.mkdir()
    words = ["-c", _PROGRAM, "--count", str(count), "--seconds", str(seconds)]
    with talking(words, str(place)) as child:
        yield [f"http://127.0.0.1:{port}" for port in child.line.split()]


def counts(urls: Sequence[str]) -> Counts:
    with urlopen(f"{urls[0]}/counts") as answer:
        return Counts(**json.load(answer))


# ── in the child ─────────────────────────────────────────────────────────────────────────────────────


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    arguments = parser.parse_args(words)
    asyncio.run(_serve(arguments.count, arguments.seconds))


async def _serve(count: int, seconds: float) -> None:
    told = [_Agent(seconds) for _ in range(count)]
    servers = []
    for each in told:
        server = await asyncio.start_server(each, "127.0.0.1", 0, backlog=_BACKLOG)
        each.everybody, each.port = told, server.sockets[0].getsockname()[1]
        servers.append(server)
    print(*(each.port for each in told), flush=True)
    await asyncio.gather(*(server.serve_forever() for server in servers))


class _Agent:
    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._until: dict[str, float] = {}
        self.sent: Counter[str] = Counter()
        self.most = 0
        self.port = 0
        self.everybody: list[_Agent] = [self]

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            length = head.lower().partition(b"content-length:")[2].split(b"\r\n", 1)[0]
            body = await reader.readexactly(int(length or 0))
            status, said = self._answer(head.split(b" ", 2)[1], body)
            text = json.dumps(said).encode()
            writer.write(
                b"HTTP/1.1 %d %b\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%b"
                % (status, status.phrase.encode(), len(text), text)
            )
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        writer.close()

    def _answer(self, path: bytes, body: bytes) -> tuple[HTTPStatus, dict[str, Any]]:
        if body:
            asked = json.loads(body)
            return HTTPStatus.OK, {
                "jsonrpc": "2.0",
                "id": asked["id"],
                **self._called(asked["method"], asked["params"]),
            }
        if path == b"/counts":
            sent = sum((each.sent for each in self.everybody), Counter())
            most = max(each.most for each in self.everybody)
            return HTTPStatus.OK, Counts(sent.total(), sent.total() - len(sent), most)._asdict()
        if path == b"/.well-known/agent-card.json":
            return HTTPStatus.OK, self._card()
        return HTTPStatus.NOT_FOUND, {}

    def _card(self) -> dict[str, Any]:
        own = {"url": f"http://127.0.0.1:{self.port}", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
        return {"name": f"agent {self.port}", "version": "1", "supportedInterfaces": [own], "capabilities": {}}

    def _called(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        now = time.monotonic()
        if method == "SendMessage":
            name = params["message"]["messageId"]
            self.sent[name] += 1
            self._until[name] = now + self._seconds
            self.most = max(self.most, sum(until > now for until in self._until.values()))
            return {"result": {"task": self._task(name, now)}}
        name = params.get("id", "")
        if method != "GetTask" or name not in self._until:
            return {"error": {"code": -32001, "message": "task not found"}}
        return {"result": self._task(name, now)}

    def _task(self, name: str, now: float) -> dict[str, Any]:
        task: dict[str, Any] = {"id": name, "contextId": name, "status": {"state": _WORKING}}
        if now >= self._until[name]:
            task["status"] = {"state": _COMPLETED}
            task["artifacts"] = [{"artifactId": "a", "parts": [{"text": "done"}]}]
        return task
