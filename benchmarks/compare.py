"""Compare benchmarks of this checkout with those of another commit.

BASE is checked out into a temporary worktree. Each benchmark runs alternately in both checkouts (base, head, base,
head, …) with the same environment, and imports the package and the helpers of its own checkout. The table shows the
median of each side, their ratio, and the smallest and greatest value of each side. A ratio outside 5 % is marked; if
the ranges overlap, more rounds have to decide. Bare loops and other programs show the noise of the machine.

    python benchmarks/compare.py BASE [--only herd api] [--rounds 3] [--size 1] [--dialect postgresql]

The figures are those of `--json FILE`. If a benchmark of a commit lacks this option, they are read from the tables that
it prints, as precise as printed. The exit code is 1 if a benchmark failed or no figure could be compared.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parents[1]
DIALECTS = ("postgresql", "sqlite")
TOLERANCE = 0.05
LAST_LINES = 15
MIN_SECONDS = 0.2
STOP_SECONDS = 60

Sizes = Mapping[str, int | float]
# Small sizes, so that a comparison takes minutes.
SIZES: Mapping[str, Sizes] = {
    "herd": {"--schedules": 10_000, "--peer-jobs": 300},
    "delivery": {"--runs": 1_000},
    "trickle": {"--seconds": 10},
    "api": {"--schedules": 2_000, "--seconds": 0.5},
}
# The rounds are those of this program, so each run of a benchmark has one.
OPTIONS: Mapping[str, Sequence[str]] = {"api": ["--rounds", "1"]}
WITH_DIALECT = {"herd", "delivery", "api"}

# Rich assumes 80 columns for a file or pipe.
_console = Console(width=None if sys.stdout.isatty() else 160)
_progress = Console(stderr=True)


class BenchmarkFailed(Exception):
    pass


@dataclass(frozen=True, slots=True)
class Side:
    """A checkout, and the figures of its rounds by name."""

    name: str
    folder: Path
    figures: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    failures: dict[str, str] = field(default_factory=dict)
    printed: set[str] = field(default_factory=set)  # benchmarks without --json

    def environment(self) -> dict[str, str]:
        dropped = ("HORARIUM_", "PYTHONDONTWRITEBYTECODE", "FORCE_COLOR")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
        # Rich wraps a table that is wider than COLUMNS, which a fallback to printed figures could not read.
        plain = {"COLUMNS": "300", "NO_COLOR": "1", "TERM": "dumb", "PYTHONUTF8": "1"}
        return {**kept, **plain, "PYTHONPATH": str(self.folder / "src")}

    def run(self, words: Sequence[str]) -> str:
        child = subprocess.Popen(
            [sys.executable, *words],
            cwd=self.folder,
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,
        )
        try:
            output, _ = child.communicate()
        except BaseException:
            # A killed benchmark would leave its databases and services behind; an interrupted one removes them.
            os.killpg(child.pid, signal.SIGINT)
            child.communicate(timeout=STOP_SECONDS)
            raise
        if child.returncode:
            last = "\n".join(output.rstrip().splitlines()[-LAST_LINES:])
            raise BenchmarkFailed(f"exit code {child.returncode}:\n{last}")
        return output


def main() -> int:
    arguments = _arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so the worktree is removed
    commit = _git("rev-parse", "--verify", "--end-of-options", f"{arguments.base}^{{commit}}")
    with worktree(commit) as folder:
        sides = (Side("base", folder), Side("head", ROOT))
        for side in sides:
            _prepare(side)
        load = os.getloadavg()[0]
        for benchmark in arguments.only:
            _alternate(sides, benchmark, _words(benchmark, arguments), arguments.rounds)
    title = f"base {commit[:10]}, head {_git('describe', '--always', '--dirty', '--abbrev=10')}"
    compared = _print_table(sides, f"{title}, {arguments.rounds} rounds, load average before {load:.1f}")
    _print_gaps(sides)
    return 0 if compared and not any(side.failures for side in sides) else 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("base", metavar="BASE", help="a commit, branch or tag")
    parser.add_argument("--only", nargs="+", default=list(SIZES), help=f"names of files (default: {' '.join(SIZES)})")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each benchmark on each side (default 3)")
    parser.add_argument("--size", type=float, default=1.0, help="factor of the default sizes (default 1)")
    parser.add_argument("--dialect", action="append", choices=DIALECTS, help="one database (default: both)")
    arguments = parser.parse_args()
    if not arguments.base:
        parser.error("BASE is empty; name a commit, as in: make bench-compare BASE=main")
    if unknown := [name for name in arguments.only if not (ROOT / f"benchmarks/{name}.py").is_file()]:
        parser.error(f"no file benchmarks/{unknown[0]}.py")
    return arguments


def _words(benchmark: str, arguments: argparse.Namespace) -> list[str]:
    """Options of a benchmark; one without an entry in SIZES runs with its own defaults."""
    words = list(OPTIONS.get(benchmark, ()))
    for option, value in SIZES.get(benchmark, {}).items():
        scaled = value * arguments.size
        words += [option, str(max(MIN_SECONDS, scaled) if isinstance(value, float) else max(1, round(scaled)))]
    if benchmark in WITH_DIALECT:
        words += [word for dialect in arguments.dialect or DIALECTS for word in ("--dialect", dialect)]
    return words


# ── the checkouts ────────────────────────────────────────────────────────────────────────────────────


def _git(*words: str) -> str:
    ended = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    if ended.returncode:
        sys.exit(f"git {' '.join(words)}: {ended.stderr.strip()}")
    return ended.stdout.strip()


@contextmanager
def worktree(commit: str) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="horarium-bench-compare-") as scratch:
        folder = Path(scratch) / "base"
        _git("worktree", "add", "--quiet", "--detach", str(folder), commit)
        try:
            yield folder
        finally:
            _git("worktree", "remove", "--force", str(folder))


def _prepare(side: Side) -> None:
    """Compile the package, so no round includes it, and check that the side imports its own."""
    _progress.print(f"{side.name}: compiling {side.folder}")
    side.run(["-m", "compileall", "-q", "src", "benchmarks"])
    imported = side.run(["-c", "import horarium; print(horarium.__file__)"]).strip()
    if not Path(imported).resolve().is_relative_to(side.folder.resolve()):
        sys.exit(f"{side.name} imports {imported} instead of the package in {side.folder}")


# ── the rounds ───────────────────────────────────────────────────────────────────────────────────────


def _alternate(sides: Sequence[Side], benchmark: str, words: Sequence[str], rounds: int) -> None:
    for number in range(rounds):
        for side in sides:
            started = time.perf_counter()
            try:
                figures = _measure(side, benchmark, words)
            except BenchmarkFailed as failure:
                side.failures[f"{benchmark}, round {number + 1} of {rounds}"] = str(failure)
                outcome = "FAILED"
            else:
                for name, value in figures.items():
                    side.figures[f"{benchmark} · {name}"].append(value)
                outcome = f"{len(figures)} figures"
            seconds = time.perf_counter() - started
            _progress.print(f"{benchmark} {number + 1}/{rounds} {side.name}: {outcome}, {seconds:.0f} s")


def _measure(side: Side, benchmark: str, words: Sequence[str]) -> Mapping[str, float]:
    program = side.folder / f"benchmarks/{benchmark}.py"
    if not program.is_file():
        raise BenchmarkFailed(f"this commit has no benchmarks/{benchmark}.py")
    if "add_json_option(" not in program.read_text("utf-8"):
        side.printed.add(benchmark)
        return printed_figures(side.run([str(program), *words]))
    with tempfile.TemporaryDirectory(prefix="horarium-bench-compare-") as scratch:
        file = Path(scratch) / "figures.json"
        side.run([str(program), *words, "--json", str(file)])
        figures: dict[str, float] = json.loads(file.read_text("utf-8"))
        return figures


# ── figures in printed tables ────────────────────────────────────────────────────────────────────────

_NUMBER = re.compile(r"-?[\d,]+(\.\d+)?")
_TITLE = re.compile(rf"\s*({'|'.join(DIALECTS)}),")


def printed_figures(output: str) -> dict[str, float]:
    """Figures in the tables of Rich by name: the words before the first number, and the heading of the column.

    The names are those of `--json`. If a title begins with a database, so do the names of its table.
    """
    figures: dict[str, float] = {}
    headings: list[str] = []
    prefix: list[str] = []
    for line in output.splitlines():
        if line.startswith("└"):
            headings, prefix = [], []
        elif (title := _TITLE.match(line)) is not None:  # wrapped at the width of its table
            prefix = [title[1]]
        elif line.startswith("┃"):
            cells = _cells(line, "┃")
            wrapped = zip(headings, cells, strict=True) if headings else (("", cell) for cell in cells)
            headings = [" ".join(filter(None, parts)) for parts in wrapped]
        elif line.startswith("│") and headings:
            figures |= _row(prefix, headings, _cells(line, "│"))
    return figures


def _cells(line: str, border: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip(border).split(border)]


def _row(prefix: Sequence[str], headings: Sequence[str], cells: Sequence[str]) -> dict[str, float]:
    numbers = [_NUMBER.fullmatch(cell) is not None for cell in cells]
    first = numbers.index(True) if True in numbers else len(cells)
    words = [*prefix, *cells[:first]]
    return {
        " · ".join([*words, heading]): float(cell.replace(",", ""))
        for heading, cell, is_number in zip(headings, cells, numbers, strict=True)
        if is_number and heading not in ("load", "target", "fires")
    }


# ── the comparison ───────────────────────────────────────────────────────────────────────────────────


def _print_table(sides: Sequence[Side], title: str) -> int:
    base, head = sides
    table = Table(title=title)
    for heading in ("figure", "base", "head", "head / base", "base, min–max", "head, min–max", "outside 5 %"):
        table.add_column(heading, justify="left" if heading in ("figure", "outside 5 %") else "right")
    names = [name for name in base.figures if name in head.figures]
    for name in names:
        table.add_row(name, *comparison(name, base.figures[name], head.figures[name]))
    if names:
        _console.print(table)
    else:
        _tell(f"{title}: no figure of both sides")
    return len(names)


def comparison(name: str, base: Sequence[float], head: Sequence[float]) -> list[str]:
    """The cells of a row after its name."""
    medians = statistics.median(base), statistics.median(head)
    ratio = medians[1] / medians[0] if medians[0] else float("nan")
    mark = ""
    if not abs(ratio - 1) <= TOLERANCE:
        mark = _direction(name, ratio)
        if min(len(base), len(head)) == 1:
            mark += ", one round"
        elif min(head) <= max(base) and min(base) <= max(head):
            mark += ", ranges overlap"
    ranges = (f"{_shown(min(each))}–{_shown(max(each))}" for each in (base, head))
    return [*map(_shown, medians), f"{ratio:.2f}", *ranges, mark]


def _direction(name: str, ratio: float) -> str:
    if name.endswith("/s"):
        return "faster" if ratio > 1 else "SLOWER"
    if re.search(r"\b(ms|µs|s|seconds)\b", name.rpartition(" · ")[2]):
        return "SLOWER" if ratio > 1 else "faster"
    return "greater" if ratio > 1 else "less"


def _shown(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _print_gaps(sides: Sequence[Side]) -> None:
    """State which figures are not compared, and why."""
    for side, other in zip(sides, reversed(sides), strict=True):
        for name in sorted(side.printed):
            _tell(f"{side.name}: {name} has no --json; only figures that it prints are compared")
        measured = {name.partition(" · ")[0] for name in other.figures}
        for name in side.figures.keys() - other.figures.keys():
            benchmark = name.partition(" · ")[0]
            # What a table prints in addition to the figures of --json is not missing from the other side.
            if benchmark in measured and (benchmark not in side.printed or benchmark in other.printed):
                _tell(f"not compared, only {side.name} has it: {name}")
        for name, failure in side.failures.items():
            _tell(f"{side.name} FAILED: {name}: {failure}")


def _tell(text: str) -> None:
    _console.print(text, markup=False, highlight=False, soft_wrap=True)


if __name__ == "__main__":
    sys.exit(main())
