"""The synchronous worker: claims runs from pull queues, calls their handlers, reports the outcomes.

    worker = Worker(client, queues=["reports"])

    @worker.handler("nightly-report")
    def nightly_report(day: str) -> dict[str, int]: ...

    worker.run()                   # until SIGTERM or Ctrl-C

The work itself is `aio_worker.AsyncWorker`, in a loop of its own; the client is called in threads.
"""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import TypeVar

from horarium.client.aio_worker import GRACE_SECONDS, HEARTBEAT_SECONDS, POLL_SECONDS, AsyncWorker, register_in
from horarium.client.client import Client
from horarium.client.job import Handler
from horarium.platform.client.call import Call
from horarium.platform.run_log import MAX_LOG_BYTES

F = TypeVar("F", bound=Handler)
T = TypeVar("T")


class Worker:
    """A worker. Handlers may be functions or coroutine functions; other arguments are those of AsyncWorker."""

    def __init__(
        self,
        client: Client,
        queues: Sequence[str],
        handlers: Mapping[str, Handler] | None = None,
        *,
        concurrency: int = 10,
        name: str | None = None,
        poll_seconds: float = POLL_SECONDS,
        heartbeat_seconds: float = HEARTBEAT_SECONDS,
        grace_seconds: float = GRACE_SECONDS,
        log_bytes: int = MAX_LOG_BYTES,
    ) -> None:
        self.handlers: dict[str, Handler] = dict(handlers or {})
        self._sender = _InThreads(client, concurrency)
        self._make: Callable[[], AsyncWorker] = partial(
            AsyncWorker,
            self._sender,
            queues,
            self.handlers,
            concurrency=concurrency,
            name=name,
            poll_seconds=poll_seconds,
            heartbeat_seconds=heartbeat_seconds,
            grace_seconds=grace_seconds,
            log_bytes=log_bytes,
        )
        self._make()  # raises now what would be wrong later
        self._lock = threading.Lock()
        self._stopped = False
        self._active: tuple[asyncio.AbstractEventLoop, AsyncWorker] | None = None

    def handler(self, workflow_type: str) -> Callable[[F], F]:
        """Register a function as a handler. Returns the function unchanged."""
        return register_in(self.handlers, workflow_type)

    def run(self) -> None:
        """Run until `stop`, or in the main thread until SIGTERM or Ctrl-C."""
        asyncio.run(self._as_active(AsyncWorker.run))

    def drain(self) -> int:
        """Process all waiting runs and the runs that follow from them. Return the number of processed runs."""
        return asyncio.run(self._as_active(AsyncWorker.drain))

    def stop(self) -> None:
        """Stop the worker, from any thread. `run` returns when the active runs have ended."""
        with self._lock:
            self._stopped = True
            if self._active is not None:
                loop, worker = self._active
                loop.call_soon_threadsafe(worker.stop)

    async def _as_active(self, work: Callable[[AsyncWorker], Awaitable[T]]) -> T:
        worker, loop = self._make(), asyncio.get_running_loop()
        with self._lock:
            self._active = loop, worker
            if self._stopped:
                worker.stop()
        try:
            with _signals(loop, worker.stop), self._sender:
                return await work(worker)
        finally:
            with self._lock:
                self._active, self._stopped = None, False


class _InThreads:
    """Sends the calls of a loop by an ordinary client, in threads of its own: no handler keeps a heartbeat waiting."""

    def __init__(self, client: Client, concurrency: int) -> None:
        self._client = client
        # Each run in hand has two calls under way at most - a beat, and lines or a report -, and one more claims.
        self._most = 3 * concurrency + 1
        self._pool: ThreadPoolExecutor | None = None

    async def send(self, call: Call[T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._pool, self._client.send, call)

    def __enter__(self) -> None:
        self._pool = ThreadPoolExecutor(self._most, thread_name_prefix="horarium-worker")

    def __exit__(self, *_error: object) -> None:
        assert self._pool is not None  # it was entered
        self._pool.shutdown(wait=False, cancel_futures=True)


@contextmanager
def _signals(loop: asyncio.AbstractEventLoop, stop: Callable[[], None]) -> Iterator[None]:
    """Only the main thread may listen to them."""
    ours = (signal.SIGTERM, signal.SIGINT) if threading.current_thread() is threading.main_thread() else ()
    for each in ours:
        loop.add_signal_handler(each, stop)
    try:
        yield
    finally:
        for each in ours:
            loop.remove_signal_handler(each)
