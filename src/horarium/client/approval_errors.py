"""Errors of calls about approvals."""

from __future__ import annotations

from horarium.client.error_base import ClientError, Conflict, Forbidden, NotFound


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


class InputsChanged(ClientError):
    """The inputs have changed since they were shown. Get the approval request again."""

    reason = "inputs_changed"


class TooManyStanding(Conflict):
    reason = "too_many_standing_approvals"
