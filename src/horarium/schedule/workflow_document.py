"""Writes a workflow as its one canonical document, and tells what follows from it: graph and sub-workflows.

Two documents that mean the same are written alike: what a node waits for stands in its `needs`, and `edges` are those
with a condition. Id and version are no part of it: they are those of the row.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from horarium.schedule.canonical import policy_document
from horarium.schedule.graph import topological_order
from horarium.schedule.kinds import WORKFLOW
from horarium.schedule.node_action import action_of
from horarium.schedule.workflow_parts import Node, Trigger, TriggerKind, Workflow, pairs_of

TEMPLATES: Final = "workflow:"
"""The reserved prefix of the names of such bundles."""


class Graph(NamedTuple):
    """`order`: every node after those it waits for; `starts` wait for nobody, and for `ends` nobody waits."""

    order: tuple[str, ...]
    starts: tuple[str, ...]
    ends: tuple[str, ...]


class SubWorkflow(NamedTuple):
    """`version` None = the newest there is when the root is born. `path` is that of the node's action."""

    path: str
    name: str
    version: int | None


def workflow_document(workflow: Workflow) -> dict[str, Any]:
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


def graph_of(workflow: Workflow) -> Graph:
    names = [node.id for node in workflow.nodes]
    pairs = pairs_of(workflow.edges)
    waiting, waited_for = {target for _, target in pairs}, {source for source, _ in pairs}
    return Graph(
        topological_order(names, pairs),
        tuple(name for name in names if name not in waiting),
        tuple(name for name in names if name not in waited_for),
    )


def sub_workflows(workflow: Workflow) -> tuple[SubWorkflow, ...]:
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


def _trigger(trigger: Trigger) -> dict[str, Any]:
    if trigger.kind is TriggerKind.SCHEDULE:
        return {"key": trigger.key, "schedule": dict(trigger.settings)}
    return {"key": trigger.key, "type": trigger.kind.value, **trigger.settings}
