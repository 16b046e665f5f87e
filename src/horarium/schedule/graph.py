"""In which order steps can run, or why they cannot: cycles and topological order of a small graph.

Nodes are names, edges are pairs (before, after). Nothing here recurses, so a chain as long as a
workflow may be is no deeper for Python than a short one.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator

from horarium.errors import CycleDetected


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
