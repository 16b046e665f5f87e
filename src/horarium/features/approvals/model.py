"""Bodies and responses of approval requests and standing approvals, and the errors that refuse them."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, ClassVar

from msgspec import Meta

from horarium.core.document.states import Origin
from horarium.core.policy.approval import ApprovalDecision
from horarium.core.policy.votes import Decision, Refusal
from horarium.features.schedules.change_model import MAX_AT_ONCE, Ids
from horarium.platform.bodies import Body, Moment, Name, Note, Text, Whole, ZoneName
from horarium.platform.errors import Forbidden, NotFound, OperationError, OperationRefused
from horarium.platform.wire import Answer, Object, Rows, Time

Gates = Annotated[tuple[str, ...], Meta(min_length=0, max_length=100)]
Hashes = Annotated[Mapping[str, str], Meta(max_length=MAX_AT_ONCE)]


class StatusFilter(StrEnum):
    """Status of the listed approval requests."""

    PENDING = "pending"
    APPROVED = "approved"
    REJECTED = "rejected"
    MODIFIED = "modified"
    EXPIRED = "expired"
    ALL = "all"


class BulkDecision(StrEnum):
    """Decision on many approval requests."""

    APPROVE = "approve"
    REJECT = "reject"


class DecisionOutcome(StrEnum):
    """Outcome of one decision of a bulk request."""

    APPROVED = "approved"
    REJECTED = "rejected"
    MODIFIED = "modified"  # agreed to, with inputs that somebody had changed
    WAITING = "waiting"  # counted; others must agree too
    FAILED = "failed"  # this one could not be decided; the others were


class ApprovalVote(Answer, frozen=True, kw_only=True):
    """A decision of one approver on the current inputs."""

    by: str
    decision: Decision
    reason: str | None
    at: Time


class ApprovalAgent(Answer, frozen=True, kw_only=True):
    """The agent that receives the prompt. An agent without a URL cannot be called."""

    agent_id: str
    name: str | None = None
    url: str | None = None


class Approval(Answer, frozen=True, kw_only=True):
    """An approval request.

    `expires_at` null: never expires. Empty `approvers`: every principal with the permission `approve`.
    `proposed_inputs`: the original inputs, if an approver modified them. `action`: the action of the run, with secrets
    by name; lists omit its input. `question`: the question of the agent. `reply`: the proposed answer to it;
    credentials are masked.

    `broken`: cause, if the stored approval request is damaged. Unreadable fields are omitted then, and it cannot be
    decided. `may_decide`: the caller may decide it. Otherwise `refusal` is the reason code and `refusal_message`
    describes what to do. `agent` receives the prompt in `action`. Names are display names.
    """

    approval_id: str
    namespace: str
    status: ApprovalDecision
    run_id: str
    root_run_id: str
    schedule_id: str | None
    workflow_id: str | None
    node_id: str | None
    origin: Origin
    nominal: Time
    gates: tuple[str, ...]
    inputs: Any
    input_hash: str
    requested_at: Time
    expires_at: Time | None
    approvals_required: int
    approvers: tuple[str, ...]
    votes: tuple[ApprovalVote, ...]
    decided_at: Time | None
    decided_by: str | None
    reason: str | None
    proposed_inputs: Any = None
    standing_id: str | None = None
    question: str | None = None
    reply: str | None = None
    action: Object | None = None
    broken: str | None = None
    may_decide: bool | None = None
    refusal: Refusal | None = None
    refusal_message: str | None = None
    schedule_name: str | None = None
    workflow_name: str | None = None
    agent: ApprovalAgent | None = None


class ApprovalList(Answer, frozen=True, kw_only=True):
    approvals: Rows[Approval]
    next_page_token: str | None


class DecidedOne(Answer, frozen=True, kw_only=True):
    """Outcome for one approval request. `reason` and `message` are set if it was not decided."""

    approval_id: str
    outcome: DecisionOutcome
    reason: str | None = None
    message: str | None = None


class DecidedMany(Answer, frozen=True, kw_only=True):
    outcomes: tuple[DecidedOne, ...]


class StandingApproval(Answer, frozen=True, kw_only=True):
    """An approval of future requests for these gates. `revision`: revision of the schedule when it was created.

    `broken`: cause, if the stored row is damaged; it then approves nothing. `active` is false after it ended.
    `ended_reason`: `expired`, `used_up`, `credential_ended`, `role_changed`, `schedule_deleted`, `schedule_changed`,
    `workflow_deleted` or `workflow_changed`.
    """

    standing_id: str
    schedule_id: str | None
    workflow_id: str | None
    revision: int | None
    gates: tuple[str, ...]
    until: Time | None
    max_uses: int | None
    uses: int
    reason: str | None
    made_by: str
    created_at: Time
    active: bool
    ended_reason: str | None
    broken: str | None = None


class StandingList(Answer, frozen=True, kw_only=True):
    standing: Rows[StandingApproval]
    next_page_token: str | None


class StandingDeleted(Answer, frozen=True, kw_only=True):
    standing_id: str
    outcome: str


# ── bodies ───────────────────────────────────────────────────────────────────────────────────────────


class DecisionBody(Body, frozen=True, kw_only=True):
    """A decision. `modifications` are merged into the inputs (RFC 7396). `input_hash` is the hash of the inputs shown.

    To answer the question of an agent, set `modifications` to `{"reply": text}`. The inputs stay unchanged.
    """

    OTHER_NAMES: ClassVar = {"note": "reason"}
    REFUSALS: ClassVar = (410, 412)

    decision: Decision
    reason: Note | None = None
    modifications: Any = None
    input_hash: Text | None = None
    namespace: Name | None = None


class RunDecisionBody(Body, frozen=True, kw_only=True):
    """A decision on a run. With `modifications`, the approval covers the changed inputs."""

    OTHER_NAMES: ClassVar = {"note": "reason"}
    REFUSALS: ClassVar = (410, 412)

    reason: Note | None = None
    modifications: Any = None
    input_hash: Text | None = None
    namespace: Name | None = None


class DecisionsBody(Body, frozen=True, kw_only=True):
    """Decisions on many approval requests. `input_hashes` maps IDs to the hashes of the inputs shown. An approval
    request with changed inputs is not decided.
    """

    OTHER_NAMES: ClassVar = {"approval_ids": "ids", "note": "reason"}

    ids: Ids
    decision: BulkDecision
    reason: Note | None = None
    input_hashes: Hashes | None = None
    namespace: Name | None = None


class StandingBody(Body, frozen=True, kw_only=True):
    """A standing approval for one schedule, or for all runs of one workflow. Without gates it covers runs of the
    current revision of the schedule. A local time in `until` requires a `timezone`.
    """

    OTHER_NAMES: ClassVar = {"note": "reason"}

    schedule_id: Text | None = None
    workflow_id: Text | None = None
    gates: Gates = ()
    until: Moment | None = None
    timezone: ZoneName | None = None
    max_uses: Whole | None = None
    reason: Note | None = None
    namespace: Name | None = None


class ApprovalNotFound(NotFound):
    reason = "approval_not_found"
    what = "approval"


class StandingApprovalNotFound(NotFound):
    reason = "standing_approval_not_found"
    what = "standing approval"


class ApproverRequired(Forbidden):
    """Neither the permission nor a list of approvers lets this caller decide."""

    reason = "not_an_approver"


class SelfApprovalForbidden(Forbidden):
    """Denied because the caller wrote the schedule or requested the run; the message names the alternatives."""

    reason = "requester_may_not_decide"


class ApprovalAlreadyDecided(OperationRefused):
    reason = "already_decided"


class ApprovalRequestExpired(OperationError):
    """Nobody decided in time."""

    reason = "approval_expired"
    status = 410


class ApprovedInputsChanged(OperationError):
    """Rejected because the approved inputs differ from those that would run."""

    reason = "inputs_changed"
    status = 412


class TooManyStandingApprovals(OperationRefused):
    reason = "too_many_standing_approvals"
