"""What a request shows of who asks: its Authorization header, else the token in its session cookie, and a certificate.

The one place that knows there are cookies: whoever asks here gets `Bearer …` either way, so a session may do what its
token may, is counted as its token is, and ends with it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Scope

from horarium.api.address import seen_scheme
from horarium.api.auth import TokenMissing
from horarium.api.base_path import base_of
from horarium.api.certificates import Certificate, certificate_of
from horarium.api.cross_site import SOURCE_HEADER, CrossSite, Sender, is_foreign, is_our_page, origin_of
from horarium.api.session_cookies import Opened, SessionCookies, clear_header
from horarium.operations.errors import Unauthorized
from horarium.operations.resources import Resources

_SETTLED: Final = "authorization"
_FROM_COOKIE: Final = "session_shown"
# A browser sends it along by itself once a proxy has asked for it, and most proxies hand it on (RFC 7617).
_PASSWORD: Final = "basic"


class SessionOver(TokenMissing):
    """It was good once, or contradicts another good one, so nothing was guessed."""


class Shown(NamedTuple):
    authorization: str | None
    certificate: Certificate | None


def authorization_of(request: Request) -> str | None:
    """Settled once: what began in time is counted to its end as what it began as."""
    state: dict[str, Any] = request.scope["state"]
    if _SETTLED not in state:
        state[_SETTLED] = _authorization(request)
    found: str | None = state[_SETTLED]
    return found


def shown_by(request: Request) -> Shown:
    """Raises CrossSite and Unauthorized."""
    return _checked(request, Shown(authorization_of(request), certificate_of(request.scope)))


def shown_again(request: Request) -> Shown:
    """In the midst of a long answer: a session that has ended meanwhile is over."""
    return _checked(request, Shown(_authorization(request), certificate_of(request.scope)))


def require_our_page(request: Request) -> None:
    """For what makes and ends sessions, whatever the request shows; raises CrossSite."""
    if not is_our_page(sender_of(request)):
        raise CrossSite


def session_of(request: Request) -> Opened | None:
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


def sender_of(request: Request) -> Sender:
    headers = request.headers
    return Sender(
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


def _checked(request: Request, shown: Shown) -> Shown:
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


def _good(sessions: SessionCookies, request: Request) -> list[Opened]:
    resources: Resources = request.app.state.resources
    now = resources.clock.now()
    opened = (sessions.unseal(value) for value in _values(sessions, request))
    return [each for each in opened if each is not None and now < each.until]
