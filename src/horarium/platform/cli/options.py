"""Options that commands share, and completion of their values in a shell.

One parameter of a command stands for several options:

@with_options(remote=remote_options)
    def show_command(remote: Remote, run_id: str) -> None: ...

The command line has the parameters of `remote_options` instead of `remote`, which receives its result. The result
may be a context manager, which is open while the command runs.

Names come from the server, which has one second to answer. Errors are not reported, because they would be printed
into the command line.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from horarium.client.client import Client


# ── shared options ────────────────────────────────────────────────────────────────────────────────────


Command = Callable[..., None]
Maker = Callable[..., Any]


def with_options(**makers: Maker) -> Callable[[Command], Command]:
    """Decorate a command; its own parameters come first, so that help shows them first."""
    return lambda command: _Sharing(command, makers)


class _Sharing:
    """A command with shared options; parameters are read on first use, because a program runs one command."""

    def __init__(self, command: Command, makers: Mapping[str, Maker]) -> None:
        self._command = command
        self._makers = makers
        self.__name__, self.__doc__, self.__module__ = command.__name__, command.__doc__, command.__module__

    def __call__(self, **given: Any) -> None:
        with ExitStack() as stack:
            for name, maker in self._makers.items():
                made = maker(**{each.name: given.pop(each.name) for each in self._parameters_by_name[name]})
                given[name] = stack.enter_context(made) if isinstance(made, AbstractContextManager) else made
            self._command(**given)

    @cached_property
    def _parameters_by_name(self) -> Mapping[str, list[inspect.Parameter]]:
        return {name: _parameters(maker) for name, maker in self._makers.items()}

    @property
    def __signature__(self) -> inspect.Signature:
        """The signature that Typer reads."""
        own = [each for each in _parameters(self._command) if each.name not in self._makers]
        return inspect.Signature([*own, *(each for shared in self._parameters_by_name.values() for each in shared)])

    @property
    def __annotations__(self) -> dict[str, Any]:  # type: ignore[override]  # a class has them as a plain attribute
        return {name: each.annotation for name, each in self.__signature__.parameters.items()}


def _parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    found = inspect.signature(function, eval_str=True).parameters.values()
    return [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in found]


# ── completion ────────────────────────────────────────────────────────────────────────────────────────


DEADLINE_SECONDS = 1.0
MOST = 200
"""The maximum number of names."""

Completer = Callable[[typer.Context, str], list[str]]


# ── fixed values ────────────────────────────────────────────────────────────────────────────────


def of_words(words: Callable[[], Iterable[str]]) -> Completer:
    """Complete words, which are loaded on use."""

    def complete(ctx: typer.Context, incomplete: str) -> list[str]:
        return _fitting(words(), incomplete)

    return complete


def _states() -> Iterable[str]:
    from horarium.core.document.states import STATE_GROUPS, RunState

    return [*(each.value for each in RunState), *STATE_GROUPS]


def _origins() -> Iterable[str]:
    from horarium.core.document.states import Origin

    return [each.value for each in Origin]


def _statuses() -> Iterable[str]:
    from horarium.core.document.states import Status

    return [each.value for each in Status]


def _sources() -> Iterable[str]:
    from horarium.core.document.states import Source

    return [each.value for each in Source]


def _overlap_policies() -> Iterable[str]:
    from horarium.core.policy.queue import OverlapPolicy

    return [each.value for each in OverlapPolicy]


def _roles() -> Iterable[str]:
    from horarium.platform.wire import Role

    return [each.value for each in Role]


def _feed_kinds() -> Iterable[str]:
    from horarium.core.document.states import FEED_KINDS

    return sorted({*FEED_KINDS.values()})


def _calendar_kinds() -> Iterable[str]:
    from horarium.core.document.calendar import CalendarKind

    return [each.value for each in CalendarKind]


def _approval_statuses() -> Iterable[str]:
    from horarium.features.approvals.model import StatusFilter

    return [each.value for each in StatusFilter]


def _zones() -> Iterable[str]:
    from horarium.core.recurrence.zone import zone_names

    return sorted(zone_names())


def _contexts() -> Iterable[str]:
    import os

    from horarium.platform.cli.contexts import LOCAL, contexts_file, load_contexts

    return [LOCAL, *sorted(load_contexts(contexts_file(os.environ)).known)]


def _quietly(words: Callable[[], Iterable[str]]) -> Callable[[], Iterable[str]]:
    def tried() -> Iterable[str]:
        try:
            return words()
        except Exception:  # errors are not reported
            return []

    return tried


run_states = of_words(_states)
run_origins = of_words(_origins)
schedule_statuses = of_words(_statuses)
schedule_sources = of_words(_sources)
overlap_policies = of_words(_overlap_policies)
roles = of_words(_roles)
feed_kinds = of_words(_feed_kinds)
calendar_kinds = of_words(_calendar_kinds)
approval_statuses = of_words(_approval_statuses)
zones = of_words(_zones)
contexts = of_words(_quietly(_contexts))


def words_of(schema: Mapping[str, Any]) -> list[str]:
    """Return the allowed words of a field or its items; none = any."""
    items = schema.get("items")
    return list(schema.get("enum") or (items.get("enum") if isinstance(items, Mapping) else None) or [])


def of_field(place: str, schema: Mapping[str, Any]) -> Completer | None:
    known = words_of(schema)
    return of_words(lambda: known) if known else _BY_PLACE.get(place)


# ── names from the server ───────────────────────────────────────────────────────────────────────


def of_names(ask: Callable[[Client, str], Iterable[str]]) -> Completer:
    def complete(ctx: typer.Context, incomplete: str) -> list[str]:
        return _fitting(_queried(ctx, lambda client: ask(client, incomplete)), incomplete)

    return complete


def _schedule_ids(client: Client, incomplete: str) -> Iterable[str]:
    page = client.list_schedules(text=incomplete or None, page_size=MOST)
    return [each.schedule_id for each in page]


def _run_ids(client: Client, incomplete: str) -> Iterable[str]:
    return [each.run_id for each in client.list_runs(page_size=MOST)]


def _calendar_names(client: Client, incomplete: str) -> Iterable[str]:
    return [each.name for each in client.list_calendars()]


def _namespace_names(client: Client, incomplete: str) -> Iterable[str]:
    return [each.namespace for each in client.list_namespaces()]


def _token_ids(client: Client, incomplete: str) -> Iterable[str]:
    return [each.token_id for each in client.list_tokens()]


def _secret_names(client: Client, incomplete: str) -> Iterable[str]:
    return [each.name for each in client.list_secrets(page_size=MOST)]


def _workflow_ids(client: Client, incomplete: str) -> Iterable[str]:
    return [each.workflow_id for each in client.list_workflows(page_size=MOST)]


def _approval_ids(client: Client, incomplete: str) -> Iterable[str]:
    return [each.approval_id for each in client.list_approvals(page_size=MOST)]


def _agent_ids(client: Client, incomplete: str) -> Iterable[str]:
    return [each.id for each in client.list_agents(page_size=MOST)]


def _team_ids(client: Client, incomplete: str) -> Iterable[str]:
    return [each.team_id for each in client.list_teams(page_size=MOST)]


def _assignment_ids(client: Client, incomplete: str) -> Iterable[str]:
    return [each.assignment_id for each in client.list_assignments(page_size=MOST)]


def _standing_ids(client: Client, incomplete: str) -> Iterable[str]:
    return [each.standing_id for each in client.list_standing_approvals(page_size=MOST)]


def _assignees(client: Client, incomplete: str) -> Iterable[str]:
    agents = [f"agent:{name}" for name in _agent_ids(client, "")]
    return [*agents, *(f"team:{name}" for name in _team_ids(client, ""))]


schedule_ids = of_names(_schedule_ids)
run_ids = of_names(_run_ids)
calendar_names = of_names(_calendar_names)
namespace_names = of_names(_namespace_names)
token_ids = of_names(_token_ids)
secret_names = of_names(_secret_names)
workflow_ids = of_names(_workflow_ids)
approval_ids = of_names(_approval_ids)
agent_ids = of_names(_agent_ids)
team_ids = of_names(_team_ids)
assignment_ids = of_names(_assignment_ids)
standing_ids = of_names(_standing_ids)
assignees = of_names(_assignees)

_BY_PLACE: Mapping[str, Completer] = {
    "spec.timezone": zones,
    "calendars": calendar_names,
    "action.workflow_id": workflow_ids,
    "workflow_assignment_id": assignment_ids,
}


def _queried(ctx: typer.Context, ask: Callable[[Client], Iterable[str]]) -> list[str]:
    """Query the server in a thread, because a DNS lookup has no timeout."""
    found: list[str] = []

    def try_it() -> None:
        try:
            with _client(ctx) as client:
                found.extend(ask(client))
        except Exception:  # errors are not reported
            return

    asking = threading.Thread(target=try_it, daemon=True)
    asking.start()
    asking.join(DEADLINE_SECONDS)
    return list(found)


def _client(ctx: typer.Context) -> Client:
    """Return a client for the connection options before and behind the command."""
    from horarium.client.client import Client
    from horarium.platform.cli.remote import connection_of
    from horarium.platform.client.exchange import NEVER
    from horarium.platform.client.trust import Trust

    said: dict[str, Any] = {}
    for params in (ctx.find_root().params, ctx.params):
        said |= {name: value for name, value in params.items() if value is not None}
    data_dir = said.get("data_dir")
    found = connection_of(
        said.get("server"),
        said.get("token"),
        said.get("namespace"),
        None if data_dir is None else Path(data_dir),
        said.get("context"),
        Trust(said.get("ca_file"), said.get("client_cert"), said.get("client_key")),
    )
    return Client(
        found.base_url,
        token=found.token,
        namespace=found.namespace,
        retries=NEVER,
        timeout=DEADLINE_SECONDS,
        **asdict(found.trust),
    )


def _fitting(words: Iterable[str], incomplete: str) -> list[str]:
    fitting = [word for word in words if word.startswith(incomplete) and word.isprintable() and " " not in word]
    return fitting[: MOST * 5]
