"""Bodies and answers about secrets. No answer contains a value."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from horarium.core.document.secret_values import MAX_VALUE_BYTES
from horarium.platform.bodies import Body
from horarium.platform.wire import Answer, Rows, Time, WriteOutcome


class SecretBody(Body, frozen=True, kw_only=True):
    """A secret. `hosts`: destinations that the secret may be sent to, `["*"]` = any. A bare host means https on port
    443; otherwise use `scheme://host:port`. Without `hosts`, a secret keeps its hosts, and a new one may be sent
    anywhere.
    """

    value: Annotated[str, Meta(max_length=MAX_VALUE_BYTES)]
    hosts: tuple[str, ...] | None = None

    def __repr__(self) -> str:
        return "SecretBody(…)"


class Secret(Answer, frozen=True, kw_only=True):
    """A secret without its value. `hosts` null: any host. `generated`: created from credentials in a schedule."""

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
