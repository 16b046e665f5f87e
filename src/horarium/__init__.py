"""Horarium: when could it happen, whether it does, and why."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from horarium.errors import ConditionError, HorariumError, InvalidSpec

if TYPE_CHECKING:
    from horarium.app import Horarium
    from horarium.client.aio_worker import AsyncWorker
    from horarium.client.client import AsyncClient, Client
    from horarium.client.worker import Worker
    from horarium.condition import evaluate_condition
    from horarium.core.recurrence.spec import next_fires
    from horarium.platform.job import Job

__all__ = [
    "AsyncClient",
    "AsyncWorker",
    "Client",
    "ConditionError",
    "Horarium",
    "HorariumError",
    "InvalidSpec",
    "Job",
    "Worker",
    "evaluate_condition",
    "next_fires",
]

_LATER = {
    "AsyncClient": "horarium.client.client",
    "AsyncWorker": "horarium.client.aio_worker",
    "Client": "horarium.client.client",
    "Horarium": "horarium.app",
    "Job": "horarium.platform.job",
    "Worker": "horarium.client.worker",
    "evaluate_condition": "horarium.condition",
    "next_fires": "horarium.core.recurrence.spec",
}


def __getattr__(name: str) -> Any:
    """These bring a cron engine, an HTTP client, a web framework or a database: only who asks for them waits."""
    if name in _LATER:
        return getattr(import_module(_LATER[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
