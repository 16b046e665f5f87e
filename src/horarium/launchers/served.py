"""What a process can do: the kinds of action that it serves and the names that they know, and what nobody knows.

Every process that launches publishes this beside its heartbeat, so that whoever writes a schedule hears at once
that its action would find nobody. It is a warning and no refusal: the process that knows may start tomorrow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from horarium.audience import Audience, parse_audience
from horarium.schedule.definition import Action
from horarium.schedule.kinds import PULL, PYTHON, WORKFLOW, Kinds
from horarium.schedule.target import DEFAULT_QUEUE

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
