"""A workflow as those read it who advance its runs: nodes by their places, and the edges of each at hand.

Compiled once for each version, which never changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from horarium.condition import Condition
from horarium.schedule.graph import topological_order
from horarium.schedule.workflow import Node, Workflow


class Way(NamedTuple):
    """An edge, seen from its target."""

    source: int
    condition: Condition | None

    @property
    def reads_result(self) -> bool:
        return self.condition is not None and self.condition.reads("result")


@dataclass(frozen=True, eq=False)
class CompiledWorkflow:
    """A place is the index of a node in the document; `rank` says when it comes, by place."""

    workflow: Workflow

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
    def into(self) -> tuple[tuple[Way, ...], ...]:
        found: list[list[Way]] = [[] for _ in self.nodes]
        for edge in self.workflow.edges:
            found[self.places[edge.target]].append(Way(self.places[edge.source], edge.condition))
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
