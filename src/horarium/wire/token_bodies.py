"""Bodies of requests about tokens."""

from __future__ import annotations

from horarium.wire.answer import Time
from horarium.wire.bodies import Body, Text, Whole
from horarium.wire.roles import Role


class TokenBody(Body, frozen=True, kw_only=True):
    name: Text
    role: Role
    subject: Text | None = None
    expires_at: Time | None = None
    queues: tuple[Text, ...] | None = None


class AgentTokenBody(Body, frozen=True, kw_only=True):
    """A token with the role `agent` for the agent in the path. `name` defaults to that of the agent."""

    name: Text | None = None
    expires_at: Time | None = None


class RotateBody(Body, frozen=True, kw_only=True):
    """Seconds for which the old secret stays valid (default 86400)."""

    overlap_seconds: Whole | None = None
