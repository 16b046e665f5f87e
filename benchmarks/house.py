"""Print figures of the structure of the source next to earlier figures and goals.

A module counts for a request if the second request of its kind runs Python code of it in any thread, by
`sys.setprofile`, on the service of `horarium.testing`, whose own modules do not count. The requests are: create a
schedule, one tick with its dispatch, approve a run, and one node of a workflow from its dispatch to the next node.

    python benchmarks/house.py [FOLDER]

FOLDER is another checkout. The earlier figures were recorded for commit a41d18db. This program prints the same there,
except 67 modules of an approval, 85 of a workflow step, and other shares of docstrings: it also counts those that begin
with "When", "Where", "Why" or "Whoever". Rows without a program say "by hand".
"""

from __future__ import annotations

import argparse
import ast
import graphlib
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import quantiles
from types import FrameType
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from horarium.testing import TestService

ROOT = Path(__file__).resolve().parents[1]
START = "2026-03-01T00:00:30Z"

# Figure, earlier value, goal.
ROWS: Mapping[str, tuple[str, str]] = {
    "source lines": ("100,670", "≤ 87,000"),
    "source files": ("754", "≤ 480"),
    "import lines": ("10 %", "≤ 6 %"),
    "modules of POST /api/schedules": ("89", "≤ 50"),
    "modules of a fire": ("92", "≤ 55"),
    "modules of an approval": ("68", "≤ 35"),
    "modules of a workflow step": ("80", "≤ 45"),
    "public class names defined twice or more": ("176", "≤ 40"),
    "classes with such a name": ("393", ""),
    'module docstrings beginning with a question word or "Of"': ("66 %", "< 5 %"),
    'docstrings beginning with a question word or "Of"': ("28 %", "< 5 %"),
    "function length: median · 90 % · 99 %": ("6 · 18 · 39", ""),
    "files over 400 lines": ("0", "0"),
    "import cycles": ("0", "0"),
    "files for a route, its call and its command": ("8 in 8 packages", "3 in one folder"),
    "source files to add a run state · a visible column": ("5–24 · 9", "≤ 5 · ≤ 4"),
    "make test": ("23 min", "≤ 11 min"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT, metavar="FOLDER")
    root = parser.parse_args().folder.resolve()
    sys.path[:0] = [str(root / "src"), str(ROOT / "tests")]
    today = {**figures_of_source(sources(root)), **figures_of_requests(root / "src")}
    table = Table(title=f"structure of {root}")
    for heading in ("figure", "earlier", "today", "goal"):
        table.add_column(heading, justify="left" if heading == "figure" else "right")
    for figure, (earlier, goal) in ROWS.items():
        table.add_row(figure, earlier, today.pop(figure, "by hand"), goal)
    assert not today, f"figures without a row: {list(today)}"
    Console(width=None if sys.stdout.isatty() else 120).print(table)


# ── the source ───────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Source:
    module: str
    lines: int
    tree: ast.Module


def sources(root: Path) -> list[Source]:
    listed = subprocess.run(["git", "ls-files", "-z", "src/*.py"], cwd=root, capture_output=True, text=True, check=True)
    paths = [root / name for name in listed.stdout.split("\0") if name and (root / name).exists()]
    return [_source(path, root) for path in paths]


def _source(path: Path, root: Path) -> Source:
    text = path.read_text("utf-8")
    parts = path.relative_to(root / "src").with_suffix("").parts
    module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    return Source(module, text.count("\n"), ast.parse(text))


def figures_of_source(files: Sequence[Source]) -> dict[str, str]:
    nodes = [node for file in files for node in ast.walk(file.tree)]
    lines = sum(file.lines for file in files)
    imports = sum(_length(node) for node in nodes if isinstance(node, ast.Import | ast.ImportFrom))
    lengths = [_length(node) for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    cuts = quantiles(lengths, n=100)
    classes = Counter(node.name for node in nodes if isinstance(node, ast.ClassDef) and not node.name.startswith("_"))
    shared = [count for count in classes.values() if count > 1]
    return {
        "source lines": f"{lines:,}",
        "source files": f"{len(files)}",
        "import lines": f"{100 * imports / lines:.1f} %",
        "public class names defined twice or more": f"{len(shared)}",
        "classes with such a name": f"{sum(shared)}",
        'module docstrings beginning with a question word or "Of"': _questions([file.tree for file in files]),
        'docstrings beginning with a question word or "Of"': _questions(nodes),
        "function length: median · 90 % · 99 %": f"{cuts[49]:.0f} · {cuts[89]:.0f} · {cuts[98]:.0f}",
        "files over 400 lines": f"{sum(file.lines > 400 for file in files)}",
        "import cycles": _cycle(files),
    }


def _length(node: ast.stmt) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def _questions(nodes: Sequence[ast.AST]) -> str:
    from docs.banned_words import has_no_subject

    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    texts = [text for node in nodes if isinstance(node, documented) and (text := ast.get_docstring(node))]
    return f"{100 * sum(map(has_no_subject, texts)) / len(texts):.1f} %"


def _cycle(files: Sequence[Source]) -> str:
    """One cycle of imports at module level; imports in functions and for type checks do not count."""
    modules = {file.module for file in files}
    graph = {file.module: set(_imported(file.tree, modules)) - {file.module} for file in files}
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        return " → ".join(error.args[1])
    return "0"


def _imported(tree: ast.Module, modules: set[str]) -> Iterator[str]:
    for node in tree.body:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in modules)
        elif isinstance(node, ast.ImportFrom) and node.module in modules:
            for alias in node.names:
                child = f"{node.module}.{alias.name}"
                yield child if child in modules else node.module


# ── the requests ─────────────────────────────────────────────────────────────────────────────────────


class Entered:
    """Record the modules whose code runs, in all threads that start later."""

    def __init__(self, source: Path) -> None:
        self._source = f"{source}/"
        self._modules: set[str] | None = None

    def profile(self, frame: FrameType, event: str, _: Any) -> None:
        if self._modules is not None and event == "call" and frame.f_code.co_filename.startswith(self._source):
            self._modules.add(frame.f_globals["__name__"])

    @contextmanager
    def recorded(self) -> Iterator[set[str]]:
        found: set[str] = set()
        self._modules = found
        yield found
        self._modules = None
        found -= {module for module in found if module.startswith("horarium.testing")}


def figures_of_requests(source: Path) -> dict[str, str]:
    """The number of modules in the second request of each kind."""
    entered = Entered(source)
    # A thread takes the function over when it starts, so the services start afterwards.
    threading.setprofile(entered.profile)
    sys.setprofile(entered.profile)
    try:
        from horarium.testing import service

        found: dict[str, str] = {}
        for figure, request in REQUESTS.items():
            with service(at=START) as horarium:
                found[figure] = str(len(request(horarium, entered)))
        return found
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def _create(horarium: TestService, entered: Entered) -> set[str]:
    for number in range(2):
        document = {"schedule_id": f"report-{number}", "cron_expr": "* * * * *", "workflow_type": "report"}
        with entered.recorded() as modules:
            response = horarium.http().post("/api/schedules", json=document)
        response.raise_for_status()
    return modules


def _fire(horarium: TestService, entered: Entered) -> set[str]:
    horarium.create(schedule_id="report", cron_expr="* * * * *", workflow_type="report")
    horarium.settle()
    for number in range(2):
        horarium.clock.advance(60)
        with entered.recorded() as modules:
            horarium.parts.engine.ticker.step()
            _dispatch(horarium)
        _check(horarium, number + 1)
    return modules


def _approve(horarium: TestService, entered: Entered) -> set[str]:
    policy = {"requires_approval": True, "allow_requester": True}
    horarium.create(schedule_id="report", cron_expr="0 0 1 1 *", workflow_type="report", approval_policy=policy)
    http = horarium.http()
    for _ in range(2):
        run = http.post("/api/schedules/report/trigger", json={"overlap_policy": "allow_all"}).json()
        [approval] = http.get("/api/approvals").json()["approvals"]
        assert approval["run_id"] == run["run_id"]
        with entered.recorded() as modules:
            response = http.post(f"/api/approvals/{approval['approval_id']}/decision", json={"decision": "approve"})
        response.raise_for_status()
    return modules


def _run_a_step(horarium: TestService, entered: Entered) -> set[str]:
    action = {"kind": "http", "url": "http://example.com/"}
    nodes = [{"id": name, "needs": needs, "action": action} for name, needs in (("a", []), ("b", ["a"]), ("c", ["b"]))]
    http = horarium.http()
    http.put("/api/workflows/chain", json={"nodes": nodes}).raise_for_status()
    workflow = {"kind": "workflow", "workflow_id": "chain"}
    horarium.create(schedule_id="chain", cron_expr="0 0 1 1 *", action=workflow)
    http.post("/api/schedules/chain/trigger", json={}).raise_for_status()
    _dispatch(horarium)
    horarium.parts.engine.advancer.step()
    for number in range(2):
        with entered.recorded() as modules:
            _dispatch(horarium)
            horarium.parts.engine.advancer.step()
        _check(horarium, number + 1)
    return modules


REQUESTS: Mapping[str, Callable[[TestService, Entered], set[str]]] = {
    "modules of POST /api/schedules": _create,
    "modules of a fire": _fire,
    "modules of an approval": _approve,
    "modules of a workflow step": _run_a_step,
}


def _dispatch(horarium: TestService) -> None:
    horarium._loop.run(horarium.parts.engine.dispatcher.step())


def _check(horarium: TestService, deliveries: int) -> None:
    """Reject a figure of other work."""
    if len(horarium.launcher.deliveries) != deliveries:
        raise RuntimeError(f"{len(horarium.launcher.deliveries)} deliveries instead of {deliveries}")


if __name__ == "__main__":
    main()
