"""Which launchers a service has: the built-in ones as the settings allow them, and those of other packages."""

from __future__ import annotations

from horarium.clock import Clock
from horarium.launchers import python
from horarium.launchers.command import CommandLauncher, CommandSpec
from horarium.launchers.http import HttpLauncher
from horarium.launchers.launcher import Launcher
from horarium.launchers.pull import PullLauncher
from horarium.launchers.python import PythonLauncher
from horarium.launchers.registry import Registry, discover
from horarium.launchers.ssrf import AddressPolicy, Guard
from horarium.launchers.tasks import TaskRegistry
from horarium.settings import Settings


def make_registry(settings: Settings, clock: Clock, tasks: TaskRegistry) -> tuple[Registry, tuple[str, ...]]:
    """The launchers, and what is wrong with those of other packages that could not be loaded."""
    built_in: list[Launcher] = [
        PythonLauncher(tasks, clock, concurrency=settings.concurrency_of("python", python.CONCURRENCY)),
        HttpLauncher(clock, guard=Guard(address_policy(settings)), secrets=_secrets(settings)),
        CommandLauncher(_commands(settings), clock),
        PullLauncher(clock),
    ]
    found = discover()
    taken = {launcher.kind for launcher in built_in}
    others = [launcher for launcher in found.launchers if launcher.kind not in taken]
    problems = [
        f"{each.kind}: there is a built-in launcher of this kind" for each in found.launchers if each.kind in taken
    ]
    return Registry([*built_in, *others], knows_task=tasks.__contains__), (*found.problems, *problems)


def address_policy(settings: Settings) -> AddressPolicy:
    """Of everything that is called on behalf of a tenant: launches and subscriptions alike."""
    return AddressPolicy(settings.allow_loopback_targets, settings.allow_private_targets)


def _secrets(settings: Settings) -> dict[str, list[str]]:
    return {name: secret.get_secret_value().split() for name, secret in settings.webhook_secrets.items()}


def _commands(settings: Settings) -> dict[str, CommandSpec]:
    return {
        name: CommandSpec(each.argv, each.cwd, dict(each.env), each.timeout_seconds, each.allow_arguments)
        for name, each in settings.commands.items()
    }
