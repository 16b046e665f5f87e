"""Problem documents (RFC 9457), with the members that the Durable Workflow client reads.

`message` is one sentence for people, `reason` one word for programs, `errors` the invalid fields, `field` the first of
them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from horarium.api import commits
from horarium.api.address import client_address
from horarium.api.limits import FailedLogins, RateLimited
from horarium.errors import HorariumError, InvalidDefinition, InvalidSpec, InvalidTransition, InvalidWorkflow
from horarium.operations.errors import (
    OperationError,
    QuotaExceeded,
    RequestInProgress,
    ScheduleAlreadyExists,
    ScheduleNotFound,
    Unauthorized,
)
from horarium.operations.list_errors import ListRefused
from horarium.operations.workspace_errors import WorkspaceRequestInvalid
from horarium.policy.names import shown as shown_value
from horarium.store.errors import (
    CannotRead,
    CommitUnknown,
    Conflict,
    SchemaMissing,
    SchemaTooNew,
    SchemaTooOld,
    StoreUnavailable,
    shown,
)
from horarium.store.sealing import CannotUnseal, KeyReplaced
from horarium.wire.answer import encode

MEDIA_TYPE = "application/problem+json"

# CommitUnknown is no 5xx: clients repeat those blindly, and what they asked for may have happened.
_CONFLICTS = (InvalidTransition, Conflict, CommitUnknown, CannotUnseal)
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
    if status_of(error) >= 500 and commits.has_committed(request.scope["state"]):
        return problem(409, commits.REASON, commits.sentence(request.state.request_id))
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
