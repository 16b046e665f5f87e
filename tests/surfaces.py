"""Compare the public surfaces of this checkout with those of another commit.

    python tests/surfaces.py BASE               print what differs, by surface; exit code 1 if anything does
    python tests/surfaces.py BASE --only help   compare only the surfaces named, separated by commas
    python tests/surfaces.py --json             print the surfaces of this checkout

A reorganisation of the source moves modules and changes no surface. So everything here is found by its public name: the
entry point of the program, `horarium.testing`, what the documentation imports, and the pages that the other checkout
generates itself.
"""

from __future__ import annotations

import argparse
import ast
import asyncio
import contextlib
import importlib
import inspect
import io
import json
import os
import re
import sqlite3
import subprocess
import sys
import tempfile
import threading
import tomllib
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import unified_diff
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
# What the surfaces are read from; the browser interface is built and has no surface of its own.
_FOLDERS = ("src", "docs", "README.md", "pyproject.toml")
_PACKAGE = "horarium"
_LEVELS = frozenset({"debug", "info", "warning", "error", "exception", "critical"})
_MISSING = "–"
_MAX_SHOWN = 200

Surface = Mapping[str, Any]


# ── HTTP ─────────────────────────────────────────────────────────────────────────────────────────────


def openapi(root: Path) -> Surface:
    """Return the OpenAPI document as the service publishes it."""
    from horarium.testing import service

    with service() as running, running.http(token=None) as client:
        found: dict[str, Any] = client.get("/openapi.json").json()
    return found


def routes(root: Path) -> Surface:
    """Return all routes with their methods, including those that the OpenAPI document hides."""
    from horarium import Horarium

    async def listed(directory: str) -> list[Any]:
        async with Horarium(data_dir=Path(directory), log_level="error") as app:
            return [*app.api.routes]

    with tempfile.TemporaryDirectory() as directory:
        found = asyncio.run(listed(directory))
    by_path: dict[str, set[str]] = {}
    for each in found:
        by_path.setdefault(getattr(each, "path", str(each)), set()).update(getattr(each, "methods", None) or ())
    return {path: sorted(methods) for path, methods in by_path.items()}


# ── command line ─────────────────────────────────────────────────────────────────────────────────────


def commands(root: Path) -> Surface:
    """Return the parameters of every command, hidden ones too."""
    return {" ".join(path): _parameters(command) for path, command in _commands(_program(root).tree, ())}


def help_texts(root: Path) -> Surface:
    """Return what `--help` prints for every command and group."""
    program = _program(root)
    topics = [("help",), ("help", "commands"), ("help", "options")]
    asked = [(*path, "--help") for path, _ in _commands(program.tree, ())] + topics
    return {" ".join(each): program.run(*each).printed.splitlines() for each in asked}


def exit_codes(root: Path) -> Surface:
    """Return the exit codes of commands that need no server, and of one for each status of a server."""
    program = _program(root)
    offline = {
        "--version": ("--version",),
        "lint, nothing found": ("lint", "0 12 * * *"),
        "lint, never fires": ("lint", "0 0 30 2 *"),
        "next, not a cron expression": ("next", "nonsense"),
        "unknown command": ("nonsense",),
        "unknown option": ("lint", "--nonsense"),
        "nothing listens": ("schedule", "list", "--server", "http://127.0.0.1:9", "--token", "t"),
    }
    found: dict[str, Any] = {name: program.run(*typed).code for name, typed in offline.items()}
    for status in (400, 401, 403, 404, 409, 410, 412, 413, 422, 429, 500, 503):
        with _server_that_answers(status) as url:
            asked = program.run("schedule", "describe", "nightly", "--server", url, "--token", "t")
        found[f"a server answers {status}"] = asked.code
    return found


class _Ran(NamedTuple):
    code: int
    printed: str


class _Program(NamedTuple):
    """The program behind the script of the package: its function, and the tree of its commands."""

    main: Callable[[Sequence[str]], int]
    tree: Any

    def run(self, *typed: str) -> _Ran:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            code = self.main(typed)
        return _Ran(code, printed.getvalue())


def _program(root: Path) -> _Program:
    from typer.main import get_command

    module, _, function = _project(root)["scripts"][_PACKAGE].partition(":")
    loaded = importlib.import_module(module)
    return _Program(getattr(loaded, function), get_command(loaded.app))


def _commands(command: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    yield path, command
    for name, child in sorted(getattr(command, "commands", {}).items()):
        yield from _commands(child, (*path, name))


def _parameters(command: Any) -> dict[str, Any]:
    found: dict[str, Any] = {"(hidden)": command.hidden}
    for each in command.params:
        names = [*each.opts, *each.secondary_opts]
        found[" ".join(names)] = {
            "type": _plain(each.type_descriptor.annotation),
            "default": _plain(each.default),
            "required": each.required,
            "multiple": getattr(each, "multiple", False),
            "variable": each.envvar,
            "help": getattr(each, "help", None),
        }
    return found


@contextlib.contextmanager
def _server_that_answers(status: int) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("content-type", "application/problem+json")
            self.send_header("connection", "close")
            self.end_headers()
            self.wfile.write(b'{"message": "no"}')

        def log_message(self, *_: Any) -> None:
            """Write nothing."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


# ── pages that the checkout generates ────────────────────────────────────────────────────────────────


def generated_page(name: str) -> Callable[[Path], Surface]:
    """Return a function that reads the rows of the tables of a generated page, by heading and first cell."""

    def rows(root: Path) -> Surface:
        heading, found = "", dict[str, Any]()
        for line in _generator(root).PAGES[name]().splitlines():
            if line.startswith("#"):
                heading = line.lstrip("# ")
            elif line.startswith("| ") and not line.startswith("| ---"):
                cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
                found[f"{heading}: {cells[0]}"] = cells[1:]
        return found

    return rows


def setting_types(root: Path) -> Surface:
    """Return the type of each setting; the generated page has name, default, variable and help."""
    fields = _generator(root).Settings.model_fields
    return {name: _plain(field.annotation) for name, field in fields.items()}


def _generator(root: Path) -> Any:
    folder = str(root / "docs")
    if folder not in sys.path:
        sys.path.insert(0, folder)
    return importlib.import_module("generate")


# ── log ──────────────────────────────────────────────────────────────────────────────────────────────


class LogCall(NamedTuple):
    path: Path
    line: int
    level: str
    name: str


def log_calls(package: Path) -> Iterator[LogCall]:
    """Find the calls of a logger whose first argument is a literal, and the names that `Trouble` gives to events."""
    for path in sorted(package.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call):
                level, arguments = _names_of(node)
                for each in arguments:
                    if isinstance(each, ast.Constant) and isinstance(each.value, str):
                        yield LogCall(path, node.lineno, level, each.value)


def _names_of(call: ast.Call) -> tuple[str, list[ast.expr]]:
    match call.func:
        case ast.Name(id="Trouble"):
            return "trouble", call.args[1:3]
        case ast.Attribute(attr=level, value=receiver) if level in _LEVELS and "log" in ast.unparse(receiver).lower():
            return level, call.args[:1]
    return "", []


def log_events(root: Path) -> Surface:
    """Return the names of log lines with their levels."""
    found: dict[str, set[str]] = {}
    for call in log_calls(root / "src" / _PACKAGE):
        found.setdefault(call.name, set()).add(call.level)
    return {name: sorted(levels) for name, levels in found.items()}


# ── database ─────────────────────────────────────────────────────────────────────────────────────────


def sqlite_schema(root: Path) -> Surface:
    """Return the SQL of a database that `horarium migrate` has just made, with the revisions in it."""
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "horarium.db"
        ran = _program(root).run("migrate", "--database", f"sqlite:///{file}")
        if ran.code:
            raise RuntimeError(ran.printed)
        with contextlib.closing(sqlite3.connect(file)) as connection:
            rows = connection.execute("SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
            revision = connection.execute("SELECT * FROM alembic_version").fetchall()
    return {f"{kind} {name}": re.sub(r"\s+", " ", sql) for kind, name, sql in rows} | {"revision": revision}


def postgres_schema(root: Path) -> Surface:
    """Return the SQL of the tables that the program knows, wherever they are defined, for PostgreSQL."""
    from sqlalchemy import MetaData
    from sqlalchemy.dialects import postgresql
    from sqlalchemy.schema import CreateIndex, CreateTable

    importlib.import_module("horarium.testing")  # and with it all tables
    dialect = postgresql.dialect()  # type: ignore[no-untyped-call]  # SQLAlchemy gives it no types
    # Migrations have tables of their own, with the same names: only those of the program count.
    modules = [module for name, module in sys.modules.items() if re.match(r"horarium\b(?!.*\bmigrations\b)", name)]
    listed = [value for module in modules for value in vars(module).values() if isinstance(value, MetaData)]
    found: dict[str, Any] = {}
    for table in (table for metadata in listed for table in metadata.tables.values()):
        found[f"table {table.name}"] = str(CreateTable(table).compile(dialect=dialect)).strip().splitlines()
        for index in table.indexes:
            found[f"index {index.name}"] = str(CreateIndex(index).compile(dialect=dialect)).strip()
    return found


# ── Python ───────────────────────────────────────────────────────────────────────────────────────────

# Names that users are promised besides those in the documentation. A module alone stands for its public names.
PROMISED = (
    "horarium",
    "horarium.celery",
    "horarium.celery.report_to",
    "horarium.client.errors",
    "horarium.condition",
    "horarium.launchers.launcher",
    "horarium.core.lifecycle.outcome",
    "horarium.testing",
)
_IMPORT = re.compile(
    r"^(?:>>> |\.\.\. )? *(?:from (horarium[\w.]*) import ([\w, ]+)|import (horarium[\w.]*))", re.MULTILINE
)
_MENTION = re.compile(r"`(horarium(?:\.\w+)+)")
_FILES = (".db", ".log", ".toml")


def documented(root: Path) -> set[str]:
    """Return the names that Python examples of the documentation import."""
    found: set[str] = set()
    for text in _texts(root):
        for module, names, alone in _IMPORT.findall(text):
            found |= {f"{module}.{name.split(' as ')[0].strip()}" for name in names.split(",")} if module else {alone}
    return found


def mentioned(root: Path) -> set[str]:
    """Return what the documentation writes as `horarium.x`: names to import, and members of a variable `horarium`."""
    return {name for text in _texts(root) for name in _MENTION.findall(text) if not name.endswith(_FILES)}


def found_at(name: str) -> Any:
    """Return the object or the module with this dotted name. Raise AttributeError where it cannot be imported."""
    parent, _, last = name.rpartition(".")
    if not parent:
        return importlib.import_module(name)
    try:
        return getattr(found_at(parent), last)
    except AttributeError:
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError as missing:
            if not (missing.name or "").startswith(_PACKAGE):
                raise
            raise AttributeError(f"{name} cannot be imported") from missing


def public_names(also: frozenset[str] = frozenset()) -> Callable[[Path], Surface]:
    """Return a function that describes the promised names; `also` are those of the other checkout's documentation."""

    def described(root: Path) -> Surface:
        found: dict[str, Any] = {}
        for name in {*PROMISED, *documented(root), *mentioned(root), *also}:
            try:
                found[name] = _described(found_at(name))
            except AttributeError:
                found[name] = _MISSING
        # What a module lists already is not described twice.
        return {name: text for name, text in found.items() if not _is_listed(name, found)}

    return described


def _is_listed(name: str, found: Mapping[str, Any]) -> bool:
    module, _, last = name.rpartition(".")
    return last in found.get(module, ()) and "(bases)" not in found[module]


def _texts(root: Path) -> list[str]:
    pages = [root / "README.md", *sorted((root / "docs").rglob("*.md"))]
    return [page.read_text("utf-8") for page in pages]


def public_names_of(module: ModuleType) -> list[str]:
    """Return `__all__`; without it what the module defines or imports as `name as name`."""
    if hasattr(module, "__all__"):
        return sorted(module.__all__)
    found: set[str] = set()
    for node in ast.parse(inspect.getsource(module)).body:
        match node:
            case ast.ImportFrom(names=names):
                found |= {each.name for each in names if each.asname == each.name}
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                found.add(name)
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                found.add(name)
            case _:
                continue
    return sorted(name for name in found if not name.startswith("_"))


def _described(found: Any) -> Any:
    if inspect.ismodule(found):
        return {name: _described_member(getattr(found, name)) for name in public_names_of(found)}
    return _described_member(found)


def _described_member(value: Any) -> Any:
    if not inspect.isclass(value):
        return _signature(value) if callable(value) else _plain(value)
    # Bases that are neither errors nor of another package are parts of the implementation; their members are not.
    ours = [each for each in value.__mro__ if each.__module__.startswith(_PACKAGE)]
    bases = [each.__name__ for each in value.__mro__[1:-1] if each not in ours or issubclass(each, Exception)]
    types = {name: _plain(of) for each in reversed(ours) for name, of in vars(each).get("__annotations__", {}).items()}
    names = {name for each in ours for name in vars(each)} | {*types}
    members = {name: _described_attribute(value, name, types.get(name)) for name in names if not name.startswith("_")}
    return {"(bases)": bases, "(signature)": _signature(value), **members}


def _described_attribute(owner: type, name: str, annotation: str | None) -> str:
    static = inspect.getattr_static(owner, name, None)
    if isinstance(static, property):
        return f"property {_signature(static.fget)}"
    if annotation is not None:
        return annotation if static is None or inspect.isdatadescriptor(static) else f"{annotation} = {_plain(static)}"
    value = getattr(owner, name, static)
    return _signature(value) if callable(value) else _plain(static)


def _signature(value: Any) -> str:
    try:
        return _plain(inspect.signature(value))
    except (TypeError, ValueError):
        return _plain(value)


def _plain(value: Any) -> str:
    """Return the text of a value, without addresses in memory and without the modules where classes are."""
    text = value if isinstance(value, str) else repr(value) if not isinstance(value, inspect.Signature) else str(value)
    return re.sub(r"\bhorarium(?:\.\w+)+\.(\w+)", r"\1", re.sub(r" at 0x[0-9a-f]+", "", text))


def client_errors(root: Path) -> Surface:
    """Return the errors of the client with their bases and reasons, and which of them each refusal becomes."""
    import httpx

    from horarium.client import errors

    kinds: dict[str, type] = {}
    ahead: list[type] = [errors.ClientError]
    while ahead:
        kind = ahead.pop()
        kinds[kind.__name__] = kind
        ahead += kind.__subclasses__()
    found: dict[str, Any] = {
        name: {"bases": [each.__name__ for each in kind.__mro__[1:-1]], "reason": getattr(kind, "reason", None)}
        for name, kind in kinds.items()
    }
    reasons = sorted({str(each["reason"]) for each in found.values()})
    for status in (301, 400, 401, 403, 404, 409, 410, 412, 413, 422, 429, 500, 502, 503, 504):
        plain = type(errors.error_of(httpx.Response(status))).__name__
        found[f"{status}"] = plain
        for reason in reasons:
            kind_name = type(errors.error_of(httpx.Response(status, json={"reason": reason}))).__name__
            if kind_name != plain:
                found[f"{status} {reason}"] = kind_name
    return found


def entry_points(root: Path) -> Surface:
    """Return the scripts of the package, its own entry points, and the groups that it looks up."""
    project = _project(root)
    named = re.compile(r'"(horarium\.\w+)"')
    groups: set[str] = set()
    for path in (root / "src" / _PACKAGE).rglob("*.py"):
        text = path.read_text("utf-8")
        if "entry_points(" in text:
            lines = [line for line in text.splitlines() if "group" in line.lower()]
            groups |= {each for line in lines for each in named.findall(line)}
    return {
        "scripts": sorted(project.get("scripts", {})),
        "entry points": sorted(project.get("entry-points", {})),
        "extras": sorted(project.get("optional-dependencies", {})),
        "groups": sorted(groups),
    }


def _project(root: Path) -> dict[str, Any]:
    project: dict[str, Any] = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
    return project


# ── comparison ───────────────────────────────────────────────────────────────────────────────────────

SURFACES: Mapping[str, Callable[[Path], Surface]] = {
    "openapi": openapi,
    "routes": routes,
    "commands": commands,
    "help": help_texts,
    "exit-codes": exit_codes,
    "settings": generated_page("settings.md"),
    "setting-types": setting_types,
    "metrics": generated_page("metrics.md"),
    "history-events": generated_page("events.md"),
    "schedule-fields": generated_page("schedule.md"),
    "delivery": generated_page("delivery.md"),
    "log-events": log_events,
    "sqlite": sqlite_schema,
    "postgresql": postgres_schema,
    "names": public_names(),
    "client-errors": client_errors,
    "entry-points": entry_points,
}


def surfaces_of(root: Path, names: Sequence[str], also: frozenset[str] = frozenset()) -> dict[str, Any]:
    """Return the surfaces of the checkout whose source is being imported; None for one that cannot be read."""
    readers = {**SURFACES, "names": public_names(also)}
    found: dict[str, Any] = {}
    for name in names:
        try:
            found[name] = json.loads(json.dumps(readers[name](root), sort_keys=True))
        except Exception:  # code of any age: the other surfaces can still be compared
            print(f"cannot read {name} of {root}:\n{traceback.format_exc()}", file=sys.stderr)
            found[name] = None
    return found


def differences(base: Any, here: Any, where: str = "") -> Iterator[str]:
    """Say what was removed, added or changed from one JSON value to another, each with its path."""
    if isinstance(base, dict) and isinstance(here, dict):
        for key in sorted({*base, *here}):
            path = f"{where} › {key}" if where else str(key)
            if key not in here:
                yield f"- {path}"
            elif key not in base:
                yield f"+ {path}: {_shown(here[key])[:_MAX_SHOWN]}"
            else:
                yield from differences(base[key], here[key], path)
    elif json.dumps(base, sort_keys=True) == json.dumps(here, sort_keys=True):  # for Python, 1 == True
        return
    elif isinstance(base, list) and isinstance(here, list):
        yield f"~ {where}"
        lines = unified_diff([_shown(each) for each in base], [_shown(each) for each in here], n=1, lineterm="")
        yield from (f"    {line}" for line in lines if not line.startswith(("---", "+++", "@@")))
    else:
        yield f"~ {where}\n    -{_shown(base)}\n    +{_shown(here)}"


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def in_a_process(root: Path, names: Sequence[str], also: set[str]) -> dict[str, Any]:
    """Read the surfaces of a checkout with its own source, whatever is installed."""
    settings = {name: value for name, value in os.environ.items() if not name.startswith("HORARIUM_")}
    environment = settings | {"PYTHONPATH": str(root / "src"), "COLUMNS": "120", "NO_COLOR": "1", "TERM": "dumb"}
    listed = ("--only", ",".join(names), "--also", ",".join(sorted(also)))
    command = [sys.executable, __file__, "--json", "--root", str(root), *listed]
    with tempfile.TemporaryDirectory() as empty:  # no configuration file, no data directory
        done = subprocess.run(
            command,
            cwd=empty,
            env=environment | {"HOME": empty, "XDG_CONFIG_HOME": empty},
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@contextlib.contextmanager
def checked_out(base: str) -> Iterator[Path]:
    """Unpack a commit into a folder that goes away."""
    with tempfile.TemporaryDirectory(prefix="horarium-surfaces-") as directory:
        archive = subprocess.run(
            ["git", "archive", base, "--", *_FOLDERS], cwd=ROOT, stdout=subprocess.PIPE, check=True
        )
        subprocess.run(["tar", "-x", "-C", directory], input=archive.stdout, check=True)
        yield Path(directory)


def compared(base: str, names: Sequence[str]) -> dict[str, list[str]]:
    with checked_out(base) as other:
        also = documented(ROOT) | mentioned(ROOT) | documented(other) | mentioned(other)
        before, after = in_a_process(other, names, also), in_a_process(ROOT, names, also)
    unread = "! cannot be read; see the messages above"
    return {
        name: [unread] if None in (before[name], after[name]) else list(differences(before[name], after[name]))
        for name in names
    }


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("base", nargs="?", help="commit to compare with")
    parser.add_argument("--only", type=lambda text: text.split(","), default=list(SURFACES), metavar="NAMES")
    parser.add_argument("--json", action="store_true", help="print the surfaces of one checkout")
    parser.add_argument("--also", type=lambda text: text.split(",") if text else (), default=(), help=argparse.SUPPRESS)
    parser.add_argument("--root", type=Path, default=ROOT, help=argparse.SUPPRESS)
    asked = parser.parse_args(arguments)
    if unknown := set(asked.only) - set(SURFACES):
        parser.error(f"unknown surface: {', '.join(sorted(unknown))}; one of {', '.join(SURFACES)}")
    if asked.json:
        print(json.dumps(surfaces_of(asked.root, asked.only, frozenset(asked.also)), ensure_ascii=False, indent=1))
        return 0
    if asked.base is None:
        parser.error("name the commit to compare with")
    found = compared(asked.base, asked.only)
    for name, lines in found.items():
        print(f"{name}: {len(lines) or 'no'} difference{'' if len(lines) == 1 else 's'}", *lines, sep="\n  ")
    return 1 if any(found.values()) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
