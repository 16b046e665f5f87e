"""What the decision of an approval answers when it is not heard; the tree is drawn in `errors.py`."""

from __future__ import annotations

from horarium.operations.errors import Forbidden, NotFound, OperationError, Refused


class ApprovalNotFound(NotFound):
    reason = "approval_not_found"
    what = "approval"


class StandingNotFound(NotFound):
    reason = "standing_approval_not_found"
    what = "standing approval"


class NotAnApprover(Forbidden):
    """Neither the permission nor a list of approvers lets this caller decide."""

    reason = "not_an_approver"


class RequesterMayNotDecide(Forbidden):
    """Denied because the caller wrote the schedule or requested the run; the message names the alternatives."""

    reason = "requester_may_not_decide"


class AlreadyDecided(Refused):
    reason = "already_decided"


class ApprovalOver(OperationError):
    """Nobody decided in time."""

    reason = "approval_expired"
    status = 410


class InputsChanged(OperationError):
    """Rejected because the approved inputs differ from those that would run."""

    reason = "inputs_changed"
    status = 412


class TooManyStanding(Refused):
    reason = "too_many_standing_approvals"
