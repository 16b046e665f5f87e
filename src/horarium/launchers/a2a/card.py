"""An agent card and the addresses that follow from it: the card proposes, the registered address decides.

A card is written by the agent, or by another party that can change what its host serves. An address on another host
is used only if the registration lists that host, and then without the agent's token. The same holds for an address
that the pins of the token do not allow. An address to which a secret in the prompt may not be sent is not used at
all, nor is plain `http` for an agent registered with `https`.

The dialect is the one that the registration names; else the one in which the agent answered last; else that of its
card; else 1.0. An agent that does not know the method or the version has begun nothing, and gets the request in the
other dialect, once. An agent whose registration names a dialect does not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from horarium.core.document.assignee import AgentProtocol
from horarium.core.document.json_values import MAX_URL, Json
from horarium.core.document.secret_values import may_go_to
from horarium.launchers.a2a.dialect import Dialect
from horarium.launchers.launcher import AgentLine
from horarium.launchers.payload import clean_text
from horarium.launchers.requests import BadAction, destination_of, place_of

MAX_CARD_BYTES: Final = 262_144
WELL_KNOWN: Final = "/.well-known/agent-card.json"
OLD_WELL_KNOWN: Final = "/.well-known/agent.json"
_MAX_TEXT = 200
# An agent has one or two for each binding; each that is kept may be tried.
_MAX_INTERFACES = 32
_BINDING = "JSONRPC"


class CardError(ValueError):
    """The document is no agent card; the message says why."""


@dataclass(frozen=True, slots=True)
class Interface:
    """One address of the JSON-RPC binding, and the generation that is spoken there."""

    url: str
    dialect: Dialect


@dataclass(frozen=True, slots=True)
class Card:
    """`protocol` is the version as the card spells it; `push`: the agent can say when something happened."""

    name: str
    version: str | None
    protocol: str | None
    interfaces: tuple[Interface, ...] = ()
    push: bool = False


@dataclass(frozen=True, slots=True)
class Endpoint:
    """`dialect` None: nobody has said which one is spoken there."""

    url: str
    dialect: Dialect | None
    with_token: bool


def read_card(document: object) -> Card:
    """Raises CardError. Interfaces of other bindings, and of generations that we do not speak, are left out."""
    if not isinstance(document, dict):
        raise CardError("the card is not an object")
    name = _text(document, "name")
    if name is None:
        raise CardError("the card has no name")
    offered = _offered(document)
    capabilities = document.get("capabilities")
    if capabilities is not None and not isinstance(capabilities, dict):
        raise CardError("capabilities is not an object")
    return Card(
        name=name,
        version=_text(document, "version"),
        protocol=next((each.version for each in offered if each.url is not None and each.version is not None), None),
        interfaces=_spoken(offered),
        push=capabilities is not None and capabilities.get("pushNotifications") is True,
    )


def summary(document: object) -> dict[str, Json] | None:
    """Summary of a card to store and show: a card may be large, and most of it is for users who choose an agent.

    None for a document that is no card.
    """
    try:
        card = read_card(document)
    except CardError:
        return None
    return {"name": card.name, "version": card.version, "protocol": card.protocol}


def dialect_of(version: str | None) -> Dialect | None:
    """Cards before 0.3 named no version, and what they describe is sent to like 0.3."""
    if version is None or version.startswith("0."):
        return Dialect.V0_3
    return Dialect.V1_0 if version.split(".")[0] == "1" else None


def endpoints(agent: AgentLine, card: Card | None, *, prefer: Dialect = Dialect.V1_0) -> tuple[Endpoint, ...]:
    """Return the addresses in the order of preference: what the card offers and may be used, then the registered one.

    The registered address is always among them: what may not be sent there is refused before.
    """
    line_url = agent.url or ""
    interfaces = () if card is None else _ordered(card.interfaces, prefer)
    found: dict[str, Endpoint] = {}
    for each in interfaces:
        endpoint = _usable(each, line_url, agent)
        if endpoint is not None:
            found.setdefault(endpoint.url, endpoint)
    # What an agent says of an address that we may not use is still what it says of itself.
    found.setdefault(line_url, Endpoint(line_url, interfaces[0].dialect if interfaces else None, with_token=True))
    return tuple(found.values())


def card_urls(line_url: str) -> tuple[str, ...]:
    """Where the card may be, the likeliest first: an agent may live under a path, and old ones use another name."""
    parts = urlsplit(line_url)
    origin = f"{parts.scheme}://{parts.netloc}"
    path = parts.path.rstrip("/")
    bases = [f"{origin}{path}", origin] if path else [origin]
    return tuple(f"{base}{name}" for name in (WELL_KNOWN, OLD_WELL_KNOWN) for base in bases)


class _Offer(NamedTuple):
    url: str | None
    binding: str | None
    version: str | None


def _offered(document: Mapping[str, Any]) -> list[_Offer]:
    """Each interface: those of a 1.0 card, then those that 0.3 would read."""
    new = [
        _Offer(_url(each), _text(each, "protocolBinding"), _text(each, "protocolVersion") or Dialect.V1_0.value)
        for each in _objects(document, "supportedInterfaces")
    ]
    version = _text(document, "protocolVersion")
    own = _Offer(_url(document), _text(document, "preferredTransport") or _BINDING, version)
    more = _objects(document, "additionalInterfaces")
    return [*new, own, *(_Offer(_url(each), _text(each, "transport"), version) for each in more)]


def _spoken(offered: list[_Offer]) -> tuple[Interface, ...]:
    found: dict[Interface, None] = {}
    for url, binding, version in offered:
        dialect = dialect_of(version)
        if url is not None and dialect is not None and (binding or "").upper() == _BINDING:
            found[Interface(url, dialect)] = None
    return tuple(_ordered(found, Dialect.V1_0)[:_MAX_INTERFACES])


def _ordered(interfaces: Iterable[Interface], first: Dialect) -> list[Interface]:
    return sorted(interfaces, key=lambda each: each.dialect is not first)


def _usable(interface: Interface, line_url: str, agent: AgentLine) -> Endpoint | None:
    """The addresses are read by what will dial them: two readers could see two hosts in one text."""
    try:
        (here, _), (there, _) = place_of(line_url), place_of(interface.url)
    except BadAction:
        return None
    destination = destination_of(interface.url)
    if not all(may_go_to(hosts, destination) for hosts in agent.input_hosts):
        return None
    if here.secure and not there.secure:
        return None
    host = _name(there.host)
    if host == _name(here.host) and may_go_to(agent.token_hosts, destination):
        return Endpoint(interface.url, interface.dialect, with_token=True)
    allowed = {_name(each) for each in agent.allowed_hosts}
    if host in allowed or f"{host}:{there.port}" in allowed:
        return Endpoint(interface.url, interface.dialect, with_token=False)
    return None


def _name(host: str) -> str:
    return host.lower().rstrip(".")


def _objects(document: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    value = document.get(name)
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        raise CardError(f"{name} is not an array of objects")
    return value


def _url(holder: Mapping[str, Any]) -> str | None:
    value = holder.get("url")
    return value if isinstance(value, str) and 0 < len(value) <= MAX_URL and value.isprintable() else None


def _text(holder: Mapping[str, Any], name: str) -> str | None:
    """None where there is none."""
    value = holder.get(name)
    if value is None or value == "":
        return None
    if not isinstance(value, str):
        raise CardError(f"{name} is not a string")
    return clean_text(value, _MAX_TEXT)


# ── addresses and dialects to try ─────────────────────────────────────────────────────────────────────


# A card may list many addresses, and each that does not answer costs a connection.
_MAX_ADDRESSES = 4


@dataclass(frozen=True, slots=True)
class AgentRoute:
    url: str
    dialect: Dialect
    with_token: bool


def ways_to(endpoints: Sequence[Endpoint], protocol: AgentProtocol, last: Dialect | None) -> tuple[AgentRoute, ...]:
    """`endpoints` in the order of preference, the registered address last; `last` is how the agent answered before."""
    tried = [*endpoints[: _MAX_ADDRESSES - 1], *endpoints[_MAX_ADDRESSES - 1 :][-1:]]
    named = None if protocol is AgentProtocol.AUTO else Dialect(protocol.value)
    first = named or last or next((each.dialect for each in tried if each.dialect is not None), Dialect.V1_0)
    spoken = (first,) if named is not None else (first, first.other)
    # An address that is said to speak a dialect comes before one of which it is not known.
    return tuple(
        AgentRoute(each.url, dialect, each.with_token)
        for dialect in spoken
        for each in sorted(tried, key=lambda each: each.dialect not in (dialect, None))
    )


def without_dialect(ways: Sequence[AgentRoute], dialect: Dialect) -> tuple[AgentRoute, ...]:
    return tuple(way for way in ways if way.dialect is not dialect)


def without_address(ways: Sequence[AgentRoute], url: str) -> tuple[AgentRoute, ...]:
    return tuple(way for way in ways if way.url != url)


def moved_back(ways: Sequence[AgentRoute], way: AgentRoute) -> tuple[AgentRoute, ...]:
    """For the next try of what waits for an agent that does not answer: another address has its turn."""
    others = tuple(each for each in ways if each != way)
    return (*others, way)
