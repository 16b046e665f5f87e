"""A target that honours idempotency keys, remembers all that it was asked, and cannot be relied on.

Each arrival of a key draws its fate from the seed, the key and how often it has come: at once, late, 500, 503,
busy, the connection dropped before or after the effect, no answer at all. A key takes effect once; whoever
brings it again gets the answer that was kept.

`/once/…` never says that it is busy: that is an invitation to send the same key again. `/later/…` answers 202, and
what became of the run is told by a report.
"""

from __future__ import annotations

import asyncio
import json
import queue
import threading
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

# Shares of a hundred; the rest is answered at once.
_FATES = {
    "late": 8, "error": 6, "unavailable": 5, "busy": 3, "dropped": 4, "answer_lost": 4, "hang": 2,
}  # fmt: skip
_LATE_SECONDS = 1.5
_WORDS = {200: "OK", 202: "Accepted", 500: "Internal Server Error", 503: "Service Unavailable"}


@dataclass(frozen=True, slots=True)
class Accepted:
    """What a report will be about, with what came along to make it valid."""

    run_id: str
    data: dict[str, Any]


@dataclass(slots=True)
class Arrivals:
    """What the target knows, by key: where it came and what it met each time, and whether it took effect."""

    came: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    paths: dict[str, str] = field(default_factory=dict)
    effects: set[str] = field(default_factory=set)
    runs_with_effect: set[str] = field(default_factory=set)
    overlapping: int = 0
    """How often a key came while it was still being answered: allowed, as long as it succeeds once."""

    @property
    def fates(self) -> Counter[str]:
        return Counter(fate for fates in self.came.values() for fate in fates)

    def more_than_once(self, path: str) -> list[str]:
        return [f"{key} met {', '.join(met)}" for key, met in self.came.items() if self.paths[key] == path and met[1:]]


class Target:
    def __init__(self, seed: int) -> None:
        self.known = Arrivals()
        self.accepted: queue.Queue[Accepted] = queue.Queue()
        self.calm = threading.Event()
        self.url = ""
        self._seed = seed
        self._under_way: Counter[str] = Counter()

    @contextmanager
    def open(self) -> Iterator[Target]:
        """Serves from a thread of its own while the block lasts."""
        ready, loop = threading.Event(), asyncio.new_event_loop()
        stopped = asyncio.Event()

        async def serve() -> None:
            server = await asyncio.start_server(self._serve, "127.0.0.1", 0, backlog=1_000)
            self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
            ready.set()
            await stopped.wait()
            server.close()
            for task in asyncio.all_tasks() - {asyncio.current_task()}:
                task.cancel()

        thread = threading.Thread(target=lambda: loop.run_until_complete(serve()), name="target")
        thread.start()
        ready.wait()
        try:
            yield self
        finally:
            loop.call_soon_threadsafe(stopped.set)
            thread.join()
            loop.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            headers = dict(line.lower().split(": ", 1) for line in head.split("\r\n")[1:-2])
            body = await reader.readexactly(int(headers.get("content-length", "0")))
            key = headers["idempotency-key"]
            self._under_way[key] += 1
            try:
                await self._answer(writer, reader, head.split(" ", 2)[1], key, _handed(body))
            finally:
                self._under_way[key] -= 1
        writer.close()

    async def _answer(
        self, writer: asyncio.StreamWriter, reader: asyncio.StreamReader, path: str, key: str, data: dict[str, Any]
    ) -> None:
        fate = self._arrived(path, key)
        match fate:
            case "late":
                await asyncio.sleep(_LATE_SECONDS)
            case "error":
                return await _say(writer, 500)
            case "unavailable":
                return await _say(writer, 503)
            case "busy":
                return await _say(writer, 503, "retry-after: 1\r\n")
            case "dropped":
                return None
            case "hang":
                await reader.read()  # until the caller goes away
                return None
        status = self._take_effect(path, key, data)
        return None if fate == "answer_lost" else await _say(writer, status)

    def _arrived(self, path: str, key: str) -> str:
        known = self.known
        known.paths[key] = path
        known.overlapping += self._under_way[key] > 1
        fate = "at_once" if self.calm.is_set() else _draw(self._seed, key, len(known.came[key]))
        if fate == "busy" and path.startswith("/once"):
            fate = "unavailable"
        known.came[key].append(fate)
        return fate

    def _take_effect(self, path: str, key: str, data: dict[str, Any]) -> int:
        """Once for each key; the loop has one thread, so nothing comes in between."""
        later = path.startswith("/later")
        if key not in self.known.effects:
            self.known.effects.add(key)
            self.known.runs_with_effect.add(data["run_id"])
            if later:
                self.accepted.put(Accepted(data["run_id"], data))
        return 202 if later else 200


def _handed(body: bytes) -> dict[str, Any]:
    """All that came along, whether it is about the event or about the run."""
    event = json.loads(body)
    return {**event, **event["data"]}


def _draw(seed: int, key: str, number: int) -> str:
    drawn = int.from_bytes(blake2b(f"{seed} {key} {number}".encode(), digest_size=4).digest(), "big") % 100
    for fate, share in _FATES.items():
        drawn -= share
        if drawn < 0:
            return fate
    return "at_once"


async def _say(writer: asyncio.StreamWriter, status: int, more: str = "") -> None:
    body = b'{"done": true}'
    head = f"HTTP/1.1 {status} {_WORDS[status]}\r\ncontent-type: application/json\r\n{more}connection: close\r\n"
    writer.write(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)
    await writer.drain()
