"""`horarium help`: the commands, the connection options, and the help of a command."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from horarium.cli.help import escaped, write_commands, write_options
from horarium.cli.reading import refuse


def help_command(
    context: typer.Context,
    topic: Annotated[
        list[str] | None,
        typer.Argument(metavar="TOPIC", show_default="the overview", help="`commands`, `options`, or a command."),
    ] = None,
) -> None:
    """Show all commands, the connection options, or the help of a command.

    Example: horarium help options
    """
    root: Any = context.find_root()
    writer = {"commands": write_commands, "options": write_options}.get(" ".join(topic or ()))
    if writer is None:
        typer.echo(_context_of(root, topic or []).get_help())
        return
    formatter = root.make_formatter()
    writer(root.command, root, formatter)
    typer.echo(escaped(formatter.getvalue().strip()))


def _context_of(context: Any, path: list[str]) -> Any:
    for depth, name in enumerate(path, 1):
        command = getattr(context.command, "commands", {}).get(name)
        if command is None:
            refuse(f"no help for {' '.join(path[:depth])[:64]!r}; `horarium help commands` lists the commands")
        context = type(context)(command, info_name=name, parent=context)
    return context
