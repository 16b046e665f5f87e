"""How a claim keeps to what agents take at a time: it looks without a lock, and takes under one.

A look that finds an agent full writes down since when its runs wait, once for each. Those that wait only because this
process is full are left as they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from horarium.engine.room import Room
from horarium.instant import Instant
from horarium.schedule.target import agent_in
from horarium.store.database import Connection, Database
from horarium.store.runs import agent_places
from horarium.store.runs.agent_places import AgentPlaces
from horarium.store.runs.claims import Candidate, ReadyTarget

# Of one agent, runs that one look marks, and those that one claim goes on with.
_MARKED = 1_000
_FOLLOWED = 100


def places_at_agents(
    database: Database, ready: Sequence[ReadyTarget], room: Room, now: Instant
) -> Mapping[ReadyTarget, AgentPlaces]:
    """Free places of the agents among the targets, which `room` receives as well.

    This is a snapshot: a claim must check again under lock.
    """
    prompts = [each for each in ready if agent_in(each.target) is not None]
    if not prompts:
        return {}
    found, unmarked = database.glance(lambda connection: _look(connection, prompts, now))
    _tell(room, found)
    if unmarked:
        database.write(lambda connection: agent_places.mark_waiting(connection, unmarked, now, _MARKED))
    return found


def _look(
    connection: Connection, ready: Sequence[ReadyTarget], now: Instant
) -> tuple[dict[ReadyTarget, AgentPlaces], list[ReadyTarget]]:
    found = agent_places.look(connection, ready)
    full = [each for each, places in found.items() if places.free == 0]
    return found, agent_places.with_unmarked(connection, full, now)


def _tell(room: Room, found: Mapping[ReadyTarget, AgentPlaces]) -> None:
    for target, places in found.items():
        if places.free is not None:
            room.limit_at(target, places.free)


def hold_places(
    connection: Connection,
    places: Sequence[tuple[ReadyTarget, int]],
    agents: Mapping[ReadyTarget, AgentPlaces],
    room: Room,
) -> tuple[list[tuple[ReadyTarget, int]], bool]:
    """The places that are ours to take until the transaction ends, and whether others held some of these agents."""
    bounded = [target for target, _ in places if target in agents and agents[target].capacity is not None]
    held = agent_places.lock(connection, bounded)
    _tell(room, held)
    passed_over = set(bounded) - held.keys()
    return [each for each in places if each[0] not in passed_over], bool(passed_over)


def begun_before(
    connection: Connection,
    places: Sequence[tuple[ReadyTarget, int]],
    agents: Mapping[ReadyTarget, AgentPlaces],
    now: Instant,
) -> list[Candidate]:
    """Candidates that agents may already have: they come before all others in the line."""
    wanted = [target for target, _ in places if target in agents and agents[target].followed]
    return agent_places.followed(connection, wanted, now, _FOLLOWED)
