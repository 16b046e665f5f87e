"""Forms of a stored workflow: its canonical document, its graph, and its sub-workflows.

Two documents that mean the same are written alike: what a node waits for stands in its `needs`, and `edges` are those
with a condition. Id and version are no part of it: they are those of the row. Workflows that are parts of each other
contain no cycle, and have at most eight levels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from horarium.core.document.canonical import policy_document
from horarium.core.document.nodes import action_of
from horarium.core.document.reader import WORKFLOW
from horarium.core.document.workflow_parts import (
    Node,
    TriggerKind,
    WorkflowDefinition,
    WorkflowTrigger,
    find_cycle,
    pairs_of,
    topological_order,
)
from horarium.errors import CycleDetected, InvalidWorkflow

# ── Documents ─────────────────────────────────────────────────────────────────────────────────────────


TEMPLATES: Final = "workflow:"
"""The reserved prefix of the names of such bundles."""


class NodeOrder(NamedTuple):
    """`order`: every node after those it waits for; `starts` wait for nobody, and for `ends` nobody waits."""

    order: tuple[str, ...]
    starts: tuple[str, ...]
    ends: tuple[str, ...]


class SubWorkflow(NamedTuple):
    """`version` None = the newest there is when the root is born. `path` is that of the node's action."""

    path: str
    name: str
    version: int | None


def workflow_document(workflow: WorkflowDefinition) -> dict[str, Any]:
    """Only what somebody said, in a fixed order."""
    plain = {(edge.source, edge.target) for edge in workflow.edges if edge.condition is None}
    policy = None if workflow.approval is None else policy_document("approval_policy", workflow.approval)
    document = {
        "name": workflow.name,
        "description": workflow.description,
        "owner": workflow.owner,
        "approval_policy": policy,
        "queue": workflow.queue,
        "connection": workflow.connection,
        "nodes": [_node(node, plain) for node in workflow.nodes],
        "edges": [
            {"from": edge.source, "to": edge.target, "condition": edge.condition.document()}
            for edge in workflow.edges
            if edge.condition is not None
        ],
        "triggers": [_trigger(trigger) for trigger in workflow.triggers],
    }
    return {name: value for name, value in document.items() if value not in (None, [])}


def template_bundle(workflow_id: str) -> str:
    """The bundle of the schedules that its triggers make."""
    return f"{TEMPLATES}{workflow_id}"


def graph_of(workflow: WorkflowDefinition) -> NodeOrder:
    names = [node.id for node in workflow.nodes]
    pairs = pairs_of(workflow.edges)
    waiting, waited_for = {target for _, target in pairs}, {source for source, _ in pairs}
    return NodeOrder(
        topological_order(names, pairs),
        tuple(name for name in names if name not in waiting),
        tuple(name for name in names if name not in waited_for),
    )


def sub_workflows(workflow: WorkflowDefinition) -> tuple[SubWorkflow, ...]:
    """Stored workflows that nodes may name."""
    found = []
    for index, node in enumerate(workflow.nodes):
        if node.action.get("kind") != WORKFLOW.name:
            continue
        action = action_of(node)
        version = action.target.get("version")
        if action.workflow is not None:
            path = f"nodes.{index}.action"
            found.append(SubWorkflow(path, action.workflow, version if isinstance(version, int) else None))
    return tuple(found)


def _node(node: Node, plain: set[tuple[str, str]]) -> dict[str, Any]:
    retry = None if node.retry_policy is None else policy_document("retry_policy", node.retry_policy)
    assignee = node.assignee
    written = {
        "id": node.id,
        "name": node.name,
        "action": dict(node.action),
        "needs": [source for source in node.needs if (source, node.id) in plain] or None,
        "gates": list(node.gates) or None,
        "retry_policy": retry,
        "timeout_seconds": node.timeout_seconds,
        "assignee_type": None if assignee is None else assignee.type.value,
        "assignee_id": None if assignee is None else assignee.id,
        "input": node.input if node.has_input else None,
    }
    return {name: value for name, value in written.items() if value is not None}


def _trigger(trigger: WorkflowTrigger) -> dict[str, Any]:
    if trigger.kind is TriggerKind.SCHEDULE:
        return {"key": trigger.key, "schedule": dict(trigger.settings)}
    return {"key": trigger.key, "type": trigger.kind.value, **trigger.settings}


# ── Sub-workflows ─────────────────────────────────────────────────────────────────────────────────────


MAX_DEPTH: Final = 8
"""The workflow itself is at depth 0."""
MAX_REACHABLE: Final = 200
"""Workflows that one may lead to, all levels together."""


class WorkflowUse(NamedTuple):
    """A workflow that a node names, and its version; None = the newest."""

    name: str
    version: int | None


class StoredUses(NamedTuple):
    """Version of a stored workflow, with the workflows that its nodes use."""

    version: int
    uses: tuple[WorkflowUse, ...]


def check_sub_workflows(
    root: WorkflowUse, subs: Sequence[SubWorkflow], known: Mapping[WorkflowUse, StoredUses]
) -> None:
    """Raises CycleDetected, or InvalidWorkflow with every node that leads too deep.

    `root` is the version that is to be written, `known` all that are stored of those that it leads to. A name that
    nobody has stored is a task's, or a worker's.
    """
    nodes, edges = _graph(root, [WorkflowUse(sub.name, sub.version) for sub in subs], known)
    cycle = find_cycle(nodes, edges)
    if cycle is not None:
        first = next(
            (sub for sub in subs if _key_of_use(root, WorkflowUse(sub.name, sub.version), known) in cycle), subs[0]
        )
        raise CycleDetected([name.rpartition("@")[0] for name in cycle], path=first.path)
    after: dict[str, list[str]] = {node: [] for node in nodes}
    for source, target in edges:
        after[source].append(target)
    below = dict.fromkeys(nodes, 0)
    for node in reversed(topological_order(nodes, edges)):
        below[node] = max((below[target] + 1 for target in after[node]), default=0)
    deep = {}
    for sub in subs:
        key = _key_of_use(root, WorkflowUse(sub.name, sub.version), known)
        if key is not None and below[key] + 1 > MAX_DEPTH:
            deep[sub.path] = [f"nests workflows {below[key] + 1} levels deep; at most {MAX_DEPTH} are allowed"]
    if deep:
        raise InvalidWorkflow(deep)


def _graph(
    root: WorkflowUse, first: Sequence[WorkflowUse], known: Mapping[WorkflowUse, StoredUses]
) -> tuple[list[str], list[tuple[str, str]]]:
    start = _name_of_use(root)
    nodes, edges = {start: None}, dict[tuple[str, str], None]()
    waiting: list[tuple[str, Sequence[WorkflowUse]]] = [(start, first)]
    while waiting:
        source, uses = waiting.pop()
        for use in uses:
            key = _key_of_use(root, use, known)
            if key is None:
                continue
            edges[source, key] = None
            if key not in nodes:
                nodes[key] = None
                waiting.append((key, known[use].uses))
    return list(nodes), list(edges)


def _key_of_use(root: WorkflowUse, use: WorkflowUse, known: Mapping[WorkflowUse, StoredUses]) -> str | None:
    """The newest version of the one that is to be written is the one that is to be written."""
    if use.name == root.name and use.version in (None, root.version):
        return _name_of_use(root)
    return _name_of_use(WorkflowUse(use.name, known[use].version)) if use in known else None


def _name_of_use(use: WorkflowUse) -> str:
    return f"{use.name}@{use.version}"
