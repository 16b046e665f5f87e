"""Whether a caller may look at an agent: one that is an agent itself sees its peers, and nobody else."""

from __future__ import annotations

from horarium.operations.caller import Caller
from horarium.operations.errors import Forbidden
from horarium.schedule.peers import may_speak
from horarium.store import assignees
from horarium.store.database import Connection


def require_peer(connection: Connection, caller: Caller, agent_id: str) -> None:
    """Raise Forbidden, also for an agent that does not exist, after the same work: an agent learns of no other."""
    own = caller.agent_id
    if own is None:
        return
    parents = assignees.parents_above(connection, caller.namespace, own, agent_id)
    if not may_speak(own, agent_id, parents):
        raise Forbidden("access denied")
