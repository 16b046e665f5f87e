"""What workflows cost: steps a second, what a large workflow costs a step, and what 100,000 open questions cost.

**Rate**: N runs of a workflow of five Python steps, one after the other, on PostgreSQL, from ready roots until the
last run has ended on disk. Three parties, each with two processes, take turns in one run:

- **horarium**: two processes, each with the engine of a service as it is shipped;
- **bare loop** (`bare_steps.py`): claims the same roots, 32 at a time, and writes the very same rows in the same
  steps, with no thought in between. Its rows are copies of those that one real run has left;
- **Celery** (`celery_peer.py`): its own `chain` of five tasks on Redis, with two workers of one process each.

**Size** (`workflow_sizes.py`): what one step costs in a workflow of 10, 100 and 1,000 nodes, in a chain whose nodes
take their `input` from the one before, and in a fan 1 → n - 2 → 1.

**Waiting** (`waiting.py`): the first page of the inbox, and a tick, with and without 100,000 open questions.

    python benchmarks/workflow.py [--runs 10000] [--rounds 1] [--nodes 1000] [--waiting 100000] [--only rate]
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from multiprocessing.synchronize import Barrier, Event
from typing import Any

import bare_steps
import celery_peer
import waiting
import workflow_sizes
from ground import console, database, load, progress, seed_ready
from rich.table import Table
from sqlalchemy import Connection, text
from workflow_service import open_bench, put_workflow, run_in_turn

from horarium.engine.loop import settle_in
from horarium.platform.database import Database, open_database
from horarium.platform.database.run_states import OPEN_ROOT

PROCESSES = 2
STEPS = celery_peer.STEPS
PARTS = ("rate", "size", "waiting")
TARGET = "≥ 1.0"
_LOOK_SECONDS = 0.02
_START_SECONDS = 120
_FIVE: Mapping[str, Any] = {
    "nodes": [
        {
            "id": f"step{number}",
            "needs": [] if number == 0 else [f"step{number - 1}"],
            "action": {"kind": "python", "task": "nothing"},
            "input": {"region": "eu", "size": {"$from": "/inputs/size"}},
        }
        for number in range(STEPS)
    ]
}
_ACTION: Mapping[str, Any] = {"kind": "workflow", "workflow_id": "five", "version": "latest", "input": {"size": 3}}


def main() -> None:
    arguments = _arguments()
    settle_in()
    chosen = arguments.only or PARTS
    if "rate" in chosen:
        console.print(_rates(arguments.runs, arguments.rounds))
    if "size" in chosen:
        console.print(workflow_sizes.measured(arguments.nodes))
    if "waiting" in chosen:
        console.print(waiting.measured(arguments.waiting))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=1, help="medians of so many turns")
    parser.add_argument("--nodes", type=int, default=1_000, help="of the largest workflow")
    parser.add_argument("--waiting", type=int, default=100_000)
    parser.add_argument("--only", action="append", choices=PARTS)
    return parser.parse_args()


def _rates(runs: int, rounds: int) -> Table:
    parties: Mapping[str, Callable[[int], float]] = {
        "bare loop": lambda count: _on_postgres("bare loop", count, bare_steps.work),
        "horarium": lambda count: _on_postgres("horarium", count, _serve),
        "Celery chain": _celery,
    }
    turns = [{party: rate(runs) for party, rate in parties.items()} for _ in range(rounds)]
    table = Table(title=f"{runs:,} runs of {STEPS} steps, {PROCESSES} processes each, load average before {load()}")
    for heading in ("party", "steps/s", "of the bare loop", "times Celery", "target"):
        table.add_column(heading, justify="left" if heading == "party" else "right")
    for party in parties:
        rate, bare, peer = (
            statistics.median(turn[party] / turn.get(other, 1.0) for turn in turns)
            for other in ("", "bare loop", "Celery chain")
        )
        target = TARGET if party == "horarium" else ""
        table.add_row(party, f"{rate:,.0f}", f"{bare:.2f}", f"{peer:.2f}", target)
    return table


def _celery(runs: int) -> float:
    with tempfile.TemporaryDirectory(prefix="horarium-bench-") as folder, _bar("Celery chain", runs) as tell:
        return celery_peer.rate(runs, PROCESSES, folder, tell)


@contextmanager
def _bar(title: str, total: int) -> Iterator[Callable[[int], None]]:
    with progress() as bars:
        bar = bars.add_task(title, total=total)
        yield lambda done: bars.update(bar, completed=done)


# ── on PostgreSQL ────────────────────────────────────────────────────────────────────────────────────


def _on_postgres(party: str, runs: int, work: Callable[[str, Barrier, Event], None]) -> float:
    """Steps a second. The roots are ready before the processes begin, and all of these before the clock runs."""
    with database("postgresql") as opened:
        with open_bench(opened) as bench:
            owner = put_workflow(bench, "five", _FIVE)
            run_in_turn(bench, "five", {"size": 3}, 1)
        seed_ready(opened, runs, lambda number: _ACTION, title=f"{party}, seeding", workflow_owner=owner)
        seconds = _together(opened, party, runs, work)
        _check(opened, runs)
    return runs * STEPS / seconds


def _together(opened: Database, party: str, runs: int, work: Callable[[str, Barrier, Event], None]) -> float:
    spawn = multiprocessing.get_context("spawn")
    ready, over = spawn.Barrier(PROCESSES + 1), spawn.Event()
    crowd = [spawn.Process(target=work, args=(opened.url, ready, over)) for _ in range(PROCESSES)]
    for each in crowd:
        each.start()
    with _bar(party, runs) as tell:
        ready.wait(_START_SECONDS)
        started = told = time.perf_counter()
        while opened.glance(_is_one_open):
            time.sleep(_LOOK_SECONDS)
            assert all(each.is_alive() for each in crowd), "a process has ended before its work"
            if time.perf_counter() - told > 1:
                told = time.perf_counter()
                tell(opened.glance(_roots_done))
        seconds = time.perf_counter() - started
        tell(runs)
    over.set()
    for each in crowd:
        each.join(_START_SECONDS)
    return seconds


def _is_one_open(connection: Connection) -> bool:
    return connection.execute(text(f"SELECT 1 FROM runs WHERE {OPEN_ROOT} LIMIT 1")).first() is not None


def _roots_done(connection: Connection) -> int:
    return int(
        connection.execute(
            text(f"SELECT count(*) FROM runs WHERE parent_run_id IS NULL AND NOT ({OPEN_ROOT})")
        ).scalar_one()
    )


def _check(opened: Database, runs: int) -> None:
    """A figure for work that was not done is worth nothing: all succeeded, and left what the one before them left."""
    states = opened.read(lambda connection: connection.execute(text(_STATES)).all())
    assert [tuple(row) for row in states] == [("succeeded", (runs + 1) * (STEPS + 1))], states
    kinds = opened.read(lambda connection: connection.execute(text(_EVENTS)).all())
    assert all(count == runs + 1 for _, _, count in kinds), kinds


_STATES = "SELECT state, count(*) FROM runs GROUP BY state"
_EVENTS = """
SELECT coalesce(runs.node_id, ''), event_type, count(*) FROM run_events JOIN runs USING (run_id)
WHERE event_type <> 'run.created' GROUP BY 1, 2
"""


def _serve(url: str, ready: Barrier, over: Event) -> None:
    settle_in()
    opened = open_database(url)
    with open_bench(opened) as bench:
        asyncio.run(_live(bench.engine, ready, over))
    opened.close()


async def _live(engine: Any, ready: Barrier, over: Event) -> None:
    stop = asyncio.Event()
    await asyncio.to_thread(ready.wait, _START_SECONDS)
    running = asyncio.create_task(engine.run(stop))
    while not over.is_set():
        done, _ = await asyncio.wait([running], timeout=0.1)
        assert not done, "the engine has ended"
    stop.set()
    await running


if __name__ == "__main__":
    main()
