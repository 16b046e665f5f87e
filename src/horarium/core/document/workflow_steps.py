"""Steps of a workflow's runs: the compiled graph that they advance along, and the definition of each step.

The compiled form has nodes by their places, and the edges of each at hand. It is compiled once for each version,
which never changes.

A step is derived from the definition of its root, with the action, the time and the retries of its node. It is not
stored, since the revision of the root and the version of the workflow never change.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

from horarium.condition import Condition
from horarium.core.document.definition import Action
from horarium.core.document.effective_policies import Effective
from horarium.core.document.nodes import action_of
from horarium.core.document.workflow import Node, WorkflowDefinition
from horarium.core.document.workflow_parts import topological_order
from horarium.core.policy.limits import RunLimits, merge_limits

# ── Compiled workflows ────────────────────────────────────────────────────────────────────────────────


class IncomingEdge(NamedTuple):
    """An edge, seen from its target."""

    source: int
    condition: Condition | None

    @property
    def reads_result(self) -> bool:
        return self.condition is not None and self.condition.reads("result")


@dataclass(frozen=True, eq=False)
class CompiledWorkflow:
    """A place is the index of a node in the document; `rank` says when it comes, by place."""

    workflow: WorkflowDefinition

    @property
    def nodes(self) -> tuple[Node, ...]:
        return self.workflow.nodes

    @cached_property
    def places(self) -> dict[str, int]:
        return {node.id: place for place, node in enumerate(self.nodes)}

    def node(self, node_id: str) -> Node:
        """Raises LookupError for what is no node of it."""
        return self.nodes[self.places[node_id]]

    @cached_property
    def order(self) -> tuple[str, ...]:
        pairs = [(edge.source, edge.target) for edge in self.workflow.edges]
        return topological_order([node.id for node in self.nodes], pairs)

    @cached_property
    def rank(self) -> tuple[int, ...]:
        ranks = {node_id: rank for rank, node_id in enumerate(self.order)}
        return tuple(ranks[node.id] for node in self.nodes)

    @cached_property
    def into(self) -> tuple[tuple[IncomingEdge, ...], ...]:
        found: list[list[IncomingEdge]] = [[] for _ in self.nodes]
        for edge in self.workflow.edges:
            found[self.places[edge.target]].append(IncomingEdge(self.places[edge.source], edge.condition))
        return tuple(map(tuple, found))

    @cached_property
    def out(self) -> tuple[tuple[int, ...], ...]:
        found: list[list[int]] = [[] for _ in self.nodes]
        for edge in self.workflow.edges:
            found[self.places[edge.source]].append(self.places[edge.target])
        return tuple(map(tuple, found))

    @cached_property
    def starts(self) -> tuple[int, ...]:
        return tuple(place for place, ways in enumerate(self.into) if not ways)

    @cached_property
    def ends(self) -> tuple[int, ...]:
        return tuple(place for place, targets in enumerate(self.out) if not targets)

    def ancestors(self, place: int) -> set[int]:
        """All from which a way leads to it, itself not among them."""
        found: set[int] = set()
        waiting = [place]
        while waiting:
            more = {way.source for way in self.into[waiting.pop()]} - found
            found |= more
            waiting.extend(more)
        return found


# ── Definitions of steps ──────────────────────────────────────────────────────────────────────────────


D = TypeVar("D")


def step_action(root: Action, workflow: WorkflowDefinition, node: Node) -> Action:
    """Where its own action says nothing, the root's queue, connection and model hold, then the workflow's."""
    own = action_of(node)
    return replace(
        own,
        queue=own.queue or root.queue or workflow.queue,
        connection=own.connection or root.connection or workflow.connection,
        global_model_id=own.global_model_id or root.global_model_id,
        timeout_seconds=own.timeout_seconds if node.timeout_seconds is None else node.timeout_seconds,
    )


def step_definition(root: D, workflow: WorkflowDefinition, node: Node, effective: Effective | None) -> D:
    """`root` is the whole definition of the root, or the part that a run needs."""
    held = root if effective is None else with_policies(root, effective)
    changes: dict[str, Any] = {
        "action": step_action(getattr(root, "action"), workflow, node),  # noqa: B009 - of whichever type it is
        "inputs_rotation": (),
        "node_gates": node.gates,
    }
    if node.retry_policy is not None:
        changes["retry"] = node.retry_policy
    if node.assignee is not None:
        changes["assignee"] = node.assignee
    return with_changes(held, changes)


def with_policies(definition: D, effective: Effective) -> D:
    """With the policies that were settled when the run was born."""
    named = {name: getattr(effective, name) for name in ("approval", "retry", "failure", "limits")}
    return with_changes(definition, named)


def with_limits(definition: D, limits: RunLimits) -> D:
    """With no more than these beside its own."""
    own: RunLimits = getattr(definition, "limits")  # noqa: B009 - of whichever type it is
    return with_changes(definition, {"limits": merge_limits(own, limits)})


def with_changes(definition: D, changes: dict[str, Any]) -> D:
    """Apply those changes that the definition has fields for: a part of a definition has not all."""
    if is_dataclass(definition):
        known = {each.name for each in fields(definition)}
        return replace(definition, **{name: value for name, value in changes.items() if name in known})  # type: ignore[type-var]  # a dataclass, and no class
    own = getattr(definition, "_fields")  # noqa: B009 - a NamedTuple, then
    changed: D = definition._replace(**{name: value for name, value in changes.items() if name in own})  # type: ignore[attr-defined]  # NamedTuples have no type in common
    return changed
