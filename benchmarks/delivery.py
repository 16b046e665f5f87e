"""How fast decided runs are delivered: from `ready` to the end of each on disk, by a service as it is shipped.

The service is opened with its default settings, and its engine runs as in `horarium up`. The targets do next to
nothing, so that what is left is ours: claim, request, answer, settlement. The clock runs from the start of the
engine until the last run has ended on disk.

- **pull**: a run is done with when it lies on its queue, where a worker outside will find it;
- **python**: a task that returns at once, and its result is kept;
- **http**: one request to a server on loopback, in a process of its own, that answers at once.

Beside each stands a **bare loop** (`bare.py`), an asyncio program that claims the same runs 32 at a time and ends
them in the same steps with no thought in between: its update of the run, its event, its update of the position.
For http it makes the same calls, 32 at a time, without keeping connections, as we do. A hand-over to a queue
changes less than an end: what a loop can do that writes only as much stands beside it for information.

    python benchmarks/delivery.py [--runs 10000] [--rounds 3] [--dialect postgresql] [--kind http --kind pull]
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from typing import Any, TypeAlias

import bare
from ground import (
    DIALECTS,
    HERD,
    add_json_option,
    console,
    database,
    load,
    progress,
    seed_ready,
    write_figures,
)
from rich.table import Table
from sqlalchemy import Connection, text
from targets import answering

from horarium.engine.engine import Engine
from horarium.engine.loop import settle_in
from horarium.launchers.tasks import TaskRegistry
from horarium.platform.database import Database
from horarium.platform.settings import Settings
from horarium.serve.launchers import Bare
from horarium.serve.service import open_service

Party: TypeAlias = Callable[[Database, bare.Tell], float]
KINDS = ("pull", "python", "http")
# The state in which a run is done with.
DONE = {"pull": "queued", "python": "succeeded", "http": "succeeded"}
BARE: Mapping[str, Party] = {"pull": bare.end, "python": bare.end, "http": bare.call}
TARGETS = {
    ("postgresql", "pull"): 0.7,
    ("postgresql", "python"): 0.5,
    ("postgresql", "http"): 0.5,
    **{("sqlite", kind): 0.4 for kind in KINDS},
}
_INPUT = {"region": "eu", "size": 3}
_LOOK_SECONDS = 0.01
_TELL_SECONDS = 0.5


def main() -> None:
    arguments = _arguments()
    settle_in()
    table = Table(title=f"{arguments.runs:,} runs, load average before {load()}")
    for heading in ("database", "kind", "party", "runs/s", "of the bare loop", "target"):
        table.add_column(heading, justify="right" if heading in ("runs/s", "of the bare loop", "target") else "left")
    figures: dict[str, float] = {}
    for dialect in arguments.dialect or DIALECTS:
        for kind in arguments.kind or KINDS:
            rates = _compare(table, dialect, kind, arguments.runs, arguments.rounds)
            figures |= {f"{dialect} · {kind} · {party} · runs/s": rate for party, rate in rates.items()}
    console.print(table)
    write_figures(arguments.json, figures)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=1, help="medians of so many turns")
    parser.add_argument("--dialect", action="append", choices=DIALECTS)
    parser.add_argument("--kind", action="append", choices=KINDS)
    add_json_option(parser)
    return parser.parse_args()


def _compare(table: Table, dialect: str, kind: str, count: int, rounds: int) -> dict[str, float]:
    """The parties take turns; the ratio of each turn is what counts, since both suffer from what else goes on."""
    parties: dict[str, Party] = {
        "bare loop": BARE[kind],
        **({"bare hand-over": bare.queue} if kind == "pull" else {}),
        "horarium": lambda opened, tell: _horarium(opened, tell, DONE[kind]),
    }
    turns = [
        {party: _measured(dialect, kind, count, party, deliver) for party, deliver in parties.items()}
        for _ in range(rounds)
    ]
    rates = {party: statistics.median(turn[party] for turn in turns) for party in parties}
    for party, rate in rates.items():
        ratio = statistics.median(turn[party] / turn["bare loop"] for turn in turns)
        target = f"≥ {TARGETS[dialect, kind]}" if party == "horarium" else ""
        table.add_row(dialect, kind, party, f"{rate:,.0f}", f"{ratio:.2f}", target)
    return rates


def _measured(dialect: str, kind: str, count: int, party: str, deliver: Party) -> float:
    """Schedules fire beforehand; the clock runs for their delivery alone."""
    title = f"{dialect} {kind}: {party}"
    with (
        tempfile.TemporaryDirectory(prefix="horarium-bench-") as folder,
        answering(folder) if kind == "http" else nullcontext("") as url,
        database(dialect) as opened,
    ):
        action = _action(kind, url)
        seed_ready(opened, count, lambda number: action, title=f"{title}, seeding")
        assert opened.read(lambda connection: _count(connection, "ready")) == count
        with progress() as bars:
            bar = bars.add_task(title, total=count)
            seconds = deliver(opened, lambda done: bars.update(bar, completed=done))
        done = opened.read(lambda connection: _count(connection, "succeeded") + _count(connection, "queued"))
        assert done == count, f"{count - done} runs were not delivered"
    return count / seconds


def _action(kind: str, url: str) -> dict[str, Any]:
    if kind == "pull":
        return {**HERD["action"]}
    if kind == "python":
        return {"kind": "python", "task": "nothing", "input": _INPUT}
    return {"kind": "http", "url": f"{url}/hook", "input": _INPUT}


def _count(connection: Connection, state: str) -> int:
    found: int = connection.execute(
        text("SELECT count(*) FROM runs WHERE state = :state"), {"state": state}
    ).scalar_one()
    return found


# ── the service ──────────────────────────────────────────────────────────────────────────────────────


def _horarium(opened: Database, tell: bare.Tell, done: str) -> float:
    """As `horarium up` would, with the defaults; a schedule may call this machine, where the target is."""
    total = opened.read(lambda connection: _count(connection, "ready"))
    with tempfile.TemporaryDirectory(prefix="horarium-bench-") as folder:
        chosen: dict[str, Any] = {"data_dir": folder, "database": opened.url, "allow_loopback_targets": True}
        tasks = TaskRegistry()
        tasks.add(_nothing, name="nothing")
        with (
            (Path(folder) / "log").open("w", encoding="utf-8") as log,
            open_service(Settings(**chosen), application=Bare(tasks), log_to=log) as service,
        ):
            return asyncio.run(_until_done(service.engine, opened, tell, done, total))


async def _until_done(engine: Engine, opened: Database, tell: bare.Tell, done: str, total: int) -> float:
    """Seconds from the start of the engine; that it stops afterwards is not counted."""
    stop = asyncio.Event()
    started = told = time.perf_counter()
    running = asyncio.create_task(engine.run(stop))
    with ThreadPoolExecutor(1) as own:  # the threads of the loop are the engine's

        async def look(question: Callable[[Connection], int]) -> int:
            return await asyncio.get_running_loop().run_in_executor(own, lambda: opened.read(question))

        while not await look(lambda connection: _is_done(connection, done, total)):
            await asyncio.wait([running], timeout=_LOOK_SECONDS)
            assert not running.done(), "the engine has ended"
            if time.perf_counter() - told > _TELL_SECONDS:
                told = time.perf_counter()
                tell(await look(lambda connection: _count(connection, done)))
    seconds = time.perf_counter() - started
    tell(total)
    stop.set()
    await running
    return seconds


def _is_done(connection: Connection, done: str, total: int) -> bool:
    """Whether one is left is a glance into an index; they are counted only when none is."""
    left = connection.execute(text("SELECT run_id FROM runs WHERE state = 'ready' LIMIT 1")).first()
    return left is None and _count(connection, done) == total


def _nothing(region: str, size: int) -> int:
    return size


if __name__ == "__main__":
    main()
