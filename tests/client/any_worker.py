"""A worker of either kind behind one face, and runs that wait for it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import httpx
from client.drivers import QUICK, URL

from horarium.client.aio_worker import AsyncWorker
from horarium.client.client import AsyncClient, Client
from horarium.client.inprocess import InProcess
from horarium.client.worker import Worker
from horarium.testing import TestService
from horarium.testing.service import TOKEN

QUEUE = "brooms"
SHORT: dict[str, Any] = {"poll_seconds": 0.01, "heartbeat_seconds": 0.02, "grace_seconds": 2.0}


class AnyWorker:
    """Either kind of worker behind one face."""

    def __init__(self, kind: str, horarium: TestService) -> None:
        self.kind = kind
        self.api = horarium.parts.api

    def drain(self, handlers: dict[str, Any], queues: tuple[str, ...] = (QUEUE,), **options: Any) -> int:
        options = {**SHORT, "name": "w1", **options}
        if self.kind == "sync":
            with self.client() as client:
                return Worker(client, queues, handlers, **options).drain()
        return asyncio.run(self._drain(handlers, queues, options))

    async def _drain(self, handlers: dict[str, Any], queues: tuple[str, ...], options: dict[str, Any]) -> int:
        transport = httpx.ASGITransport(self.api, raise_app_exceptions=False)
        async with AsyncClient(URL, token=TOKEN, transport=transport, retries=QUICK) as client:
            return await AsyncWorker(client, queues, handlers, **options).drain()

    def client(self) -> Client:
        return Client(URL, token=TOKEN, transport=InProcess(self.api), retries=QUICK)


def waits(
    horarium: TestService, inputs: Any = None, *, workflow: str = "sweep", queue: str = QUEUE, **fields: Any
) -> None:
    """One run waits in the queue."""
    number = len(horarium.runs())
    action = {"workflow_type": workflow, "task_queue": queue, **({} if inputs is None else {"input": inputs})}
    horarium.create(schedule_id=f"s{number}", spec={"intervals": [{"every": "P1D"}]}, action=action, **fields)
    with AnyWorker("sync", horarium).client() as client:
        client.trigger_schedule(f"s{number}")
    horarium.settle()


def outcome(horarium: TestService) -> tuple[str, Any, str | None, str | None]:
    run = horarium.runs()[-1]
    return run.state.value, run.result, run.error, run.error_class


def until(happens: Callable[[], bool]) -> None:
    limit = time.monotonic() + 60
    while not happens():
        assert time.monotonic() < limit, "it never happened"
        time.sleep(0.005)
