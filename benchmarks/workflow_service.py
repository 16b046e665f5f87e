"""A service with a Python task that returns at once, opened for the benchmarks of workflows."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import Connection, text

from horarium.client.client import Client
from horarium.client.inprocess import InProcess
from horarium.launchers.tasks import TaskRegistry
from horarium.platform.database import Database
from horarium.platform.ids import parse_id
from horarium.platform.settings import Settings
from horarium.serve.launchers import Bare
from horarium.serve.service import Service, open_service

T = TypeVar("T")

_OWNER = "bench"
_LOOK_SECONDS = 0.01


@contextmanager
def open_bench(opened: Database) -> Iterator[Service]:
    """With the default settings, as `horarium worker` would."""
    tasks = TaskRegistry()
    tasks.add(_nothing, name="nothing")
    with tempfile.TemporaryDirectory(prefix="horarium-bench-") as folder:
        chosen: dict[str, Any] = {"data_dir": folder, "database": opened.url}
        with (
            (Path(folder) / "log").open("w", encoding="utf-8") as log,
            open_service(Settings(**chosen), application=Bare(tasks), log_to=log, key=b"horarium-bench") as service,
        ):
            yield service


@contextmanager
def client_of(service: Service) -> Iterator[Client]:
    transport = InProcess(service.api)
    with Client("http://horarium", token=service.secret, namespace="default", transport=transport) as client:
        yield client
    transport.close()


def put_workflow(service: Service, workflow_id: str, document: Mapping[str, Any]) -> str:
    """Whose it is."""
    with client_of(service) as client:
        client.put_workflow(workflow_id, {**document, "owner": _OWNER})
    return _OWNER


def run_in_turn(service: Service, workflow_id: str, inputs: Mapping[str, Any], count: int) -> None:
    """So many runs, each begun when the one before it has come to its end; the engine lives meanwhile."""
    with client_of(service) as client:
        asyncio.run(_run_in_turn(service, client, workflow_id, inputs, count))


async def _run_in_turn(
    service: Service, client: Client, workflow_id: str, inputs: Mapping[str, Any], count: int
) -> None:
    stop = asyncio.Event()
    running = asyncio.create_task(service.engine.run(stop))
    with ThreadPoolExecutor(1) as own:  # the threads of the loop are the engine's

        def here(work: Callable[[], T]) -> asyncio.Future[T]:
            return asyncio.get_running_loop().run_in_executor(own, work)

        for _ in range(count):
            begun = await here(lambda: client.run_workflow(workflow_id, inputs=dict(inputs)))
            run_id = parse_id(begun.run_id, "run_id")
            while not await here(partial(service.database.glance, partial(_is_over, run_id=run_id))):
                await asyncio.wait([running], timeout=_LOOK_SECONDS)
                assert not running.done(), "the engine has ended"
    stop.set()
    await running


def _is_over(connection: Connection, run_id: bytes) -> bool:
    over = text("SELECT 1 FROM runs WHERE run_id = :run AND finished_at IS NOT NULL")
    return connection.execute(over, {"run": run_id}).first() is not None


def _nothing(**given: Any) -> dict[str, Any]:
    return given
