"""What an operation answers when it cannot do what was asked; `status` is the hint for an HTTP door.

HorariumError
└── OperationError             error                        400
    ├── Unauthorized           unauthorized                 401
    ├── Forbidden              forbidden                    403
    ├── NotFound               not_found                    404   ScheduleNotFound, RunNotFound, …
    ├── AlreadyExists          already_exists               409   ScheduleAlreadyExists, …
    ├── Refused                refused                      409   ScheduleBroken, CalendarReadOnly, …
    ├── PreconditionFailed     precondition_failed          412
    └── KeyReused              idempotency_key_reused       422
"""

from __future__ import annotations

from typing import ClassVar

from horarium.errors import HorariumError

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
        super().__init__(f"there is no {self.what} {self.name!r}{because and f': {because}'}")


class ScheduleNotFound(NotFound):
    reason = "schedule_not_found"
    what = "schedule"


class RunNotFound(NotFound):
    reason = "run_not_found"
    what = "run"


class CalendarNotFound(NotFound):
    reason = "calendar_not_found"
    what = "calendar"


class NamespaceNotFound(NotFound):
    reason = "namespace_not_found"
    what = "namespace"


class TokenNotFound(NotFound):
    reason = "token_not_found"
    what = "token"


class SubscriptionNotFound(NotFound):
    reason = "subscription_not_found"
    what = "subscription"


class AlreadyExists(OperationError):
    reason = "already_exists"
    status = 409
    what: ClassVar[str] = "thing"

    def __init__(self, name: str) -> None:
        self.name = _short(name)
        super().__init__(f"there is a {self.what} {self.name!r} already")


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


class Refused(OperationError):
    reason = "refused"
    status = 409


class ScheduleBroken(Refused):
    """It cannot be planned as it is; an edit mends it."""

    reason = "schedule_broken"


class CalendarReadOnly(Refused):
    reason = "calendar_read_only"


class CalendarInUse(Refused):
    """`schedules` are the ids of those that need it."""

    reason = "calendar_in_use"

    def __init__(self, name: str, schedules: tuple[str, ...]) -> None:
        shown = ", ".join(schedules[:5]) + (", …" if len(schedules) > 5 else "")
        super().__init__(f"the calendar {name!r} is used by {shown}")
        self.schedules = schedules


class RunNotHeld(Refused):
    """A heartbeat or a report for a lease that has run out, or was given to somebody else."""

    reason = "lease_lost"


class AttemptNeeded(Refused):
    """A report that does not say which of several attempts it is about."""

    reason = "attempt_needed"


class RequestInProgress(Refused):
    """The same request, by its idempotency key, is being answered at this moment."""

    reason = "request_in_progress"


class PreconditionFailed(OperationError):
    """`current` is the version that the schedule has now."""

    reason = "precondition_failed"
    status = 412

    def __init__(self, expected: int, current: int) -> None:
        super().__init__(f"the version is {current}, not {expected}: somebody has changed it meanwhile")
        self.current = current


class KeyReused(OperationError):
    """The same idempotency key was used for something else."""

    reason = "idempotency_key_reused"
    status = 422


def _short(name: str) -> str:
    return name if len(name) <= _MAX_NAME else f"{name[: _MAX_NAME - 1]}…"
