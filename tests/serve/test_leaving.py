"""A server that leaves says so first, answers what is under way, then closes its door, and is forgotten last."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from horarium.engine.ticker import Ticker
from horarium.features.cluster import service as cluster_service
from horarium.platform.database.errors import StoreUnavailable
from horarium.platform.database.processes import ProcessRow, process_rows
from horarium.platform.settings import Settings
from horarium.serve import process
from horarium.serve.asgi import Leaving
from horarium.serve.process import SERVER, UP, Door, Parts, listen, url_of
from horarium.serve.service import Service
from horarium.testing import TestService
from horarium.testing.service import TOKEN


@pytest.mark.parametrize(
    ("given", "seconds"),
    [({}, 0), ({"behind_proxy": True}, 5), ({"drain_seconds": 2}, 2), ({"behind_proxy": True, "drain_seconds": 0}, 0)],
    ids=["alone", "behind a proxy", "given", "nothing to wait for"],
)
def test_only_behind_a_proxy_is_there_anything_to_wait_for(given: dict[str, Any], seconds: float) -> None:
    assert Settings(**given).drain == seconds


def test_streams_end_when_the_time_is_over_or_nobody_serves_any_more() -> None:
    async def main() -> list[tuple[bool, bool]]:
        found = []
        for seconds, still in ((0.0, 600.0), (0.01, 600.0), (600.0, 0.0)):
            leaving = Leaving(threading.Event(), threading.Event(), seconds)
            serving = asyncio.create_task(asyncio.sleep(still))
            await leaving.begin(serving)
            found.append((leaving.draining.is_set(), leaving.closing.is_set()))
            serving.cancel()
        return found

    assert asyncio.run(main()) == [(True, True)] * 3


@dataclass(frozen=True, slots=True)
class Told(Leaving):
    """Its time is over when the test says so."""

    enough: asyncio.Event

    async def linger(self, serving: asyncio.Task[Any]) -> None:
        await self.enough.wait()


@dataclass
class House:
    http: httpx.AsyncClient
    stop: asyncio.Event
    enough: asyncio.Event
    over: asyncio.Task[None]
    service: Service
    door: Door

    async def row(self) -> ProcessRow | None:
        found = await asyncio.to_thread(self.service.database.read, process_rows)
        return found[0] if found else None

    async def until(self, condition: Callable[[], Awaitable[bool]]) -> None:
        async with asyncio.timeout(60):
            while not await condition():
                await asyncio.sleep(0.02)


@asynccontextmanager
async def living(service: Service, parts: Parts) -> AsyncIterator[House]:
    """A process without its signals."""
    stop, enough = asyncio.Event(), asyncio.Event()
    with listen("127.0.0.1", 0) as listening:
        door = Door(service, listening)
        door._leaving = Told(service.api.state.draining, service.api.state.closing, 0, enough)

        async def live() -> None:
            async with process._beating(service, parts, stop):
                await process._work(service, parts, door, lambda: None, stop)

        over = asyncio.create_task(live())
        await door.ready.wait()
        headers = {"Authorization": f"Bearer {TOKEN}"}
        async with httpx.AsyncClient(base_url=url_of(listening), headers=headers, timeout=60) as http:
            try:
                yield House(http, stop, enough, over, service, door)
            finally:
                stop.set()
                enough.set()
                await over


async def _has_row(house: House) -> bool:
    return await house.row() is not None


async def _is_draining(house: House) -> bool:
    row = await house.row()
    return row is not None and row.process.draining


@pytest.mark.parametrize(("parts", "roles"), [(SERVER, ("api",)), (UP, ("api", "ticker"))], ids=["server", "up"])
def test_it_says_so_first_answers_on_closes_its_door_and_is_forgotten_last(
    horarium: TestService, parts: Parts, roles: tuple[str, ...]
) -> None:
    async def main() -> None:
        async with living(horarium.parts, parts) as house:
            await house.until(lambda: _has_row(house))
            row = await house.row()
            assert row is not None
            assert row.process.about.roles[: len(roles)] == roles
            assert (row.process.serves is None) == (parts is SERVER)
            assert (await house.http.get("/healthz")).status_code == 200
            async with house.http.stream("GET", "/api/events") as stream:
                house.stop.set()
                await house.until(lambda: _is_draining(house))
                for probe in ("/readyz", "/healthz"):
                    said = await house.http.get(probe)
                    assert (said.status_code, said.headers["connection"]) == (503, "close")
                    assert "this process is shutting down" in said.text
                assert (await house.http.get("/livez")).status_code == 200
                answered = await house.http.get("/api/schedules")
                assert (answered.status_code, answered.headers["connection"]) == (200, "close")
                assert not house.over.done()
                house.enough.set()
                async for _ in stream.aiter_bytes():  # it ends in good order
                    pass
            await house.over
            assert await house.row() is None
            with pytest.raises(httpx.ConnectError):
                await httpx.AsyncClient().get(house.http.base_url.join("/livez"))

    asyncio.run(main())


@pytest.mark.parametrize(("parts", "ready"), [(SERVER, 200), (UP, 503)], ids=["server", "up"])
def test_only_a_process_that_decides_is_unready_because_nothing_is_decided(
    horarium: TestService, parts: Parts, ready: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def hangs(_ticker: Ticker) -> None:
        raise StoreUnavailable("a table is locked", busy=True)

    monkeypatch.setattr(Ticker, "step", hangs)
    monkeypatch.setattr(Ticker, "next_due", hangs)
    horarium.create(schedule_id="s", cron_expressions=["* * * * *"], workflow_type="x")
    horarium.clock.advance(60 + 31)

    async def main() -> None:
        async with living(horarium.parts, parts) as house:
            said = await house.http.get("/readyz")
            failing = {check["name"] for check in said.json()["checks"] if not check["passed"]}
            assert (said.status_code, failing) == (ready, {"ticking", "deciding"})
            assert (await house.http.get("/healthz")).status_code == 200

    asyncio.run(main())


def test_what_is_under_way_when_the_door_closes_is_answered(horarium: TestService) -> None:
    async def main() -> None:
        async with living(horarium.parts, SERVER) as house:
            rest = asyncio.Event()

            async def body() -> AsyncIterator[bytes]:
                yield b'{"schedule_id": "s", "cron_expressions": ["0 * * * *"], '
                await rest.wait()
                yield b'"action": {"kind": "http", "url": "http://example.com"}}'

            async def is_under_way() -> bool:
                return bool(house.door._server.server_state.tasks)

            headers = {"Content-Type": "application/json"}
            asking = asyncio.create_task(house.http.post("/api/schedules", content=body(), headers=headers))
            await house.until(is_under_way)
            house.stop.set()
            house.enough.set()
            await house.until(_of(house.service.api.state.closing.is_set))
            rest.set()
            assert (await asking).status_code == 201
            await house.over

    asyncio.run(main())


def test_an_answer_that_takes_long_is_waited_for(horarium: TestService, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who only holds a connection is cut off; who waits for us is not, however long the database is busy."""
    monkeypatch.setattr(process, "_CLIENT_LOOK_SECONDS", 0.01)
    free, look = threading.Event(), cluster_service.cluster
    monkeypatch.setattr(cluster_service, "cluster", lambda *given: free.wait(60) and look(*given))

    async def main() -> None:
        async with living(horarium.parts, SERVER) as house:
            asking = asyncio.create_task(house.http.get("/api/cluster/processes"))
            await house.until(_of(lambda: bool(house.door._server.server_state.tasks)))
            host, port = house.http.base_url.host, house.http.base_url.port
            reader, writer = await asyncio.open_connection(host, port)
            head = f"POST /api/schedules HTTP/1.1\r\nHost: {host}:{port}\r\nAuthorization: Bearer {TOKEN}\r\n"
            writer.write(f"{head}Content-Length: 9\r\n\r\n".encode())
            await house.until(_of(lambda: len(house.door._server.server_state.tasks) == 2))
            house.stop.set()
            house.enough.set()
            await house.until(_of(house.service.api.state.closing.is_set))
            assert await reader.read() == b""
            assert not asking.done()
            free.set()
            assert (await asking).status_code == 200
            writer.close()
            await house.over

    asyncio.run(main())


def _of(condition: Callable[[], bool]) -> Callable[[], Awaitable[bool]]:
    async def asked() -> bool:
        return condition()

    return asked
