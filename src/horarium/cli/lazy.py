"""Create commands on first use, so that a command imports only what it needs.

Each noun is a module with an `app`. Its commands call a server through a client that takes longer to
import than `horarium next` to answer. The verbs of a noun are created one by one as well: `schedule create` has more
parameters than all other verbs together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass
from importlib import import_module
from types import MappingProxyType
from typing import Any, ClassVar

import typer
from typer.main import get_command, get_command_from_info, get_group_from_info
from typer.models import CommandInfo, TyperInfo

from horarium.cli.help import Command, Group

SERVER_COMMANDS: Mapping[str, str] = {
    "schedule": "horarium.cli.schedule",
    "run": "horarium.cli.run",
    "workflow": "horarium.cli.workflow",
    "approval": "horarium.cli.approval",
    "agent": "horarium.cli.agent",
    "team": "horarium.cli.team",
    "assignment": "horarium.cli.assignment",
    "calendar": "horarium.cli.calendar",
    "token": "horarium.cli.token",
    "namespace": "horarium.cli.namespace",
    "subscription": "horarium.cli.subscription",
    "secret": "horarium.cli.secret",
    "audit": "horarium.cli.audit",
    "overview": "horarium.cli.overview",
    "agenda": "horarium.cli.agenda",
    "health": "horarium.cli.health",
    "cluster": "horarium.cli.cluster",
    "events": "horarium.cli.events",
    "apply": "horarium.cli.apply",
    "export": "horarium.cli.export",
    "ui": "horarium.cli.ui",
    "context": "horarium.cli.context",
}
"""Modules that hold the command of a name, in the order of the help."""

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


def make_later(app: typer.Typer, nouns: Mapping[str, str] = MappingProxyType({})) -> typer.Typer:
    """Return `app`, whose commands and nouns are created on first access. `nouns`: their modules."""
    makers: dict[str, Maker] = {
        **getattr(app.info.cls, "makers", {}),
        **{noun: _noun_maker(noun, module) for noun, module in nouns.items()},
    }
    makers |= {str(info.name): _verb_maker(app, info) for info in app.registered_commands}
    makers |= {str(info.name): _group_maker(app, info) for info in app.registered_groups}

    app.registered_commands, app.registered_groups = [], []
    app.info.cls = type("Group", (_LaterGroup,), {"makers": makers})
    app.info.callback = app.info.callback or _nothing  # an app that has no commands yet is a group by its callback
    return app


def _nothing() -> None:
    pass


def _noun_maker(noun: str, module: str) -> Maker:
    def make() -> Any:
        app = import_module(module).app
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
