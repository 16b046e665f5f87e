"""Measure how fast one subscription drains a backlog of the feed, beside a bare loop of the same HTTP posts.

The deliverer reads pages of the feed, signs each message, posts it in order over one kept connection, and notes its
place once a second. The **bare loop** posts bodies of the same size to the same receiver, one after the other, with
httpx over one kept connection, and reads, signs and notes nothing. The receiver is a process of its own that answers at
once. Both run in turns, on SQLite; the ratio is the figure, since it depends little on the machine.

    python benchmarks/subscription.py [--entries 5000] [--turns 3]
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import statistics
import sys
import tempfile
import time
from pathlib import Path

import httpx
from ground import console
from process import talking
from rich.table import Table

from horarium.core.decision.record import NewEvent
from horarium.core.document.states import EventType
from horarium.engine.deliverer import Deliverer
from horarium.features.history.rows import append
from horarium.launchers.ssrf import AddressGuard, AddressPolicy
from horarium.launchers.webhook import WebhookSender
from horarium.platform.ids import new_id
from horarium.testing import TestService, service

_SECRET = base64.b64encode(b"0123456789abcdef01234567").decode()
_ANSWER = b"HTTP/1.1 204 No Content\r\n\r\n"
_BODY = b"x" * 600


def main() -> None:
    if sys.argv[1:2] == ["--receiver"]:
        asyncio.run(_receive())
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--entries", type=int, default=5_000)
    parser.add_argument("--turns", type=int, default=3)
    asked = parser.parse_args()
    drained, bare = [], []
    receiver = [str(Path(__file__).absolute()), "--receiver"]
    with tempfile.TemporaryDirectory() as folder, talking(receiver, folder) as child:
        url = f"http://127.0.0.1:{child.line}/hook"
        for _ in range(asked.turns):
            drained.append(_drain(url, asked.entries))
            bare.append(_post(url, asked.entries))
    table = Table("", "entries a second (median)", "each turn")
    for name, rates in (("one subscription", drained), ("bare loop of posts", bare)):
        table.add_row(name, f"{statistics.median(rates):,.0f}", ", ".join(f"{rate:,.0f}" for rate in rates))
    console.print(table)
    console.print(f"ratio: {statistics.median(drained) / statistics.median(bare):.2f}")


def _drain(url: str, entries: int) -> float:
    with service() as horarium:
        body = {"name": "hook", "kinds": ["schedule_created"], "url": url, "secret": _SECRET}
        horarium.http().post("/api/subscriptions", json=body).raise_for_status()
        rows = [NewEvent(n, EventType.CREATED, None, None, None, {"n": n}) for n in range(1, entries + 1)]
        uid, now = new_id(), horarium.now
        horarium.resources.database.write(lambda connection: append(connection, [(uid, "default", rows)], now=now))
        begun = time.perf_counter()
        asyncio.run(_deliver(horarium, entries))
        return entries / (time.perf_counter() - begun)


async def _deliver(horarium: TestService, entries: int) -> None:
    sealer = horarium.resources.sealer
    assert sealer is not None
    sender = WebhookSender(horarium.clock, AddressGuard(AddressPolicy(allow_loopback=True)))
    deliverer = Deliverer(horarium.resources.database, horarium.clock, sender, sealer)
    while horarium.http().get("/api/subscriptions/hook").json()["delivered_count"] < entries:
        await deliverer.step()
        await deliverer.settle()
    await deliverer.stop()
    deliverer.close()


def _post(url: str, entries: int) -> float:
    with httpx.Client(trust_env=False) as client:
        begun = time.perf_counter()
        for _ in range(entries):
            client.post(url, content=_BODY).raise_for_status()
        return entries / (time.perf_counter() - begun)


async def _receive() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                length = int(head.split(b"content-length:")[1].split(b"\r\n")[0])
                await reader.readexactly(length)
                writer.write(_ANSWER)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    main()
