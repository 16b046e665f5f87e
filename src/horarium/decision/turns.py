"""How a batch of due schedules is shared: namespaces in turn, and what has just come due beside what is old.

A lane is a queue of due schedules: those of one namespace that are old, or those that came due within
the last minute. Old ones may take half of what their namespace is entitled to before the recent ones
are asked; what one lane or namespace does not need goes to the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from horarium.instant import MINUTE

RECENT = MINUTE
"""What came due less long ago is recent."""


class Lane(NamedTuple):
    namespace: str
    is_recent: bool


def old_shares(namespaces: Sequence[str], limit: int) -> dict[Lane, int]:
    """Half of each namespace's part of the batch, rounded down: the other half is for what is recent."""
    parts = raise_evenly([0] * len(namespaces), limit)
    halves = {Lane(name, is_recent=False): part // 2 for name, part in zip(namespaces, parts, strict=True)}
    return {lane: share for lane, share in halves.items() if share}


def recent_shares(namespaces: Sequence[str], taken: Mapping[str, int], limit: int) -> dict[Lane, int]:
    """Remaining share of each namespace."""
    parts = raise_evenly([0] * len(namespaces), limit)
    rest = {Lane(name, is_recent=True): part - taken.get(name, 0) for name, part in zip(namespaces, parts, strict=True)}
    return {lane: share for lane, share in rest.items() if share > 0}


def shares_of_the_rest(lanes: Sequence[Lane], taken: Mapping[str, int], limit: int) -> dict[Lane, int]:
    """The room that is left, for the lanes that have more: namespaces that took least are raised first."""
    names = list(dict.fromkeys(lane.namespace for lane in lanes))
    room = limit - sum(taken.values())
    shares: dict[Lane, int] = {}
    for name, more in zip(names, raise_evenly([taken.get(name, 0) for name in names], room), strict=True):
        mine = [lane for lane in lanes if lane.namespace == name]
        shares |= dict(zip(mine, raise_evenly([0] * len(mine), more), strict=True))
    return {lane: share for lane, share in shares.items() if share}


def raise_evenly(levels: Sequence[int], room: int) -> list[int]:
    """Distribute `room` so that the lowest levels are raised first; the first levels get the remainder."""
    ranked = sorted(range(len(levels)), key=lambda place: levels[place])
    added = [0] * len(levels)
    for count in range(1, len(ranked) + 1):
        lowest = ranked[:count]
        here = levels[lowest[0]] + added[lowest[0]]
        height = levels[ranked[count]] - here if count < len(ranked) else room
        step = min(height, room // count)
        for place in lowest:
            added[place] += step
        room -= step * count
        if step < height:
            for place in sorted(lowest)[:room]:
                added[place] += 1
            break
    return added
