"""Errors of operations, each with its reason code and HTTP status.

HorariumError
└── OperationError             error                        400   WorkspaceRequestInvalid
    ├── Unauthorized           unauthorized                 401
    ├── WorkspaceCallerUnnamed workspace_header_required    401
    ├── Forbidden              forbidden                    403   ReportNotAuthorized, ApproverRequired …
    ├── NotFound               not_found                    404   ScheduleNotFound, RunNotFound …
    ├── AlreadyExists          already_exists               409   ScheduleAlreadyExists …
    ├── OperationRefused       refused                      409   ScheduleBroken, CalendarReadOnly …
    ├── ApprovalRequestExpired approval_expired             410
    ├── VersionMismatch        precondition_failed          412
    ├── ApprovedInputsChanged  inputs_changed               412
    ├── BundleRefused          that of one document         409, 422 or 429
    ├── QuotaExceeded          quota_exceeded               422, or 429 for rates
    └── IdempotencyKeyReused   idempotency_key_reused       422
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from horarium.core.policy.limits import Quota, QuotaExcess
from horarium.errors import HorariumError, InvalidDefinition

# Whoever asks for a name of ten thousand characters knows which one it was.
_MAX_NAME = 128


class OperationError(HorariumError):
    status: ClassVar[int] = 400


class Unauthorized(OperationError):
    reason = "unauthorized"
    status = 401


class Forbidden(OperationError):
    reason = "forbidden"
    status = 403


class NotFound(OperationError):
    """Also for what belongs to another tenant: whether it exists is none of the caller's business."""

    reason = "not_found"
    status = 404
    what: ClassVar[str] = "thing"

    def __init__(self, name: str, because: str = "") -> None:
        self.name = _short(name)
        super().__init__(f"{self.what} {self.name!r} not found{because and f': {because}'}")


class ScheduleNotFound(NotFound):
    reason = "schedule_not_found"
    what = "schedule"


class RunNotFound(NotFound):
    reason = "run_not_found"
    what = "run"


class CalendarNotFound(NotFound):
    reason = "calendar_not_found"
    what = "calendar"


class WorkflowNotFound(NotFound):
    reason = "workflow_not_found"
    what = "workflow"


class NamespaceNotFound(NotFound):
    reason = "namespace_not_found"
    what = "namespace"


class TokenNotFound(NotFound):
    reason = "token_not_found"
    what = "token"


class SubscriptionNotFound(NotFound):
    reason = "subscription_not_found"
    what = "subscription"


class SecretNotFound(NotFound):
    reason = "secret_not_found"
    what = "secret"


class AlreadyExists(OperationError):
    reason = "already_exists"
    status = 409
    what: ClassVar[str] = "thing"

    def __init__(self, name: str) -> None:
        self.name = _short(name)
        super().__init__(f"{self.what} {self.name!r} already exists")


class ScheduleAlreadyExists(AlreadyExists):
    reason = "schedule_already_exists"
    what = "schedule"


class CalendarAlreadyExists(AlreadyExists):
    reason = "calendar_already_exists"
    what = "calendar"


class NamespaceAlreadyExists(AlreadyExists):
    reason = "namespace_already_exists"
    what = "namespace"


class SubscriptionAlreadyExists(AlreadyExists):
    reason = "subscription_already_exists"
    what = "subscription"


class OperationRefused(OperationError):
    reason = "refused"
    status = 409


class ScheduleBroken(OperationRefused):
    """It cannot be planned as it is; an edit mends it."""

    reason = "schedule_broken"


class DailyBudgetExceeded(OperationRefused):
    """Whoever would do the work has no money, or no runs, left today."""

    reason = "budget_exceeded"


class CalendarReadOnly(OperationRefused):
    reason = "calendar_read_only"


class CalendarInUse(OperationRefused):
    """`schedules` are the ids of those that need it."""

    reason = "calendar_in_use"

    def __init__(self, name: str, schedules: tuple[str, ...]) -> None:
        shown = ", ".join(schedules[:5]) + (", …" if len(schedules) > 5 else "")
        super().__init__(f"the calendar {name!r} is used by {shown}")
        self.schedules = schedules


class WorkflowInUse(OperationRefused):
    """`schedules` and `workflows` are the ids of those that name it, the first of them if they are many."""

    reason = "workflow_in_use"

    def __init__(self, name: str, schedules: tuple[str, ...], workflows: tuple[str, ...], open_runs: int) -> None:
        who = [f"the schedule {each!r}" for each in schedules[:5]] + [
            f"the workflow {each!r}" for each in workflows[:5]
        ]
        if open_runs:
            who.append("1 open run" if open_runs == 1 else f"at least {open_runs} open runs")
        super().__init__(f"the workflow {_short(name)!r} is used by {', '.join(who)}")
        self.schedules, self.workflows, self.open_runs = schedules, workflows, open_runs


class SecretInUse(OperationRefused):
    """`schedules` and `workflows` are the ids of those that name it, the first of them if they are many."""

    reason = "secret_in_use"

    def __init__(self, name: str, schedules: tuple[str, ...], workflows: tuple[str, ...] = ()) -> None:
        users = [*schedules, *(f"the workflow {each}" for each in workflows)]
        shown = ", ".join(users[:5]) + (", …" if len(users) > 5 else "")
        super().__init__(f"the secret {name!r} is used by {shown}; set force to delete it anyway")
        self.schedules, self.workflows = schedules, workflows


class OwnedByAnotherBundle(OperationRefused):
    """Refused because another bundle brought what this one would change or delete."""

    reason = "owned_by_another_bundle"


class BundleRefused(OperationError):
    """A bundle of which one document is refused, for the reason and with the status of that refusal."""

    def __init__(self, message: str, *, reason: str, status: int, schedule_id: str | None = None) -> None:
        super().__init__(message)
        self.reason = reason  # type: ignore[misc]  # that of the document, not of the class
        self.status = status  # type: ignore[misc]  # that of the document, too
        if schedule_id is not None:
            self.schedule_id = schedule_id


class InvalidBundle(InvalidDefinition):
    """Documents of a bundle that cannot be read; `schedule_id` is that of the first, if it is a schedule."""

    def __init__(self, errors: Mapping[str, Sequence[str]], message: str, *, schedule_id: str | None = None) -> None:
        super().__init__(errors)
        self.message = message
        self.args = (message,)
        if schedule_id is not None:
            self.schedule_id = schedule_id


class RunNotHeld(OperationRefused):
    """A heartbeat or a report for a lease that has run out, or was given to somebody else."""

    reason = "lease_lost"


class TokenInactive(OperationRefused):
    reason = "token_not_live"


class DefaultNamespaceProtected(OperationRefused):
    """The one that callers speak for who name none."""

    reason = "namespace_protected"


class NamespaceInUse(OperationRefused):
    reason = "namespace_in_use"

    def __init__(self, name: str, schedules: int, open_runs: int) -> None:
        held = f"{schedules} live schedules and {open_runs} open runs"
        super().__init__(f"the namespace {_short(name)!r} has {held}; set force to delete them too")
        self.schedules = schedules
        self.open_runs = open_runs


class NamespaceBeingDeleted(OperationRefused):
    """Its name is free when the last of its rows is gone."""

    reason = "namespace_being_deleted"


class RunStillOpen(OperationRefused):
    reason = "run_not_ended"


class RunNotRepeatable(OperationRefused):
    """Nobody can do it once more: a step, a run without a schedule, or one whose schedule is gone."""

    reason = "run_not_repeatable"


class ReportNotAuthorized(Forbidden):
    """A report by somebody who shows neither the lease of a claim nor the token of the run."""

    reason = "report_unproven"


class ApprovalRequired(Forbidden):
    """Something was to go on that waits for a yes; that it was tried is on record.

    `attempted` is what was asked for, as long as it is still to be written down; `about` is the run that waits, where
    there is one already.
    """

    reason = "approval_required"

    def __init__(self, message: str, attempted: str | None = None, about: bytes | None = None) -> None:
        super().__init__(message)
        self.attempted = attempted
        self.about = about


class RequestInProgress(OperationRefused):
    """The same request, by its idempotency key, is being answered at this moment."""

    reason = "request_in_progress"


class ConfirmationRequired(OperationRefused):
    """It would start `count` runs at once, more than `limit`; confirm says that this is meant."""

    reason = "confirm_needed"

    def __init__(self, count: int, limit: int) -> None:
        super().__init__(f"this would start {count} runs at once, more than {limit}; set confirm=true to proceed")
        self.count = count
        self.limit = limit


class VersionMismatch(OperationError):
    """`current` is the version that the schedule has now."""

    reason = "precondition_failed"
    status = 412

    def __init__(self, expected: int, current: int) -> None:
        super().__init__(f"the version is {current}, not {expected}, because another request changed it; read it again")
        self.current = current


class QuotaExceeded(OperationError):
    """The namespace has what it may have. `used` is what there is, `count` what was asked for on top.

    What passes by itself, a minute or the end of other runs, is 429; `seconds` is when to ask again.
    """

    reason = "quota_exceeded"
    status = 422

    def __init__(self, namespace: str, found: QuotaExcess, *, seconds: int | None = None) -> None:
        super().__init__(_quota_sentence(namespace, found))
        self.quota, self.limit = found.quota.value, found.limit
        self.used, self.count = found.used, found.asked
        self.seconds = seconds
        if seconds is not None:
            self.status = 429  # type: ignore[misc]  # the class knows the usual one, this one its own


def _quota_sentence(namespace: str, found: QuotaExcess) -> str:
    if found.quota is Quota.SHORTEST_GAP_SECONDS:
        least = f"must be at least {found.limit} seconds apart"
        return f"the quota shortest_gap_seconds: occurrences {least}, but some are {found.used} seconds apart"
    has = f"{_short(namespace)!r} has {found.used} of {found.limit}"
    return f"the quota {found.quota} is exceeded: the namespace {has}, and the request needs {found.asked} more"


class IdempotencyKeyReused(OperationError):
    """The same idempotency key was used for something else."""

    reason = "idempotency_key_reused"
    status = 422


def _short(name: str) -> str:
    return name if len(name) <= _MAX_NAME else f"{name[: _MAX_NAME - 1]}…"
