"""Body and answers of browser sessions."""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import Meta

from horarium.wire.answer import Answer, Time
from horarium.wire.bodies import Body, Name
from horarium.wire.roles import Permission, Role

MAX_TOKEN = 8_192


class SessionBody(Body, frozen=True, kw_only=True):
    """Credentials for a session. `token` is an API token, a signed JWT or the `code` of a sign-in link. `namespace` is
    the first one to show. With `dry_run` no session starts.
    """

    token: Annotated[str, Meta(max_length=MAX_TOKEN)]
    namespace: Name | None = None
    dry_run: bool = False


class Session(Answer, frozen=True, kw_only=True):
    """The caller and its permissions. `namespaces`: namespaces that the caller can switch to, at most 1,000;
    `more_namespaces`: there are more. `zone`: default time zone of schedules. `ends_at`: time at which the session ends
    (null = with the credential).
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
    """A sign-in code. `code` replaces a token when a session is opened, until `expires_at`."""

    HIDDEN: ClassVar = frozenset({"code"})

    code: str
    expires_at: Time
