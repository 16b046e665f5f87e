"""The bodies of requests about tokens."""

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
    """Of the role `agent`, for the agent of the path; without a `name` it has that of the agent."""

    name: Text | None = None
    expires_at: Time | None = None


class RotateBody(Body, frozen=True, kw_only=True):
    """For how long the old secret is good; a day, unless it is given."""

    overlap_seconds: Whole | None = None
