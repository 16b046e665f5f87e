"""What a workflow is: steps with an action each, joined by edges into a graph without cycles.

A document lists `nodes` and says what comes before what in either way: `needs` on a node, or `edges`
(`from`/`to` or `source`/`target`, with an optional condition). Both are read into one set of edges.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from hashlib import sha256

from horarium.condition import Condition, compile_condition
from horarium.errors import ConditionError, CycleDetected, InvalidWorkflow
from horarium.policy.approval import ApprovalPolicy
from horarium.policy.names import PolicyError, parse_name, read_object, shown, text, texts, whole_number, whole_or_none
from horarium.policy.retry import RetryPolicy, parse_retry_policy
from horarium.schedule.assignee import Assignee, parse_assignee
from horarium.schedule.graph import find_cycle, topological_order
from horarium.schedule.json_limits import Json
from horarium.schedule.jsonvalue import check_text, checked_object
from horarium.schedule.naming import checked_id

__all__ = [
    "Edge",
    "Node",
    "Trigger",
    "TriggerKind",
    "Workflow",
    "edges_into",
    "find_cycle",
    "parse_workflow",
    "template_schedule_id",
    "topological_order",
]

MAX_NODES = 1_000
MAX_EDGES = 10_000
MAX_TRIGGERS = 100
_MAX_DESCRIPTION = 10_000
_MAX_ID = 128

# No colon: the last colon of a template schedule's id then separates workflow and key without doubt.
_TRIGGER_KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)

_WORKFLOW_KEYS = ("workflow_id", "version", "name", "description", "owner", "nodes", "edges", "triggers")
_NODE_KEYS = (
    "id",
    "name",
    "action",
    "needs",
    "gates",
    "retry_policy",
    "timeout_seconds",
    "assignee_type",
    "assignee_id",
)
_NODE_ALIASES = {"node_id": "id", "depends_on": "needs", "retry": "retry_policy", "timeout": "timeout_seconds"}
_EDGE_ALIASES = {"from": "source", "to": "target"}


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


_TRIGGER_ALIASES: Mapping[str, TriggerKind] = {
    "schedule_based": TriggerKind.SCHEDULE,
    "cron": TriggerKind.SCHEDULE,
    "event_based": TriggerKind.EVENT,
}


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
        cycle = find_cycle([node.id for node in self.nodes], _pairs(self.edges))
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
    if len(plain) <= _MAX_ID:
        return plain
    digest = sha256(plain.encode()).hexdigest()[:24]
    return f"{plain[: _MAX_ID - 25]}:{digest}"


def _pairs(edges: tuple[Edge, ...]) -> list[tuple[str, str]]:
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
            raise InvalidWorkflow(f"{field}: {count} {field}; a workflow has at most {most}")
    if workflow.version < 1:
        raise InvalidWorkflow("version: versions are counted from 1")


def _check_names(workflow: Workflow) -> None:
    known: set[str] = set()
    for node in workflow.nodes:
        if node.id in known:
            raise InvalidWorkflow(f"nodes: the id {node.id!r} is given twice")
        known.add(node.id)
    joined: dict[str, set[str]] = {node.id: set() for node in workflow.nodes}
    for edge in workflow.edges:
        for end in (edge.source, edge.target):
            if end not in known:
                raise InvalidWorkflow(f"edges: {edge.source} → {edge.target} names {end!r}, which is no node")
        if edge.source == edge.target:
            raise InvalidWorkflow(f"edges: the node {edge.source!r} cannot wait for itself")
        if edge.source in joined[edge.target]:
            raise InvalidWorkflow(f"edges: {edge.source} → {edge.target} is given twice")
        joined[edge.target].add(edge.source)
    for node in workflow.nodes:
        if set(node.needs) != joined[node.id]:
            raise InvalidWorkflow(f"nodes: the needs of {node.id!r} are not the edges that lead to it")
    keys = [trigger.key for trigger in workflow.triggers]
    if len(set(keys)) < len(keys):
        twice = next(key for position, key in enumerate(keys) if key in keys[:position])
        raise InvalidWorkflow(f"triggers: the key {twice!r} is given twice")


# ── reading a document ────────────────────────────────────────────────────────────────────────────


def parse_workflow(document: Mapping[str, object]) -> Workflow:
    """Keys in snake_case or camelCase; raises InvalidWorkflow with the path, or CycleDetected."""
    with _at(""):
        given = read_object(document, "workflow", _WORKFLOW_KEYS, {"id": "workflow_id"})
        workflow_id = checked_id("workflow_id", given.get("workflow_id"))
        version = whole_number("version", given.get("version", 1), least=1)
        name = None if "name" not in given else text("name", given["name"])
        owner = None if "owner" not in given else text("owner", given["owner"])
        description = _description(given.get("description"))
        raw_nodes = _array("nodes", given.get("nodes", ()), MAX_NODES)
        raw_edges = _array("edges", given.get("edges", ()), MAX_EDGES)
        raw_triggers = _array("triggers", given.get("triggers", ()), MAX_TRIGGERS)
    nodes = tuple(_parse_node(index, item) for index, item in enumerate(raw_nodes))
    edges = tuple(_parse_edge(index, item) for index, item in enumerate(raw_edges))
    triggers = tuple(_parse_trigger(index, item) for index, item in enumerate(raw_triggers))
    joined = _join(nodes, edges)
    needs: dict[str, list[str]] = {}
    for edge in joined:
        needs.setdefault(edge.target, []).append(edge.source)
    nodes = tuple(replace(node, needs=tuple(needs.get(node.id, ()))) for node in nodes)
    return Workflow(workflow_id, version, nodes, joined, triggers, owner, name, description)


def _join(nodes: tuple[Node, ...], edges: tuple[Edge, ...]) -> tuple[Edge, ...]:
    """The edges given, then those that only a `needs` speaks of."""
    # Before any edge is made: a thousand nodes that need a thousand each would make a million.
    if sum(len(node.needs) for node in nodes) > MAX_EDGES:
        raise InvalidWorkflow(f"nodes: more than {MAX_EDGES} needs in all")
    given = set(_pairs(edges))
    wanted = [Edge(source, node.id) for node in nodes for source in node.needs]
    return edges + tuple(edge for edge in wanted if (edge.source, edge.target) not in given)


def _parse_node(index: int, value: object) -> Node:
    with _at(f"nodes.{index}"):
        given = read_object(value, "", _NODE_KEYS, _NODE_ALIASES)
        needs = texts("needs", given.get("needs", ()), most=MAX_NODES)
        node = Node(
            id=checked_id("id", given.get("id")),
            action=checked_object("action", given.get("action")),
            needs=needs,
            gates=texts("gates", given.get("gates", ())),
            timeout_seconds=whole_or_none("timeout_seconds", given.get("timeout_seconds"), least=1),
            assignee=parse_assignee(given.get("assignee_type"), given.get("assignee_id")),
            name=None if "name" not in given else text("name", given["name"]),
        )
    if "retry_policy" not in given:
        return node
    with _at(f"nodes.{index}.retry_policy"):
        return replace(node, retry_policy=parse_retry_policy(given["retry_policy"]))


def _parse_edge(index: int, value: object) -> Edge:
    with _at(f"edges.{index}"):
        given = read_object(value, "", ("source", "target", "condition"), _EDGE_ALIASES)
        source, target = checked_id("from", given.get("source")), checked_id("to", given.get("target"))
    if "condition" not in given:
        return Edge(source, target)
    try:
        return Edge(source, target, compile_condition(given["condition"]))
    except ConditionError as wrong:
        raise InvalidWorkflow(f"edges.{index}.condition: {wrong.message}") from None


def _parse_trigger(index: int, value: object) -> Trigger:
    """`{key?, type?, schedule: {…}}`, or the settings beside `key` and `type` without a `schedule`."""
    with _at(f"triggers.{index}"):
        given = checked_object("", value)
        key = _trigger_key(given.pop("key", None), index)
        kind = parse_name(TriggerKind, _TRIGGER_ALIASES, given.pop("type", None) or "schedule", "type")
        if "schedule" not in given:
            return Trigger(key, kind, given)
        settings = checked_object("schedule", given.pop("schedule"))
        if given:
            raise PolicyError(min(given)[:64], "unknown key beside `schedule`; put it inside")
        return Trigger(key, kind, settings)


def _trigger_key(value: object, index: int) -> str:
    if value is None:
        return str(index)
    if not isinstance(value, str) or _TRIGGER_KEY.fullmatch(value) is None:
        raise PolicyError("key", f"{shown(value)} is not a key: use 1 to 64 of A-Z a-z 0-9 . _ -")
    return value


def _array(field: str, value: object, most: int) -> list[object] | tuple[object, ...]:
    if not isinstance(value, list | tuple):
        raise PolicyError(field, f"must be an array, not {shown(value)}")
    if len(value) > most:
        raise PolicyError(field, f"{len(value)} {field}; a workflow has at most {most}")
    return value


def _description(value: object) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str) or len(value) > _MAX_DESCRIPTION:
        raise PolicyError("description", f"must be text of at most {_MAX_DESCRIPTION} characters")
    check_text("description", value)
    return value


@contextmanager
def _at(path: str) -> Iterator[None]:
    """Turns what a reader says about a key into what the caller must know: the path from the top."""
    try:
        yield
    except PolicyError as wrong:
        parts = [part for part in (path, wrong.field) if part]
        if path.endswith(f".{wrong.field}"):
            parts = [path]
        raise InvalidWorkflow(f"{'.'.join(parts)}: {wrong.text}") from None
