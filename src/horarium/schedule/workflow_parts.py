"""What a workflow is: steps with an action each, joined by edges into a graph without cycles."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256

from horarium.condition import Condition
from horarium.errors import CycleDetected, InvalidWorkflow
from horarium.policy.approval import ApprovalPolicy
from horarium.policy.retry import RetryPolicy
from horarium.schedule.assignee import Assignee
from horarium.schedule.graph import find_cycle
from horarium.schedule.json_limits import Json
from horarium.schedule.naming import MAX_ID

MAX_NODES = 1_000
MAX_EDGES = 10_000
MAX_TRIGGERS = 100


@dataclass(frozen=True, slots=True)
class Node:
    """One step; `needs` are all nodes with an edge to it, `gates` what it touches that may need approval.

    `input` is a template of what it is given; without one (`has_input` is false) it is given inputs and results.
    """

    id: str
    action: Mapping[str, object]
    needs: tuple[str, ...] = ()
    gates: tuple[str, ...] = ()
    retry_policy: RetryPolicy | None = None
    timeout_seconds: int | None = None
    assignee: Assignee | None = None
    name: str | None = None
    input: Json = None
    has_input: bool = False


@dataclass(frozen=True, slots=True)
class Edge:
    """`target` waits for `source`; a condition that does not hold closes this way to it."""

    source: str
    target: str
    condition: Condition | None = None


class TriggerKind(StrEnum):
    """Only `schedule` is ours to act on; the others are kept for those who watch for them."""

    SCHEDULE = "schedule"
    EVENT = "event"
    WEBHOOK = "webhook"
    MANUAL = "manual"


@dataclass(frozen=True, slots=True)
class Trigger:
    """`settings` of a schedule trigger are a schedule definition without its action."""

    key: str
    kind: TriggerKind
    settings: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Workflow:
    """`approval` holds for every run of it, whoever starts it; `queue` and `connection` for actions that name none."""

    workflow_id: str
    version: int
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...] = ()
    triggers: tuple[Trigger, ...] = ()
    owner: str | None = None
    name: str | None = None
    description: str | None = None
    approval: ApprovalPolicy | None = None
    queue: str | None = None
    connection: str | None = None

    def __post_init__(self) -> None:
        _check_sizes(self)
        _check_names(self)
        cycle = find_cycle([node.id for node in self.nodes], pairs_of(self.edges))
        if cycle is not None:
            raise CycleDetected(cycle)


def edges_into(workflow: Workflow) -> dict[str, tuple[Edge, ...]]:
    """For each node the edges that lead to it; a node without any is where the workflow starts."""
    into: dict[str, list[Edge]] = {node.id: [] for node in workflow.nodes}
    for edge in workflow.edges:
        into[edge.target].append(edge)
    return {node: tuple(edges) for node, edges in into.items()}


def template_schedule_id(workflow_id: str, trigger: str | int) -> str:
    """The id of the schedule that a trigger makes: the same at every put, so that it is found again.

    An id that would be longer than ids may be ends in a hash of what was cut.
    """
    plain = f"workflow:{workflow_id}:{trigger}"
    if len(plain) <= MAX_ID:
        return plain
    digest = sha256(plain.encode()).hexdigest()[:24]
    return f"{plain[: MAX_ID - 25]}:{digest}"


def pairs_of(edges: Iterable[Edge]) -> list[tuple[str, str]]:
    return [(edge.source, edge.target) for edge in edges]


def _check_sizes(workflow: Workflow) -> None:
    if not workflow.nodes:
        raise InvalidWorkflow("nodes: a workflow has at least one node")
    for field, count, most in (
        ("nodes", len(workflow.nodes), MAX_NODES),
        ("edges", len(workflow.edges), MAX_EDGES),
        ("triggers", len(workflow.triggers), MAX_TRIGGERS),
    ):
        if count > most:
            raise InvalidWorkflow(f"{field}: {count} {field}; at most {most} are allowed per workflow")
    if workflow.version < 1:
        raise InvalidWorkflow("version: must be 1 or more")


def _check_names(workflow: Workflow) -> None:
    known: set[str] = set()
    for node in workflow.nodes:
        if node.id in known:
            raise InvalidWorkflow(f"nodes: the ID {node.id!r} is specified twice")
        known.add(node.id)
    joined: dict[str, set[str]] = {node.id: set() for node in workflow.nodes}
    for edge in workflow.edges:
        for end in (edge.source, edge.target):
            if end not in known:
                raise InvalidWorkflow(f"edges: {edge.source} → {edge.target} references {end!r}, which is not a node")
        if edge.source == edge.target:
            raise InvalidWorkflow(f"edges: the node {edge.source!r} cannot depend on itself")
        if edge.source in joined[edge.target]:
            raise InvalidWorkflow(f"edges: {edge.source} → {edge.target} is specified twice")
        joined[edge.target].add(edge.source)
    for node in workflow.nodes:
        if set(node.needs) != joined[node.id]:
            raise InvalidWorkflow(f"nodes: the needs of {node.id!r} do not match the edges to it")
    keys = [trigger.key for trigger in workflow.triggers]
    if len(set(keys)) < len(keys):
        twice = next(key for position, key in enumerate(keys) if key in keys[:position])
        raise InvalidWorkflow(f"triggers: the key {twice!r} is specified twice")
