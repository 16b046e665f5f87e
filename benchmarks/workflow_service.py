"""A service with a Python task that returns at once, opened for the benchmarks of workflows."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from horarium.client.client import Client
from horarium.client.inprocess import InProcess
from horarium.launchers.tasks import TaskRegistry
from horarium.serve.application import Bare
from horarium.serve.service import Service, open_service
from horarium.settings import Settings
from horarium.store.database import Database

_OWNER = "bench"
_LOOK_SECONDS = 0.01
_PATIENCE_SECONDS = 600


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


def run_one(service: Service, workflow_id: str, inputs: Mapping[str, Any]) -> str:
    """The id of a run that has come to its end."""
    with client_of(service) as client:
        run_id = str(client.run_workflow(workflow_id, inputs=dict(inputs)).run_id)
        asyncio.run(until_ended(service, client, [run_id]))
    return run_id


async def until_ended(service: Service, client: Client, run_ids: list[str]) -> None:
    stop = asyncio.Event()
    running = asyncio.create_task(service.engine.run(stop))
    for run_id in run_ids:
        for _ in range(round(_PATIENCE_SECONDS / _LOOK_SECONDS)):
            if (await asyncio.to_thread(client.get_run, run_id)).finished_at is not None:
                break
            await asyncio.wait([running], timeout=_LOOK_SECONDS)
            assert not running.done(), "the engine has ended"
    stop.set()
    await running


def _nothing(**given: Any) -> dict[str, Any]:
    return given
