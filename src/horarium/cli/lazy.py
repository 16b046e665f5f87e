"""Create commands on first use, so that a command imports only what it needs.

Each noun is a module of this package with an `app`. Its commands call a server through a client that takes longer to
import than `horarium next` to answer. The verbs of a noun are created one by one as well: `schedule create` has more
parameters than all other verbs together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, ClassVar

import typer
from typer.main import get_command, get_command_from_info, get_group_from_info
from typer.models import CommandInfo, TyperInfo

from horarium.cli.help import Command, Group

SERVER_COMMANDS = (
    "schedule",
    "run",
    "workflow",
    "approval",
    "agent",
    "team",
    "assignment",
    "calendar",
    "token",
    "namespace",
    "subscription",
    "secret",
    "audit",
    "overview",
    "agenda",
    "health",
    "cluster",
    "events",
    "apply",
    "export",
    "ui",
    "context",
)
"""Modules of this package that hold the command of their name."""

Maker = Callable[[], Any]


@dataclass(frozen=True, slots=True)
class Later:
    """A reference to a function or an `app` of a module that is not imported yet."""

    module: str
    name: str

    def found(self) -> Any:
        return getattr(import_module(f"horarium.cli.{self.module}"), self.name)


class LaterModule:
    """A reference to a module of this package; its attributes are `Later`."""

    def __init__(self, module: str) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        return Later(self._module, name)


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


class _LaterGroup(Group):
    """A group whose class holds the makers of commands that do not exist yet."""

    makers: ClassVar[Mapping[str, Maker]] = {}

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = Commands(self.commands, self.makers)


def make_later(app: typer.Typer, nouns: tuple[str, ...] = ()) -> typer.Typer:
    """Return `app`, whose commands and nouns are created on first access."""
    makers: dict[str, Maker] = {**getattr(app.info.cls, "makers", {}), **{noun: _noun_maker(noun) for noun in nouns}}
    makers |= {str(info.name): _verb_maker(app, info) for info in app.registered_commands}
    makers |= {str(info.name): _group_maker(app, info) for info in app.registered_groups}

    app.registered_commands, app.registered_groups = [], []
    app.info.cls = type("Group", (_LaterGroup,), {"makers": makers})
    app.info.callback = app.info.callback or _nothing  # an app that has no commands yet is a group by its callback
    return app


def _nothing() -> None:
    pass


def _noun_maker(noun: str) -> Maker:
    def make() -> Any:
        app = import_module(f"horarium.cli.{noun}").app
        alone = len(app.registered_commands) == 1 and not app.registered_groups and not app.registered_callback
        if alone:
            app.registered_commands[0].cls = Command
        command = get_command(app if alone else make_later(app))
        command.name = noun
        return command

    return make


def _verb_maker(app: typer.Typer, info: CommandInfo) -> Maker:
    def make() -> Any:
        info.callback, info.cls = _found(info.callback), Command
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
