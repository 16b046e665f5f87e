"""The launchers of a service, and the user code that it loads: tasks, schedules and the signal function.

The built-in launchers are those that the settings allow; other packages add theirs.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any, Protocol, runtime_checkable

from horarium.audience import Audience
from horarium.errors import InvalidDefinition
from horarium.launchers import python
from horarium.launchers.a2a.launcher import A2ALauncher
from horarium.launchers.command import CommandLauncher, CommandSpec
from horarium.launchers.http import HttpLauncher
from horarium.launchers.launcher import Launcher
from horarium.launchers.pull import PullLauncher
from horarium.launchers.python import PythonLauncher
from horarium.launchers.registry import Registry, discover
from horarium.launchers.signals import Provider
from horarium.launchers.ssrf import AddressGuard, AddressPolicy
from horarium.launchers.tasks import TaskRegistry
from horarium.platform.clock import Clock
from horarium.platform.settings import Settings, WebhookSecret

# ── launchers ─────────────────────────────────────────────────────────────────────────────────────────


def make_registry(settings: Settings, clock: Clock, tasks: TaskRegistry) -> tuple[Registry, tuple[str, ...]]:
    """The launchers, and what is wrong with those of other packages that could not be loaded."""
    usual = settings.audience(None)
    concurrency = settings.concurrency_of("python", python.CONCURRENCY)
    built_in: list[Launcher] = [
        PythonLauncher(tasks, clock, concurrency=concurrency, usual=usual),
        _http(settings, clock),
        CommandLauncher(_commands(settings), clock),
        PullLauncher(clock),
        A2ALauncher(clock, guard=AddressGuard(address_policy(settings))),
    ]
    problems: list[str] = []
    if settings.celery_connections:
        if has_celery():
            built_in.append(_celery(settings, clock))
        else:
            problems.append(f"celery: celery_connections is set, but Celery is not installed; {CELERY_REMEDY}")
    found = discover()
    taken = {launcher.kind for launcher in built_in}
    others = [launcher for launcher in found.launchers if launcher.kind not in taken]
    problems += [f"{each.kind}: a built-in launcher has this kind" for each in found.launchers if each.kind in taken]
    registry = Registry(
        [*built_in, *others],
        knows_task=lambda name, namespace: tasks.find(name, namespace, usual) is not None,
        audiences=kind_audiences(settings, [launcher.kind for launcher in others]),
    )
    return registry, (*found.problems, *problems)


_BROKERS_AT_ONCE = 8
CELERY_REMEDY = "pip install 'horarium[celery]'"


def has_celery() -> bool:
    return find_spec("celery") is not None


def _celery(settings: Settings, clock: Clock) -> Launcher:
    """Imported here: Celery is an extra, and takes a while to import."""
    from horarium.launchers.celery.launcher import Broker, CeleryLauncher

    brokers = {
        name: Broker(
            each.broker.get_secret_value(),
            None if each.result is None else each.result.get_secret_value(),
            settings.audience(each.namespaces),
        )
        for name, each in settings.celery_connections.items()
    }
    return CeleryLauncher(brokers, clock)


def unreachable_brokers(settings: Settings) -> dict[str, str | None]:
    """Why each of the configured brokers cannot be reached; None = it can. Celery must be installed."""
    from horarium.launchers.celery.broker import why_unreachable

    urls = {name: each.broker.get_secret_value() for name, each in settings.celery_connections.items()}
    with ThreadPoolExecutor(max(1, min(len(urls), _BROKERS_AT_ONCE))) as threads:
        return dict(zip(urls, threads.map(why_unreachable, urls.values()), strict=True))


def kind_audiences(settings: Settings, others: Iterable[str] = ()) -> dict[str, Audience]:
    """Audience of each kind.

    A kind of another package has the operator's rights; the built-in ones guard themselves.
    """
    said = {kind: settings.audience(names) for kind, names in settings.kind_namespaces.items()}
    return {**dict.fromkeys(others, settings.audience(None)), **said}


def address_policy(settings: Settings) -> AddressPolicy:
    """Policy for all calls on behalf of a tenant: launches and subscriptions alike."""
    return AddressPolicy(settings.allow_loopback_targets, settings.allow_private_targets)


def _http(settings: Settings, clock: Clock) -> HttpLauncher:
    given = {
        name: each if isinstance(each, WebhookSecret) else WebhookSecret(secret=each)
        for name, each in settings.webhook_secrets.items()
    }
    return HttpLauncher(
        clock,
        guard=AddressGuard(address_policy(settings)),
        secrets={name: each.secret.get_secret_value().split() for name, each in given.items()},
        audiences={name: settings.audience(each.namespaces) for name, each in given.items()},
    )


def _commands(settings: Settings) -> dict[str, CommandSpec]:
    return {
        name: CommandSpec(
            each.argv,
            each.cwd,
            dict(each.env),
            each.timeout_seconds,
            each.allow_arguments,
            settings.audience(each.namespaces),
        )
        for name, each in settings.commands.items()
    }


# ── user code ─────────────────────────────────────────────────────────────────────────────────────────


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
