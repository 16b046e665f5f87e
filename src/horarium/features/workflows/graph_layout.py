"""Layout of a small graph: its nodes in layers by depth, each as close as possible to what it needs.

An edge that passes a layer gets a place in it, so that every edge joins two neighbouring layers and no line runs
through a box.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from horarium.core.document.workflow_parts import topological_order

GAP = 3
_SWEEPS = 4


@dataclass(frozen=True, slots=True)
class Item:
    """A node in its layer, or (`passing`) an edge from `node` that goes on to a later layer."""

    node: str
    passing: bool
    width: int


@dataclass(frozen=True, slots=True)
class Placed:
    """`links[d]` joins places of layer d with places of layer d + 1; `centres` are columns."""

    layers: tuple[tuple[Item, ...], ...]
    links: tuple[tuple[tuple[int, int], ...], ...]
    centres: tuple[tuple[int, ...], ...]
    width: int


def depths(needs: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """Length of the longest path to each node; raises CycleDetected."""
    edges = [(source, node) for node, sources in needs.items() for source in sources]
    found = dict.fromkeys(needs, 0)
    for node in topological_order(needs, edges):
        found[node] = max((found[source] + 1 for source in needs[node]), default=0)
    return found


def place(needs: Mapping[str, Sequence[str]], widths: Mapping[str, int]) -> Placed:
    """`needs` names only nodes that are keys of it; `widths` are odd, so that each has a middle."""
    layers, links = _joined(needs, widths)
    layers = [layers[0], *(_widened(layer, each) for layer, each in zip(layers[1:], links, strict=True))]
    for sweep in range(_SWEEPS):
        _sort(layers, links, downwards=sweep % 2 == 0)
    centres = _columns(layers, links)
    left = min(
        centre - item.width // 2
        for layer, row in zip(layers, centres, strict=True)
        for item, centre in zip(layer, row, strict=True)
    )
    moved = tuple(tuple(centre - left for centre in row) for row in centres)
    right = max(row[-1] + layer[-1].width // 2 for layer, row in zip(layers, moved, strict=True))
    return Placed(
        tuple(map(tuple, layers)), tuple(tuple(sorted(each)) for each in _by_place(layers, links)), moved, right + 1
    )


_Key = tuple[str, bool]
_Links = list[list[tuple[_Key, _Key]]]


def _joined(needs: Mapping[str, Sequence[str]], widths: Mapping[str, int]) -> tuple[list[list[Item]], _Links]:
    depth = depths(needs)
    layers: list[list[Item]] = [[] for _ in range(max(depth.values()) + 1)]
    links: _Links = [[] for _ in layers[1:]]
    for node in needs:
        layers[depth[node]].append(Item(node, False, widths[node]))
    reach: dict[str, int] = {}
    for node, sources in needs.items():
        for source in sources:
            reach[source] = max(reach.get(source, 0), depth[node] - 1)
            links[depth[node] - 1].append(((source, depth[node] - 1 > depth[source]), (node, False)))
    for source, last in reach.items():
        for layer in range(depth[source] + 1, last + 1):
            layers[layer].append(Item(source, True, 1))
            links[layer - 1].append(((source, layer - 1 > depth[source]), (source, True)))
    return layers, links


def _widened(layer: Sequence[Item], links: Sequence[tuple[_Key, _Key]]) -> list[Item]:
    """With room for as many arrows as different lines arrive; those that lead to the same nodes are one line."""
    targets: dict[_Key, set[_Key]] = {}
    for upper, lower in links:
        targets.setdefault(upper, set()).add(lower)
    arriving: dict[_Key, set[frozenset[_Key]]] = {}
    for found in targets.values():
        for lower in found:
            arriving.setdefault(lower, set()).add(frozenset(found))
    return [
        item if item.passing else replace(item, width=max(item.width, 2 * len(arriving.get(_key(item), ())) + 1))
        for item in layer
    ]


def _key(item: Item) -> _Key:
    return item.node, item.passing


def _sort(layers: list[list[Item]], links: _Links, *, downwards: bool) -> None:
    """Each item towards the middle of those it is joined with in the layer before (or after)."""
    order = range(1, len(layers)) if downwards else range(len(layers) - 2, -1, -1)
    for number in order:
        other = layers[number - 1 if downwards else number + 1]
        at = {_key(item): place for place, item in enumerate(other)}
        near: dict[_Key, list[int]] = {}
        for upper, lower in links[number - 1 if downwards else number]:
            mine, theirs = (lower, upper) if downwards else (upper, lower)
            near.setdefault(mine, []).append(at[theirs])
        middle = {key: sum(found) / len(found) for key, found in near.items()}
        wanted = [middle.get(_key(item), float(place)) for place, item in enumerate(layers[number])]
        places = sorted(range(len(wanted)), key=wanted.__getitem__)
        layers[number][:] = [layers[number][place] for place in places]


def _by_place(layers: Sequence[Sequence[Item]], links: _Links) -> list[list[tuple[int, int]]]:
    at = [{_key(item): place for place, item in enumerate(layer)} for layer in layers]
    return [[(at[d][upper], at[d + 1][lower]) for upper, lower in each] for d, each in enumerate(links)]


def _columns(layers: Sequence[Sequence[Item]], links: _Links) -> list[list[int]]:
    """Down, up and down again: first near what each needs, then near what needs it."""
    joined = _by_place(layers, links)
    rows = [_spread(layer, [0.0] * len(layer)) for layer in layers]
    down, up = list(range(1, len(layers))), list(range(len(layers) - 2, -1, -1))
    for order, step in ((down, -1), (up, 1), (down, -1)):
        for number in order:
            near: dict[int, list[int]] = {}
            for upper, lower in joined[min(number, number + step)]:
                mine, theirs = (lower, upper) if step < 0 else (upper, lower)
                near.setdefault(mine, []).append(rows[number + step][theirs])
            wanted = [sum(near[i]) / len(near[i]) if i in near else float(x) for i, x in enumerate(rows[number])]
            rows[number] = _spread(layers[number], wanted)
    return rows


def _spread(layer: Sequence[Item], wanted: Sequence[float]) -> list[int]:
    """As near to the wanted columns as the widths allow: neighbours that would overlap share their deviation.

    The least-squares answer, found by pooling adjacent violators.
    """
    offsets = [0]
    for before, item in pairwise(layer):
        offsets.append(offsets[-1] + before.width // 2 + GAP + item.width // 2 + 1)
    pools: list[tuple[float, int]] = []
    for column, offset in zip(wanted, offsets, strict=True):
        total, count = column - offset, 1
        while pools and pools[-1][0] / pools[-1][1] >= total / count:
            more, others = pools.pop()
            total, count = total + more, count + others
        pools.append((total, count))
    shifts = [round(total / count) for total, count in pools for _ in range(count)]
    return [shift + offset for shift, offset in zip(shifts, offsets, strict=True)]
