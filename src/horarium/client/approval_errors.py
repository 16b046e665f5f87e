"""What a client raises about approvals."""

from __future__ import annotations

from horarium.client.error_base import ClientError, Conflict, Forbidden, NotFound


class ApprovalNotFound(NotFound):
    reason = "approval_not_found"


class StandingNotFound(NotFound):
    reason = "standing_approval_not_found"


class NotAnApprover(Forbidden):
    """The question names others who may decide it, or the role may not."""

    reason = "not_an_approver"


class RequesterMayNotDecide(Forbidden):
    """Who wrote the schedule or asked for the run may not decide it; the message names the ways out."""

    reason = "requester_may_not_decide"


class AlreadyDecided(Conflict):
    reason = "already_decided"


class ApprovalOver(ClientError):
    """Nobody decided in time."""

    reason = "approval_expired"


class InputsChanged(ClientError):
    """The inputs are not those that were agreed to; look at them again."""

    reason = "inputs_changed"


class TooManyStanding(Conflict):
    reason = "too_many_standing_approvals"
