"""Peers as their rows stand: what an agent may look at, in its own namespace."""

from __future__ import annotations

from dataclasses import replace

import pytest
from operations.desks import ADMIN, VIEWER, Office

from horarium.features.agents import service as agent_service
from horarium.features.agents.teams import require_peer
from horarium.platform.caller import Caller
from horarium.platform.errors import Forbidden
from horarium.platform.wire import Role


def test_an_agent_looks_at_its_peers_and_at_nobody_else(office: Office) -> None:
    tree = {
        "boss": None,
        "editor": "boss",
        "seller": "boss",
        "writer": "editor",
        "checker": "editor",
        "caller": "seller",
    }
    for name, parent in tree.items():
        agent_service.create(office.resources, ADMIN, {"id": name, **({} if parent is None else {"parent_id": parent})})
    seen = [name for name in tree if _may(office, Caller("writer", Role.AGENT), name)]
    assert seen == ["boss", "editor", "writer", "checker"]
    assert not _may(office, Caller("writer", Role.AGENT), "nobody")
    assert not _may(office, Caller("stranger", Role.AGENT), "stranger"), "a token of nobody's"
    assert not _may(office, Caller(None, Role.AGENT), "boss")
    assert not _may(office, replace(Caller("writer", Role.AGENT), namespace="other"), "writer")
    assert _may(office, VIEWER, "caller"), "whoever reads all reads this"


def _may(office: Office, caller: Caller, agent_id: str) -> bool:
    try:
        office.resources.database.read(lambda connection: require_peer(connection, caller, agent_id))
    except Forbidden:
        return False
    return True


def test_the_refusal_is_a_403(office: Office) -> None:
    with pytest.raises(Forbidden, match=r"^access denied$") as refused:
        office.resources.database.read(
            lambda connection: require_peer(connection, Caller("writer", Role.AGENT), "writer")
        )
    assert refused.value.status == 403
