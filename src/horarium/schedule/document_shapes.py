"""The documents of agents, teams and assignments: their fields, and how a document is changed in part."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Generic, NamedTuple, TypeVar

from horarium.policy.limits import ALIASES as LIMIT_ALIASES
from horarium.policy.merge_patch import merged
from horarium.policy.names import PolicyError, read_object, snake
from horarium.policy.queue import KEY_ALIASES
from horarium.schedule import agent, assignee

V = TypeVar("V")

# Other names of members of policies; those of a kind itself stand in its shape.
_IN_POLICIES: Final[Mapping[str, str]] = {
    "require_approval": "requires_approval",
    **LIMIT_ALIASES,
    **KEY_ALIASES,
}


class Reset(NamedTuple):
    """A member that a replacement sets back, by its path; `after` None = it is removed."""

    path: str
    before: object
    after: object


@dataclass(frozen=True, slots=True)
class DocumentShape(Generic[V]):
    """One kind. `members_of` names fields that may also stand beside the object they belong to.

    `beside` are fields of requests that no document stores.
    """

    id_name: str
    fields: tuple[str, ...]
    parse: Callable[[object], V]
    document: Callable[[V], dict[str, Any]]
    other_names: Mapping[str, str] = field(default_factory=dict)
    members_of: Mapping[str, str] = field(default_factory=dict)
    beside: frozenset[str] = frozenset()

    def patched(self, value: V, changes: object) -> V:
        """Merge changes into a document as RFC 7396 says: null sets a field back. Raise PolicyError."""
        return self.parse(merged(self.document(value), self.spelled(changes)))

    def spelled(self, given: object) -> dict[str, Any]:
        """Rename the members, at every level, as documents are stored. Nulls stay. Raise PolicyError."""
        read_object(given, "document", (*self.fields, *self.members_of), self.other_names)
        result: dict[str, Any] = _spelled(given, self.other_names)
        for name, part in self.members_of.items():
            if name not in result:
                continue
            inside = result.setdefault(part, {})
            if not isinstance(inside, dict) or name in inside:
                raise PolicyError(name, f"is specified twice: here and in {part}")
            inside[name] = result.pop(name)
        return result

    def resets(self, shown: Mapping[str, Any], given: Mapping[str, Any]) -> list[Reset]:
        """List what a replacement by `given` sets back without naming it. `shown` is the document as a response has it.

        What the document names, changed or not, is meant.
        """
        given = {name: value for name, value in given.items() if name not in self.beside}
        before = self.parse({name: shown[name] for name in self.fields if shown.get(name) is not None})
        try:
            wanted = self.spelled({self.id_name: shown[self.id_name], **given})
            after = dict(_leaves(self.document(self.parse(wanted))))
        except PolicyError:  # whoever reads it refuses it; until then nothing of it is known
            wanted, after = dict(given), {}
        return [
            Reset(path, old, after.get(path))
            for path, old in _leaves(self.document(before))
            if old != after.get(path) and not _names(wanted, path.split("."))
        ]


def _spelled(given: Any, names: Mapping[str, str]) -> Any:
    if not isinstance(given, Mapping):
        return given
    result: dict[str, Any] = {}
    for key, value in given.items():
        name = names.get(snake(key), snake(key))
        if name in result:
            raise PolicyError(name, "is specified twice in different spellings")
        result[name] = _spelled(value, _IN_POLICIES)
    return result


def _leaves(document: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, object]]:
    for name, value in document.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{above}{name}.")
        else:
            yield f"{above}{name}", value


def _names(document: object, path: list[str]) -> bool:
    """Return whether the document gives this member, or a whole that it is part of."""
    for name in path:
        if not isinstance(document, Mapping):
            return True
        if name not in document:
            return False
        document = document[name]
    return True


AGENT: Final = DocumentShape(
    "id",
    agent.FIELDS,
    agent.parse_agent,
    agent.agent_document,
    agent.OTHER_NAMES,
    beside=frozenset({"token"}),
)
TEAM: Final = DocumentShape(
    "team_id",
    assignee.TEAM_FIELDS,
    assignee.parse_team,
    assignee.team_document,
    assignee.TEAM_NAMES,
    {"budget": "policies"},
)
ASSIGNMENT: Final = DocumentShape(
    "assignment_id",
    assignee.ASSIGNMENT_FIELDS,
    assignee.parse_assignment,
    assignee.assignment_document,
    assignee.ASSIGNMENT_NAMES,
)
SHAPES: Final[Mapping[str, DocumentShape[Any]]] = {"agent": AGENT, "team": TEAM, "assignment": ASSIGNMENT}
