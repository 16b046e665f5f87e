"""Authenticate a request: its Authorization header, session cookie, client certificate or JWT gives the caller."""

from __future__ import annotations

import hmac
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Scope

from horarium.core.lifecycle.outcome import Fence
from horarium.errors import HorariumError, InvalidDefinition
from horarium.features.resources import Resources
from horarium.features.runs import rows as runs_read
from horarium.features.schedules.references import FIXED
from horarium.features.tenants import rows as tenant_rows
from horarium.features.tenants.rows import TokenRow
from horarium.instant import MINUTE, SECOND, Instant
from horarium.platform.caller import run_principal
from horarium.platform.database.schema import DEFAULT_NAMESPACE
from horarium.platform.errors import Unauthorized
from horarium.platform.http.browser_sessions import (
    SOURCE_HEADER,
    CrossSite,
    OpenedSession,
    RequestSource,
    SessionCookies,
    clear_header,
    is_foreign,
    is_our_page,
    origin_of,
)
from horarium.platform.http.connections import Buckets, Certificate, Holders, base_of, certificate_of, seen_scheme
from horarium.platform.http.jwts import Jwts, expiry_of, looks_signed
from horarium.platform.ids import parse_id
from horarium.platform.wire import Role

# The principal of code in our own process.
EMBEDDED = "embedded"
# How exactly we remember when a token was last used: a write for each request would cost more than it tells.
_TOUCH_AFTER = 10 * MINUTE
_NOT_OF_THIS_RUN = "The token is not valid for this run."


class TokenMissing(Unauthorized):
    """Nothing was tried."""


@dataclass(frozen=True, slots=True)
class Identity:
    """`home` is the namespace of the credential; None = at home everywhere. `queues` None = all.

    `token_id` is that of a stored token, `ends_at` the end of a signed token or a certificate.
    """

    principal: str
    role: Role
    home: str | None
    queues: frozenset[str] | None = None
    token_id: bytes | None = None
    ends_at: Instant | None = None

    @property
    def everywhere(self) -> bool:
        """Only an admin of the default namespace may speak for other namespaces."""
        return self.role is Role.ADMIN and self.home in (None, DEFAULT_NAMESPACE)


class Authenticator:
    """Tells who has a token, and how often each was used lately."""

    def __init__(self, resources: Resources, own_secret: str | None = None) -> None:
        """Raises InvalidDefinition for keys in the settings that cannot be used."""
        settings = resources.settings
        self._resources = resources
        fixed = None if settings.token is None else settings.token.get_secret_value()
        self._own = Identity(EMBEDDED, Role.ADMIN, None)
        self._fixed = [
            (_digest(secret), known)
            for secret, known in ((fixed, Identity(FIXED, Role.ADMIN, None)), (own_secret, self._own))
            if secret is not None
        ]
        self._holders = Holders(settings, resources.clock)
        self._jwts = Jwts(settings, resources.clock, resources.telemetry.log)
        self._buckets = Buckets(
            resources.clock, per_second=settings.rate_limit_per_second, burst=settings.rate_limit_burst
        )

    def admit(self, authorization: str | None, certificate: Certificate | None = None) -> Identity:
        """Raises Unauthorized, and RateLimited for one who asks too often."""
        known = self.know(authorization, certificate)
        if known is not self._own:  # our own program slows nobody down but itself
            self._buckets.take(_digest(f"principal {known}" if authorization is None else bearer_of(authorization)))
        return known

    def know(
        self, authorization: str | None, certificate: Certificate | None = None, *, again: bool = False
    ) -> Identity:
        """The same, without counting; `again`: in the midst of a long answer."""
        holder = None
        if certificate is not None and self._holders:
            holder = Identity(*self._holders.identify(certificate), ends_at=int(certificate.expires_at) * SECOND)
        if holder is not None and authorization is None:
            return holder
        recognise = self.recognise_again if again else self.recognise
        return recognise(bearer_of(authorization))

    def admit_target(self, token: str, run_id: str) -> Identity:
        """Whoever shows the token of a run may speak for that run, in its own namespace, and do nothing else."""
        return self._admit_of_run(token, run_id, self._resources.tokens.fence_of)

    def admit_any_target(self, shown: Sequence[tuple[str, str]]) -> Identity:
        """Whoever shows a token that we made, with its run, may speak for the runs whose tokens it shows.

        That a run is there no more is told where it is asked for: it must not keep the others from being heard.
        """
        for token, run_id in shown:
            with suppress(InvalidDefinition):
                key = parse_id(run_id, "run_id")
                if self._resources.tokens.fence_of(token, key) is not None:
                    self._buckets.take(_digest(token))
                    return Identity(run_principal(key), Role.AGENT, DEFAULT_NAMESPACE)
        raise Unauthorized("None of the report tokens is valid for its run.")

    def admit_push(self, token: str, run_id: str) -> Identity:
        """Whoever shows the push token of a run may say that there is news of it."""
        return self._admit_of_run(token, run_id, self._resources.tokens.fence_of_push)

    def _admit_of_run(self, token: str, run_id: str, fence_of: Callable[[str, bytes], Fence | None]) -> Identity:
        try:
            key = parse_id(run_id, "run_id")
        except InvalidDefinition:
            raise Unauthorized(_NOT_OF_THIS_RUN) from None
        if fence_of(token, key) is None:
            raise Unauthorized(_NOT_OF_THIS_RUN)
        self._buckets.take(_digest(token))
        namespace = self._resources.database.glance(lambda connection: runs_read.namespace_of(connection, key))
        if namespace is None:
            raise Unauthorized(_NOT_OF_THIS_RUN)
        return Identity(run_principal(key), Role.AGENT, namespace)

    def needs_nobody(self, authorization: str | None, certificate: Certificate | None = None) -> bool:
        """Tell whether the caller can be identified at once, without the database."""
        if certificate is not None and authorization is None:
            return False
        return self._at_once(bearer_of(authorization)) is not None

    def recognise(self, secret: str) -> Identity:
        at_once = self._at_once(secret)
        if at_once is not None:
            return at_once
        if self._jwts.trusted and looks_signed(secret):
            return Identity(*self._jwts.identify(secret), ends_at=int(expiry_of(secret)) * SECOND)
        now = self._resources.clock.now()
        row = self._resources.database.glance(
            lambda connection: tenant_rows.find_token_by_secret(connection, secret, now=now)
        )
        if row is None:
            raise Unauthorized("The token is unknown, revoked or expired.")
        self._touch(row, now)
        return Identity(row.subject or row.name, Role(row.role), row.namespace, row.queues, row.token_id)

    def recognise_again(self, secret: str) -> Identity:
        """In the midst of a long answer: a signed token ends when it says, without the leeway of a new request."""
        known = self.recognise(secret)
        if self._is_signed(secret) and self._resources.clock.now() / SECOND >= expiry_of(secret):
            raise Unauthorized("The token has expired.")
        return known

    def ends_at(self, secret: str) -> Instant | None:
        """When a token that was found good ends by what stands in it; None = we are asked each time."""
        return int(expiry_of(secret)) * SECOND if self._is_signed(secret) else None

    def _is_signed(self, secret: str) -> bool:
        return self._jwts.trusted and looks_signed(secret) and self._at_once(secret) is None

    def _at_once(self, secret: str) -> Identity | None:
        """Find the holder of the operator's token or of this process's token."""
        digest = _digest(secret)
        return next((known for fixed, known in self._fixed if hmac.compare_digest(digest, fixed)), None)

    def _touch(self, row: TokenRow, now: Instant) -> None:
        if row.last_used_at is None or now - row.last_used_at > _TOUCH_AFTER:
            with suppress(HorariumError):  # a note for people; nobody is turned away for want of it
                self._resources.database.write(
                    lambda connection: tenant_rows.touch_token(connection, row.token_id, now=now)
                )


def bearer_of(authorization: str | None) -> str:
    scheme, _, secret = (authorization or "").partition(" ")
    if scheme.lower() != "bearer" or not secret.strip():
        raise TokenMissing("A token is required. Send `Authorization: Bearer …`.")
    return secret.strip()


def credential_of(authorization: str | None, principal: str | None) -> str:
    """By what the share of somebody who was let in is counted: the token, since `bearer` can be spelled at will."""
    return _digest(f"principal {principal}" if authorization is None else bearer_of(authorization)).hex()


def _digest(secret: str) -> bytes:
    """Hash a secret to a fixed length, so that a comparison reveals nothing."""
    return sha256(secret.encode("utf-8", "surrogatepass")).digest()


_SETTLED: Final = "authorization"
_FROM_COOKIE: Final = "session_shown"
# A browser sends it along by itself once a proxy has asked for it, and most proxies hand it on (RFC 7617).
_PASSWORD: Final = "basic"


class SessionOver(TokenMissing):
    """It was good once, or contradicts another good one, so nothing was guessed."""


class PresentedCredentials(NamedTuple):
    authorization: str | None
    certificate: Certificate | None


def authorization_of(request: Request) -> str | None:
    """Settled once: what began in time is counted to its end as what it began as."""
    state: dict[str, Any] = request.scope["state"]
    if _SETTLED not in state:
        state[_SETTLED] = _authorization(request)
    found: str | None = state[_SETTLED]
    return found


def shown_by(request: Request) -> PresentedCredentials:
    """Raises CrossSite and Unauthorized."""
    return _checked(request, PresentedCredentials(authorization_of(request), certificate_of(request.scope)))


def shown_again(request: Request) -> PresentedCredentials:
    """In the midst of a long answer: a session that has ended meanwhile is over."""
    return _checked(request, PresentedCredentials(_authorization(request), certificate_of(request.scope)))


def require_our_page(request: Request) -> None:
    """For what makes and ends sessions, whatever the request shows; raises CrossSite."""
    if not is_our_page(sender_of(request)):
        raise CrossSite


def session_of(request: Request) -> OpenedSession | None:
    """The session by which the request was let in; None = by something else."""
    sessions: SessionCookies = request.app.state.sessions
    if _header(request, sessions) is not None:
        return None
    return next(iter(_good(sessions, request)), None)


def end_cookie(request: Request, answer: Response) -> Response:
    """Take cookies that open nothing from the browser. An answer to a request without one stays as it is."""
    return end_session(request, answer) if request.scope["state"].get(_FROM_COOKIE) else answer


def end_session(request: Request, answer: Response) -> Response:
    """Clear the cookie under every name it has had, on every path that comes to us.

    One that was set before there was a base path, or before there was TLS, would go on in its place.
    """
    sessions: SessionCookies = request.app.state.sessions
    names = {cookie_name(request), *sessions.names_in(request.headers.getlist("cookie"))}
    return _cleared(request, answer, names)


def end_other_cookies(request: Request, answer: Response) -> Response:
    """Clear what the browser has shown under other names than the one that a session begun now has."""
    sessions: SessionCookies = request.app.state.sessions
    return _cleared(request, answer, sessions.names_in(request.headers.getlist("cookie")) - {cookie_name(request)})


def cookie_path(scope: Scope) -> str:
    return f"{base_of(scope)}/"


def cookie_name(request: Request) -> str:
    sessions: SessionCookies = request.app.state.sessions
    return sessions.name_for(cookie_path(request.scope), secure=by_tls(request))


def by_tls(request: Request) -> bool:
    """A browser that says it is on a page by TLS is, whatever a proxy has told us of the way."""
    return seen_scheme(request.scope) == "https" or request.headers.get("origin", "").startswith("https://")


def _cleared(request: Request, answer: Response, names: Iterable[str]) -> Response:
    parts = base_of(request.scope).split("/")
    for path in ("/".join(parts[:many]) + "/" for many in range(1, len(parts) + 1)):
        for name in sorted(names):
            answer.headers.append("set-cookie", clear_header(name, path=path))
    return answer


def sender_of(request: Request) -> RequestSource:
    headers = request.headers
    return RequestSource(
        request.method,
        site=headers.get("sec-fetch-site"),
        origin=headers.get("origin"),
        source=headers.get(SOURCE_HEADER),
        own=_own_origins(request),
    )


def _own_origins(request: Request) -> frozenset[str]:
    """As the request was addressed, and as the operator says that we are reached, where a proxy writes another host."""
    resources: Resources = request.app.state.resources
    public = urlsplit(resources.settings.own_url)
    asked = origin_of(seen_scheme(request.scope), request.headers.get("host", ""))
    return frozenset({asked, origin_of(public.scheme, public.netloc.rpartition("@")[2])})


def _checked(request: Request, shown: PresentedCredentials) -> PresentedCredentials:
    """A browser sends a certificate along as it does a cookie; a program that has one says nothing of pages."""
    if shown.authorization is None and shown.certificate is not None and is_foreign(sender_of(request)):
        raise CrossSite
    return shown


def _header(request: Request, sessions: SessionCookies) -> str | None:
    """Read the header, ignoring a password for a proxy in front of the service: it does not affect a session."""
    header = request.headers.get("authorization")
    is_for_proxy = header is not None and header.partition(" ")[0].lower() == _PASSWORD
    return None if is_for_proxy and _values(sessions, request) else header


def _authorization(request: Request) -> str | None:
    sessions: SessionCookies = request.app.state.sessions
    header = _header(request, sessions)
    if header is not None:
        return header
    values = _values(sessions, request)
    if not values:
        return None
    if not is_our_page(sender_of(request)):
        raise CrossSite
    request.scope["state"][_FROM_COOKIE] = True
    good = _good(sessions, request)
    if len({each.secret for each in good}) > 1:
        raise SessionOver("The request has two different sessions. Sign in again.")
    if good:
        return f"Bearer {good[0].secret}"
    if any(sessions.unseal(value) is not None for value in values):
        raise SessionOver("The session has ended. Sign in again.")
    raise Unauthorized("The session is unknown. Sign in again.")


def _values(sessions: SessionCookies, request: Request) -> list[str]:
    return sessions.shown_in(request.headers.getlist("cookie"), secure=by_tls(request))


def _good(sessions: SessionCookies, request: Request) -> list[OpenedSession]:
    resources: Resources = request.app.state.resources
    now = resources.clock.now()
    opened = (sessions.unseal(value) for value in _values(sessions, request))
    return [each for each in opened if each is not None and now < each.until]
