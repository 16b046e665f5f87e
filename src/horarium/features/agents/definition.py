"""Definitions of agents, and the documents of agents, teams and assignments with partial changes to them.

An agent is an external worker with an address and policies of its own. Agents may speak with each other along one
line, from the outermost parent down, and with siblings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Generic, NamedTuple, TypeVar

from horarium.core.document import assignee, checks
from horarium.core.document.assignee import (
    AgentContext,
    AgentProtocol,
    AgentSchedules,
    WorkerPolicies,
    parse_worker_policies,
    policies_document,
    read_part,
)
from horarium.core.document.secret_values import host_names
from horarium.core.policy.limits import LIMIT_ALIASES
from horarium.core.policy.queue import (
    QUEUE_KEY_ALIASES,
    PolicyError,
    checked_id,
    flag,
    merge_patched,
    parse_name,
    read_object,
    shown,
    snake,
    whole_number,
)

# ── Agents ────────────────────────────────────────────────────────────────────────────────────────────


# Work that one agent does at the same time; more is a fleet, which has an address of its own.
MAX_CAPACITY = 1_000
# From an agent to the outermost of its parents, itself included.
MAX_DEPTH = 32
MAX_TOKEN_LENGTH = 4_096


@dataclass(frozen=True, slots=True)
class AgentDefinition:
    """Its token is no part of it: that is kept sealed beside it, and never answered.

    `allowed_hosts` are those to which its card may point beside its own; the token goes to none of them.
    """

    agent_id: str
    name: str = ""
    url: str | None = None
    parent_id: str | None = None
    capacity: int = 1
    protocol: AgentProtocol = AgentProtocol.AUTO
    context: AgentContext = AgentContext.FRESH
    policies: WorkerPolicies = field(default_factory=WorkerPolicies)
    native_scheduler: bool = False
    allowed_hosts: tuple[str, ...] = ()
    schedules: AgentSchedules = AgentSchedules.OWN

    def __post_init__(self) -> None:
        checked_id("id", self.agent_id)
        whole_number("capacity", self.capacity, least=1, most=MAX_CAPACITY)
        flag("native_scheduler", self.native_scheduler)
        if self.parent_id is not None:
            checked_id("parent_id", self.parent_id)
            if self.parent_id == self.agent_id:
                raise PolicyError("parent_id", "an agent is not its own parent")


FIELDS: Final = (
    "id",
    "name",
    "url",
    "parent_id",
    "capacity",
    "protocol",
    "context",
    "policies",
    "native_scheduler",
    "allowed_hosts",
    "schedules",
)
OTHER_NAMES: Final[Mapping[str, str]] = {"agent_id": "id"}


def parse_agent(document: object) -> AgentDefinition:
    """Without the token, which the caller takes out before. Raises PolicyError."""
    given = read_object(document, "agent", FIELDS, OTHER_NAMES)
    read: dict[str, Any] = {"agent_id": checked_id("id", given.pop("id", None))}
    for name, value in given.items():
        read[name] = _READERS[name](value) if name in _READERS else value
    return AgentDefinition(**read)


def agent_document(agent: AgentDefinition) -> dict[str, Any]:
    """Only what differs from a default, and always the id."""
    usual = AgentDefinition(agent.agent_id)
    document: dict[str, Any] = {"id": agent.agent_id}
    for name in FIELDS[1:]:
        value = getattr(agent, name)
        if value != getattr(usual, name):
            document[name] = _WRITERS[name](value) if name in _WRITERS else value
    return document


def checked_token(value: object) -> str:
    """Check a token for a header: visible ASCII in one line."""
    if not isinstance(value, str):
        raise PolicyError("token", f"must be a string, not {type(value).__name__}")
    if not 1 <= len(value) <= MAX_TOKEN_LENGTH or not value.isascii() or not value.isprintable() or " " in value:
        raise PolicyError("token", f"must be 1 to {MAX_TOKEN_LENGTH} visible ASCII characters")
    return value


def parents_of(agent_id: str, parents: Mapping[str, str | None]) -> tuple[str, ...]:
    """All above it, the nearest first. Raises PolicyError for a circle, and for more than `MAX_DEPTH` of them."""
    found: list[str] = []
    above = parents.get(agent_id)
    while above is not None:
        if above == agent_id or above in found:
            raise PolicyError("parent_id", f"{shown(above)} would be its own ancestor")
        found.append(above)
        if len(found) >= MAX_DEPTH:
            raise PolicyError("parent_id", f"agents may be nested at most {MAX_DEPTH} levels deep")
        above = parents.get(above)
    return tuple(found)


_READERS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "name": lambda value: checks.one_line("name", value),
    "url": lambda value: checks.url("url", value),
    "parent_id": lambda value: checked_id("parent_id", value),
    "protocol": lambda value: parse_name(AgentProtocol, {}, value, "protocol"),
    "context": lambda value: parse_name(AgentContext, {}, value, "context"),
    "schedules": lambda value: parse_name(AgentSchedules, {}, value, "schedules"),
    "policies": lambda value: read_part("policies", parse_worker_policies, value),
    "allowed_hosts": lambda value: host_names("allowed_hosts", value),
}
_WRITERS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "policies": policies_document,
    "allowed_hosts": list,
    "schedules": lambda value: value.value,
}


# ── Peers ─────────────────────────────────────────────────────────────────────────────────────────────


def may_speak(one: str, other: str, parents: Mapping[str, str | None]) -> bool:
    """`parents` holds both and all above them; whoever is not in it is nobody, and speaks with no one.

    Agents without a parent are siblings. Those who stand in a circle, or deeper than agents may, are refused.
    """
    if one not in parents or other not in parents:
        return False
    if one == other:
        return True
    try:
        above_one, above_other = parents_of(one, parents), parents_of(other, parents)
    except PolicyError:
        return False
    return other in above_one or one in above_other or parents[one] == parents[other]


# ── Documents ─────────────────────────────────────────────────────────────────────────────────────────


V = TypeVar("V")

# Other names of members of policies; those of a kind itself stand in its shape.
_IN_POLICIES: Final[Mapping[str, str]] = {
    "require_approval": "requires_approval",
    **LIMIT_ALIASES,
    **QUEUE_KEY_ALIASES,
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
        return self.parse(merge_patched(self.document(value), self.spelled(changes)))

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
    FIELDS,
    parse_agent,
    agent_document,
    OTHER_NAMES,
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
