"""What is asked and answered about questions that wait for a yes, and about yeses that were given beforehand."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, ClassVar

from msgspec import Meta

from horarium.policy.approval import ApprovalDecision
from horarium.policy.deciding import Decision, Refusal
from horarium.schedule.run import Origin
from horarium.wire.answer import Answer, Object, Rows, Time
from horarium.wire.bodies import Body, Moment, Name, Note, Text, Whole, ZoneName
from horarium.wire.bulk import MAX_AT_ONCE
from horarium.wire.bulk_bodies import Ids

Gates = Annotated[tuple[str, ...], Meta(min_length=0, max_length=100)]
Hashes = Annotated[Mapping[str, str], Meta(max_length=MAX_AT_ONCE)]


class StatusFilter(StrEnum):
    """Which questions a list shows."""

    PENDING = "pending"
    APPROVED = "approved"
    REJECTED = "rejected"
    MODIFIED = "modified"
    EXPIRED = "expired"
    ALL = "all"


class BulkDecision(StrEnum):
    """What can be said of many at once."""

    APPROVE = "approve"
    REJECT = "reject"


class DecisionOutcome(StrEnum):
    """What one voice came to, where many were asked about."""

    APPROVED = "approved"
    REJECTED = "rejected"
    MODIFIED = "modified"  # agreed to, with inputs that somebody had changed
    WAITING = "waiting"  # counted; others must agree too
    FAILED = "failed"  # this one could not be decided; the others were


class ApprovalVote(Answer, frozen=True, kw_only=True):
    """One voice, for the inputs that are shown now."""

    by: str
    decision: Decision
    reason: str | None
    at: Time


class ApprovalAgent(Answer, frozen=True, kw_only=True):
    """The agent that a prompt goes to; without a URL it cannot be called."""

    agent_id: str
    name: str | None = None
    url: str | None = None


class Approval(Answer, frozen=True, kw_only=True):
    """One question. `expires_at` null = it waits for as long as it takes; `approvers` empty = whoever may approve.

    `proposed_inputs` are those that were shown first, where somebody has modified them. `action` is what the run would
    do, with secrets by name only; lists leave out its input. `question` is what an agent wants to know, in its own
    words, and `reply` what it is told, once somebody has proposed that; what lets it in somewhere is not shown.
    `broken` says why it cannot be read, where somebody has damaged it: what is not known is left out then, and nobody
    decides it. `may_decide`: a decision of the caller would be accepted; else `refusal` is the reason code of the
    refusal, and `refusal_message` says what to do. `agent` is the one that the
    prompt in `action` goes to; names are display names.
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
    """`reason` and `message` say why one was not decided."""

    approval_id: str
    outcome: DecisionOutcome
    reason: str | None = None
    message: str | None = None


class DecidedMany(Answer, frozen=True, kw_only=True):
    outcomes: tuple[DecidedOne, ...]


class StandingApproval(Answer, frozen=True, kw_only=True):
    """A yes to future questions about these gates. `revision` is the schedule's when it was given.

    `broken` says why it cannot be read: it approves nothing then. `active` is false once it has ended, and
    `ended_reason` says why: `expired`, `used_up`, `credential_ended`, `role_changed`, `schedule_deleted`,
    `schedule_changed`, `workflow_deleted` or `workflow_changed`.
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
    """`modifications` are merged into the inputs, as RFC 7396 has it; `input_hash` is that of the inputs shown.

    To an agent's question `modifications` are `{"reply": text}`: what it is told, while the inputs stay as they are.
    """

    OTHER_NAMES: ClassVar = {"note": "reason"}
    REFUSALS: ClassVar = (410, 412)

    decision: Decision
    reason: Note | None = None
    modifications: Any = None
    input_hash: Text | None = None
    namespace: Name | None = None


class RunDecisionBody(Body, frozen=True, kw_only=True):
    """As a decision; a yes with `modifications` is one to the inputs as they are then."""

    OTHER_NAMES: ClassVar = {"note": "reason"}
    REFUSALS: ClassVar = (410, 412)

    reason: Note | None = None
    modifications: Any = None
    input_hash: Text | None = None
    namespace: Name | None = None


class DecisionsBody(Body, frozen=True, kw_only=True):
    """`input_hashes` names, by id, the inputs that were shown: a question that has others by now is not decided."""

    OTHER_NAMES: ClassVar = {"approval_ids": "ids", "note": "reason"}

    ids: Ids
    decision: BulkDecision
    reason: Note | None = None
    input_hashes: Hashes | None = None
    namespace: Name | None = None


class StandingBody(Body, frozen=True, kw_only=True):
    """Of one schedule, or of all that runs of one workflow ask. Without gates, to runs of the schedule as it is now.

    A local time in `until` needs a `timezone`.
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
