"""Who a browser is signed in as: the body that asks for a session, and what is answered about it."""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import Meta

from horarium.wire.answer import Answer, Time
from horarium.wire.bodies import Body, Name
from horarium.wire.roles import Permission, Role

MAX_TOKEN = 8_192


class SessionBody(Body, frozen=True, kw_only=True):
    """`token` is one of ours, a signed JWT, or the `code` of a link; `namespace` the one to begin in.

    With `dry_run` no session begins.
    """

    token: Annotated[str, Meta(max_length=MAX_TOKEN)]
    namespace: Name | None = None
    dry_run: bool = False


class Session(Answer, frozen=True, kw_only=True):
    """Who asks, and what they may do here.

    `namespaces` are those that this caller may switch to, by name, at most 1,000; `more_namespaces`: there are others.
    `zone` is that of schedules which name none. `ends_at` is when one has to sign in again; null = with the credential
    itself.
    """

    principal: str
    role: Role
    permissions: tuple[Permission, ...]
    namespace: str
    everywhere: bool
    namespaces: tuple[str, ...]
    more_namespaces: bool
    version: str
    now: Time
    zone: str | None
    ends_at: Time | None


class SignInLink(Answer, frozen=True, kw_only=True):
    """`code` takes the place of a token when a session is asked for, until it `expires_at`."""

    HIDDEN: ClassVar = frozenset({"code"})

    code: str
    expires_at: Time
