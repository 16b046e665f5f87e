"""Plant known defects in a copy of the tree, and report which of them the tests catch.

    python tests/mutants.py --check                 verify that all defects can be planted
    python tests/mutants.py [NUMBER…]               plant each defect, run its tests, print the outcome
    python tests/mutants.py --json tests/mutants.json
                                                    store the outcomes as well; those of other numbers stay
    python tests/mutants.py --clean [NUMBER…]       run the same tests without a defect first

The checkout itself is never changed. The defects are in `mutant_table.py`; `mutants.json` has the last stored outcomes.
"""

from __future__ import annotations

import argparse
import ast
import ctypes
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

from mutant_table import MOVED, MUTANTS, Mutant

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = Path("src/horarium")
TIME_LIMIT_SECONDS = 300
_STOP_SECONDS = 30
_PR_SET_CHILD_SUBREAPER = 36
# Ignored by git, but the service serves it.
_BUILT = PACKAGE / "static"
_OPTIONS = ("-x", "-q", "-p", "no:randomly", "-p", "no:cacheprovider")
_TEST_NAME = re.compile(r"def (test_\w+)")
_OPERATORS = frozenset({"and", "or", "not"})
DIALECTS = ("sqlite", "postgresql")
_FAILED = re.compile(r"^(?:FAILED|ERROR) (tests/[^:\s]+)", re.MULTILINE)


class CannotPlant(Exception):
    """A defect whose function or pattern is missing or ambiguous."""


# ── lookup ───────────────────────────────────────────────────────────────────────────────────────────────────────


class Span(NamedTuple):
    """The text of a definition, from its first character to the one after its last."""

    start: int
    stop: int


def definitions(source: str) -> dict[str, list[Span]]:
    """Return the functions, classes and named values of a module by qualified name."""
    # `ast` counts columns in bytes, and a line ends only where the tokenizer ends it.
    begins = [0]
    for line in re.split(r"(?<=\n)", source):
        begins.append(begins[-1] + len(line))
    found: dict[str, list[Span]] = {}

    def visit(nodes: Sequence[ast.stmt], prefix: str) -> None:
        for node in nodes:
            match node:
                case ast.ClassDef(name=name, body=body):
                    visit(body, f"{prefix}{name}.")
                case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                    pass
                case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                    pass
                case _:
                    continue
            assert node.end_lineno is not None  # the source was parsed from a file
            found.setdefault(prefix + name, []).append(Span(begins[node.lineno - 1], begins[node.end_lineno]))

    visit(ast.parse(source).body, "")
    return found


class Place(NamedTuple):
    """A planted defect: the file, its text and the text with the defect."""

    path: Path
    before: str
    after: str


class Sources:
    """The modules of one tree."""

    def __init__(self, root: Path, moved: Mapping[str, str] = MOVED) -> None:
        self._root = root
        self._moved = moved
        self._known: dict[Path, tuple[str, dict[str, list[Span]]]] = {}

    def place(self, mutant: Mutant) -> Place:
        """Find the one place of a defect; raise CannotPlant where there is none or more than one."""
        path = self._find(mutant)
        source, defined = self._read(path)
        (span,) = defined[mutant.name]
        text = source[span.start : span.stop]
        if (count := text.count(mutant.old)) != 1:
            raise CannotPlant(f"{_named(mutant)}: the pattern occurs {count} times in {path}: {mutant.old!r}")
        after = source[: span.start] + text.replace(mutant.old, mutant.new) + source[span.stop :]
        ast.parse(after)
        return Place(path, source, after)

    def _find(self, mutant: Mutant) -> Path:
        """Return the file of the module, otherwise the only one that defines the name."""
        path = self._root / PACKAGE / f"{self._moved.get(mutant.module, mutant.module)}.py"
        if path.exists() and len(self._read(path)[1].get(mutant.name, ())) == 1:
            return path
        others = sorted(each for each in (self._root / PACKAGE).rglob("*.py") if mutant.name in self._read(each)[1])
        if len(others) != 1 or len(self._read(others[0])[1][mutant.name]) != 1:
            where = ", ".join(str(each.relative_to(self._root)) for each in others) or "no module"
            raise CannotPlant(f"{_named(mutant)} is not in its module, and is defined in {where}; add it to MOVED")
        return others[0]

    def _read(self, path: Path) -> tuple[str, dict[str, list[Span]]]:
        if path not in self._known:
            source = path.read_text("utf-8")
            self._known[path] = source, definitions(source)
        return self._known[path]


def _named(mutant: Mutant) -> str:
    return f"{mutant.module}:{mutant.name}"


def selection(mutant: Mutant, moved: Mapping[str, str] = MOVED) -> list[str]:
    return [f"tests/{moved.get(each, each)}" for each in mutant.tests]


def problems(root: Path = ROOT, moved: Mapping[str, str] = MOVED) -> list[str]:
    """Return what keeps defects of the table from being planted, and tests that do not exist."""
    sources = Sources(root, moved)
    found: list[str] = []
    for number, mutant in enumerate(MUTANTS, 1):
        try:
            sources.place(mutant)
        except (CannotPlant, SyntaxError) as wrong:
            found.append(f"{number}: {wrong}")
        found += [f"{number}: {wrong}" for wrong in _problems_of_tests(root, mutant, moved)]
    return found


def _problems_of_tests(root: Path, mutant: Mutant, moved: Mapping[str, str]) -> Iterator[str]:
    """Yield files that do not exist, and words of the keyword that no test of them has in its name."""
    paths = [root / each for each in selection(mutant, moved)]
    yield from (f"{each.relative_to(root)} does not exist" for each in paths if not each.exists())
    files = [file for each in paths for file in (each.rglob("test_*.py") if each.is_dir() else [each]) if file.exists()]
    names = " ".join(name for file in files for name in _TEST_NAME.findall(file.read_text("utf-8")))
    for word in set(re.findall(r"\w+", mutant.keyword)) - _OPERATORS - set(DIALECTS):
        if word not in names:
            yield f"no test in {', '.join(mutant.tests)} has {word!r} in its name"


# ── execution ────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Result:
    """The outcome of one mutant: caught, survived, timeout or error; `by` is the test file that failed."""

    number: int
    function: str
    defect: str
    outcome: str
    by: str | None
    seconds: float


@contextmanager
def copied_tree() -> Iterator[Path]:
    """Copy what git knows, with local changes, to a temporary directory."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    with tempfile.TemporaryDirectory(prefix="horarium-mutants-") as name:
        copy = Path(name)
        for each in filter(None, listed.stdout.decode().split("\0")):
            if (ROOT / each).is_file():
                (copy / each).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / each, copy / each)
        if (ROOT / _BUILT).is_dir():
            shutil.copytree(ROOT / _BUILT, copy / _BUILT)
        yield copy


@contextmanager
def planted(place: Place) -> Iterator[None]:
    """Write the defect, and the original text at the end."""
    _write(place.path, place.after)
    try:
        yield
    finally:
        _write(place.path, place.before)


def _write(path: Path, text: str) -> None:
    path.write_text(text, "utf-8")
    # A stored bytecode counts as current if size and second are the same.
    for stale in (path.parent / "__pycache__").glob(f"{path.stem}.*"):
        stale.unlink()


@dataclass(frozen=True, slots=True)
class Effort:
    """The time limit of each run of pytest, in seconds, and its number of workers; 0 = in one process."""

    limit: float = TIME_LIMIT_SECONDS
    workers: int = 2


def run_tests(copy: Path, tests: Sequence[str], keyword: str, effort: Effort) -> tuple[int | None, str]:
    """Return exit code and output of pytest; no code after the time limit."""
    environment = {**os.environ, "PYTHONPATH": str(copy / "src")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    chosen = ["-k", keyword] if keyword else []
    workers = ["-n", str(effort.workers)]
    command = [sys.executable, "-m", "pytest", *_OPTIONS, *workers, *chosen, *tests]
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            command, cwd=copy, env=environment, stdout=output, stderr=output, start_new_session=True
        )
        code: int | None = None
        try:
            code = process.wait(effort.limit)
        except subprocess.TimeoutExpired:
            pass
        finally:
            _stop(process)
        output.seek(0)
        return code, output.read().decode("utf-8", "replace")


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End pytest so that it stops the servers that it started, then what a defect or a time limit left running."""
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            process.wait(_STOP_SECONDS)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    while orphans := _children():
        for each in orphans:
            os.kill(each, signal.SIGKILL)
            os.waitpid(each, 0)


def adopt_orphans() -> None:
    """Become the parent of descendants that lose theirs, where the system is Linux."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _children() -> list[int]:
    listed = Path(f"/proc/self/task/{os.getpid()}/children")
    return [int(each) for each in listed.read_text().split()] if listed.exists() else []


def try_mutant(copy: Path, number: int, mutant: Mutant, effort: Effort) -> Result:
    began = time.monotonic()
    with planted(Sources(copy).place(mutant)):
        code, output = run_tests(copy, selection(mutant), mutant.keyword, effort)
    failed = _FAILED.search(output)
    match code:
        case None:
            outcome = "timeout"
        case 0:
            outcome = "survived"
        case 1 | 2 if failed is not None:
            outcome = "caught"
        case _:
            outcome = "error"
            print(output[-4_000:], file=sys.stderr)
    seconds = round(time.monotonic() - began, 1)
    return Result(number, _named(mutant), mutant.defect, outcome, failed and failed[1], seconds)


def run_clean(copy: Path, chosen: Sequence[int], effort: Effort) -> bool:
    """Run the tests of the chosen mutants without a defect; return whether all pass."""
    selections = dict.fromkeys((tuple(selection(MUTANTS[each - 1])), MUTANTS[each - 1].keyword) for each in chosen)
    passed = True
    for tests, keyword in selections:
        code, output = run_tests(copy, tests, keyword, effort)
        if code != 0:
            passed = False
            print(f"fails without a defect: {' '.join(tests)}\n{output[-4_000:]}", file=sys.stderr)
    return passed


def store(file: Path, results: Sequence[Result]) -> None:
    """Write the outcomes with the commit, one mutant per line; keep those of other numbers."""
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, check=True, capture_output=True, text=True)
    known = json.loads(file.read_text("utf-8"))["mutants"] if file.exists() else []
    rows = {row["number"]: row for row in known if row["number"] <= len(MUTANTS)}
    rows |= {each.number: asdict(each) for each in results}
    lines = ",\n".join(f"    {json.dumps(rows[number])}" for number in sorted(rows))
    file.write_text(f'{{\n  "commit": "{head.stdout.strip()}",\n  "mutants": [\n{lines}\n  ]\n}}\n', "utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    """Return 0 if every chosen defect can be planted and is caught, otherwise 1."""
    parser = argparse.ArgumentParser(description="Plant known defects in a copy of the tree and run their tests.")
    parser.add_argument("numbers", nargs="*", type=int, metavar="NUMBER", help="numbers of defects (default: all)")
    parser.add_argument("--check", action="store_true", help="only verify that all defects can be planted")
    parser.add_argument("--clean", action="store_true", help="run the tests without a defect first")
    parser.add_argument("--json", type=Path, metavar="FILE", help="store the outcomes in this file")
    parser.add_argument(
        "--limit",
        type=float,
        default=TIME_LIMIT_SECONDS,
        metavar="SECONDS",
        help="time limit of each run (default 300)",
    )
    parser.add_argument(
        "--workers", type=int, default=2, metavar="N", help="workers of pytest; 0 = one process (default 2)"
    )
    given = parser.parse_args(arguments)
    effort = Effort(given.limit, given.workers)
    chosen = given.numbers or range(1, len(MUTANTS) + 1)
    if not all(1 <= each <= len(MUTANTS) for each in chosen):
        parser.error(f"numbers are from 1 to {len(MUTANTS)}")
    wrong = problems()
    print(*wrong, sep="\n", end="\n" if wrong else "")
    if given.check or wrong:
        print(f"{len(MUTANTS)} defects, {len(wrong)} problems")
        return 1 if wrong else 0
    results: list[Result] = []
    adopt_orphans()
    with copied_tree() as copy:
        if given.clean and not run_clean(copy, chosen, effort):
            return 1
        for number in chosen:
            result = try_mutant(copy, number, MUTANTS[number - 1], effort)
            results.append(result)
            about = f"{result.function}: {result.by or result.defect}"
            print(f"{number:2} {result.outcome:8} {result.seconds:6.1f} s  {about}")
            sys.stdout.flush()
            if given.json is not None:
                store(given.json, results)
    counts = {
        outcome: sum(each.outcome == outcome for each in results)
        for outcome in ("caught", "survived", "timeout", "error")
    }
    total = sum(each.seconds for each in results)
    print(", ".join(f"{count} {outcome}" for outcome, count in counts.items()) + f", {total:.0f} s")
    return 0 if counts["caught"] == len(results) else 1


def _terminated(number: int, _frame: object) -> None:
    """Leave through the cleanup, which ends pytest and removes the copy."""
    sys.exit(128 + number)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, _terminated)
    sys.exit(main())
