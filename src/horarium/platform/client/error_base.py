"""Base classes of client errors, and the errors of calls about agents, teams, assignments and approvals.

`errors.py` shows the tree.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar

from horarium.errors import HorariumError

_NOTHING: Mapping[str, Any] = MappingProxyType({})


class ClientError(HorariumError):
    """A failed call. `body` is the problem document, empty if the answer had none."""

    _statuses: ClassVar[tuple[int, ...]] = ()  # of the answers that raise this class or, by their reason, a subclass

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        reason: str | None = None,
        body: Mapping[str, Any] = _NOTHING,
    ) -> None:
        super().__init__(message)
        self.status = status
        if reason is not None:
            self.reason = reason  # type: ignore[misc]  # the class knows the usual one, this one its own
        self.body = body


class Unauthorized(ClientError):
    reason = "unauthorized"
    _statuses = (401,)


class Forbidden(ClientError):
    reason = "forbidden"
    _statuses = (403,)


class NotFound(ClientError):
    reason = "not_found"
    _statuses = (404,)

    @property
    def name(self) -> str | None:
        """Name of the missing resource."""
        name = self.body.get("name")
        return name if isinstance(name, str) else None


class Conflict(ClientError):
    reason = "refused"
    _statuses = (409,)


class AlreadyExists(Conflict):
    reason = "already_exists"


class AgentNotFound(NotFound):
    reason = "agent_not_found"


class TeamNotFound(NotFound):
    reason = "team_not_found"


class AssignmentNotFound(NotFound):
    reason = "assignment_not_found"


class AgentAlreadyExists(AlreadyExists):
    reason = "agent_already_exists"


class TeamAlreadyExists(AlreadyExists):
    reason = "team_already_exists"


class AssignmentAlreadyExists(AlreadyExists):
    reason = "assignment_already_exists"


class AgentInUse(Conflict):
    """A team or an assignment uses the agent."""

    reason = "agent_in_use"


class TeamInUse(Conflict):
    """An assignment or a schedule uses the team."""

    reason = "team_in_use"


class AssignmentInUse(Conflict):
    """A schedule runs the assignment."""

    reason = "assignment_in_use"


class BudgetExceeded(Conflict):
    """The budget of the assignee for today is used up."""

    reason = "budget_exceeded"


class ApprovalNotFound(NotFound):
    reason = "approval_not_found"


class StandingNotFound(NotFound):
    reason = "standing_approval_not_found"


class NotAnApprover(Forbidden):
    """The caller is not an approver of the request."""

    reason = "not_an_approver"


class RequesterMayNotDecide(Forbidden):
    """The caller wrote the schedule or requested the run, so it may not decide. The message has the ways out."""

    reason = "requester_may_not_decide"


class AlreadyDecided(Conflict):
    reason = "already_decided"


class ApprovalOver(ClientError):
    """The approval request has expired."""

    reason = "approval_expired"
    _statuses = (410,)


class InputsChanged(ClientError):
    """The inputs have changed since they were shown. Get the approval request again."""

    reason = "inputs_changed"
    _statuses = (412,)


class TooManyStanding(Conflict):
    reason = "too_many_standing_approvals"
