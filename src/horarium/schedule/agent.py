"""What an agent is: somebody outside who is given work, under an address, with policies of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from horarium.policy.names import PolicyError, flag, parse_name, read_object, shown, whole_number
from horarium.schedule import checks
from horarium.schedule.agent_words import AgentContext, AgentProtocol, AgentSchedules
from horarium.schedule.naming import checked_id
from horarium.schedule.secret_value import host_names
from horarium.schedule.worker_policies import (
    WorkerPolicies,
    parse_worker_policies,
    policies_document,
    read_part,
)

# Work that one agent does at the same time; more is a fleet, which has an address of its own.
MAX_CAPACITY = 1_000
# From an agent to the outermost of its parents, itself included.
MAX_DEPTH = 32
MAX_TOKEN_LENGTH = 4_096


@dataclass(frozen=True, slots=True)
class Agent:
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


def parse_agent(document: object) -> Agent:
    """Without the token, which the caller takes out before. Raises PolicyError."""
    given = read_object(document, "agent", FIELDS, OTHER_NAMES)
    read: dict[str, Any] = {"agent_id": checked_id("id", given.pop("id", None))}
    for name, value in given.items():
        read[name] = _READERS[name](value) if name in _READERS else value
    return Agent(**read)


def agent_document(agent: Agent) -> dict[str, Any]:
    """Only what differs from a default, and always the id."""
    usual = Agent(agent.agent_id)
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
