"""What user code brings along: tasks that can be scheduled, and schedules that follow the code."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from horarium.errors import InvalidDefinition
from horarium.launchers.signals import Provider
from horarium.launchers.tasks import TaskRegistry


@runtime_checkable
class Application(Protocol):
    """It may also have a `name` and a `release`: then its templates are the bundle of that name.

    And `workflows`, by namespace and id: documents that are put in place with the templates.
    """

    @property
    def tasks(self) -> TaskRegistry: ...
    @property
    def templates(self) -> Sequence[Mapping[str, Any]]:
        """Documents of the schedules that are put in place at each start."""

    @property
    def signal_provider(self) -> Provider | None:
        """The function that says what signals are; it goes before the one of the settings."""

    def inside(self, service: Any) -> AbstractContextManager[None]:
        """Entered while a service that was opened for this application lives."""


@dataclass(frozen=True, slots=True)
class Bare:
    """A service without user code."""

    tasks: TaskRegistry = field(default_factory=TaskRegistry)
    templates: Sequence[Mapping[str, Any]] = ()
    signal_provider: Provider | None = None

    def inside(self, service: Any) -> AbstractContextManager[None]:
        return nullcontext()


def load_application(name: str) -> Application:
    """`module:attribute`, looked for in the working directory first, as `python -m` does."""
    found = _load("app", name)
    if not isinstance(found, Application):
        raise InvalidDefinition({"app": [f"{name} is not a Horarium application: it has no tasks and templates"]})
    return found


def load_provider(name: str) -> Provider:
    """The function that says what signals are, by its `module:function`."""
    found = _load("signal_provider", name)
    if not callable(found):
        raise InvalidDefinition({"signal_provider": [f"{name} is not a function"]})
    provider: Provider = found
    return provider


def _load(setting: str, name: str) -> Any:
    module_name, _, attribute = name.partition(":")
    if not module_name or not attribute:
        raise InvalidDefinition({setting: [f"{name!r} does not have the form module:attribute"]})
    here = os.getcwd()
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        found: Any = importlib.import_module(module_name)
    except ImportError as wrong:
        raise InvalidDefinition({setting: [f"Cannot import {module_name}: {wrong}"]}) from wrong
    for part in attribute.split("."):
        found = getattr(found, part, None)
    return found
