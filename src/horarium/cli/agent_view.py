"""The text output of agents."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from horarium.cli.kept import described
from horarium.cli.present import cell

if TYPE_CHECKING:
    from horarium.features.agents.model import Agent, AgentChecked

_INDENT = "  "


def in_tree(agents: Sequence[Agent]) -> list[tuple[str, Agent]]:
    """Return agents below their parents, with indented IDs; those without a listed parent are not indented."""
    known = {each.id for each in agents}
    below: dict[str | None, list[Agent]] = {}
    for each in agents:
        below.setdefault(each.parent_id if each.parent_id in known else None, []).append(each)
    found: list[tuple[str, Agent]] = []
    waiting = [(0, each) for each in reversed(below.pop(None, []))]
    while waiting:
        depth, agent = waiting.pop()
        found.append((f"{_INDENT * depth}{agent.id}", agent))
        waiting += [(depth + 1, each) for each in reversed(below.pop(agent.id, []))]
    # Agents may move between two pages; all are listed.
    return found + [(each.id, each) for rest in below.values() for each in rest]


def agent_lines(raw: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    card = raw.get("card")
    names = ("name", "version", "protocol")
    yield from described({**raw, "card": None if card is None else _card(*map(card.get, names))}, "id")


def check_lines(found: AgentChecked) -> Iterator[tuple[str, str]]:
    yield "id", found.id
    yield "reachable", cell(found.reachable)
    if found.card is not None:
        yield "card", _card(found.card.name, found.card.version, found.card.protocol)
    if found.dialect is not None:
        yield "dialect", found.dialect
    if found.error is not None:
        yield "error", found.error
    for each in found.interfaces:
        token = "" if each.with_token else ", without the token"
        yield (
            "interface",
            f"{each.url} ({each.dialect}): " + (f"used{token}" if each.used else f"not used: {each.why_not}"),
        )


def _card(name: object, version: object, protocol: object) -> str:
    """Return such as `Writer 2.1.0, protocol 1.0`."""
    named = " ".join(str(each) for each in (name, version) if each is not None)
    return named if protocol is None else f"{named}, protocol {protocol}"
