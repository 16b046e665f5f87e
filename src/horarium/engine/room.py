"""Who may have a place: how much of a process is in flight, and which ready runs are taken next. Pure.

Four limits hold at once: the process, the kind, the target and the namespace; at an agent a fifth, which holds for all
processes together and is counted elsewhere. Namespaces take turns, one run
a turn; inside a namespace the highest priority comes first, then the oldest. So a tenant with ten thousand
ready runs, or with targets that never answer, delays its own and nobody else's.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TypeAlias

from horarium.schedule.target import agent_in, connection_in
from horarium.store.runs.claims import Candidate, ReadyTarget

KindOf: TypeAlias = Callable[[str, str], str | None]
"""Return the kind that a target of a namespace belongs to; None = its launches take no place."""

_NONE: Mapping[ReadyTarget, int] = MappingProxyType({})
IN_FLIGHT = 500
IN_FLIGHT_OF_TARGET = 32
# One place in so many of a kind is kept for a namespace that has none yet.
_KEPT = 5


@dataclass(frozen=True, slots=True)
class Limits:
    """Launches under way at once, at most. A kind that is not named has no limit of its own.

    Of a kind and of a target a namespace has half, so that there is always room for another; all of it where it
    is the only one (`alone`). The last places of a kind are for namespaces that have none: prompts to agents that
    hang keep theirs for minutes, and two tenants with such agents must not shut out all the others.

    `batched` are kinds whose launches are handed over many together, with the number that each of their targets takes.
    They count for nobody else: a broker that hangs has its own crowd waiting, and not that of others.
    """

    process: int = IN_FLIGHT
    namespace: int = IN_FLIGHT // 2
    target: int = IN_FLIGHT_OF_TARGET
    kinds: Mapping[str, int] = field(default_factory=dict)
    batched: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Seat:
    """Resources that a launch occupies while it lasts."""

    namespace: str
    kind: str
    target: str

    @property
    def place(self) -> str:
        """Shared key of launches to one destination: agents of two namespaces differ, even with the same name.

        All queues of a broker are one: it is reached over one connection.
        """
        broker = connection_in(self.target)
        if broker is not None:
            return f"{self.kind}:{broker}"
        return self.target if agent_in(self.target) is None else f"{self.namespace} {self.target}"


class Room:
    """Launches in progress in this process."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.alone = True
        self._all = 0
        self._namespaces = Counter[str]()
        self._kinds = Counter[str]()
        self._targets = Counter[str]()
        self._kinds_of = Counter[tuple[str, str]]()
        self._targets_of = Counter[tuple[str, str]]()
        self._at_agents: dict[tuple[str, str], int] = {}

    @property
    def free(self) -> int:
        return max(0, self.limits.process - self._all)

    def free_for_namespace(self, namespace: str) -> int:
        return max(0, min(self.free, self.limits.namespace - self._namespaces[namespace]))

    def limit_at(self, target: ReadyTarget, free: int) -> None:
        """So many may be sent there until somebody counts again."""
        self._at_agents[target] = free

    def free_for(self, seat: Seat) -> int:
        """Number of further launches like this one that may start."""
        at_agent = self._at_agents.get((seat.namespace, seat.target))
        here = self.free_here(seat)
        return here if at_agent is None else max(0, min(here, at_agent))

    def free_here(self, seat: Seat) -> int:
        """The same for what its agent has already, and which is only gone on with."""
        batched = self.limits.batched.get(seat.kind)
        most = self.limits.target if batched is None else batched
        free = min(most - self._targets[seat.place], self._share(most) - self._targets_of[seat.namespace, seat.place])
        if batched is None:
            free = min(free, self.free_for_namespace(seat.namespace))
        limit = self.limits.kinds.get(seat.kind)
        if limit is not None:
            ours = self._kinds_of[seat.namespace, seat.kind]
            kept = 0 if self.alone or not ours else limit // _KEPT
            free = min(free, limit - kept - self._kinds[seat.kind], self._share(limit) - ours)
        return max(0, free)

    def enter(self, seat: Seat, *, sends: bool = True) -> None:
        """`sends`: it takes up a place at its agent, too, where that has a limit."""
        self._move(seat, 1)
        if sends and (seat.namespace, seat.target) in self._at_agents:
            self._at_agents[seat.namespace, seat.target] -= 1

    def leave(self, seat: Seat) -> None:
        self._move(seat, -1)

    def copy(self) -> Room:
        twin = Room(self.limits)
        twin.alone = self.alone
        twin._all = self._all
        twin._namespaces, twin._kinds, twin._targets = self._namespaces.copy(), self._kinds.copy(), self._targets.copy()
        twin._kinds_of, twin._targets_of = self._kinds_of.copy(), self._targets_of.copy()
        twin._at_agents = self._at_agents.copy()
        return twin

    def _share(self, limit: int) -> int:
        return limit if self.alone else max(1, limit // 2)

    def _move(self, seat: Seat, by: int) -> None:
        counted = [(self._kinds, seat.kind), (self._targets, seat.place)]
        if seat.kind not in self.limits.batched:
            self._all += by
            counted.append((self._namespaces, seat.namespace))
        for counter, key in counted:
            counter[key] += by
            if not counter[key]:
                del counter[key]
        for pairs, pair in (
            (self._kinds_of, (seat.namespace, seat.kind)),
            (self._targets_of, (seat.namespace, seat.place)),
        ):
            pairs[pair] += by
            if not pairs[pair]:
                del pairs[pair]


def places_for(
    ready: Iterable[ReadyTarget], room: Room, kind_of: KindOf, most: int, followed: Mapping[ReadyTarget, int] = _NONE
) -> list[tuple[ReadyTarget, int]]:
    """Number of candidates worth locking by target: as many as there are free places, `most` in all.

    `kind_of` names the kind that takes a target of a namespace; None = its launch needs no place. `followed` are
    those that their agents may already have, which need no place there.
    """
    wanted: list[tuple[ReadyTarget, int]] = []
    for each in ready:
        kind = kind_of(each.namespace, each.target)
        free = most if kind is None else _worth_locking(room, Seat(each.namespace, kind, each.target), followed)
        if free:
            wanted.append((each, free))
    # Each has a few, so that the best of many targets are seen; one alone may fill the whole claim.
    share = max(_FEW, most // max(1, len(wanted)))
    return [(each, min(free, share)) for each, free in wanted]


_FEW = 4


def _worth_locking(room: Room, seat: Seat, followed: Mapping[ReadyTarget, int]) -> int:
    more = followed.get(ReadyTarget(seat.namespace, seat.target), 0)
    return min(room.free_here(seat), room.free_for(seat) + more)


def choose(candidates: Sequence[Candidate], room: Room, kind_of: KindOf, *, after: str, most: int) -> list[Candidate]:
    """Namespaces in turn from the one behind `after`; in each the best candidate for which there is a place."""
    taken = room.copy()
    chosen: list[Candidate] = []
    turns = deque(_by_namespace(candidates, after))
    while turns and len(chosen) < most:
        waiting = turns.popleft()
        found = _next_with_place(waiting, taken, kind_of)
        if found is None:
            continue  # this namespace has no more, or no room for more
        chosen.append(found)
        turns.append(waiting)
    return chosen


def _by_namespace(candidates: Iterable[Candidate], after: str) -> list[deque[Candidate]]:
    groups: dict[str, list[Candidate]] = {}
    for each in candidates:
        groups.setdefault(each.namespace, []).append(each)
    names = sorted(groups, key=lambda name: (name <= after, name))
    return [deque(sorted(groups[name], key=lambda each: each[2:])) for name in names]


def _next_with_place(waiting: deque[Candidate], taken: Room, kind_of: KindOf) -> Candidate | None:
    while waiting:
        each = waiting.popleft()
        kind = kind_of(each.namespace, each.target)
        if kind is None:
            return each
        seat = Seat(each.namespace, kind, each.target)
        if taken.free_here(seat) if each.heard else taken.free_for(seat):
            taken.enter(seat, sends=not each.heard)
            return each
    return None
