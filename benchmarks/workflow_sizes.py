"""What one step costs in workflows of different sizes: the same number of steps in all, in runs one after the other."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from ground import console, database, load
from process import server_cpu_seconds
from rich.table import Table
from sqlalchemy import text
from workflow_service import open_bench, put_workflow, run_in_turn

from horarium.platform.database import Database

_ACTION: Mapping[str, Any] = {"kind": "python", "task": "nothing"}
# A step of the largest may cost at most so many times a step of the smallest.
MOST = 2.0


def _chain(size: int) -> dict[str, Any]:
    """Each takes its input from the one before."""
    first: dict[str, Any] = {"id": "n0", "action": _ACTION, "input": {"size": {"$from": "/inputs/size"}}}
    rest = [
        {
            "id": f"n{number}",
            "needs": [f"n{number - 1}"],
            "action": _ACTION,
            "input": {"size": {"$from": f"/results/n{number - 1}/size"}},
        }
        for number in range(1, size)
    ]
    return {"nodes": [first, *rest]}


def _fan(size: int) -> dict[str, Any]:
    """One, then all the others side by side, then one that waits for them."""
    middle = [f"n{number}" for number in range(1, size - 1)]
    nodes = [{"id": "n0", "action": _ACTION}]
    nodes += [{"id": name, "needs": ["n0"], "action": _ACTION, "input": {"of": name}} for name in middle]
    return {"nodes": [*nodes, {"id": "last", "needs": middle, "action": _ACTION, "input": {"of": "all"}}]}


_SHAPES: Mapping[str, Callable[[int], dict[str, Any]]] = {"chain": _chain, "fan": _fan}


def measured(most: int) -> Table:
    """Processor time is what is compared: in a chain each step waits for the one before, and the processor for both."""
    sizes = [size for size in (10, 100, 1_000) if size <= most]
    table = Table(title=f"a step in a workflow of n nodes, PostgreSQL, load average before {load()}")
    for heading in (
        "shape",
        "nodes",
        "runs",
        "ms a step",
        "ours, CPU ms",
        "server, CPU ms",
        "of the smallest",
        "target",
    ):
        table.add_column(heading, justify="left" if heading == "shape" else "right")
    for shape, make in _SHAPES.items():
        smallest = 0.0
        for size in sizes:
            wall, ours, server = _cost(shape, make(size), size, max(1, most // size))
            smallest = smallest or ours + server
            figures = (f"{value * 1_000:.2f}" for value in (wall, ours, server))
            ratio = (ours + server) / smallest
            target = f"≤ {MOST}" if size == sizes[-1] else ""
            table.add_row(shape, f"{size:,}", f"{max(1, most // size)}", *figures, f"{ratio:.2f}", target)
    return table


def _cost(shape: str, document: dict[str, Any], size: int, runs: int) -> tuple[float, float, float]:
    """Seconds for one step: on the wall, of this process, of the server."""
    console.print(f"{shape} of {size:,}, {runs} runs")
    with database("postgresql") as opened, open_bench(opened) as service:
        put_workflow(service, "large", document)
        before = time.perf_counter(), time.process_time(), server_cpu_seconds(opened)
        run_in_turn(service, "large", {"size": 3}, runs)
        after = time.perf_counter(), time.process_time(), server_cpu_seconds(opened)
        _check(opened, runs * (size + 1))
    wall, ours, server = ((end - begin) / (runs * size) for begin, end in zip(before, after, strict=True))
    return wall, ours, server


def _check(opened: Database, wanted: int) -> None:
    states = opened.read(
        lambda connection: connection.execute(text("SELECT state, count(*) FROM runs GROUP BY state")).all()
    )
    assert [tuple(row) for row in states] == [("succeeded", wanted)], states
