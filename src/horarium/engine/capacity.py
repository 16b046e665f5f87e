"""Capacity of a process, and the choice of the ready runs that are claimed next.

Four limits hold at once: the process, the kind, the target and the namespace. Some targets, such as agents, have a
fifth, which holds for all processes together and is counted in the database: a look is without a lock, a claim under
one. A look that finds such a target full records since when its runs wait, once for each; runs that wait only because
this process is full are left as they are.

Namespaces take turns, one run a turn; inside a namespace the highest priority comes first, then the oldest. So a
tenant with ten thousand ready runs, or with targets that never answer, delays only its own.

Not every machine has every package, and they are installed one after the other. Runs of a kind without a launcher here
are left to a live process that has one. If there is none the run is claimed all the same, and its end names what is
missing.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import TypeAlias

from horarium.core.decision.presence import SILENT_AFTER_SECONDS, silent_seconds
from horarium.core.document.definition import agent_in, connection_in
from horarium.features.runs.preparation import PlaceCounter
from horarium.features.runs.work_rows import ClaimCandidate, ReadyTarget, TargetPlaces
from horarium.instant import Instant
from horarium.launchers.registry import read_served
from horarium.platform.database import Connection, Database
from horarium.platform.database.processes import process_rows

KindOf: TypeAlias = Callable[[str, str], str | None]
"""Return the kind that a target of a namespace belongs to; None = its launches take no place."""

_NONE: Mapping[ReadyTarget, int] = MappingProxyType({})
IN_FLIGHT = 500
IN_FLIGHT_OF_TARGET = 32
# One place in so many of a kind is kept for a namespace that has none yet.
_RESERVED_SHARE = 5


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
class LaunchPlace:
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


class Capacity:
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

    def free_for(self, seat: LaunchPlace) -> int:
        """Number of further launches like this one that may start."""
        at_agent = self._at_agents.get((seat.namespace, seat.target))
        here = self.free_here(seat)
        return here if at_agent is None else max(0, min(here, at_agent))

    def free_here(self, seat: LaunchPlace) -> int:
        """The same for what its agent has already, and which is only gone on with."""
        batched = self.limits.batched.get(seat.kind)
        most = self.limits.target if batched is None else batched
        free = min(most - self._targets[seat.place], self._share(most) - self._targets_of[seat.namespace, seat.place])
        if batched is None:
            free = min(free, self.free_for_namespace(seat.namespace))
        limit = self.limits.kinds.get(seat.kind)
        if limit is not None:
            ours = self._kinds_of[seat.namespace, seat.kind]
            kept = 0 if self.alone or not ours else limit // _RESERVED_SHARE
            free = min(free, limit - kept - self._kinds[seat.kind], self._share(limit) - ours)
        return max(0, free)

    def enter(self, seat: LaunchPlace, *, sends: bool = True) -> None:
        """`sends`: it takes up a place at its agent, too, where that has a limit."""
        self._move(seat, 1)
        if sends and (seat.namespace, seat.target) in self._at_agents:
            self._at_agents[seat.namespace, seat.target] -= 1

    def leave(self, seat: LaunchPlace) -> None:
        self._move(seat, -1)

    def copy(self) -> Capacity:
        twin = Capacity(self.limits)
        twin.alone = self.alone
        twin._all = self._all
        twin._namespaces, twin._kinds, twin._targets = self._namespaces.copy(), self._kinds.copy(), self._targets.copy()
        twin._kinds_of, twin._targets_of = self._kinds_of.copy(), self._targets_of.copy()
        twin._at_agents = self._at_agents.copy()
        return twin

    def _share(self, limit: int) -> int:
        return limit if self.alone else max(1, limit // 2)

    def _move(self, seat: LaunchPlace, by: int) -> None:
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
    ready: Iterable[ReadyTarget],
    room: Capacity,
    kind_of: KindOf,
    most: int,
    followed: Mapping[ReadyTarget, int] = _NONE,
) -> list[tuple[ReadyTarget, int]]:
    """Number of candidates worth locking by target: as many as there are free places, `most` in all.

    `kind_of` names the kind that takes a target of a namespace; None = its launch needs no place. `followed` are
    those that their agents may already have, which need no place there.
    """
    wanted: list[tuple[ReadyTarget, int]] = []
    for each in ready:
        kind = kind_of(each.namespace, each.target)
        free = most if kind is None else _worth_locking(room, LaunchPlace(each.namespace, kind, each.target), followed)
        if free:
            wanted.append((each, free))
    # Each has a few, so that the best of many targets are seen; one alone may fill the whole claim.
    share = max(_FEW, most // max(1, len(wanted)))
    return [(each, min(free, share)) for each, free in wanted]


_FEW = 4


def _worth_locking(room: Capacity, seat: LaunchPlace, followed: Mapping[ReadyTarget, int]) -> int:
    more = followed.get(ReadyTarget(seat.namespace, seat.target), 0)
    return min(room.free_here(seat), room.free_for(seat) + more)


def choose_runs(
    candidates: Sequence[ClaimCandidate], room: Capacity, kind_of: KindOf, *, after: str, most: int
) -> list[ClaimCandidate]:
    """Namespaces in turn from the one behind `after`; in each the best candidate for which there is a place."""
    taken = room.copy()
    chosen: list[ClaimCandidate] = []
    turns = deque(_by_namespace(candidates, after))
    while turns and len(chosen) < most:
        waiting = turns.popleft()
        found = _next_with_place(waiting, taken, kind_of)
        if found is None:
            continue  # this namespace has no more, or no room for more
        chosen.append(found)
        turns.append(waiting)
    return chosen


def _by_namespace(candidates: Iterable[ClaimCandidate], after: str) -> list[deque[ClaimCandidate]]:
    groups: dict[str, list[ClaimCandidate]] = {}
    for each in candidates:
        groups.setdefault(each.namespace, []).append(each)
    names = sorted(groups, key=lambda name: (name <= after, name))
    return [deque(sorted(groups[name], key=lambda each: each[2:])) for name in names]


def _next_with_place(waiting: deque[ClaimCandidate], taken: Capacity, kind_of: KindOf) -> ClaimCandidate | None:
    while waiting:
        each = waiting.popleft()
        kind = kind_of(each.namespace, each.target)
        if kind is None:
            return each
        seat = LaunchPlace(each.namespace, kind, each.target)
        if taken.free_here(seat) if each.heard else taken.free_for(seat):
            taken.enter(seat, sends=not each.heard)
            return each
    return None


# Of one target, runs that one look marks, and those that one claim goes on with.
_MARKED = 1_000
_FOLLOWED = 100


class PlaceCounters:
    """Places that targets have for all processes together, counted in the database."""

    def __init__(self, counters: Sequence[PlaceCounter]) -> None:
        self._counters = counters

    def read(
        self, database: Database, ready: Sequence[ReadyTarget], room: Capacity, now: Instant
    ) -> Mapping[ReadyTarget, TargetPlaces]:
        """Free places of the targets that have a limit, which `room` receives as well.

        This is a snapshot: a claim must check again under lock.
        """
        found: dict[ReadyTarget, TargetPlaces] = {}
        for counter, targets in self._by_counter(ready):
            places, unmarked = database.glance(partial(_look, counter=counter, ready=targets, now=now))
            found |= places
            if unmarked:
                database.write(partial(counter.mark, targets=unmarked, now=now, most=_MARKED))
        _tell(room, found)
        return found

    def hold(
        self,
        connection: Connection,
        places: Sequence[tuple[ReadyTarget, int]],
        counted: Mapping[ReadyTarget, TargetPlaces],
        room: Capacity,
    ) -> tuple[list[tuple[ReadyTarget, int]], bool]:
        """The places that are ours to take until the transaction ends, and whether others held some targets."""
        bounded = [target for target, _ in places if target in counted and counted[target].capacity is not None]
        held: dict[ReadyTarget, TargetPlaces] = {}
        for counter, targets in self._by_counter(bounded):
            held |= counter.lock(connection, targets)
        _tell(room, held)
        passed_over = set(bounded) - held.keys()
        return [each for each in places if each[0] not in passed_over], bool(passed_over)

    def begun_before(
        self,
        connection: Connection,
        places: Sequence[tuple[ReadyTarget, int]],
        counted: Mapping[ReadyTarget, TargetPlaces],
        now: Instant,
    ) -> list[ClaimCandidate]:
        """Candidates that their targets may already have: they come before all others in the line."""
        wanted = [target for target, _ in places if target in counted and counted[target].followed]
        return [
            each
            for counter, targets in self._by_counter(wanted)
            for each in counter.followed(connection, targets, now, _FOLLOWED)
        ]

    def _by_counter(self, targets: Sequence[ReadyTarget]) -> Iterator[tuple[PlaceCounter, list[ReadyTarget]]]:
        for counter in self._counters:
            counted = [each for each in targets if counter.needed(each)]
            if counted:
                yield counter, counted


def _look(
    connection: Connection, counter: PlaceCounter, ready: Sequence[ReadyTarget], now: Instant
) -> tuple[Mapping[ReadyTarget, TargetPlaces], list[ReadyTarget]]:
    found = counter.read(connection, ready)
    full = [each for each, places in found.items() if places.free == 0]
    return found, counter.unmarked(connection, full, now)


def _tell(room: Capacity, found: Mapping[ReadyTarget, TargetPlaces]) -> None:
    for target, places in found.items():
        if places.free is not None:
            room.limit_at(target, places.free)


def without_those_of_others(
    connection: Connection, ready: Sequence[ReadyTarget], is_foreign: Callable[[ReadyTarget], str | None], now: Instant
) -> list[ReadyTarget]:
    """`is_foreign` names the kind of a target that nothing here can launch; None = it is ours to take."""
    foreign = {each: kind for each in ready if (kind := is_foreign(each)) is not None}
    if not foreign:
        return list(ready)
    there = [row for row in process_rows(connection) if silent_seconds(row.beat_at, now) <= SILENT_AFTER_SECONDS]
    others = [read_served(row.process.serves) for row in there]
    left = {target for target, kind in foreign.items() if any(each.serves(kind, target.namespace) for each in others)}
    return [each for each in ready if each not in left]
