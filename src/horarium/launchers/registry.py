"""Registry of launchers: one per kind of action, the built-in ones and those of other packages.

A package adds a launcher by an entry point in the group `horarium.launchers`: its name is the kind, its object is
called without arguments and returns the launcher.

Every process that launches publishes the kinds that it serves and the names that they know, next to its heartbeat. A
schedule whose action is served by no process gets a warning, not an error: such a process may start tomorrow.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Protocol

import structlog

from horarium.audience import EVERYBODY, Audience, parse_audience
from horarium.core.document.definition import DEFAULT_QUEUE, Action
from horarium.core.document.field import message_of
from horarium.core.document.json_values import is_storable
from horarium.core.document.reader import PULL, PYTHON, SHIPPED, WORKFLOW, Kind, Kinds
from horarium.core.lifecycle.outcome import Outcome, Refused, Unknown, Unreachable
from horarium.errors import InvalidDefinition
from horarium.launchers.launcher import Launcher, LaunchRequest
from horarium.launchers.payload import clean_text

# ── published abilities ───────────────────────────────────────────────────────────────────────────────


# A row is written every few seconds; a process with more names, or for more namespaces, is taken to know them all.
MAX_NAMES = 1_000
MAX_ENTRIES = 5 * MAX_NAMES
_MAX_SHOWN = 100


class Serves(Protocol):
    """Catalogue of launchable work for a namespace: the registry of this process, and what others have published."""

    def serves(self, kind: str, namespace: str) -> bool: ...
    def knows(self, kind: str, name: str, namespace: str) -> bool: ...


@dataclass(frozen=True, slots=True)
class Served:
    """`names` are those of tasks and commands, by kind; a kind that is not in it cannot say what it knows."""

    kinds: Mapping[str, Audience] = field(default_factory=dict)
    names: Mapping[str, Mapping[str, Audience]] = field(default_factory=dict)

    def document(self) -> dict[str, Any]:
        return {
            "kinds": {kind: audience.document() for kind, audience in sorted(self.kinds.items())},
            "names": {
                kind: {name: audience.document() for name, audience in sorted(names.items())}
                for kind, names in self.names.items()
                if _can_be_published(names)
            },
        }

    def serves(self, kind: str, namespace: str) -> bool:
        return kind in self.kinds and namespace in self.kinds[kind]

    def knows(self, kind: str, name: str, namespace: str) -> bool:
        if not self.serves(kind, namespace) or kind not in self.names:
            return self.serves(kind, namespace)
        return name in self.names[kind] and namespace in self.names[kind][name]


def _can_be_published(names: Mapping[str, Audience]) -> bool:
    return len(names) <= MAX_NAMES and sum(len(each.document()) for each in names.values()) <= MAX_ENTRIES


def read_served(document: object) -> Served:
    """Read what `document` wrote; a row of an older program is empty."""
    if not isinstance(document, Mapping):
        return Served()
    names = {kind: _read_audiences(known) for kind, known in document.get("names", {}).items()}
    return Served(_read_audiences(document.get("kinds", {})), names)


def _read_audiences(known: object) -> dict[str, Audience]:
    """Nothing of a row that is not ours: a program that knew of no audiences has written a list."""
    try:
        return {name: parse_audience(names) for name, names in known.items()} if isinstance(known, Mapping) else {}
    except (TypeError, ValueError):
        return {}


def unserved(
    action: Action, kinds: Kinds, processes: Sequence[Serves], namespace: str, *, stored: bool
) -> tuple[str, ...]:
    """Warn the author of work that no process executes; `stored`: there is a workflow of this name.

    Work that is not for this namespace counts as missing, with the same texts.
    """
    if action.kind == WORKFLOW.name:
        return () if stored else _unknown_work(action, processes, namespace)
    if not any(each.serves(action.kind, namespace) for each in processes):
        return (f"action.kind: no running process executes {action.kind} actions; runs end in state launch_failed",)
    named = kinds[action.kind].names if action.kind in kinds else ""
    name = action.target.get(named)
    if not isinstance(name, str) or any(each.knows(action.kind, name, namespace) for each in processes):
        return ()
    return (f"action.{named}: no running process has {name[:_MAX_SHOWN]!r}; runs fail until one does",)


def _unknown_work(action: Action, processes: Sequence[Serves], namespace: str) -> tuple[str, ...]:
    name = action.workflow
    if name is None or any(each.knows(PYTHON.name, name, namespace) for each in processes):
        return ()
    if not any(each.serves(PULL.name, namespace) for each in processes):
        return ("action.kind: no running process serves pull actions, so workers cannot claim the runs",)
    queue = action.queue or DEFAULT_QUEUE
    field_name = next(key for key in WORKFLOW.required if action.target.get(key) == name)
    return (
        f"action.{field_name}: no task or stored workflow is named {name[:_MAX_SHOWN]!r}; "
        f"runs wait in the queue {queue!r} for a worker",
    )


ENTRY_POINT_GROUP = "horarium.launchers"

_log = structlog.get_logger("horarium.launchers")


def _knows_nothing(_name: str, _namespace: str) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class DeliveryRow:
    """One line of the table that the documentation shows."""

    kind: str
    honours_key: bool
    promise: str


@dataclass(frozen=True, slots=True)
class Discovered:
    """`problems` name the entry points that could not be used; they stop nobody else."""

    launchers: tuple[Launcher, ...]
    problems: tuple[str, ...]


class Registry:
    def __init__(
        self,
        launchers: Iterable[Launcher],
        *,
        knows_task: Callable[[str, str], bool] = _knows_nothing,
        knows_workflow: Callable[[str, str], bool] = _knows_nothing,
        audiences: Mapping[str, Audience] | None = None,
    ) -> None:
        """A name is known to a namespace. `audiences` are those of kinds that are not for everybody."""
        self._launchers: dict[str, Launcher] = {}
        for launcher in launchers:
            if self._launchers.setdefault(launcher.kind, launcher) is not launcher:
                raise ValueError(f"two launchers have the kind {launcher.kind!r}")
        others = (launcher.declares or Kind(launcher.kind) for launcher in self._launchers.values())
        self.kinds: Kinds = SHIPPED.extended(others)
        """The kinds that may be asked for: the shipped ones, and those of the launchers that other packages bring."""
        self._audiences = {kind: audience for kind, audience in (audiences or {}).items() if audience != EVERYBODY}
        self._kinds_seen: dict[tuple[frozenset[str], frozenset[tuple[str, frozenset[str]]]], Kinds] = {}
        self._silent: set[tuple[str, str]] = set()
        self._knows_task = knows_task
        self._knows_workflow = knows_workflow

    def kinds_for(self, namespace: str) -> Kinds:
        """Those that a namespace may ask for."""
        hidden = frozenset(kind for kind, audience in self._audiences.items() if namespace not in audience)
        asked = ((kind, self._connections(launcher, namespace)) for kind, launcher in self._launchers.items())
        connections = frozenset((kind, names) for kind, names in asked if names is not None)
        key = hidden, connections
        if key not in self._kinds_seen:
            self._kinds_seen[key] = self.kinds.narrowed(hidden, dict(connections))
        return self._kinds_seen[key]

    def _connections(self, launcher: Launcher, namespace: str) -> frozenset[str] | None:
        """One that fails has none, and that is logged once."""
        try:
            names = launcher.connections_for(namespace)
            return None if names is None else frozenset(name for name in names if _is_storable_name(name))
        except Exception as error:
            self._tell_once("connections_for_failed", launcher, error)
            return frozenset()

    def resolve(self, action: Action, namespace: str) -> str:
        """The kind of launcher. A workflow action may name a task of ours, a stored workflow, or neither.

        Neither is no error: its run waits on its task queue for any worker that knows the name. So does one whose
        name happens to be that of a task for others.
        """
        return self._resolved(action.kind, action.workflow, namespace)

    def kind_of_target(self, target: str, namespace: str) -> str:
        """The same for a run of which only the target is known (`core/document/definition.py`)."""
        kind, _, name = target.partition(":")
        return self._resolved(kind, name or None, namespace)

    def _resolved(self, kind: str, name: str | None, namespace: str) -> str:
        if kind != WORKFLOW.name:
            return kind
        if name is not None and self._knows_task(name, namespace):
            return PYTHON.name
        if name is not None and self._knows_workflow(name, namespace):
            return WORKFLOW.name
        return PULL.name

    def at_once(self, kind: str) -> bool:
        """Tell whether a launch of this kind needs no place, because it touches nothing outside."""
        found = self._launchers.get(kind)
        return found is not None and found.launches_at_once

    def places_at_target(self) -> dict[str, int]:
        """Places at a target, by kind whose launches are sent in batches."""
        found = {kind: launcher.places_at_target for kind, launcher in self._launchers.items()}
        return {kind: most for kind, most in found.items() if most is not None}

    def works_here(self, kind: str) -> bool:
        found = self._launchers.get(kind)
        return found is not None and found.works_here

    def get(self, kind: str) -> Launcher:
        found = self._launchers.get(kind)
        if found is None:
            raise _not_installed(kind, self)
        return found

    def launcher_for(self, action: Action, namespace: str) -> Launcher:
        """Raises InvalidDefinition, which names only what this namespace may use."""
        kind = self.resolve(action, namespace)
        if not self.serves(kind, namespace):
            raise _not_installed(kind, (each for each in self if self.serves(each, namespace)))
        return self.get(kind)

    async def launch(self, request: LaunchRequest) -> Outcome:
        """One delivery that never raises: the launchers of other packages may break the contract, the loop may not."""
        try:
            launcher = self.launcher_for(request.action, request.namespace)
        except InvalidDefinition as wrong:
            return Refused(wrong.message)
        try:
            outcome: object = await launcher.launch(request)
        except Exception as error:
            # It may have raised after it had delivered: only Unknown is true.
            return Unknown(_failed(launcher, error))
        return outcome if isinstance(outcome, Outcome) else Unknown(_no_outcome(launcher, outcome))

    def answer_at_once(self, request: LaunchRequest) -> Outcome:
        """The same for launchers that touch nothing outside: what went wrong there has started nothing."""
        try:
            launcher = self.launcher_for(request.action, request.namespace)
        except InvalidDefinition as wrong:
            return Refused(wrong.message)
        try:
            outcome: object = launcher.answer_at_once(request)
        except Exception as error:
            return Unreachable(_failed(launcher, error))
        return outcome if isinstance(outcome, Outcome) else Unreachable(_no_outcome(launcher, outcome))

    def hint(self, run_id: str) -> None:
        """There is news of a run at its target: whichever launcher follows it may ask there at once."""
        for launcher in self._launchers.values():
            try:
                launcher.hint(run_id)
            except Exception as error:
                _log.warning("hint_failed", run_id=run_id, kind=launcher.kind, error=_failed(launcher, error))

    async def start(self) -> None:
        """All or none: when one cannot start, those that did are closed again."""
        async with AsyncExitStack() as undo:
            for launcher in self._launchers.values():
                await launcher.start()
                undo.push_async_callback(launcher.close)
            undo.pop_all()

    async def close(self) -> None:
        async with AsyncExitStack() as all_of_them:
            for launcher in self._launchers.values():
                all_of_them.push_async_callback(launcher.close)

    def serves(self, kind: str, namespace: str) -> bool:
        return kind in self._launchers and namespace in self._audiences.get(kind, EVERYBODY)

    def knows(self, kind: str, name: str, namespace: str) -> bool:
        """Tell whether the launcher has a task or a command of this name; True if it cannot list its names."""
        if not self.serves(kind, namespace):
            return False
        names = self._known_names(self._launchers[kind])
        return names is None or (name in names and namespace in names[name])

    def served(self) -> Served:
        """The same to be published, as of now: tasks may be added while it runs."""
        known = {kind: self._known_names(launcher) for kind, launcher in self._launchers.items()}
        kinds = {kind: self._audiences.get(kind, EVERYBODY) for kind in self._launchers}
        return Served(kinds, {kind: each for kind, each in known.items() if each is not None})

    def _known_names(self, launcher: Launcher) -> dict[str, Audience] | None:
        """One that fails knows nothing, and that is logged once: heartbeats and the schedules of others go on."""
        try:
            names = launcher.known_names()
            if names is None:
                return None
            told_for = names if isinstance(names, Mapping) else {}
            return {name: _audience(told_for.get(name)) for name in names if _is_storable_name(name)}
        except Exception as error:
            self._tell_once("known_names_failed", launcher, error)
            return {}

    def _tell_once(self, what: str, launcher: Launcher, error: Exception) -> None:
        if (what, launcher.kind) not in self._silent:
            self._silent.add((what, launcher.kind))
            _log.warning(what, kind=launcher.kind, error=_failed(launcher, error))

    def documented_delivery(self) -> tuple[DeliveryRow, ...]:
        return tuple(_row(self._launchers[kind]) for kind in self)

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._launchers))

    def __contains__(self, kind: object) -> bool:
        return kind in self._launchers


def _not_installed(kind: str, installed: Iterable[str]) -> InvalidDefinition:
    known = ", ".join(installed) or "none"
    return InvalidDefinition({"action.kind": [f"no launcher for {kind!r} is installed; installed: {known}"]})


def _audience(said: object) -> Audience:
    """A launcher that does not say for whom a name is has its kind's audience and no other."""
    return said if isinstance(said, Audience) else EVERYBODY


def _is_storable_name(name: object) -> bool:
    """A heartbeat is a row: what no row can hold is the name of nothing."""
    return isinstance(name, str) and is_storable(name)


def _failed(launcher: Launcher, error: Exception) -> str:
    return clean_text(f"the {launcher.kind} launcher failed: {message_of(error)}", 1_000)


def _no_outcome(launcher: Launcher, answer: object) -> str:
    return f"the {launcher.kind} launcher answered with {type(answer).__name__}, which is not an outcome"


def _row(launcher: Launcher) -> DeliveryRow:
    promise = (
        "a second delivery of the same key has no effect"
        if launcher.honours_key
        else "at least once: after an unknown outcome, the target may receive the same key again"
    )
    return DeliveryRow(launcher.kind, launcher.honours_key, promise)


def _check_declared(launcher: Launcher, name: str, taken: Collection[str]) -> None:
    """Raises what would else fail later, where it stops everybody."""
    if launcher.kind != name:
        raise ValueError(f"the launcher has the kind {launcher.kind!r}")
    if name in taken:
        raise ValueError("another package provides a launcher of this kind")
    declared = launcher.declares or Kind(name)
    if declared.name != name:
        raise ValueError(f"the launcher declares the kind {declared.name!r}")
    SHIPPED.extended([declared])  # what it declares must fit beside ours
    for flag in ("honours_key", "can_poll", "works_here", "launches_at_once"):
        if not isinstance(getattr(launcher, flag), bool):
            raise TypeError(f"{flag} must be true or false")
    for number in ("concurrency", "places_at_target"):
        if not isinstance(getattr(launcher, number), int | None):
            raise TypeError(f"{number} must be an integer or None")


def discover(points: Iterable[EntryPoint] | None = None) -> Discovered:
    found: list[Launcher] = []
    problems: list[str] = []
    for point in entry_points(group=ENTRY_POINT_GROUP) if points is None else points:
        try:
            launcher: Launcher = point.load()()
            _check_declared(launcher, point.name, taken={each.kind for each in found})
        except Exception as error:  # foreign code at import: whatever it raises, the others are to be loaded
            problems.append(clean_text(f"{point.name} ({point.value}): {message_of(error)}", 500))
        else:
            found.append(launcher)
    return Discovered(tuple(found), tuple(problems))
