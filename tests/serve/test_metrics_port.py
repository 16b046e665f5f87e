"""The metrics and probes of a worker, which has no API."""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import httpx
import pytest

from horarium.platform.settings import Settings
from horarium.serve import process
from horarium.serve.data_dir import seed_admin_token
from horarium.serve.process import WORKER, listen
from horarium.serve.service import Service, open_service
from horarium.testing.service import TOKEN


@contextmanager
def opened(url: str, log: io.StringIO | None = None, **settings: Any) -> Iterator[Service]:
    with open_service(Settings(database=url, token=TOKEN, **settings), log_to=log, key=b"k" * 32) as service:
        seed_admin_token(service.settings, service.database, service.clock)
        yield service


@asynccontextmanager
async def working(service: Service) -> AsyncIterator[None]:
    """A worker without its signals."""
    stop, ready = asyncio.Event(), asyncio.Event()
    door = process._metrics_door(service)

    async def live() -> None:
        async with process._beating(service, WORKER, stop):
            await process._work(service, WORKER, door, ready.set, stop)

    over = asyncio.create_task(live())
    try:
        await asyncio.wait([over, asyncio.create_task(ready.wait())], return_when=asyncio.FIRST_COMPLETED)
        yield
    finally:
        stop.set()
        await over


def free_port() -> int:
    with listen("127.0.0.1", 0) as listening:
        return int(listening.getsockname()[1])


def test_a_worker_serves_its_metrics_and_probes_and_nothing_else(empty_url: str) -> None:
    port = free_port()

    async def main() -> None:
        async with working(service), httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=60) as http:
            shown = await http.get("/metrics")
            assert shown.status_code == 200
            assert "horarium_last_completed_tick_age_seconds" in shown.text
            assert "horarium_schedules_failing" not in shown.text
            assert (await http.get("/livez")).status_code == 200
            async with asyncio.timeout(60):
                while (await http.get("/readyz")).status_code != 200:
                    await asyncio.sleep(0.05)
            bearer = {"Authorization": f"Bearer {TOKEN}"}
            for path in ("/api/schedules", "/", "/ui/", "/healthz", "/metrics/x"):
                assert (await http.get(path, headers=bearer)).status_code == 404
            assert (await http.get("/metrics", headers={"Host": "evil.example"})).status_code == 421

    with opened(empty_url, metrics_port=port, base_path="") as service:
        asyncio.run(main())


@pytest.mark.parametrize("open_to_all", [False, True])
def test_off_loopback_a_worker_shows_its_metrics_to_tokens_unless_they_are_open(
    empty_url: str, open_to_all: bool
) -> None:
    port = free_port()

    async def main() -> None:
        async with working(service), httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=60) as http:
            assert (await http.get("/metrics")).status_code == (200 if open_to_all else 401)
            assert (await http.get("/metrics", headers={"Authorization": f"Bearer {TOKEN}"})).status_code == 200
            assert (await http.get("/livez")).status_code == 200

    with opened(empty_url, metrics_port=port, metrics_host="0.0.0.0", metrics_open=open_to_all) as service:
        asyncio.run(main())


def test_a_worker_without_its_port_warns_and_works(empty_url: str) -> None:
    log = io.StringIO()

    async def main() -> None:
        async with working(service):
            pass

    with listen("127.0.0.1", 0) as taken, opened(empty_url, log, metrics_port=taken.getsockname()[1]) as service:
        asyncio.run(main())
    assert "WARNING  metrics_not_served" in log.getvalue()
    assert "Choose another --metrics-port" in log.getvalue()


def test_port_0_opens_none(empty_url: str) -> None:
    log = io.StringIO()
    with opened(empty_url, log, metrics_port=0) as service:
        assert process._metrics_door(service) is None
    assert "metrics" not in log.getvalue()


def test_a_host_that_is_no_name_costs_a_worker_its_metrics_alone(empty_url: str) -> None:
    log = io.StringIO()
    with opened(empty_url, log, metrics_host="a..b") as service:
        assert process._metrics_door(service) is None
    assert "Cannot listen on a..b" in log.getvalue()
