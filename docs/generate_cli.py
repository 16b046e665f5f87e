"""The page of the command line, read off the program itself."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import Any

from generate_text import clean, code, page, table
from typer.main import get_command

from horarium.cli.main import app as program

_HEAD = ("option", "default", "meaning")
# The panel of the help under which every command that speaks to a server has the same options.
_SERVER = "Which server"


def cli_page() -> str:
    root: Any = get_command(program)
    found = list(_commands(root, ("horarium",)))
    shared = next(_shared(command) for _, command in found if _shared(command))
    codes = clean(root.epilog or "").partition("Example:")[0].strip()
    return page(
        "The command line",
        f"{clean(root.help or '')} `--help` after any command says the same as this page. Data goes to stdout, talk to "
        f"stderr. {codes}.",
        "## Which server",
        "Every command that speaks to a server has these options; below they are left out. They may also stand before "
        "the noun, and so may `-o`.",
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
    return [param for param in command.params if param.rich_help_panel == _SERVER]


def _command(path: tuple[str, ...], command: Any) -> list[str]:
    text, _, example = clean(command.help or "").partition("Example: ")
    arguments = [param for param in command.params if _is_argument(param)]
    rows = [_option(p) for p in command.params if not _is_argument(p) and p.rich_help_panel != _SERVER]
    usage = " ".join([*path, *(_argument(param) for param in arguments), *(["[options]"] if rows else [])])
    return [
        f"## {' '.join(path)}",
        f"```text\n{usage}\n```",
        text.strip() + (" Speaks to a server." if _shared(command) else ""),
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
    """What the help shows, which is sometimes a word for what happens without the option."""
    if isinstance(param.show_default, str):
        return param.show_default
    if param.is_flag or not param.show_default or param.default in (None, (), []):
        return "–"
    return code(getattr(param.default, "value", param.default))
