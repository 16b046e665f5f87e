"""The commands that are imported when somebody asks for them, so that the others do not wait for them.

Each noun is a module of this package with an `app`. Its commands speak to a server, through a client that takes
longer to import than `horarium next` to answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from importlib import import_module
from typing import Any

from typer.core import TyperGroup
from typer.main import get_command

PANEL = "The server: --server, --token, --namespace, or what a local `up` has left in ./.horarium"
SERVER_COMMANDS = ("schedule", "run", "calendar", "token", "namespace", "subscription", "health", "apply", "export")


class Program(TyperGroup):
    """The root of all commands: those that it is given, and the nouns."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = Commands(self.commands, SERVER_COMMANDS)


class Commands(MutableMapping[str, Any]):
    """Names are known at once, a noun is made when it is taken."""

    def __init__(self, made: Mapping[str, Any], later: tuple[str, ...]) -> None:
        self._made: dict[str, Any] = {**dict.fromkeys(later), **made}

    def __getitem__(self, name: str) -> Any:
        found = self._made[name]
        if found is None:
            found = self._made[name] = _server_command(name)
        return found

    def __setitem__(self, name: str, command: Any) -> None:
        self._made[name] = command

    def __delitem__(self, name: str) -> None:
        del self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._made)

    def __len__(self) -> int:
        return len(self._made)


def _server_command(name: str) -> Any:
    command = get_command(import_module(f"horarium.cli.{name}").app)
    command.name = name
    command.rich_help_panel = PANEL  # type: ignore[attr-defined]  # groups and commands have it, their base has not
    return command
