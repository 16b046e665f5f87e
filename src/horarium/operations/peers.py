"""Whether a caller may look at an agent: one that is an agent itself sees its peers, and nobody else."""

from __future__ import annotations

from horarium.operations.caller import Caller
from horarium.operations.errors import Forbidden
from horarium.schedule.peers import may_speak
from horarium.store import assignees
from horarium.store.database import Connection


def require_peer(connection: Connection, caller: Caller, agent_id: str) -> None:
    """Raises Forbidden, also for an agent that there is not: an agent learns nothing of who else is there."""
    own = caller.agent_id
    if own is None:
        return
    parents: dict[str, str | None] = {}
    for each in (own, agent_id):
        parents |= assignees.parents_above(connection, caller.namespace, each)
    if not may_speak(own, agent_id, parents):
        raise Forbidden("access denied")
