"""Parts of a workflow: steps with an action each, joined by edges into a graph without cycles, and its topological
order.

Nodes of a graph are names, edges are pairs (before, after). Nothing here recurses, so a chain as long as a
workflow may be is no deeper for Python than a short one.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256

from horarium.condition import Condition
from horarium.core.document.assignee import Assignee
from horarium.core.document.json_values import Json
from horarium.core.policy.approval import ApprovalPolicy, RetryPolicy
from horarium.core.policy.queue import MAX_ID
from horarium.errors import CycleDetected, InvalidWorkflow

# ── Graphs ────────────────────────────────────────────────────────────────────────────────────────────


def find_cycle(nodes: Iterable[str], edges: Iterable[tuple[str, str]]) -> tuple[str, ...] | None:
    """The members of one cycle in the order of its edges; the same one for the same input."""
    after = _successors(nodes, edges)
    done: set[str] = set()
    for root in after:
        if root not in done:
            cycle = _cycle_from(root, after, done)
            if cycle is not None:
                return cycle
    return None


def topological_order(nodes: Iterable[str], edges: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """Every node after those it needs; among equals the order given. Raises CycleDetected."""
    pairs = tuple(edges)
    after = _successors(nodes, pairs)
    rank = {node: position for position, node in enumerate(after)}
    names = tuple(after)
    waiting_for = dict.fromkeys(after, 0)
    for _, target in pairs:
        waiting_for[target] += 1
    free = [rank[node] for node, count in waiting_for.items() if count == 0]
    order: list[str] = []
    while free:
        node = names[heapq.heappop(free)]
        order.append(node)
        for target in after[node]:
            waiting_for[target] -= 1
            if waiting_for[target] == 0:
                heapq.heappush(free, rank[target])
    if len(order) < len(names):
        raise CycleDetected(find_cycle(names, pairs) or ())
    return tuple(order)


def components(nodes: Iterable[str], edges: Iterable[tuple[str, str]]) -> Iterator[list[str]]:
    """Yield the strongly connected components, each before those that it leads to (Kosaraju's algorithm)."""
    pairs = tuple(edges)
    after = _successors(nodes, pairs)
    before = _successors(after, ((target, source) for source, target in pairs))
    seen: set[str] = set()
    for root in reversed([name for start in after for name in _finished(start, after, seen)]):
        if root in seen:
            seen.remove(root)
            members = [root]
            for name in members:
                found = [each for each in before[name] if each in seen]
                seen.difference_update(found)
                members += dict.fromkeys(found)
            yield members


def _finished(root: str, after: dict[str, list[str]], seen: set[str]) -> Iterator[str]:
    """Yield what can be reached and was not seen, each node after those that it leads to."""
    if root in seen:
        return
    seen.add(root)
    path, branches = [root], [iter(after[root])]
    while path:
        node = next((each for each in branches[-1] if each not in seen), None)
        if node is None:
            branches.pop()
            yield path.pop()
        else:
            seen.add(node)
            path.append(node)
            branches.append(iter(after[node]))


def _successors(nodes: Iterable[str], edges: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    after: dict[str, list[str]] = {node: [] for node in nodes}
    for source, target in edges:
        after.setdefault(source, []).append(target)
        after.setdefault(target, [])
    return after


def _cycle_from(root: str, after: dict[str, list[str]], done: set[str]) -> tuple[str, ...] | None:
    """Depth first from `root`; nodes from which no cycle can be reached are added to `done`."""
    path: list[str] = [root]
    place = {root: 0}
    branches: list[Iterator[str]] = [iter(after[root])]
    while branches:
        node = next(branches[-1], None)
        if node is None:
            branches.pop()
            left = path.pop()
            del place[left]
            done.add(left)
        elif node in place:
            return tuple(path[place[node] :])
        elif node not in done:
            place[node] = len(path)
            path.append(node)
            branches.append(iter(after[node]))
    return None


# ── Steps and edges ───────────────────────────────────────────────────────────────────────────────────


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
class WorkflowTrigger:
    """`settings` of a schedule trigger are a schedule definition without its action."""

    key: str
    kind: TriggerKind
    settings: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class WorkflowDefinition:
    """`approval` holds for every run of it, whoever starts it; `queue` and `connection` for actions that name none."""

    workflow_id: str
    version: int
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...] = ()
    triggers: tuple[WorkflowTrigger, ...] = ()
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


def edges_into(workflow: WorkflowDefinition) -> dict[str, tuple[Edge, ...]]:
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


def _check_sizes(workflow: WorkflowDefinition) -> None:
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


def _check_names(workflow: WorkflowDefinition) -> None:
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
