"""What goes over the wire about secrets: the value on its way in, and everything but the value on its way out."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from horarium.schedule.secret_value import MAX_VALUE_BYTES
from horarium.wire.answer import Answer, Rows, Time
from horarium.wire.bodies import Body
from horarium.wire.outcomes import WriteOutcome


class SecretBody(Body, frozen=True, kw_only=True):
    """`hosts` are the destinations that the secret may be sent to, `["*"]` = any.

    A bare host is https on port 443; anything else is `scheme://host:port`. Without hosts those of the secret stay; a
    new one may go anywhere.
    """

    value: Annotated[str, Meta(max_length=MAX_VALUE_BYTES)]
    hosts: tuple[str, ...] | None = None

    def __repr__(self) -> str:
        return "SecretBody(…)"


class Secret(Answer, frozen=True, kw_only=True):
    """`hosts` null = every host is allowed. `generated`: made of a credential that a schedule held in plain."""

    name: str
    hosts: tuple[str, ...] | None
    generated: bool
    principal: str | None
    version: int
    created_at: Time
    updated_at: Time


class SecretList(Answer, frozen=True, kw_only=True):
    secrets: Rows[Secret]
    next_page_token: str | None


class SecretDeleted(Answer, frozen=True, kw_only=True):
    name: str
    outcome: WriteOutcome
