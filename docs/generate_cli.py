"""The page about the command line, generated from the program."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import Any

from generate_text import clean, code, page, table
from typer.main import get_command

from horarium.cli.main import app as program
from horarium.platform.cli.program import CONNECTION, EXIT_CODES

_HEAD = ("option", "default", "meaning")


def cli_page() -> str:
    root: Any = get_command(program)
    found = list(_commands(root, ("horarium",)))
    shared = next(_shared(command) for _, command in found if _shared(command))
    return page(
        "Command line",
        "All commands and options of `horarium`, as `--help` prints them. Results on stdout, messages on stderr. "
        f"{EXIT_CODES}.",
        "## Connection options",
        "Every command that calls a server accepts these options; they are not repeated below. They and `-o` may also "
        "precede the command.",
        table(_HEAD, [_option(param) for param in shared]),
        *(part for path, command in found for part in _command(path, command)),
    )


def _commands(command: Any, path: tuple[str, ...]) -> Iterable[tuple[tuple[str, ...], Any]]:
    children: dict[str, Any] = getattr(command, "commands", {})
    if not children:
        yield path, command
    for name, child in children.items():
        if not child.hidden:  # another name of a command
            yield from _commands(child, (*path, name))


def _shared(command: Any) -> list[Any]:
    return [param for param in command.params if param.rich_help_panel == CONNECTION]


def _command(path: tuple[str, ...], command: Any) -> list[str]:
    text, _, example = clean(command.help or "").partition("Example: ")
    arguments = [param for param in command.params if _is_argument(param)]
    rows = [_option(p) for p in command.params if not _is_argument(p) and p.rich_help_panel != CONNECTION]
    usage = " ".join([*path, *(_argument(param) for param in arguments), *(["[options]"] if rows else [])])
    return [
        f"## {' '.join(path)}",
        f"```text\n{usage}\n```",
        text.strip() + (" Calls a server." if _shared(command) else ""),
        table(_HEAD, rows) if rows else "",
        f"Example: `{example.strip()}`" if example else "",
    ]


def _is_argument(param: Any) -> bool:
    return not any(name.startswith("-") for name in param.opts)


def _argument(param: Any) -> str:
    name = str(param.metavar or param.name.upper())
    return name if param.required else f"[{name}]"


def _option(param: Any) -> tuple[str, str, str]:
    value = "" if param.is_flag else f" {param.metavar or _kind(param)}"
    return (
        ", ".join(code(name + value) for name in (*param.opts, *param.secondary_opts)),
        _default(param),
        clean(param.help or ""),
    )


def _kind(param: Any) -> str:
    annotation = param.type_descriptor.annotation
    if issubclass(annotation, Enum):
        return "|".join(str(each.value) for each in annotation)
    return str(annotation.__name__).upper()


def _default(param: Any) -> str:
    """Return the default that the help shows, which may be a description."""
    if isinstance(param.show_default, str):
        return param.show_default
    if param.is_flag or not param.show_default or param.default in (None, (), []):
        return "–"
    return code(getattr(param.default, "value", param.default))
