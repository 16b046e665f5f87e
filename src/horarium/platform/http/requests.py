"""Read a request: caller, namespace, document and query parameters."""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from dataclasses import replace
from itertools import islice
from typing import Annotated, Any

import orjson
from fastapi import Depends, Header, Query, Request
from fastapi.concurrency import run_in_threadpool

from horarium.core.lifecycle.outcome import is_report_token
from horarium.errors import InvalidDefinition
from horarium.features.resources import Resources
from horarium.features.runs.model import MAX_REPORTS
from horarium.features.runs.report_batches import Carrier
from horarium.features.tenants import rows as tenant_rows
from horarium.platform.caller import Caller
from horarium.platform.database.schema import DEFAULT_NAMESPACE
from horarium.platform.errors import NamespaceNotFound, Unauthorized
from horarium.platform.http.authentication import (
    Authenticator,
    Identity,
    authorization_of,
    bearer_of,
    shown_again,
    shown_by,
)
from horarium.platform.http.browser_sessions import SOURCE_HEADER, UI
from horarium.platform.http.connections import client_address
from horarium.platform.http.limits import Turns, body_of, who_asks
from horarium.platform.http.middleware import CONTROL_PLANE_VERSION
from horarium.platform.http.responses import BadRequest, CommitNoting
from horarium.platform.http.routing import body_names_namespace, permission_for
from horarium.platform.wire import Permission

SOURCE = "api"
PUSH_HEADER = "X-A2A-Notification-Token"
# Programs of ours that say which they are. It is for those who read what happened; nothing is allowed by it.
_SOURCES = frozenset({"cli", UI, "client"})
MAX_DEPTH = 100
_MAX_NAMESPACE = 128
# A larger body is read in a thread, and in turn: two megabytes would keep everybody else waiting for their answers.
_PARSED_AT_ONCE_BYTES = 16_384
ALL_NAMESPACES = "*"
ListedNamespace = Annotated[
    str | None, Query(max_length=128, description="`*` = all namespaces; requires an admin of the default namespace.")
]
_NESTING = frozenset({dict, list})
# As a body shows it; each of them is checked, so a few must do.
_REPORT_TOKEN = re.compile(rb'"report_token"\s*:\s*"(hrt_[!#-\[\]-~]{1,128})"')
_MOST_SHOWN = 4
# Of a body with many reports, whose results may speak of other runs.
_RUN_ID = re.compile(rb'"run_id"\s*:\s*"([0-9A-Za-z]{26})"')
_MOST_OF_MANY = 2 * MAX_REPORTS


def resources_of(request: Request) -> Resources:
    resources: Resources = request.app.state.resources
    if request.method == "GET":
        return resources
    return replace(resources, database=CommitNoting(resources.database, request.scope["state"]))


def identity_of(request: Request) -> Identity:
    """Whoever has this token, whatever namespace is asked for; 401 without one, 429 for one who asks too often."""
    authenticator: Authenticator = request.app.state.authenticator
    return authenticator.admit(*shown_by(request))


async def resources_at_once(request: Request) -> Resources:
    """A dependency that is no coroutine costs a thread, and there is nothing to wait for."""
    return resources_of(request)


def caller_of(request: Request) -> Caller:
    """Authenticate the caller in the requested namespace.

    404 for another owner's namespace, 403 if the role does not permit the operation.
    """
    return caller_for(request, identity_of(request))


async def caller_at_once(request: Request) -> Caller:
    """The same; a thread is taken only where the database has to be asked.

    Without the header, the body names the namespace, if the credential is valid in all of them.
    """
    authenticator: Authenticator = request.app.state.authenticator
    asked = _namespace(request) or resources_of(request).settings.default_namespace
    if asked == DEFAULT_NAMESPACE and authenticator.needs_nobody(*shown_by(request)):
        caller = caller_of(request)
    else:
        caller = await run_in_threadpool(caller_of, request)
    if _namespace(request) or not caller.everywhere or not body_names_namespace(request.method, _path(request)):
        return caller
    named = (await json_object(request)).get("namespace")
    if not isinstance(named, str) or named == caller.namespace:
        return caller
    return await run_in_threadpool(_moved, request, caller, named)


def _moved(request: Request, caller: Caller, namespace: str) -> Caller:
    _check_namespace(resources_of(request), namespace)
    request.state.namespace = namespace
    moved = replace(caller, namespace=namespace)
    request.state.caller = moved
    return moved


async def caller_of_list(request: Request, namespace: ListedNamespace = None) -> Caller:
    """The caller of a list that an admin of the installation may ask for over all namespaces."""
    caller = await caller_at_once(request)
    if namespace in (None, caller.namespace):
        return caller
    if namespace != ALL_NAMESPACES:
        raise InvalidDefinition({"namespace": [f"must be {ALL_NAMESPACES} or the namespace of the request"]})
    return caller.over_all_namespaces()


def caller_again(request: Request) -> Caller:
    """For an answer that goes on for long: whether its caller is still welcome. It is no new request."""
    authenticator: Authenticator = request.app.state.authenticator
    return caller_for(request, authenticator.know(*shown_again(request), again=True))


def caller_for(request: Request, known: Identity, asked: str | None = None) -> Caller:
    """Somebody who is known, in the namespace that is `asked` for, by the header where nothing else names it."""
    _check_control_plane(request.headers.get("x-durable-workflow-control-plane-version"))
    resources = resources_of(request)
    home = resources.settings.default_namespace if known.everywhere else known.home
    namespace = asked or _namespace(request) or home or DEFAULT_NAMESPACE
    if namespace != known.home and not known.everywhere:
        raise NamespaceNotFound(namespace[:_MAX_NAMESPACE])
    if namespace != DEFAULT_NAMESPACE:
        _check_namespace(resources, namespace)
    request.state.namespace = namespace
    caller = _of_request(request, known, namespace)
    needed = permission_for(request.method, _path(request))
    if isinstance(needed, Permission):
        caller.require(needed)
    return caller


def _of_request(request: Request, known: Identity, namespace: str) -> Caller:
    """`request.state.caller` is for whoever tells of a refusal."""
    caller = Caller(
        known.principal,
        known.role,
        namespace,
        _source(request.headers.get(SOURCE_HEADER)),
        request.state.request_id,
        everywhere=known.everywhere,
        address=client_address(request.scope),
        queues=known.queues,
        token_id=known.token_id,
        credential_ends_at=known.ends_at,
    )
    request.state.caller = caller
    body_of(request).release()
    return caller


def _source(said: str | None) -> str:
    return said if said in _SOURCES else SOURCE


def _path(request: Request) -> str:
    path: str = request.scope["route"].path_format
    return path


def _namespace(request: Request) -> str | None:
    return request.headers.get("x-namespace", "").strip() or None


def _check_control_plane(version: str | None) -> None:
    """Ours is a superset of version 2: whoever names none speaks to us, whoever names another to somebody else."""
    if version is not None and version.strip() != CONTROL_PLANE_VERSION:
        asked = f"This server supports control plane version {CONTROL_PLANE_VERSION}, not {version[:16]!r}."
        raise BadRequest(400, "unsupported_control_plane_version", asked)


def _check_namespace(resources: Resources, namespace: str) -> None:
    known = len(namespace) <= _MAX_NAMESPACE and resources.database.glance(
        lambda connection: tenant_rows.find_namespace(connection, namespace)
    )
    if not known:
        raise NamespaceNotFound(namespace[:_MAX_NAMESPACE])


def same_namespace(caller: Caller, namespace: str | None) -> None:
    """Refuse a body whose namespace contradicts the header or the token."""
    if namespace is not None:
        caller.require_namespace(namespace)


async def json_body(request: Request) -> Any:
    """Parse the body once; an empty body is an empty object."""
    if not hasattr(request.state, "json_body"):
        request.state.json_body = await _read_json(request)
    return request.state.json_body


async def _read_json(request: Request) -> Any:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    raw = await request.body()
    if not raw:
        return {}
    if len(raw) > _PARSED_AT_ONCE_BYTES:
        turns: Turns = request.app.state.turns
        async with turns.turn(who_asks(request, getattr(request.state, "caller", None))):
            return await run_in_threadpool(_parsed, request, kind, raw)
    return _parsed(request, kind, raw)


def _parsed(request: Request, kind: str, raw: bytes) -> Any:
    if kind and kind != "application/json" and not kind.endswith("+json"):
        raise BadRequest(415, "unsupported_media_type", "The body must be application/json.")
    if request.headers.get("content-encoding", "identity").strip().lower() != "identity":
        raise BadRequest(
            415,
            "unsupported_encoding",
            "Compressed request bodies are not supported. Send the body without Content-Encoding.",
        )
    try:
        text = raw.decode()
    except UnicodeDecodeError as wrong:
        raise BadRequest(
            400, "malformed_json", f"The body is not valid JSON: byte {wrong.start} is not UTF-8"
        ) from None
    try:
        body = orjson.loads(raw)
    except orjson.JSONDecodeError as wrong:
        raise BadRequest(400, "malformed_json", f"The body is not valid JSON: {wrong}") from None
    if raw.count(b"[") + raw.count(b"{") > MAX_DEPTH:
        _check_depth(body)
    _NAMES.decode(text)
    return body


def _once_each(pairs: list[tuple[str, Any]]) -> None:
    """RFC 8259 leaves open what a name given twice means; readers differ, and one of the two would be lost."""
    seen: set[str] = set()
    for name, _ in pairs:
        if name in seen:
            raise BadRequest(400, "malformed_json", f"The body contains the name {name[:64]!r} twice in one object.")
        seen.add(name)


# Reads names alone: numbers stay text, since turning ten thousand digits into one is work, and refused.
_NAMES = json.JSONDecoder(object_pairs_hook=_once_each, parse_int=str, parse_float=str)


def _check_depth(body: Any) -> None:
    """Level by level: whatever comes after may recurse without fear."""
    level = [body]
    for _ in range(MAX_DEPTH):
        inside = (each.values() if type(each) is dict else each for each in level)
        level = [each for several in inside for each in several if type(each) in _NESTING]
        if not level:
            return
    raise InvalidDefinition({"body": [f"is nested deeper than {MAX_DEPTH} levels"]})


async def json_object(request: Request) -> dict[str, Any]:
    """`[]` is how PHP writes an empty object."""
    body = await json_body(request)
    if body == []:
        return {}
    if not isinstance(body, dict):
        raise InvalidDefinition({"body": ["must be a JSON object"]})
    return body


async def reporter_of(request: Request) -> Caller:
    """Authenticate a reporter on a run: a caller with a token, or the target with the token that came with the run.

    No body is parsed earlier: two megabytes can take a second of work, and any client could send them.
    """
    authenticator: Authenticator = request.app.state.authenticator
    authorization = authorization_of(request)
    if authorization is not None:
        shown = [bearer_of(authorization)]
    else:
        body_of(request).expect_credential()
        shown = tokens_shown(await request.body())
    run_id, refused = request.path_params["run_id"], None
    for token in filter(is_report_token, shown):
        try:
            known = await run_in_threadpool(authenticator.admit_target, token, run_id)
        except Unauthorized as wrong:
            refused = wrong
        else:
            return _of_request(request, known, known.home or DEFAULT_NAMESPACE)
    if refused is not None:
        raise refused
    return await caller_at_once(request)


async def carrier_of(request: Request) -> Carrier:
    """Authenticate a sender of reports on many runs: a caller with a token, or one that shows tokens of runs.

    One valid token of a run admits the request; each of the others is checked with its report.
    """
    shown: list[tuple[str, str]] = []
    if authorization_of(request) is None:
        body_of(request).expect_credential()
        shown = run_tokens_shown(await request.body())
    if not shown:
        return Carrier(await caller_at_once(request))
    authenticator: Authenticator = request.app.state.authenticator
    known = await run_in_threadpool(authenticator.admit_any_target, shown)
    return Carrier(_of_request(request, known, known.home or DEFAULT_NAMESPACE), by_tokens=True)


async def pusher_of(request: Request) -> Caller:
    """Authenticate a notifier of news about a run: its agent with the push token, or a caller with a token."""
    authenticator: Authenticator = request.app.state.authenticator
    token = request.headers.get(PUSH_HEADER)
    if token is None:
        return await caller_at_once(request)
    known = await run_in_threadpool(authenticator.admit_push, token, request.path_params["run_id"])
    return _of_request(request, known, known.home or DEFAULT_NAMESPACE)


def tokens_shown(raw: bytes) -> list[str]:
    """The report tokens that a body may hold, found without reading it as JSON; a text inside it may show one too."""
    found = islice(_REPORT_TOKEN.finditer(raw), _MOST_SHOWN)
    return [each[1].decode("ascii") for each in found]


def run_tokens_shown(raw: bytes) -> list[tuple[str, str]]:
    """The report tokens that a body may hold, with the run ids that stand next to each, before and behind it.

    Found without reading the body as JSON, so it costs little, whatever it is; a text inside it may show some too.
    """
    ids = [(found.start(), found[1].decode("ascii")) for found in islice(_RUN_ID.finditer(raw), _MOST_OF_MANY)]
    places = [place for place, _ in ids]
    pairs: list[tuple[str, str]] = []
    for found in islice(_REPORT_TOKEN.finditer(raw), _MOST_OF_MANY):
        behind = bisect_left(places, found.start())
        near = ids[max(0, behind - 1) : behind + 1]
        pairs += [(found[1].decode("ascii"), run_id) for _, run_id in near]
    return pairs


def shown_report_token(request: Request) -> str | None:
    """The report token that came as the bearer, where one did."""
    scheme, _, secret = (authorization_of(request) or "").partition(" ")
    return secret.strip() if scheme.lower() == "bearer" and is_report_token(secret.strip()) else None


ResourcesOf = Annotated[Resources, Depends(resources_at_once)]
CarrierOf = Annotated[Carrier, Depends(carrier_of)]
ReporterOf = Annotated[Caller, Depends(reporter_of)]
PusherOf = Annotated[Caller, Depends(pusher_of)]
PushToken = Annotated[
    str | None, Header(alias=PUSH_HEADER, description="Token that was sent with the message to the agent.")
]
ReportToken = Annotated[str | None, Depends(shown_report_token)]
CallerOf = Annotated[Caller, Depends(caller_at_once)]
ListCallerOf = Annotated[Caller, Depends(caller_of_list)]
Confirm = Annotated[bool, Query(description="Proceed even if more than 1,000 runs would start.")]
IdentityOf = Annotated[Identity, Depends(identity_of)]
Document = Annotated[dict[str, Any], Depends(json_object)]
