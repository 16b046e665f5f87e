"""How fast the HTTP API answers: creating, describing, and paging through many schedules.

A real server (`horarium server`) is asked over loopback by eight connections that are kept open. Beside it
stands a **bare** FastAPI application on the same database that knows no schedules: one INSERT of the same
document, one SELECT of one document by its key, one SELECT of as many documents as a page has. It checks no
token and knows no history, so its figures say what HTTP and the database cost alone. The two take turns, and
the ratio of each turn is what counts: both suffer alike from whatever else the machine does.

    python benchmarks/api.py [--schedules 100000] [--seconds 2] [--rounds 3] [--dialect postgresql --dialect sqlite]

A second table shows how long a page takes, whatever is asked for: median and worst of one connection.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import socket
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

import orjson
import uvicorn
from fastapi import FastAPI, Request
from ground import DIALECTS, HERD, add_json_option, console, database, load, rest, seed, write_figures
from process import talking
from rich.table import Table
from sqlalchemy import Connection

from horarium.features.tenants import rows as tenant_rows
from horarium.instant import DAY
from horarium.platform.clock import SystemClock
from horarium.platform.database import Database, open_database

CONNECTIONS = 8
PAGE = 50
FIRED = 20
RUNS = 10
WARM_UP_SECONDS = 0.5
# More than anybody can ask in one turn: the limit is not what is measured.
_NO_LIMIT = 'rate_limit_per_second = 1000000\nrate_limit_burst = 1000000\ntoken = "bench"\n'
_DOCUMENT = orjson.dumps({name: value for name, value in HERD.items() if name != "schedule_id"})

PAGES: dict[str, dict[str, str]] = {
    "the first": {},
    "of 200": {"page_size": "200"},
    "active": {"status": "active"},
    "broken": {"status": "broken"},
    "a workflow": {"workflow_type": "herd"},
    "a workflow that none has": {"workflow_type": "nothing"},
    "an owner that none is": {"owner": "nobody"},
    "templates": {"source": "template"},
    "a label that none has": {"label": "team=nobody"},
    "a text that one has": {"text": "herd-77"},
    "a text that none has": {"text": "zzz"},
}


@dataclass(frozen=True, slots=True)
class Ask:
    """`{n}` in the target is another number in every request."""

    method: str
    target: str
    body: bytes = b""
    token: str = "bench"
    below: int | None = None  # numbers that are asked for; None = of all schedules

    def message(self, number: int) -> bytes:
        chosen = number if self.below is None else number % self.below
        head = (
            f"{self.method} {self.target.replace('{n}', str(chosen))} HTTP/1.1\r\nHost: localhost\r\n"
            f"Authorization: Bearer {self.token}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(self.body)}\r\n\r\n"
        )
        return head.encode() + self.body


@dataclass(frozen=True, slots=True)
class Party:
    name: str
    port: int
    asks: dict[str, Ask]


BARE = {
    "create": Ask("POST", "/documents", _DOCUMENT),
    "describe": Ask("GET", "/documents/{n}"),
    "describe, ten runs": Ask("GET", "/documents/{n}", below=FIRED),
    "describe, issued token": Ask("GET", "/documents/{n}"),
    "list": Ask("GET", "/documents"),
}


def ours(issued: str) -> dict[str, Ask]:
    """The operator's own token is in the settings; one that was `issued` is looked up at every request.

    Of all schedules only the first ones have ever fired: a description shows the newest ten runs.
    """
    return {
        "create": Ask("POST", "/api/schedules", _DOCUMENT),
        "describe": Ask("GET", "/api/schedules/herd-{n}"),
        "describe, ten runs": Ask("GET", "/api/schedules/herd-{n}", below=FIRED),
        "describe, issued token": Ask("GET", "/api/schedules/herd-{n}", token=issued),
        "list": Ask("GET", f"/api/schedules?page_size={PAGE}"),
    }


def main() -> None:
    arguments = _arguments()
    if arguments.bare:
        _serve_bare(arguments.bare, arguments.port)
        return
    figures: dict[str, float] = {}
    for dialect in arguments.dialect or DIALECTS:
        with database(dialect) as opened, tempfile.TemporaryDirectory(prefix="horarium-bench-") as folder:
            _fill(opened, arguments.schedules)
            with _parties(opened, folder) as parties:
                rates = _rates(parties, arguments)
                console.print(_ratios(f"{dialect}, {arguments.schedules:,} schedules", rates))
                console.print(_pages(dialect, parties[0], arguments, figures))
            for request, found in rates.items():
                for party, each in found.items():
                    figures[f"{dialect} · {request} · {party}, answers/s"] = statistics.median(each)
    write_figures(arguments.json, figures)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--schedules", type=int, default=20_000)
    parser.add_argument("--seconds", type=float, default=2.0, help="of one turn")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--dialect", action="append", choices=DIALECTS)
    add_json_option(parser)
    parser.add_argument("--bare", metavar="URL", help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, help=argparse.SUPPRESS)
    return parser.parse_args()


# ── the two servers ──────────────────────────────────────────────────────────────────────────────────


def _fill(opened: Database, count: int) -> None:
    """None of them is due; the bare application has as many documents."""
    now = SystemClock().now()
    seed(opened, count, next_due=now + 300 * DAY, now=now, title=f"{opened.dialect}: seeding")
    key = "INTEGER PRIMARY KEY" if opened.dialect == "sqlite" else "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY"
    opened.write(lambda c: c.exec_driver_sql(f"CREATE TABLE documents (id {key}, document TEXT NOT NULL)"))
    copied = "INSERT INTO documents (document) SELECT document FROM schedule_revisions"
    opened.write(lambda c: c.exec_driver_sql(copied))
    rest(opened)


@contextmanager
def _parties(opened: Database, folder: str) -> Iterator[list[Party]]:
    home, bare = Path(folder) / "ours", Path(folder) / "bare"
    for each in (home, bare):
        each.mkdir()
    (home / "horarium.toml").write_text(_NO_LIMIT)
    now = SystemClock().now()
    issued = opened.write(
        lambda c: tenant_rows.issue_token(c, namespace="default", name="bench", role="viewer", now=now)
    )
    ports = [_free_port(), _free_port()]
    words = ["-m", "horarium", "server", "--database", opened.url, "--data-dir", str(home), "--port", str(ports[0])]
    own = [str(Path(__file__).absolute()), "--bare", opened.url, "--port", str(ports[1])]
    with talking(words, str(home)), talking(own, str(bare)):
        asyncio.run(_fire(ports[0]))
        yield [Party("Horarium", ports[0], ours(issued.secret)), Party("bare FastAPI", ports[1], BARE)]


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
        return port


def _serve_bare(url: str, port: int) -> None:
    opened = open_database(url, pool_size=10)
    config = uvicorn.Config(_bare(opened), port=port, log_config=None, access_log=False, lifespan="off")
    print("ready", flush=True)
    uvicorn.Server(config).run()
    opened.close()


def _bare(opened: Database) -> FastAPI:
    app = FastAPI()
    mark = "?" if opened.dialect == "sqlite" else "%s"
    insert = f"INSERT INTO documents (document) VALUES ({mark}) RETURNING id"
    select = f"SELECT document FROM documents WHERE id = {mark}"
    page = f"SELECT document FROM documents ORDER BY id DESC LIMIT {PAGE}"

    def read(statement: str, values: tuple[object, ...] = ()) -> list[object]:
        def look(connection: Connection) -> list[object]:
            return [json.loads(text) for (text,) in connection.exec_driver_sql(statement, values)]

        return opened.read(look)

    @app.post("/documents", status_code=201)
    async def create(request: Request) -> dict[str, object]:
        document = json.dumps(await request.json())
        work = asyncio.to_thread(
            opened.write, lambda connection: connection.exec_driver_sql(insert, (document,)).scalar_one()
        )
        return {"id": await work}

    @app.get("/documents/{number}")
    def describe(number: int) -> object:
        return read(select, (number + 1,))[0]

    @app.get("/documents")
    def documents() -> dict[str, object]:
        return {"documents": read(page)}

    return app


# ── asking ───────────────────────────────────────────────────────────────────────────────────────────


def _rates(parties: Sequence[Party], arguments: argparse.Namespace) -> dict[str, dict[str, list[float]]]:
    """Answers a second, of each request and party, turn by turn."""
    rates: dict[str, dict[str, list[float]]] = {what: {party.name: [] for party in parties} for what in parties[0].asks}
    for party in parties:
        for ask in party.asks.values():
            asyncio.run(_turn(party.port, ask, arguments.schedules, WARM_UP_SECONDS))
    for number in range(arguments.rounds):
        for what, found in rates.items():
            # Who comes first in one round comes last in the next.
            for party in parties if number % 2 else reversed(parties):
                rate = asyncio.run(_turn(party.port, party.asks[what], arguments.schedules, arguments.seconds))
                found[party.name].append(rate)
    return rates


async def _turn(port: int, ask: Ask, schedules: int, seconds: float) -> float:
    """Answers a second of all connections together."""
    started = time.perf_counter()
    counts = await asyncio.gather(
        *(_connection(port, ask, schedules, started + seconds, number) for number in range(CONNECTIONS))
    )
    return sum(counts) / (time.perf_counter() - started)


async def _connection(port: int, ask: Ask, schedules: int, until: float, number: int) -> int:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    count = 0
    while time.perf_counter() < until:
        # A stride that shares no factor with the sizes that people choose: all of them are asked for.
        writer.write(ask.message((number + count * 7_919) % schedules))
        await _answer(reader)
        count += 1
    writer.close()
    await writer.wait_closed()
    return count


async def _answer(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    status = int(head[9:12])
    length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n", 1)[0])
    body = await reader.readexactly(length)
    if status >= 400:
        raise RuntimeError(f"figures of refusals are worth nothing: {status} {body[:200]!r}")
    return body


async def _fire(port: int) -> None:
    """Nobody carries them out: a server without an engine was started."""
    trigger = Ask("POST", "/api/schedules/herd-{n}/trigger", b'{"overlap_policy": "allow_all"}', below=FIRED)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for number in range(FIRED * RUNS):
        writer.write(trigger.message(number))
        await _answer(reader)
    writer.close()
    await writer.wait_closed()


async def _milliseconds(port: int, target: str, times: int) -> list[float]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    taken: list[float] = []
    for _ in range(times):
        started = time.perf_counter()
        writer.write(Ask("GET", target).message(0))
        await _answer(reader)
        taken.append(1_000 * (time.perf_counter() - started))
    writer.close()
    await writer.wait_closed()
    return taken


# ── telling ──────────────────────────────────────────────────────────────────────────────────────────


def _ratios(title: str, rates: dict[str, dict[str, list[float]]]) -> Table:
    table = Table(title=f"{title}, {CONNECTIONS} connections")
    for heading in ("request", "Horarium, answers/s", "bare FastAPI, answers/s", "of the bare one", "load"):
        table.add_column(heading, justify="left" if heading == "request" else "right")
    busy = load()
    for what, found in rates.items():
        ours, bare = found.values()
        ratio = statistics.median(a / b for a, b in zip(ours, bare, strict=True))
        table.add_row(what, f"{statistics.median(ours):,.0f}", f"{statistics.median(bare):,.0f}", f"{ratio:.2f}", busy)
    return table


def _pages(dialect: str, party: Party, arguments: argparse.Namespace, figures: dict[str, float]) -> Table:
    table = Table(title=f"{dialect}, {arguments.schedules:,} schedules: how long a page takes")
    for heading in ("page", "median, ms", "worst, ms", "load"):
        table.add_column(heading, justify="left" if heading == "page" else "right")
    for name, parameters in PAGES.items():
        target = f"/api/schedules?{urlencode(parameters)}"
        taken = asyncio.run(_milliseconds(party.port, target, 5 + 10 * arguments.rounds))[5:]
        median = figures[f"{dialect} · {name} · median, ms"] = statistics.median(taken)
        table.add_row(name, f"{median:.1f}", f"{max(taken):.1f}", load())
    return table


if __name__ == "__main__":
    main()
