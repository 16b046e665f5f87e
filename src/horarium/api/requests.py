"""What a request says: who asks and in which namespace, the document it brings, and the numbers in its query."""

from __future__ import annotations

import hmac
from hashlib import sha256
from typing import Annotated, Any

import orjson
from fastapi import Depends, Request

from horarium.api.middleware import CONTROL_PLANE_VERSION
from horarium.api.problems import BadRequest
from horarium.errors import InvalidDefinition
from horarium.operations.caller import Caller, Role
from horarium.operations.desk import Desk
from horarium.operations.errors import NamespaceNotFound, Unauthorized
from horarium.store import namespaces, tokens
from horarium.store.migrate import DEFAULT_NAMESPACE

SOURCE = "api"
_MAX_NAMESPACE = 128


def desk_of(request: Request) -> Desk:
    desk: Desk = request.app.state.desk
    return desk


def caller_of(request: Request) -> Caller:
    """Who has this token, in the namespace he asks for; 401 without a token, 404 for somebody else's namespace."""
    desk = desk_of(request)
    principal, role, home = known_of(request)
    _check_control_plane(request.headers.get("x-durable-workflow-control-plane-version"))
    wanted = request.headers.get("x-namespace", "").strip() or None
    namespace = wanted or home or DEFAULT_NAMESPACE
    # The admin of the default namespace keeps the house; everybody else stays in his own rooms.
    if home is not None and namespace != home and not (role is Role.ADMIN and home == DEFAULT_NAMESPACE):
        raise NamespaceNotFound(namespace[:_MAX_NAMESPACE])
    if namespace != DEFAULT_NAMESPACE:
        _check_namespace(desk, namespace)
    return Caller(principal, role, namespace, SOURCE, request.state.request_id)


def _check_control_plane(version: str | None) -> None:
    """Ours is a superset of version 2: whoever names none speaks to us, whoever names another to somebody else."""
    if version is not None and version.strip() != CONTROL_PLANE_VERSION:
        asked = f"this server speaks version {CONTROL_PLANE_VERSION} of the control plane, not {version[:16]!r}"
        raise BadRequest(400, "unsupported_control_plane_version", asked)


def known_of(request: Request) -> tuple[str, Role, str | None]:
    """Name, role and home of whoever has this token, whatever namespace he asks for; 401 without one."""
    return _identify(desk_of(request), _bearer(request.headers.get("authorization")))


def _bearer(header: str | None) -> str:
    scheme, _, secret = (header or "").partition(" ")
    if scheme.lower() != "bearer" or not secret.strip():
        raise Unauthorized("a token is needed: Authorization: Bearer …")
    return secret.strip()


def _identify(desk: Desk, secret: str) -> tuple[str, Role, str | None]:
    """Name, role and home; the token that the operator fixed has no home, it is at home everywhere."""
    fixed = desk.settings.token
    if fixed is not None and hmac.compare_digest(_digest(secret), _digest(fixed.get_secret_value())):
        return "admin", Role.ADMIN, None
    now = desk.clock.now()
    row = desk.database.read(lambda connection: tokens.find_by_secret(connection, secret, now=now))
    if row is None:
        raise Unauthorized("this token is unknown, revoked or expired")
    return row.subject or row.name, Role(row.role), row.namespace


def _digest(secret: str) -> bytes:
    """Of equal length whatever the secrets are, so that comparing them tells nothing."""
    return sha256(secret.encode("utf-8", "surrogatepass")).digest()


def _check_namespace(desk: Desk, namespace: str) -> None:
    known = len(namespace) <= _MAX_NAMESPACE and desk.database.read(
        lambda connection: namespaces.find(connection, namespace)
    )
    if not known:
        raise NamespaceNotFound(namespace[:_MAX_NAMESPACE])


async def json_body(request: Request) -> Any:
    """An empty body is an empty object."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    raw = await request.body()
    if not raw:
        return {}
    if kind and kind != "application/json" and not kind.endswith("+json"):
        raise BadRequest(415, "unsupported_media_type", "the body must be application/json")
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError as wrong:
        raise BadRequest(400, "malformed_json", f"the body is not JSON: {wrong}") from None


async def json_object(request: Request) -> dict[str, Any]:
    """`[]` is how PHP writes an empty object."""
    body = await json_body(request)
    if body == []:
        return {}
    if not isinstance(body, dict):
        raise InvalidDefinition({"body": ["must be a JSON object"]})
    return body


DeskOf = Annotated[Desk, Depends(desk_of)]
CallerOf = Annotated[Caller, Depends(caller_of)]
KnownOf = Annotated[tuple[str, Role, str | None], Depends(known_of)]
Document = Annotated[dict[str, Any], Depends(json_object)]
