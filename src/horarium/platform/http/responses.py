"""Write responses: JSON, ETags, content negotiation, problem documents (RFC 9457), and warnings after a commit."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, MutableMapping
from http import HTTPStatus
from typing import Annotated, Any, Final, TypeVar

import orjson
from fastapi import Header
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from horarium.core.policy.queue import shown as shown_value
from horarium.errors import HorariumError, InvalidDefinition, InvalidSpec, InvalidTransition, InvalidWorkflow
from horarium.features.agents.workspace_model import WorkspaceRequestInvalid
from horarium.features.schedules.filters import ListRefused
from horarium.platform.database import Connection, Database
from horarium.platform.database.errors import (
    CannotRead,
    CommitUnknown,
    SchemaMissing,
    SchemaTooNew,
    SchemaTooOld,
    StoreUnavailable,
    UniqueConflict,
    shown,
)
from horarium.platform.database.installation import CannotUnseal, KeyReplaced
from horarium.platform.database.wrapper import DatabaseWrapper
from horarium.platform.errors import (
    OperationError,
    QuotaExceeded,
    RequestInProgress,
    ScheduleAlreadyExists,
    ScheduleNotFound,
    Unauthorized,
)
from horarium.platform.http.connections import FailedLogins, RateLimited, client_address, inner_path
from horarium.platform.wire import encode


class Reply(Response):
    """An answer of `wire`, or plain JSON, with its status and headers."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        return encode(content)


T = TypeVar("T")

REASON = "done_without_answer"
_MARK = "committed"


def has_committed(state: MutableMapping[str, Any]) -> bool:
    """`state` is that of the request."""
    return _MARK in state


def sentence(request_id: str) -> str:
    return f"The change was saved but the response failed. Check before retrying. Request ID: {request_id}."


class CommitNoting(DatabaseWrapper):
    """A database that notes, in the state of a request, that a transaction of this request was committed."""

    def __init__(self, inner: Database, state: MutableMapping[str, Any]) -> None:
        super().__init__(inner)
        self._state = state

    def write(self, work: Callable[[Connection], T]) -> T:
        result = super().write(work)
        self._state[_MARK] = True
        return result

    def write_planned(self, work: Callable[[Connection], T]) -> T:
        result = super().write_planned(work)
        self._state[_MARK] = True
        return result


IfMatch = Annotated[
    str | None,
    Header(
        alias="If-Match",
        description="ETag of the version to change. If it is not the current version, the request fails with 412.",
    ),
]


def etag(version: int) -> str:
    return f'"{version}"'


def version_of(if_match: str | None) -> int | None:
    """`*` fits any version that exists, which is what an operation asks for anyway."""
    if if_match is None or if_match.strip() == "*":
        return None
    text = if_match.strip().removeprefix("W/").strip('"')
    if not (text.isascii() and text.isdecimal()) or len(text) > 18:
        raise InvalidDefinition({"If-Match": ["is not a version of this service"]})
    return int(text)


_MAX_NAMED: Final = 20


def weights_of(header: str) -> dict[str, float]:
    """Weights of the first names in the header, in lower case; an invalid weight counts as missing."""
    found: dict[str, float] = {}
    for each in header.lower().split(",")[:_MAX_NAMED]:
        name, *parameters = (part.strip() for part in each.split(";"))
        weight = next((part[2:].strip() for part in parameters if part.startswith("q=")), "1")
        found[name] = float(weight) if weight[:1] in ("0", "1") and weight.replace(".", "", 1).isdecimal() else 1
    return found


def takes_gzip(accepted: str) -> bool:
    """Tell whether gzip is accepted: a weight of zero refuses it; `*` concerns names that are not listed."""
    weights = weights_of(accepted)
    return weights.get("gzip", weights.get("*", 0)) > 0


def prefers_page(accepted: str) -> bool:
    """Tell whether a page is preferred to JSON: a client that lists neither is a program."""
    weights = weights_of(accepted)
    page = weights.get("text/html", 0)
    return page > 0 and page >= weights.get("application/json", 0)


Handler = Callable[[Request, Exception], Response]

_PATHS: Final = ("/workspaces/", "/admin/")
_SENTENCES: Final[Mapping[str, str]] = {
    "agent_not_found": "workspace not found",
    "malformed_json": "invalid JSON",
    "schedule_not_found": "schedule not found",
}
_MADE_ANEW: Final = frozenset({"content-length", "content-type"})


def with_error(path: str, refusal: Response) -> Response:
    if not path.startswith(_PATHS):
        return refusal
    body: dict[str, Any] = orjson.loads(refusal.body)
    body["error"] = _SENTENCES.get(body["reason"], body["message"])
    headers = {name: value for name, value in refusal.headers.items() if name not in _MADE_ANEW}
    return Response(encode(body), refusal.status_code, headers, refusal.media_type)


def telling_error(handler: Handler) -> Handler:
    """Around a handler of exceptions."""

    def told(request: Request, error: Exception) -> Response:
        return with_error(inner_path(request.scope), handler(request, error))

    return told


MEDIA_TYPE = "application/problem+json"

# CommitUnknown is no 5xx: clients repeat those blindly, and what they asked for may have happened.
_CONFLICTS = (InvalidTransition, UniqueConflict, CommitUnknown, CannotUnseal)
_UNAVAILABLE = (StoreUnavailable, SchemaMissing, SchemaTooOld, SchemaTooNew, KeyReplaced)
_REASONS = {404: "not_found", 405: "method_not_allowed"}
_NAMED = ("name", "schedules", "workflows", "open_runs", "count", "limit", "schedule_id")
# A sentence for a person; all that is wrong with a document is in `errors`.
_LONGEST_MESSAGE = 1_000
_LONGEST_PATH = 200


class BadRequest(OperationError):
    """The request itself cannot be read; `status` is that of the case."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.status = status  # type: ignore[misc]  # the class knows the usual one, this one its own
        self.reason = reason  # type: ignore[misc]  # the class knows the usual one, this one its own


def problem(
    status: int,
    reason: str,
    message: str,
    *,
    errors: Mapping[str, list[str]] | None = None,
    headers: Mapping[str, str] | None = None,
    **members: Any,
) -> Response:
    if len(message) > _LONGEST_MESSAGE:
        message = f"{message[: _LONGEST_MESSAGE - 1]}…"
    body: dict[str, Any] = {
        "type": f"urn:horarium:problem:{reason}",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": _sentence(status, message),
        "message": message,
        "reason": reason,
        **members,
    }
    if errors is not None:
        body |= {"errors": errors, "validation_errors": errors, "field": next(iter(errors), None)}
    return Response(encode(body), status, headers, MEDIA_TYPE)


def _sentence(status: int, message: str) -> str:
    """Begin with a capital letter. A message that begins with the name of a field gets a prefix instead."""
    first, _, _ = message.partition(" ")
    if first.isalpha() and first.islower():
        return message[:1].upper() + message[1:]
    if first[:1].isupper():
        return message
    return f"{'Invalid request' if status in (400, 422) else HTTPStatus(status).phrase}: {message}"


def problem_of(error: HorariumError) -> Response:
    return problem(
        status_of(error), error.reason, shown(error), errors=_errors(error), headers=_headers(error), **_members(error)
    )


def status_of(error: HorariumError) -> int:
    """HTTP status: 422 for invalid input, 409 for a conflict, 503 for what may pass without a change."""
    match error:
        case OperationError():
            return error.status
        case _ if isinstance(error, _CONFLICTS):
            return 409
        case _ if isinstance(error, _UNAVAILABLE):
            return 503
        case CannotRead():
            return 500
        case ValueError():
            return 422
        case _:
            return 500


def _errors(error: HorariumError) -> Mapping[str, list[str]] | None:
    match error:
        case InvalidDefinition() | InvalidWorkflow() | WorkspaceRequestInvalid():
            return error.errors
        case InvalidSpec():
            return {error.field or "spec": [error.message]}
        case ListRefused():
            return {error.parameter: [error.message]}
        case _:
            return None


def _headers(error: HorariumError) -> Mapping[str, str] | None:
    if isinstance(error, RateLimited) or (isinstance(error, QuotaExceeded) and error.seconds is not None):
        return {"Retry-After": str(error.seconds)}
    if isinstance(error, RequestInProgress):
        return {"Retry-After": "1"}
    match status_of(error):
        case 401:
            return {"WWW-Authenticate": "Bearer"}
        case 503:
            return {"Retry-After": "1"}
        case _:
            return None


def _members(error: HorariumError) -> dict[str, Any]:
    """Members from the attributes of an error in addition to its text, such as the schedule that was not found."""
    known = {"current": "version"} | {name: name for name in (*_NAMED, "quota", "used")}
    members = {member: getattr(error, name) for name, member in known.items() if hasattr(error, name)}
    match error:
        case ScheduleNotFound() | ScheduleAlreadyExists():
            return {**members, "schedule_id": error.name}
        case ListRefused():
            return {**members, "last_safe_cursor": error.last_safe_cursor}
        case _:
            return members


def on_refusal(request: Request, error: Exception) -> Response:
    assert isinstance(error, HorariumError)
    if status_of(error) >= 500 and has_committed(request.scope["state"]):
        return problem(409, REASON, sentence(request.state.request_id))
    return problem_of(error)


def on_failed_login(request: Request, error: Exception) -> Response:
    """Count a failed login for the address that sent it."""
    assert isinstance(error, Unauthorized)
    failed: FailedLogins = request.app.state.failed_logins
    try:
        failed.count(client_address(request.scope))
    except RateLimited as too_often:
        return problem_of(too_often)
    return problem_of(error)


def on_routing(request: Request, error: Exception) -> Response:
    """Answer a request for an unknown path, or with a method that the path does not have."""
    assert isinstance(error, HTTPException)
    reason = _REASONS.get(error.status_code, "bad_request")
    return problem(error.status_code, reason, _routing_detail(request, error), headers=error.headers)


def _routing_detail(request: Request, error: HTTPException) -> str:
    if error.detail != HTTPStatus(error.status_code).phrase:
        return str(error.detail)
    path = f"{request.url.path[:_LONGEST_PATH]!r}"
    match error.status_code:
        case 404:
            return f"The path {path} does not exist; /openapi.json lists all paths"
        case 405:
            allowed = (error.headers or {}).get("Allow")
            return f"The path {path} does not allow {request.method}" + (f"; use {allowed}" if allowed else "")
        case _:
            return str(error.detail)


def on_bad_parameters(_request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    errors: dict[str, list[str]] = {}
    for each in error.errors():
        path = ".".join(str(part) for part in each["loc"] if part not in ("query", "path", "header"))
        errors.setdefault(path or "request", []).append(_parameter_error(each))
    refused = InvalidDefinition(errors)
    return problem_of(refused)


def _parameter_error(error: Mapping[str, Any]) -> str:
    """Word an error of Pydantic like the errors of other fields."""
    if error["type"] == "missing":
        return "is required"
    rule = re.sub(r"^(Input|String|Value|List) should ", "must ", str(error["msg"]).partition(", unable")[0])
    given = error.get("input")
    return f"{rule}, not {shown_value(given)}" if rule.startswith("must ") else rule
