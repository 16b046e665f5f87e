"""Brokers for the Celery launcher: one in memory, and a Redis of a few commands that can be told to misbehave."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from kombu.connection import Connection

MEMORY = "memory://"


def received(queue: str) -> list[dict[str, Any]]:
    """What was published to a queue of the broker in memory: headers, properties and the body, read."""
    found = []
    with Connection(MEMORY) as connection:
        channel = connection.channel()
        while (message := channel.basic_get(queue, no_ack=True)) is not None:
            body = json.loads(message.body)
            found.append({"headers": message.headers, "properties": message.properties, "body": body})
    return found


@dataclass
class FakeRedis:
    """Answers what a publisher asks. `push` is what it says to a push: a line of the protocol, or None = it hangs up.

    `silent`: it takes connections, and never says a word. `away`: it ends them at once. `odd`: a key that is no list.
    """

    push: bytes | None = b":1\r\n"
    silent: bool = False
    away: bool = False
    odd: bytes = b""
    commands: list[list[bytes]] = field(default_factory=list)
    port: int = 0

    @property
    def url(self) -> str:
        return f"redis://somebody:hunter22secret@127.0.0.1:{self.port}/0"

    @property
    def pushed(self) -> int:
        return sum(each[0] == b"LPUSH" for each in self.commands)

    def serve(self, connection: socket.socket) -> None:
        with connection, suppress(OSError, ValueError), connection.makefile("rb") as lines:
            while first := lines.readline():
                words = [self._word(lines) for _ in range(int(first[1:]))]
                self.commands.append(words)
                answer = self._answer(words[0].upper(), words[1:2])
                if answer is None:
                    return
                connection.sendall(answer)

    @staticmethod
    def _word(lines: Any) -> bytes:
        length = int(lines.readline()[1:])
        word: bytes = lines.read(length + 2)[:-2]
        return word

    def _answer(self, name: bytes, key: list[bytes]) -> bytes | None:
        if self.away:
            return None
        if self.silent:
            return b""
        if name == b"LPUSH":
            return b"-WRONGTYPE Operation against a key\r\n" if key == [self.odd] else self.push
        if name == b"HELLO":
            return b"%2\r\n$6\r\nserver\r\n$5\r\nredis\r\n$5\r\nproto\r\n:3\r\n"
        return b"+PONG\r\n" if name == b"PING" else b"+OK\r\n"


@contextmanager
def fake_redis(**given: Any) -> Iterator[FakeRedis]:
    fake = FakeRedis(**given)
    listening = socket.create_server(("127.0.0.1", 0))
    fake.port = listening.getsockname()[1]
    open_ones: list[socket.socket] = []

    def accept() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listening.accept()
                open_ones.append(connection)
                threading.Thread(target=fake.serve, args=(connection,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield fake
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        for each in open_ones:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
