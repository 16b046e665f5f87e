"""Errors of a failed call, with status, reason and body of the answer.

HorariumError
└── ClientError                    any status without a class
    ├── Unauthorized               401
    ├── Forbidden                  403   ReportUnproven, ApprovalRequired, NotAnApprover, RequesterMayNotDecide
    ├── NotFound                   404   ScheduleNotFound, RunNotFound, CalendarNotFound, NamespaceNotFound …
    ├── Conflict                   409   LeaseLost, RequestInProgress, CalendarInUse, ScheduleBroken …
    │   └── AlreadyExists          409   ScheduleAlreadyExists, CalendarAlreadyExists, NamespaceAlreadyExists
    ├── ApprovalOver               410   the approval request has expired
    ├── PreconditionFailed         412   the resource has changed
    ├── InputsChanged              412   the inputs have changed
    ├── ValidationFailed           422   `errors` lists every invalid field
    ├── KeyReused                  422   the idempotency key was used for another request
    ├── QuotaExceeded              422, or 429 for temporary ones; `quota`, `limit`, `used`
    ├── RateLimited                429   `retry_after` in seconds, if given
    ├── ServerError                5xx   internal error; the request may have taken effect
    ├── ServerUnavailable          502, 503, 504, or no answer (`status` is None)
    └── UnexpectedAnswer           not a Horarium answer: a redirect, a page, broken JSON
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from email.utils import parsedate_to_datetime
from typing import Any

import httpx

from horarium.platform.client.error_base import AlreadyDecided as AlreadyDecided
from horarium.platform.client.error_base import AlreadyExists as AlreadyExists
from horarium.platform.client.error_base import ApprovalNotFound as ApprovalNotFound
from horarium.platform.client.error_base import ApprovalOver as ApprovalOver
from horarium.platform.client.error_base import ClientError as ClientError
from horarium.platform.client.error_base import Conflict as Conflict
from horarium.platform.client.error_base import Forbidden as Forbidden
from horarium.platform.client.error_base import InputsChanged as InputsChanged
from horarium.platform.client.error_base import NotAnApprover as NotAnApprover
from horarium.platform.client.error_base import NotFound as NotFound
from horarium.platform.client.error_base import RequesterMayNotDecide as RequesterMayNotDecide
from horarium.platform.client.error_base import StandingNotFound as StandingNotFound
from horarium.platform.client.error_base import TooManyStanding as TooManyStanding
from horarium.platform.client.error_base import Unauthorized as Unauthorized

_MAX_SHOWN = 200


class ReportUnproven(Forbidden):
    """A report needs the lease of the run or its report token."""

    reason = "report_unproven"


class ApprovalRequired(Forbidden):
    """The request needs an approval. The attempt was recorded."""

    reason = "approval_required"


class ScheduleNotFound(NotFound):
    reason = "schedule_not_found"


class RunNotFound(NotFound):
    reason = "run_not_found"


class CalendarNotFound(NotFound):
    reason = "calendar_not_found"


class WorkflowNotFound(NotFound):
    reason = "workflow_not_found"


class NamespaceNotFound(NotFound):
    reason = "namespace_not_found"


class TokenNotFound(NotFound):
    reason = "token_not_found"


class SubscriptionNotFound(NotFound):
    reason = "subscription_not_found"


class SecretNotFound(NotFound):
    reason = "secret_not_found"


class LeaseLost(Conflict):
    """The run was given to another worker or has ended. Stop working on it."""

    reason = "lease_lost"


class RequestInProgress(Conflict):
    """A request with the same idempotency key is in progress. Retry to get its answer."""

    reason = "request_in_progress"
    retry_after: float | None = None


class CalendarReadOnly(Conflict):
    reason = "calendar_read_only"


class CalendarInUse(Conflict):
    reason = "calendar_in_use"


class WorkflowInUse(Conflict):
    """`body` lists schedules and workflows that use it, and counts its open runs."""

    reason = "workflow_in_use"


class SecretInUse(Conflict):
    """`body` lists schedules that use it. Set force to delete it."""

    reason = "secret_in_use"


class ScheduleBroken(Conflict):
    reason = "schedule_broken"


class OwnedByAnotherBundle(Conflict):
    reason = "owned_by_another_bundle"


class RunNotEnded(Conflict):
    reason = "run_not_ended"


class RunNotRepeatable(Conflict):
    """The run cannot be rerun: it is a step, has no schedule, or its schedule was deleted."""

    reason = "run_not_repeatable"


class TokenNotLive(Conflict):
    reason = "token_not_live"


class NamespaceProtected(Conflict):
    """The default namespace cannot be deleted."""

    reason = "namespace_protected"


class NamespaceInUse(Conflict):
    """`body` counts its live schedules and open runs. Set force to delete them too."""

    reason = "namespace_in_use"


class NamespaceGoing(Conflict):
    """The namespace is being deleted. Its name is free when its last row is deleted."""

    reason = "namespace_being_deleted"


class ConfirmNeeded(Conflict):
    """The request would start very many runs at once. Set `confirm=True` to proceed."""

    reason = "confirm_needed"

    @property
    def count(self) -> int | None:
        """Number of runs."""
        count = self.body.get("count")
        return count if isinstance(count, int) else None


class ScheduleAlreadyExists(AlreadyExists):
    reason = "schedule_already_exists"


class CalendarAlreadyExists(AlreadyExists):
    reason = "calendar_already_exists"


class NamespaceAlreadyExists(AlreadyExists):
    reason = "namespace_already_exists"


class SubscriptionAlreadyExists(AlreadyExists):
    reason = "subscription_already_exists"


class PreconditionFailed(ClientError):
    reason = "precondition_failed"
    _statuses = (412,)

    @property
    def version(self) -> int | None:
        """Current version."""
        version = self.body.get("version")
        return version if isinstance(version, int) else None


class ValidationFailed(ClientError):
    reason = "validation_failed"
    _statuses = (422,)

    @property
    def errors(self) -> dict[str, list[str]]:
        """Errors by path of the field."""
        found = self.body.get("errors")
        if not isinstance(found, Mapping):
            return {}
        return {str(path): [str(text) for text in texts] for path, texts in found.items() if isinstance(texts, list)}


class KeyReused(ClientError):
    reason = "idempotency_key_reused"
    _statuses = (422,)


class QuotaExceeded(ClientError):
    """A quota of the namespace is used up. The client does not retry."""

    reason = "quota_exceeded"
    _statuses = (422, 429)

    @property
    def quota(self) -> str | None:
        """Name of the quota."""
        name = self.body.get("quota")
        return name if isinstance(name, str) else None

    @property
    def limit(self) -> int | None:
        return self._number("limit")

    @property
    def used(self) -> int | None:
        return self._number("used")

    def _number(self, name: str) -> int | None:
        value = self.body.get(name)
        return value if isinstance(value, int) else None


class RateLimited(ClientError):
    reason = "rate_limited"
    _statuses = (429,)
    retry_after: float | None = None


class ServerError(ClientError):
    reason = "internal_error"


class ServerUnavailable(ClientError):
    reason = "unavailable"
    _statuses = (502, 503, 504)
    retry_after: float | None = None


class UnexpectedAnswer(ClientError):
    reason = "unexpected_answer"


PASSING = (RateLimited, ServerUnavailable, RequestInProgress)
"""Errors that may be temporary. `retry_after` is the wait that the server suggests, in seconds."""


def _kinds(root: type[ClientError]) -> Iterator[type[ClientError]]:
    yield root
    for kind in root.__subclasses__():
        yield from _kinds(kind)


_BY_REASON: Mapping[tuple[int, str], type[ClientError]] = {
    (status, kind.reason): kind for kind in _kinds(ClientError) for status in kind._statuses
}
_BY_STATUS: Mapping[int, type[ClientError]] = {
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    412: PreconditionFailed,
    422: ValidationFailed,
    429: RateLimited,
    502: ServerUnavailable,
    503: ServerUnavailable,
    504: ServerUnavailable,
}


def error_of(response: httpx.Response) -> ClientError:
    """Return the error for an answer that is not a success. Its body must have been read."""
    body, status = _problem(response), response.status_code
    told = body.get("reason")
    reason = told if isinstance(told, str) else None
    kind = _kind(status, reason)
    said = body.get("message") or body.get("detail") or body.get("error")
    message = said if isinstance(said, str) else f"the server returned {status} {response.reason_phrase}".rstrip()
    error = kind(message, status=status, reason=reason, body=body)
    if isinstance(error, PASSING):
        error.retry_after = retry_after(response.headers)
    return error


def unreachable(cause: httpx.RequestError, where: str) -> ServerUnavailable:
    late = isinstance(cause, httpx.TimeoutException)
    what = "did not respond in time" if late else "cannot be reached"
    error = ServerUnavailable(
        f"{where} {what}: {str(cause)[:_MAX_SHOWN] or type(cause).__name__}",
        reason="timed_out" if late else "unreachable",
    )
    error.__cause__ = cause
    return error


def retry_after(headers: httpx.Headers) -> float | None:
    """Read `Retry-After` (RFC 9110, section 10.2.3): seconds, or a date relative to the clock of the server."""
    value = headers.get("retry-after", "").strip()
    if value.isascii() and value.isdigit() and len(value) < 10:
        return float(value)
    try:
        return max(0.0, (parsedate_to_datetime(value) - parsedate_to_datetime(headers["date"])).total_seconds())
    except (ValueError, KeyError, TypeError):
        return None


def _kind(status: int, reason: str | None) -> type[ClientError]:
    known = _BY_REASON.get((status, reason or "")) or _BY_STATUS.get(status)
    if known is not None:
        return known
    if status < 400:
        return UnexpectedAnswer
    return ServerError if status >= 500 else ClientError


def _problem(response: httpx.Response) -> Mapping[str, Any]:
    try:
        body = json.loads(response.content)
    except (ValueError, RecursionError):
        return {}
    return body if isinstance(body, dict) else {}
