"""Groups of commands that are created on first use, and the layout of their help.

Each noun is a module with an `app`. Its commands call a server through a client that takes longer to import than
`horarium next` to answer. The verbs of a noun are created one by one as well: `schedule create` has more parameters
than all other verbs together.

The help of the program fits on one screen: it names the commands by group, and leaves descriptions and connection
options to `horarium help`. The help of a command writes each flag in full, however narrow the terminal is.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from textwrap import wrap
from types import MappingProxyType
from typing import Any, ClassVar

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command, get_command_from_info, get_group_from_info
from typer.models import CommandInfo, TyperInfo

# ── help ──────────────────────────────────────────────────────────────────────────────────────────────


GROUPS: Mapping[str, tuple[str, ...]] = {
    "Schedules": (
        "schedule", "agenda", "apply", "export", "import", "next", "explain-cron", "lint", "condition", "showcase",
    ),
    "Runs": ("run", "workflow", "events"),
    "Approvals": ("approval",),
    "Resources": ("agent", "team", "assignment", "calendar", "subscription", "secret", "token", "namespace"),
    "Operations": ("overview", "health", "cluster", "doctor", "verify", "audit", "tick"),
    "Server": ("up", "server", "worker", "migrate", "copy", "config", "context", "ui"),
}  # fmt: skip
"""The commands of the program, by the group under which `horarium --help` names them."""
CONNECTION = "Connection"
"""The panel of the options that every command with a server has; `horarium help options` describes them."""
EXIT_CODES = (
    "Exit codes: 0 success · 1 negative result (findings, conflict, failed run) · 2 usage error · "
    "3 server unreachable · 4 access denied · 5 not found"
)
MAX_LINES = 24
"""The height of `horarium --help` at 80 columns."""

_EXAMPLE = "Example:"
_FLAG_WIDTH = 34
_MORE = (
    "`horarium help commands` describes each command. `horarium help options` lists connection options and exit codes."
)
# Contexts of the command line are made by Typer's own copy of Click, which has no public name.
_Context = Any
_Formatter = Any


class _Layout:
    """The layout of this module for a command or a group."""

    def format_help(self, ctx: _Context, formatter: _Formatter) -> None:
        _write_help(self, ctx, formatter)

    def get_help(self, ctx: _Context) -> str:
        """Return the help, with escapes for what the terminal cannot show."""
        return escaped(str(super().get_help(ctx)))  # type: ignore[misc]  # a mixin: Typer's class supplies get_help


class ProgramCommand(_Layout, TyperCommand):
    """A command whose help is laid out by this module."""


class ProgramGroup(_Layout, TyperGroup):
    """A group of commands whose help is laid out by this module."""

    def parse_args(self, ctx: _Context, args: list[str]) -> list[str]:
        """Print the help on stderr where no command is given; exit code 2."""
        if not args and self.no_args_is_help and not ctx.resilient_parsing:
            typer.echo(ctx.get_help(), err=True)
            ctx.exit(2)
        return super().parse_args(ctx, args)


def escaped(text: str) -> str:
    """Escape what the terminal cannot show: Click would print UTF-8 even to a terminal that reads ASCII."""
    encoding = sys.stdout.encoding or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)


def write_commands(root: Any, _ctx: _Context, formatter: _Formatter) -> None:
    """Write each command of the program with its description, by group."""
    for title, names in GROUPS.items():
        _write_section(formatter, title, [(name, _first_paragraph(root.commands[name])) for name in names])


def write_options(command: Any, ctx: _Context, formatter: _Formatter) -> None:
    """Write the connection options and the options of the program itself, then the exit codes."""
    sections = _option_sections(command, ctx)
    _write_section(formatter, CONNECTION, sections.pop(CONNECTION))
    for title, rows in sections.items():
        _write_section(formatter, title, rows)
    _write_text(formatter, "These options may also precede the command: `horarium -o json schedule list`.")
    _write_text(formatter, EXIT_CODES)


def _write_help(command: Any, ctx: _Context, formatter: _Formatter) -> None:
    if ctx.parent is None and isinstance(command, TyperGroup):
        _write_overview(command, ctx, formatter)
        return
    text, example = _split(command.help)
    epilog, example_below = _split(command.epilog)
    command.format_usage(ctx, formatter)
    _write_text(formatter, text)
    sections = _option_sections(command, ctx)
    connects = sections.pop(CONNECTION, None) is not None
    for title, rows in sections.items():
        _write_section(formatter, title, rows)
    for title, rows in _command_sections(command).items():
        _write_section(formatter, title, rows)
    if connects:
        _write_text(formatter, "Connection options, such as --server: horarium help options")
    _write_text(formatter, epilog)
    for line in filter(None, (example, example_below)):
        _write_example(formatter, line)


def _write_overview(root: Any, ctx: _Context, formatter: _Formatter) -> None:
    """Write at most `MAX_LINES` lines, however many commands there are."""
    text, _ = _split(root.help)
    _, example = _split(root.epilog)
    shown = [param for param in root.get_params(ctx) if {"--version", "--help"} & {*param.opts}]
    more = wrap(_MORE, formatter.width, break_on_hyphens=False)
    others = ("usage", "", text, "", "Commands", "", "Options", *shown, "", *more, "", _EXAMPLE, example)
    root.format_usage(ctx, formatter)
    _write_text(formatter, text)
    _write_heading(formatter, "Commands")
    for line in group_lines(GROUPS, formatter.width, MAX_LINES - len(others)):
        formatter.write(f"{line}\n")
    _write_section(formatter, "Options", [param.get_help_record(ctx) for param in shown])
    formatter.write_paragraph()
    for line in more:
        formatter.write(f"{line}\n")
    _write_example(formatter, example)


def group_lines(groups: Mapping[str, Sequence[str]], width: int, most: int) -> list[str]:
    """Return the names of each group, wrapped; the longest groups are cut until all take at most `most` lines."""
    indent = max(map(len, groups)) + 4
    wrapped = [wrap(", ".join(names), width - indent, break_on_hyphens=False) for names in groups.values()]
    while sum(map(len, wrapped)) > most and max(map(len, wrapped)) > 1:
        longest = max(wrapped, key=len)
        longest.pop()
        longest[-1] = ", ".join([*longest[-1].rstrip(",").split(", ")[:-1], "…"])
    return [
        f"  {'' if number else title:<{indent - 2}}{line}"
        for title, lines in zip(groups, wrapped, strict=True)
        for number, line in enumerate(lines)
    ]


def _split(text: str | None) -> tuple[str, str]:
    """Split the prose from the example, which stays on one line so that it can be copied."""
    prose, _, example = inspect.cleandoc(text or "").partition(_EXAMPLE)
    return prose.strip(), " ".join(example.split())


def _write_text(formatter: _Formatter, text: str) -> None:
    if text:
        formatter.write_paragraph()
        formatter.write_text(text)


def _write_example(formatter: _Formatter, line: str) -> None:
    formatter.write_paragraph()
    formatter.write(f"{_EXAMPLE}\n  {line}\n")


def _write_heading(formatter: _Formatter, title: str) -> None:
    formatter.write_paragraph()
    formatter.write(typer.style(title, bold=True) + "\n")


def _write_section(formatter: _Formatter, title: str, rows: Iterable[tuple[str, str]]) -> None:
    _write_heading(formatter, title)
    with formatter.indentation():
        formatter.write_dl(list(rows), col_max=_FLAG_WIDTH)


def _option_sections(command: Any, ctx: _Context) -> dict[str, list[tuple[str, str]]]:
    """Arguments first, then options without a section of their own, then the sections in the order of their flags."""
    found: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
    for param in command.get_params(ctx):
        row = param.get_help_record(ctx)
        if row is not None:
            own = "Arguments" if param.param_type_name == "argument" else "Options"
            flag, meaning = row
            # Typer sets a default that is described in words in round brackets.
            meaning = re.sub(r"\[default: \((.*?)\)([];])", r"[default: \1\2", meaning)
            found.setdefault(getattr(param, "rich_help_panel", None) or own, []).append((flag, meaning))
    return {title: rows for title, rows in found.items() if rows}


def _command_sections(command: Any) -> Mapping[str, list[tuple[str, str]]]:
    found: dict[str, list[tuple[str, str]]] = {}
    for name, child in getattr(command, "commands", {}).items():
        if not child.hidden:
            title = child.rich_help_panel or "Commands"
            found.setdefault(title, []).append((name, _first_paragraph(child)))
    return found


def _first_paragraph(command: Any) -> str:
    text, _ = _split(command.short_help or command.help)
    return " ".join(text.partition("\n\n")[0].split())


# ── commands on first use ─────────────────────────────────────────────────────────────────────────────


Maker = Callable[[], Any]


@dataclass(frozen=True, slots=True)
class Later:
    """A reference to a function or an `app` of a module that is not imported yet."""

    module: str
    name: str

    def found(self) -> Any:
        return getattr(import_module(self.module), self.name)


class LaterModule:
    """A reference to a module by its full name; its attributes are `Later`."""

    def __init__(self, module: str) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        return Later(self._module, name)


@dataclass(frozen=True, slots=True)
class LaterCommand(Later):
    """A reference to an operation, whose command is derived from its declaration."""

    operation: str
    noun: str

    def found(self) -> Any:
        make = LaterModule("horarium.platform.cli.default_commands").default_command.found()
        return make(getattr(Later.found(self), self.operation), self.noun)


def add_default_commands(app: typer.Typer, noun: str, declared: Later) -> None:
    """Add a command for each operation that a class declares; a command that `app` has already wins.

    Call it after the hand-written commands. The verb is what the name of the operation says besides the noun. Names are
    read from the source, because importing an operation with its types takes longer than the help.
    """
    written = {str(each.name) for each in app.registered_commands} | {str(each.name) for each in app.registered_groups}
    for name in _declared_in(declared):
        words = [word for word in name.split("_") if word not in (noun, f"{noun}s")]
        verb = "show" if words == ["get"] else "-".join(words)
        if verb not in written:
            later: Any = LaterCommand(declared.module, declared.name, name, noun)
            app.command(verb)(later)


def _declared_in(declared: Later) -> Iterator[str]:
    """Yield the names of the operations that get a command."""
    spec = find_spec(declared.module)
    loader: Any = None if spec is None else spec.loader
    for owner in ast.parse(loader.get_source(declared.module)).body:
        if isinstance(owner, ast.ClassDef) and owner.name == declared.name:
            for function in owner.body:
                if isinstance(function, ast.FunctionDef) and not any(map(_has_no_command, function.decorator_list)):
                    yield function.name


def _has_no_command(decorator: ast.expr) -> bool:
    named = decorator.keywords if isinstance(decorator, ast.Call) else ()
    return any(each.arg == "has_command" and ast.unparse(each.value) == "False" for each in named)


class Commands(MutableMapping[str, Any]):
    """The commands of a group by name, each created on first access."""

    def __init__(self, made: Mapping[str, Any], later: Mapping[str, Maker]) -> None:
        self._makers = dict(later)
        self._made: dict[str, Any] = {**dict.fromkeys(later), **made}

    def __getitem__(self, name: str) -> Any:
        found = self._made[name]
        if found is None:
            found = self._made[name] = self._makers[name]()
        return found

    def __setitem__(self, name: str, command: Any) -> None:
        self._made[name] = command

    def __delitem__(self, name: str) -> None:
        del self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._made)

    def __len__(self) -> int:
        return len(self._made)


class _LaterGroup(ProgramGroup):
    """A group whose class holds the makers of commands that do not exist yet."""

    makers: ClassVar[Mapping[str, Maker]] = {}

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = Commands(self.commands, self.makers)


def make_later(app: typer.Typer, nouns: Mapping[str, Any] = MappingProxyType({})) -> typer.Typer:
    """Return `app`, whose commands and nouns are created on first access. `nouns`: their apps."""
    makers: dict[str, Maker] = {
        **getattr(app.info.cls, "makers", {}),
        **{noun: _noun_maker(noun, found) for noun, found in nouns.items()},
    }
    makers |= {str(info.name): _verb_maker(app, info) for info in app.registered_commands}
    makers |= {str(info.name): _group_maker(app, info) for info in app.registered_groups}

    app.registered_commands, app.registered_groups = [], []
    app.info.cls = type("Group", (_LaterGroup,), {"makers": makers})
    app.info.callback = app.info.callback or _nothing  # an app that has no commands yet is a group by its callback
    return app


def _nothing() -> None:
    pass


def _noun_maker(noun: str, later: Any) -> Maker:
    def make() -> Any:
        app = _found(later)
        alone = len(app.registered_commands) == 1 and not app.registered_groups and not app.registered_callback
        if alone:
            app.registered_commands[0].cls = ProgramCommand
        command = get_command(app if alone else make_later(app))
        command.name = noun
        return command

    return make


def _verb_maker(app: typer.Typer, info: CommandInfo) -> Maker:
    def make() -> Any:
        info.callback, info.cls = _found(info.callback), ProgramCommand
        return get_command_from_info(
            info, pretty_exceptions_short=app.pretty_exceptions_short, rich_markup_mode=app.rich_markup_mode
        )

    return make


def _group_maker(app: typer.Typer, info: TyperInfo) -> Maker:
    def make() -> Any:
        info.typer_instance = make_later(_found(info.typer_instance))
        return get_group_from_info(
            info,
            pretty_exceptions_short=app.pretty_exceptions_short,
            rich_markup_mode=app.rich_markup_mode,
            suggest_commands=app.suggest_commands,
        )

    return make


def _found(what: Any) -> Any:
    return what.found() if isinstance(what, Later) else what
