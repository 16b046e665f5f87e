"""What operations on the schedules of a workspace answer when they cannot; the tree is drawn in `errors.py`."""

from __future__ import annotations

from horarium.operations.errors import AlreadyExists, OperationError, Refused


class WorkspaceRequestInvalid(OperationError):
    """A body that says something wrong; `errors` names the field."""

    reason = "validation_failed"
    status = 400

    def __init__(self, field: str, text: str) -> None:
        super().__init__(text)
        self.errors = {field: [text]}


class WorkspaceCallerUnnamed(OperationError):
    """An agent that does not say for which workspace it asks. Its token is good: this is no failed login."""

    reason = "workspace_header_required"
    status = 401

    def __init__(self) -> None:
        super().__init__("X-Workspace-ID header required")


class WorkspaceNameTaken(AlreadyExists):
    reason = "schedule_name_taken"
    what = "schedule named"


class NotFired(Refused):
    """Something stands against it now; the word that a skip would have is in the sentence."""

    reason = "not_fired"
