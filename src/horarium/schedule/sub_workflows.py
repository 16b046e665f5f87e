"""Whether workflows that are parts of each other come to an end: no cycle across them, and eight levels at most."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from horarium.errors import CycleDetected, InvalidWorkflow
from horarium.schedule.graph import find_cycle, topological_order
from horarium.schedule.workflow_document import SubWorkflow

MAX_DEPTH: Final = 8
"""The workflow itself is at depth 0."""
MAX_REACHABLE: Final = 200
"""Workflows that one may lead to, all levels together."""


class Use(NamedTuple):
    """A workflow that a node names, and its version; None = the newest."""

    name: str
    version: int | None


class Stored(NamedTuple):
    """Version of a stored workflow, with the workflows that its nodes use."""

    version: int
    uses: tuple[Use, ...]


def check_sub_workflows(root: Use, subs: Sequence[SubWorkflow], known: Mapping[Use, Stored]) -> None:
    """Raises CycleDetected, or InvalidWorkflow with every node that leads too deep.

    `root` is the version that is to be written, `known` all that are stored of those that it leads to. A name that
    nobody has stored is a task's, or a worker's.
    """
    nodes, edges = _graph(root, [Use(sub.name, sub.version) for sub in subs], known)
    cycle = find_cycle(nodes, edges)
    if cycle is not None:
        first = next((sub for sub in subs if _key(root, Use(sub.name, sub.version), known) in cycle), subs[0])
        raise CycleDetected([name.rpartition("@")[0] for name in cycle], path=first.path)
    after: dict[str, list[str]] = {node: [] for node in nodes}
    for source, target in edges:
        after[source].append(target)
    below = dict.fromkeys(nodes, 0)
    for node in reversed(topological_order(nodes, edges)):
        below[node] = max((below[target] + 1 for target in after[node]), default=0)
    deep = {}
    for sub in subs:
        key = _key(root, Use(sub.name, sub.version), known)
        if key is not None and below[key] + 1 > MAX_DEPTH:
            deep[sub.path] = [f"nests workflows {below[key] + 1} levels deep; at most {MAX_DEPTH} are allowed"]
    if deep:
        raise InvalidWorkflow(deep)


def _graph(root: Use, first: Sequence[Use], known: Mapping[Use, Stored]) -> tuple[list[str], list[tuple[str, str]]]:
    start = _name(root)
    nodes, edges = {start: None}, dict[tuple[str, str], None]()
    waiting: list[tuple[str, Sequence[Use]]] = [(start, first)]
    while waiting:
        source, uses = waiting.pop()
        for use in uses:
            key = _key(root, use, known)
            if key is None:
                continue
            edges[source, key] = None
            if key not in nodes:
                nodes[key] = None
                waiting.append((key, known[use].uses))
    return list(nodes), list(edges)


def _key(root: Use, use: Use, known: Mapping[Use, Stored]) -> str | None:
    """The newest version of the one that is to be written is the one that is to be written."""
    if use.name == root.name and use.version in (None, root.version):
        return _name(root)
    return _name(Use(use.name, known[use].version)) if use in known else None


def _name(use: Use) -> str:
    return f"{use.name}@{use.version}"
