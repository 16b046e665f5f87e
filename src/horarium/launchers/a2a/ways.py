"""Which way an agent is spoken to: its addresses and the two dialects, the likeliest first, and what is left of them.

The dialect is the one that the registration names; else that in which the agent answered last; else that of its card;
else 1.0. An agent that does not know the method or the version has begun nothing, and is asked in the other dialect,
once. One whose registration names a dialect is not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from horarium.core.document.assignee import AgentProtocol
from horarium.launchers.a2a.card import Endpoint
from horarium.launchers.a2a.dialect import Dialect

# A card may list many addresses, and each that does not answer costs a connection.
_MAX_ADDRESSES = 4


@dataclass(frozen=True, slots=True)
class Way:
    url: str
    dialect: Dialect
    with_token: bool


def ways_to(endpoints: Sequence[Endpoint], protocol: AgentProtocol, last: Dialect | None) -> tuple[Way, ...]:
    """`endpoints` in the order of preference, the registered address last; `last` is how the agent answered before."""
    tried = [*endpoints[: _MAX_ADDRESSES - 1], *endpoints[_MAX_ADDRESSES - 1 :][-1:]]
    named = None if protocol is AgentProtocol.AUTO else Dialect(protocol.value)
    first = named or last or next((each.dialect for each in tried if each.dialect is not None), Dialect.V1_0)
    spoken = (first,) if named is not None else (first, first.other)
    # An address that is said to speak a dialect comes before one of which it is not known.
    return tuple(
        Way(each.url, dialect, each.with_token)
        for dialect in spoken
        for each in sorted(tried, key=lambda each: each.dialect not in (dialect, None))
    )


def without_dialect(ways: Sequence[Way], dialect: Dialect) -> tuple[Way, ...]:
    return tuple(way for way in ways if way.dialect is not dialect)


def without_address(ways: Sequence[Way], url: str) -> tuple[Way, ...]:
    return tuple(way for way in ways if way.url != url)


def moved_back(ways: Sequence[Way], way: Way) -> tuple[Way, ...]:
    """For the next try of what waits for an agent that does not answer: another address has its turn."""
    others = tuple(each for each in ways if each != way)
    return (*others, way)
