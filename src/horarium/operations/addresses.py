"""Warnings about what a write would call: prompts that reach no agent, and addresses that cannot be called from here.

Names are resolved after the write, when no transaction is open: a transaction only collects addresses.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from horarium.launchers.outgoing import BadAction, place_of
from horarium.launchers.resolver import numeric_address
from horarium.launchers.ssrf import Forbidden, Guard, Permitted
from horarium.schedule.agent import Agent
from horarium.schedule.assignee import Assignee, AssigneeType, workers_of
from horarium.schedule.definition import Action
from horarium.schedule.kinds import PROMPT
from horarium.store.policies import Speakers, TeamTurn

SECONDS: Final = 1.0
MOST: Final = 100
"""Hosts that one request resolves; a bundle may name thousands."""


class Address(NamedTuple):
    """`path` is the field that names it, `whose` the agent that has it; None = the action itself."""

    path: str
    url: str
    whose: str | None = None


@dataclass(frozen=True, slots=True)
class Called:
    """Warnings about the addresses that an action calls, and the addresses that are resolved later."""

    warnings: tuple[str, ...] = ()
    addresses: tuple[Address, ...] = ()


class Named(NamedTuple):
    """An address with the kind and name of the object that names it."""

    kind: str
    name: str
    address: Address


@dataclass(slots=True)
class NamedAddresses:
    """Those of one request. A transaction that is repeated names them again."""

    found: dict[Named, None] = field(default_factory=dict)

    def add(self, kind: str, name: str, addresses: Iterable[Address]) -> None:
        self.found.update((Named(kind, name, each), None) for each in addresses)


def called_by(
    action: Action,
    assignee: Assignee | None,
    speakers: Speakers | None,
    namespace: str,
    *,
    action_path: str = "action",
    assignee_path: str = "assignee_id",
    needs_assignee: bool = True,
) -> Called:
    """`needs_assignee`: nobody else names one later."""
    url = action.target.get("url")
    if isinstance(url, str):
        return Called(addresses=(Address(f"{action_path}.url", url),))
    if action.kind != PROMPT.name:
        return Called()
    if assignee is None:
        said = f"{assignee_path}: is required for a prompt (agent or team); without it, runs end in state launch_failed"
        return Called((said,) if needs_assignee else ())
    agents = [] if speakers is None else _agents(speakers, namespace, assignee)
    return Called(
        tuple(
            f"{assignee_path}: the agent {each.agent_id!r} has no URL; its prompts end in state launch_failed"
            for each in agents
            if each.url is None
        ),
        tuple(Address(assignee_path, each.url, each.agent_id) for each in agents if each.url is not None),
    )


def _agents(speakers: Speakers, namespace: str, assignee: Assignee) -> list[Agent]:
    """Those that may be sent; what is not there or cannot be read is reported elsewhere."""
    names: Sequence[str] = (assignee.id,)
    if assignee.type is AssigneeType.TEAM:
        team = speakers.teams.get((namespace, assignee.id))
        names = workers_of(team.team) if isinstance(team, TeamTurn) else ()
    found = (speakers.agents.get((namespace, name)) for name in names)
    return [each for each in found if isinstance(each, Agent)]


async def judge(
    guard: Guard, namespace: str, named: Iterable[Named], *, resolves: bool, seconds: float = SECONDS
) -> list[tuple[Named, str]]:
    """Warn of addresses that may not be called or have no host, within `seconds` for all of them.

    Without `resolves` only hosts that are addresses themselves are judged.
    """
    places: dict[tuple[str, int], list[Named]] = {}
    for each in named:
        try:
            place, _ = place_of(each.address.url)
        except BadAction:  # refused elsewhere, or at the launch
            continue
        if resolves or numeric_address(place.host) is not None:
            places.setdefault((place.host, place.port), []).append(each)
    hosts = list(places)[:MOST]
    said = await asyncio.gather(*(_said(guard, host, port, namespace, seconds) for host, port in hosts))
    return [
        (each, f"{each.address.path}: {_whose(each.address)}{text}")
        for place, text in zip(hosts, said, strict=True)
        if text is not None
        for each in places[place]
    ]


async def _said(guard: Guard, host: str, port: int, namespace: str, seconds: float) -> str | None:
    try:
        async with asyncio.timeout(seconds):
            verdict = await guard.judge(host, port, namespace)
    except TimeoutError:
        return f"{host} was not resolved within {seconds:g} s"
    if isinstance(verdict, Permitted):
        return None
    return verdict.error if isinstance(verdict, Forbidden) else f"{verdict.error} (checked from this server)"


def _whose(address: Address) -> str:
    return "" if address.whose is None else f"the URL of the agent {address.whose!r}: "
