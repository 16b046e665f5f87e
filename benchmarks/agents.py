"""How well agents are kept busy, and what agents cost that nobody speaks to.

**Rate**: prompts are ready for agents that take 2 s each and do one at a time, and the clock runs until the last one
has ended on disk. No program can be faster than the agents: prompts x seconds / agents is the limit, and every party
is held against it.

- **bare loop**: an asyncio program without a database that sends and polls, with the pauses that ours makes;
- **horarium**: the engine of a service as it is shipped, but for 50 prompts at a time (`launch_concurrency_by_kind`),
  in one process and, on PostgreSQL, in two.

The agents are real servers in a process of their own (`prompt_targets.py`). They count: a figure of prompts that were
sent twice, or two at a time, is worth nothing.

**Idle**: CPU seconds of `horarium worker`, and of PostgreSQL, in a minute without and with 10,000 agents.

**Claims**: how long the claim of one prompt takes without and with 10,000 agents.

    python benchmarks/agents.py [--prompts 500] [--agents 50] [--seconds 2] [--idle-agents 10000] [--only rate]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import count, repeat
from multiprocessing.synchronize import Barrier, Event
from pathlib import Path
from typing import Any

import prompt_targets
from ground import DIALECTS, console, database, load, progress, rest
from process import cpu_seconds, server_cpu_seconds, service
from rich.table import Table
from sqlalchemy import Connection, text

from horarium.engine.capacity import Capacity, Limits
from horarium.engine.claimer import Claimer, DispatcherOptions
from horarium.engine.loop import settle_in
from horarium.engine.ticker import Ticker
from horarium.features.agents import rows as agent_rows
from horarium.features.agents import service as agent_service
from horarium.features.schedules import service as schedule_service
from horarium.instant import MINUTE, Instant, to_datetime
from horarium.launchers.a2a.conversation import poll_pause
from horarium.platform.caller import internal
from horarium.platform.clock import SystemClock
from horarium.platform.database import Database
from horarium.platform.database.schema import DEFAULT_NAMESPACE
from horarium.platform.settings import Settings
from horarium.serve.preparers import preparers_with
from horarium.serve.service import Service, open_service

PARTS = ("rate", "idle", "claims")
TARGET = 1.3
PLACES = 50
_LOOK_SECONDS = 0.02
_START_SECONDS = 120
_SETTLE_SECONDS = 5
_CLAIMS = 200
_OPEN = "state IN ('ready', 'launching', 'running')"


@dataclass(frozen=True, slots=True)
class Work:
    prompts: int
    agents: int
    seconds: float

    @property
    def limit(self) -> float:
        return self.prompts * self.seconds / self.agents


def main() -> None:
    arguments = _arguments()
    settle_in()
    chosen = arguments.only or PARTS
    if "rate" in chosen:
        work = Work(arguments.prompts, arguments.agents, arguments.seconds)
        console.print(_rates(work, arguments.dialect or DIALECTS, arguments.processes or [1, 2]))
    if "idle" in chosen:
        console.print(_idle(arguments.idle_agents, arguments.idle_seconds))
    if "claims" in chosen:
        console.print(_claims(arguments.idle_agents))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prompts", type=int, default=500)
    parser.add_argument("--agents", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=2.0, help="that an agent takes for a prompt")
    parser.add_argument("--dialect", action="append", choices=DIALECTS)
    parser.add_argument("--processes", action="append", type=int, help="that serve; SQLite has one")
    parser.add_argument("--idle-agents", type=int, default=10_000)
    parser.add_argument("--idle-seconds", type=int, default=60)
    parser.add_argument("--only", action="append", choices=PARTS)
    return parser.parse_args()


# ── rate ─────────────────────────────────────────────────────────────────────────────────────────────


def _rates(work: Work, dialects: Sequence[str], processes: Sequence[int]) -> Table:
    table = Table(
        title=f"{work.prompts} prompts, {work.agents} agents, {work.seconds:g} s each: {work.limit:g} s at least; "
        f"load average before {load()}"
    )
    for heading in ("party", "database", "processes", "seconds", "of the limit", "target"):
        table.add_column(heading, justify="left" if heading in ("party", "database") else "right")
    bare = _with_agents(work, "bare loop", lambda urls: asyncio.run(_bare(work, urls)))
    table.add_row("bare loop", "–", "1", f"{bare:.2f}", f"{bare / work.limit:.3f}", "")
    for dialect in dialects:
        for number in processes if dialect == "postgresql" else [1]:
            took = _horarium(work, dialect, number)
            ratio = took / work.limit
            table.add_row("horarium", dialect, str(number), f"{took:.2f}", f"{ratio:.3f}", f"≤ {TARGET}")
    return table


def _with_agents(work: Work, party: str, measure: Callable[[list[str]], float]) -> float:
    """Seconds, of work that was done as it should be."""
    with tempfile.TemporaryDirectory(prefix="horarium-bench-") as folder:
        console.print(f"{party} …")
        with prompt_targets.agents(folder, work.agents, work.seconds) as urls:
            took = measure(urls)
            told = prompt_targets.counts(urls)
    assert told == (work.prompts, 0, 1), f"{party}: {told}"
    return took


async def _bare(work: Work, urls: Sequence[str]) -> float:
    """Each agent has one who sends it one prompt after the other."""
    started = time.perf_counter()
    names = count()

    async def serve(url: str, prompts: int) -> None:
        for _ in range(prompts):
            await _converse(url, f"m{next(names)}")

    share, more = divmod(work.prompts, work.agents)
    await asyncio.gather(*(serve(url, share + (number < more)) for number, url in enumerate(urls)))
    return time.perf_counter() - started


async def _converse(url: str, name: str) -> None:
    message = {"role": "ROLE_USER", "messageId": name, "contextId": name, "parts": [{"text": "hello"}]}
    sent = {"message": message, "configuration": {"returnImmediately": True}}
    task = (await _call(url, "SendMessage", sent))["task"]
    began = time.perf_counter()
    while task["status"]["state"] != "TASK_STATE_COMPLETED":
        await asyncio.sleep(poll_pause(time.perf_counter() - began))
        task = await _call(url, "GetTask", {"id": task["id"]})


async def _call(url: str, method: str, params: dict[str, Any]) -> dict[str, Any]:
    body = json.dumps({"jsonrpc": "2.0", "id": "1", "method": method, "params": params}).encode()
    reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))
    writer.write(
        b"POST / HTTP/1.1\r\nHost: agent\r\nA2A-Version: 1.0\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
    )
    answer = await reader.read()
    writer.close()
    result: dict[str, Any] = json.loads(answer.partition(b"\r\n\r\n")[2])["result"]
    return result


def _horarium(work: Work, dialect: str, processes: int) -> float:
    party = f"horarium, {dialect}, {processes}"
    with database(dialect) as opened:

        def measure(urls: list[str]) -> float:
            with _open(opened.url) as bench:
                _seed(bench, work, urls)
            return _together(opened, party, work.prompts, processes)

        took = _with_agents(work, party, measure)
        states = opened.read(lambda connection: connection.execute(text(_STATES)).all())
        assert [tuple(row) for row in states] == [("succeeded", work.prompts)], states
    return took


_STATES = "SELECT state, count(*) FROM runs GROUP BY state"


@dataclass(frozen=True, slots=True)
class _At:
    at: Instant

    def now(self) -> Instant:
        return self.at

    def monotonic(self) -> float:
        return time.monotonic()


def _seed(bench: Service, work: Work, urls: Sequence[str], *, capacity: int = 1) -> None:
    """So many agents, so many schedules, and of each schedule one run that is ready."""
    now = SystemClock().now()
    nominal = now - now % MINUTE
    at, caller = to_datetime(nominal), internal("bench")
    # Written a minute before it is due, and due again in a year.
    resources = replace(bench.resources, clock=_At(nominal - MINUTE))
    for number, url in enumerate(urls):
        agent_service.put(resources, caller, f"agent-{number}", {"url": url, "capacity": capacity})
    with progress() as bars:
        for number in bars.track(range(work.prompts), description="seeding"):
            document = {
                "schedule_id": f"prompt-{number}",
                "cron_expressions": [f"{at.minute} {at.hour} {at.day} {at.month} *"],
                "action": {"kind": "prompt", "prompt": "hello"},
                "assignee_type": "agent",
                "assignee_id": f"agent-{number % work.agents}",
                "approval_policy": {"requires_approval": False},
            }
            schedule_service.upsert(resources, caller, document)
    ticker = Ticker(bench.database, SystemClock(), "bench")
    while ticker.step().more:
        pass
    assert bench.database.read(_left) == work.prompts


def _together(opened: Database, party: str, prompts: int, processes: int) -> float:
    spawn = multiprocessing.get_context("spawn")
    ready, over = spawn.Barrier(processes + 1), spawn.Event()
    crowd = [spawn.Process(target=_serve, args=(opened.url, ready, over)) for _ in range(processes)]
    for each in crowd:
        each.start()
    with progress() as bars:
        bar = bars.add_task(party, total=prompts)
        ready.wait(_START_SECONDS)
        started = time.perf_counter()
        while left := opened.glance(_left):
            bars.update(bar, completed=prompts - left)
            time.sleep(_LOOK_SECONDS)
            assert all(each.is_alive() for each in crowd), "a process has ended before its work"
        seconds = time.perf_counter() - started
        bars.update(bar, completed=prompts)
    over.set()
    for each in crowd:
        each.join(_START_SECONDS)
    return seconds


def _left(connection: Connection) -> int:
    return int(connection.execute(text(f"SELECT count(*) FROM runs WHERE {_OPEN}")).scalar_one())


@contextmanager
def _open(url: str) -> Iterator[Service]:
    """As it is shipped, but for the prompts at a time; the agents are on this machine."""
    with tempfile.TemporaryDirectory(prefix="horarium-bench-") as folder:
        chosen: dict[str, Any] = {
            "data_dir": folder,
            "database": url,
            "allow_loopback_targets": True,
            "launch_concurrency_by_kind": {"prompt": PLACES},
        }
        with (
            (Path(folder) / "log").open("w", encoding="utf-8") as log,
            open_service(Settings(**chosen), log_to=log, key=b"horarium-bench") as opened,
        ):
            yield opened


def _serve(url: str, ready: Barrier, over: Event) -> None:
    settle_in()
    with _open(url) as bench:
        asyncio.run(_live(bench.engine, ready, over))


async def _live(engine: Any, ready: Barrier, over: Event) -> None:
    stop = asyncio.Event()
    await asyncio.to_thread(ready.wait, _START_SECONDS)
    running = asyncio.create_task(engine.run(stop))
    while not over.is_set():
        done, _ = await asyncio.wait([running], timeout=0.1)
        assert not done, "the engine has ended"
    stop.set()
    await running


# ── agents that nobody speaks to ─────────────────────────────────────────────────────────────────────


def _idle(stored: int, seconds: int) -> Table:
    table = Table(title=f"idle for {seconds} s, load average before {load()}")
    for heading in ("database", "agents", "CPU s, worker", "CPU s, database"):
        table.add_column(heading, justify="left" if heading == "database" else "right")
    for dialect in DIALECTS:
        for number in (0, stored):
            with database(dialect) as opened:
                opened.write(partial(_insert_agents, number=number))
                rest(opened)
                with service(opened, "worker") as living:
                    console.print(f"{dialect}: idle with {number:,} agents …")
                    time.sleep(_SETTLE_SECONDS)
                    before = _used(opened, living.pid)
                    time.sleep(seconds)
                    ours, theirs = (end - begin for begin, end in zip(before, _used(opened, living.pid), strict=True))
            table.add_row(dialect, f"{number:,}", f"{ours:.2f}", f"{theirs:.2f}" if dialect == "postgresql" else "–")
    return table


def _used(opened: Database, pid: int) -> tuple[float, float]:
    return cpu_seconds(pid), server_cpu_seconds(opened) if opened.dialect == "postgresql" else 0.0


def _insert_agents(connection: Connection, number: int) -> None:
    now = SystemClock().now()
    for each in range(number):
        name = f"idle-{each}"
        document = {"id": name, "url": f"https://agents.example.com/{name}", "capacity": 2}
        agent_rows.AGENTS.insert(connection, DEFAULT_NAMESPACE, name, document, now=now, parent_id=None)


def _claims(stored: int) -> Table:
    """Of one prompt at a time, of an agent that takes them all."""
    table = Table(title=f"the claim of one prompt, median of {_CLAIMS}, load average before {load()}")
    for heading in ("database", "agents", "ms", "of them processor time"):
        table.add_column(heading, justify="left" if heading == "database" else "right")
    for dialect in DIALECTS:
        for number in (0, stored):
            with database(dialect) as opened, _open(opened.url) as bench:
                opened.write(partial(_insert_agents, number=number))
                _seed(bench, Work(_CLAIMS, 1, 1.0), ["http://127.0.0.1:9"], capacity=_CLAIMS)
                rest(opened)
                took = [_claim(claimer) for claimer in repeat(_claimer(bench), _CLAIMS)]
            medians = (statistics.median(each) * 1e3 for each in zip(*took, strict=True))
            table.add_row(dialect, f"{number:,}", *(f"{each:.2f}" for each in medians))
    return table


def _claimer(bench: Service) -> Claimer:
    return Claimer(bench.database, SystemClock(), bench.registry, "bench", DispatcherOptions(), None, preparers_with())


def _claim(claimer: Claimer) -> tuple[float, float]:
    """On the wall, and of our processor time: a machine that others use lengthens the first only."""
    started, used = time.perf_counter(), time.process_time()
    claimed = claimer.claim(Capacity(Limits(process=1)), ())
    took = time.perf_counter() - started, time.process_time() - used
    assert len(claimed.taken) == 1
    return took


if __name__ == "__main__":
    main()
