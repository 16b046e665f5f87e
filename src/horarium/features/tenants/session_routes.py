"""The routes by which a browser signs in and out: a token is exchanged for a cookie that no script can read."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import version
from typing import Annotated, Any, Final

from fastapi import Depends, Request, Response

from horarium.core.recurrence.spec import DEFAULT_ZONE
from horarium.errors import InvalidDefinition
from horarium.features.resources import Resources
from horarium.features.tenants.model import Session, SessionBody, SignInLink
from horarium.features.tenants.service import is_secret_of, reach_of
from horarium.instant import HOUR, LAST, MINUTE, Instant, to_datetime
from horarium.platform.bodies import read_body
from horarium.platform.caller import Caller
from horarium.platform.database import idempotency
from horarium.platform.database.errors import UniqueConflict
from horarium.platform.database.schema import DEFAULT_NAMESPACE
from horarium.platform.errors import Unauthorized
from horarium.platform.http import examples
from horarium.platform.http.authentication import (
    Authenticator,
    authorization_of,
    bearer_of,
    by_tls,
    cookie_name,
    cookie_path,
    end_other_cookies,
    end_session,
    require_our_page,
    session_of,
)
from horarium.platform.http.browser_sessions import (
    CODE_PREFIX,
    MAX_SECRET,
    OpenedCode,
    SessionCookies,
    seconds_until,
    set_header,
)
from horarium.platform.http.connections import certificate_of
from horarium.platform.http.limits import body_of
from horarium.platform.http.requests import CallerOf, ResourcesOf, caller_for, json_object
from horarium.platform.http.responses import Reply
from horarium.platform.http.routing import LOOK, OPEN, Routes
from horarium.platform.wire import Permission, Role, time_of

routes = Routes("/api/session", tag="session")

# Nobody's body is parsed before: a token and a name have room in this.
_MAX_BODY: Final = 16_384
_CODE_LIFE: Final = MINUTE
_UNKNOWN: Final = "The token is unknown, revoked or expired."
_CODE_OVER: Final = "The sign-in code is unknown, expired or already used. Create a new one with `horarium ui`."
_EXAMPLE: Final = Session(
    principal="admin",
    role=Role.ADMIN,
    permissions=tuple(Permission),
    namespace="default",
    everywhere=True,
    namespaces=("default", "team-a"),
    more_namespaces=False,
    version="0.1.0",
    now=examples.AT,
    zone=DEFAULT_ZONE,
    ends_at=examples.LATER,
)


async def from_our_page(request: Request) -> Mapping[str, Any]:
    """Read the body from a page of this site.

    A page of another site must not sign a user in, not even as its author.
    """
    require_our_page(request)
    body_of(request).limit_to(_MAX_BODY)
    return await json_object(request)


@routes(
    "POST",
    "",
    needs=OPEN,
    summary="Sign in a browser",
    body=SessionBody,
    sends={"token": "hor_example", "namespace": "default"},
    answer=Session,
    example=_EXAMPLE,
    repeatable=False,  # its answer is a cookie, and what opens a door is not kept for a repetition
)
def open_session(
    request: Request, resources: ResourcesOf, body: Annotated[Mapping[str, Any], Depends(from_our_page)]
) -> Reply:
    """For pages of this service. Stores the token in a cookie that expires with the token, at the latest after some
    hours. A sign-in code works once. With `dry_run`, returns the caller without starting a session or using up the
    code.

    Programs send the token with each request instead. The request must come from a page of this service
    (`X-Horarium-Source: ui`, and `Sec-Fetch-Site` or `Origin`); other sites get 403 `cross_site`.
    """
    asked = read_body(SessionBody, body)
    sessions: SessionCookies = request.app.state.sessions
    authenticator: Authenticator = request.app.state.authenticator
    shown = _unsealed(resources, sessions, asked.token.strip())
    secret, made_in = shown.secret, shown.session_until
    known = authenticator.admit(f"Bearer {secret}", certificate_of(request.scope))
    caller = caller_for(request, known, asked.namespace)
    _check_length(secret)
    until = min(_end(resources, authenticator.ends_at(secret), resources.clock.now()), made_in or LAST)
    answer = _shown(resources, caller, until)
    if asked.dry_run:
        return Reply(answer)
    _use(resources, shown)
    reply = Reply(answer, headers=_set_cookie(request, secret, until))
    end_other_cookies(request, reply)
    return reply


@routes("GET", "", needs=LOOK, summary="Show the caller", answer=Session, example=_EXAMPLE)
def get_session(request: Request, resources: ResourcesOf, caller: CallerOf) -> Reply:
    """Also works with a bearer token or a client certificate, without a session."""
    session = session_of(request)
    return Reply(_shown(resources, caller, None if session is None else session.until))


@routes(
    "DELETE",
    "",
    needs=OPEN,
    summary="Sign out a browser",
    status=204,
    example=None,
    repeatable=False,  # to be signed out twice is to be signed out
)
async def close_session(request: Request) -> Response:
    """Removes the cookie. Revoking a token ends all sessions that were started with it."""
    require_our_page(request)
    return end_session(request, Response(status_code=204))


@routes(
    "POST",
    "/link",
    needs=LOOK,
    summary="Create a sign-in code for a browser",
    answer=SignInLink,
    example=SignInLink(code="hsc_example", expires_at=examples.AT),
    repeatable=False,  # it is good for the moment only
)
def make_sign_in_link(request: Request, resources: ResourcesOf, caller: CallerOf) -> Reply:
    """For a command that opens a browser: `/ui/#token=<code>` signs in as the caller, once, within a minute. A code is
    safer than a token in the URL, which other users of the machine can see. A session started with it does not outlast
    the credential of the caller.
    """
    sessions: SessionCookies = request.app.state.sessions
    secret = bearer_of(authorization_of(request))
    _check_length(secret)
    session = session_of(request)
    session_until = None if session is None else session.until
    until = min(resources.clock.now() + _CODE_LIFE, session_until or LAST)
    code = sessions.seal_code(secret, until, session_until)
    return Reply(SignInLink(code=code, expires_at=to_datetime(until)))


class OwnSession:
    """The session by which a request was let in, for what gives its token a new secret: it goes on with that one."""

    def __init__(self, request: Request) -> None:
        self._request = request

    def is_of(self, resources: Resources, token_id: str) -> bool:
        """Asked before the change: afterwards the session may open nothing any more."""
        opened = session_of(self._request)
        return opened is not None and is_secret_of(resources, opened.secret, token_id)

    def with_secret(self, secret: str) -> dict[str, str]:
        """Headers; it ends when it would have ended."""
        opened = session_of(self._request)
        return {} if opened is None else _set_cookie(self._request, secret, opened.until)


async def own_session(request: Request) -> OwnSession:
    return OwnSession(request)


OwnSessionOf = Annotated[OwnSession, Depends(own_session)]


def _set_cookie(request: Request, secret: str, until: Instant) -> dict[str, str]:
    sessions: SessionCookies = request.app.state.sessions
    resources: Resources = request.app.state.resources
    cookie = set_header(
        cookie_name(request),
        sessions.seal(secret, until),
        path=cookie_path(request.scope),
        seconds=seconds_until(until, resources.clock.now()),
        secure=by_tls(request),
    )
    return {"Set-Cookie": cookie}


def _unsealed(resources: Resources, sessions: SessionCookies, shown: str) -> OpenedCode:
    """The token behind a code. A token that is sent itself has no code id."""
    if not shown.isascii() or not shown.isprintable():  # what no header could carry is no token of ours
        raise Unauthorized(_UNKNOWN)
    if not shown.startswith(CODE_PREFIX):
        return OpenedCode("", shown, LAST, None)
    opened = sessions.unseal_code(shown)
    if opened is None or resources.clock.now() >= opened.until:
        raise Unauthorized(_CODE_OVER)
    if resources.database.read(lambda c: idempotency.recall(c, DEFAULT_NAMESPACE, _mark(opened))) is not None:
        raise Unauthorized(_CODE_OVER)
    return opened


def _use(resources: Resources, shown: OpenedCode) -> None:
    """Spend a code: of several requests with one code, on any process, the first alone signs in."""
    if not shown.code_id:
        return
    now = resources.clock.now()
    try:
        resources.database.write(lambda c: idempotency.use_once(c, DEFAULT_NAMESPACE, _mark(shown), now=now))
    except UniqueConflict:
        raise Unauthorized(_CODE_OVER) from None


def _mark(code: OpenedCode) -> str:
    return f"sign-in code {code.code_id}"


def _check_length(secret: str) -> None:
    if len(secret) > MAX_SECRET:
        too_long = f"is too long for a browser session (maximum {MAX_SECRET} characters); sign in with an API token"
        raise InvalidDefinition({"token": [too_long]})


def _end(resources: Resources, credential: Instant | None, now: Instant) -> Instant:
    until = now + round(resources.settings.session_hours * HOUR)
    if credential is not None and credential <= now:
        raise Unauthorized("The token has expired.")
    return until if credential is None else min(until, credential)


def _shown(resources: Resources, caller: Caller, until: Instant | None) -> Session:
    reach = reach_of(resources, caller)
    return Session(
        principal=caller.principal or "",
        role=caller.role,
        permissions=reach.permissions,
        namespace=caller.namespace,
        everywhere=caller.everywhere,
        namespaces=reach.namespaces,
        more_namespaces=reach.more,
        version=version("horarium"),
        now=to_datetime(resources.clock.now()),
        zone=DEFAULT_ZONE,
        ends_at=time_of(until),
    )
