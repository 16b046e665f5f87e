"""Routes of approvals: list approval requests, decide one or many, manage standing approvals.

An approval request may name its approvers, so the routes require no permission: the operation checks the caller.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from fastapi import Query

from horarium.core.document.json_values import damage_of, known
from horarium.core.document.secret_values import MASK
from horarium.core.document.states import Origin
from horarium.core.policy.approval import NEVER, ApprovalDecision, may_show_reply, proposed_reply
from horarium.core.policy.queue import PolicyError, parse_name
from horarium.core.policy.votes import Decision, GrantTerms, StandingEnd, expiry_of_grant
from horarium.errors import InvalidDefinition
from horarium.features.agents.definition import AgentDefinition
from horarium.features.approvals import service, standing
from horarium.features.approvals import service as approval_service
from horarium.features.approvals.model import (
    Approval,
    ApprovalAgent,
    ApprovalList,
    ApprovalVote,
    DecidedMany,
    DecidedOne,
    DecisionBody,
    DecisionOutcome,
    DecisionsBody,
    RunDecisionBody,
    StandingApproval,
    StandingBody,
    StandingDeleted,
    StandingList,
    StatusFilter,
)
from horarium.features.approvals.operations import ApprovalOperations
from horarium.features.approvals.rows import QuestionRow
from horarium.features.approvals.service import ApprovalView, VoteRequest
from horarium.features.approvals.standing_rows import StandingRow
from horarium.features.resources import Resources
from horarium.platform.bodies import read_body
from horarium.platform.caller import Caller
from horarium.platform.database.statements import from_text, names_from_text
from horarium.platform.http import examples
from horarium.platform.http.audited import Audited
from horarium.platform.http.limits import log_fields, readable, within_bytes
from horarium.platform.http.requests import CallerOf, Document, ListCallerOf, ResourcesOf, same_namespace
from horarium.platform.http.responses import Reply
from horarium.platform.http.routing import Routes
from horarium.platform.ids import id_text
from horarium.platform.wire import time_of

routes = Routes()
run_routes = Routes()

_APPROVAL_EXAMPLE = Approval(
    approval_id=examples.UID,
    namespace="default",
    status=ApprovalDecision.PENDING,
    run_id=examples.RUN_ID,
    root_run_id=examples.RUN_ID,
    schedule_id="nightly-report",
    workflow_id=None,
    node_id=None,
    origin=Origin.SCHEDULED,
    nominal=examples.AT,
    gates=("external_message",),
    inputs={"audience": "board"},
    input_hash="5d0c9e7e0b9b7d5bd3dc1a6ed54a2b3ab3f5c8c9d9e4f1a7b6c5d4e3f2a1b0c9",
    requested_at=examples.AT,
    expires_at=examples.LATER,
    approvals_required=1,
    approvers=(),
    votes=(),
    decided_at=None,
    decided_by=None,
    reason=None,
    may_decide=True,
    schedule_name="Nightly report",
)
_STANDING_EXAMPLE = StandingApproval(
    standing_id=examples.UID,
    schedule_id="nightly-report",
    workflow_id=None,
    revision=3,
    gates=("external_message",),
    until=examples.LATER,
    max_uses=30,
    uses=0,
    active=True,
    ended_reason=None,
    reason="the board agreed for this month",
    made_by="ada",
    created_at=examples.AT,
)


@routes.implements(
    ApprovalOperations.list_approvals, example=ApprovalList(approvals=(_APPROVAL_EXAMPLE,), next_page_token=None)
)
def list_approvals(
    resources: ResourcesOf,
    caller: ListCallerOf,
    status: Annotated[
        str, Query(max_length=64, description="Status of the approval request (default pending; `all` = any).")
    ] = "pending",
    schedule_id: Annotated[str | None, Query(max_length=256)] = None,
    gate: Annotated[str | None, Query(max_length=256)] = None,
    mine: Annotated[bool, Query(description="Only approval requests that the caller may decide now.")] = False,
    page_size: Annotated[int | None, Query(description="Page size, 1 to 200.")] = None,
    next_page_token: Annotated[str | None, Query(max_length=256)] = None,
) -> Reply:
    """Oldest first."""
    page, shown = within_bytes(
        page_size,
        lambda most: service.list_approvals(
            resources,
            caller,
            status=status_of(status),
            schedule_id=schedule_id,
            gate=gate,
            mine=mine,
            page_size=most,
            next_page_token=next_page_token,
        ),
        lambda page: readable(
            resources,
            "approval",
            page.approvals,
            lambda each: _shown(resources, each),
            lambda each: each.row.approval_id,
        ),
    )
    return Reply(ApprovalList(approvals=shown, next_page_token=page.next_page_token))


@routes.implements(
    ApprovalOperations.decide_approvals,
    sends={"ids": [examples.UID], "decision": "approve", "reason": "all as discussed"},
    example=DecidedMany(outcomes=(DecidedOne(approval_id=examples.UID, outcome=DecisionOutcome.APPROVED),)),
)
def decide_approvals(resources: ResourcesOf, caller: CallerOf, body: Document) -> Reply:
    """At most 100 per request. Each has its own outcome: `approved`, `rejected`, `waiting` (more approvals needed) or
    `failed`.

    With `input_hashes`, an approval request is decided only if its inputs have not changed since.
    """
    asked = read_body(DecisionsBody, body)
    same_namespace(caller, asked.namespace)
    done = approval_service.decide_many(
        resources, caller, asked.ids, asked.decision, asked.reason, shown_hashes=asked.input_hashes or {}
    )
    return Reply(DecidedMany(outcomes=tuple(done)))


@routes.implements(
    ApprovalOperations.list_standing_approvals,
    example=StandingList(standing=(_STANDING_EXAMPLE,), next_page_token=None),
)
def list_standing_approvals(
    resources: ResourcesOf,
    caller: CallerOf,
    page_size: Annotated[int | None, Query(description="Page size, 1 to 200.")] = None,
    next_page_token: Annotated[str | None, Query(max_length=256)] = None,
) -> Reply:
    """Oldest first, including ended ones."""
    page = standing.list_standing_approvals(resources, caller, page_size=page_size, next_page_token=next_page_token)
    shown: Any = tuple(
        readable(
            resources,
            "standing approval",
            page.standing,
            lambda each: _stands(each.row, each.end),
            lambda each: each.row.standing_id,
        )
    )
    return Reply(StandingList(standing=shown, next_page_token=page.next_page_token))


@routes.implements(
    ApprovalOperations.create_standing_approval,
    audited=Audited.IN_NAMESPACE,
    sends={"schedule_id": "nightly-report", "gates": ["external_message"], "max_uses": 30},
    example=_STANDING_EXAMPLE,
)
def create_standing_approval(resources: ResourcesOf, caller: CallerOf, body: Document) -> Reply:
    """Approves future approval requests for these gates until it ends. Each use is recorded as a decision.

    Without `gates` it approves runs of the schedule in its current revision; after an edit it covers only gates. The
    caller must be allowed to decide such approval requests, and cannot cover schedules that they wrote or runs that
    they requested.
    """
    asked = read_body(StandingBody, body)
    same_namespace(caller, asked.namespace)
    return Reply(_stands(standing.create(resources, caller, asked)), 201)


@routes.implements(
    ApprovalOperations.delete_standing_approval,
    audited=Audited.IN_NAMESPACE,
    example=StandingDeleted(standing_id=examples.UID, outcome="deleted"),
)
def delete_standing_approval(resources: ResourcesOf, caller: CallerOf, standing_id: str) -> Reply:
    """Decisions already made with it remain valid."""
    gone = standing.delete(resources, caller, standing_id)
    return Reply(StandingDeleted(standing_id=id_text(gone), outcome="deleted"))


@routes.implements(ApprovalOperations.get_approval, example=_APPROVAL_EXAMPLE)
def get_approval(resources: ResourcesOf, caller: CallerOf, approval_id: str) -> Reply:
    """Includes the action of the run. Secrets are shown by name only."""
    return Reply(_shown(resources, service.get(resources, caller, approval_id)))


@routes.implements(
    ApprovalOperations.decide_approval,
    sends={"decision": "approve", "reason": "looks right"},
    example=_APPROVAL_EXAMPLE,
)
def decide_approval(resources: ResourcesOf, caller: CallerOf, approval_id: str, body: Document) -> Reply:
    """One rejection is final. Approvals of different approvers are counted. `modify` approves changed inputs.

    Answer the question of an agent with `modify` and `modifications.reply` (at most 100 kB). `agent_input` cannot be
    approved without a reply; for `agent_auth`, `approve` lets the agent continue.
    """
    asked = read_body(DecisionBody, body)
    same_namespace(caller, asked.namespace)
    said = VoteRequest(asked.decision, asked.reason, asked.modifications, asked.input_hash)
    return Reply(_shown(resources, approval_service.decide(resources, caller, approval_id, said)))


@run_routes.implements(ApprovalOperations.approve_run, sends={"reason": "looks right"}, example=_APPROVAL_EXAMPLE)
def approve_run(resources: ResourcesOf, caller: CallerOf, run_id: str, body: Document) -> Reply:
    """With `modifications`, approves changed inputs or answers the question of an agent."""
    asked = read_body(RunDecisionBody, body)
    decision = Decision.APPROVE if asked.modifications is None else Decision.MODIFY
    return _of_run(resources, caller, run_id, asked, decision)


@run_routes.implements(ApprovalOperations.reject_run, sends={"reason": "not today"}, example=_APPROVAL_EXAMPLE)
def reject_run(resources: ResourcesOf, caller: CallerOf, run_id: str, body: Document) -> Reply:
    """The run ends immediately."""
    return _of_run(resources, caller, run_id, read_body(RunDecisionBody, body), Decision.REJECT)


def _of_run(resources: Resources, caller: Caller, run_id: str, asked: RunDecisionBody, decision: Decision) -> Reply:
    same_namespace(caller, asked.namespace)
    said = VoteRequest(decision, asked.reason, asked.modifications, asked.input_hash)
    return Reply(_shown(resources, approval_service.decide_run(resources, caller, run_id, said)))


def status_of(word: str) -> StatusFilter:
    try:
        return parse_name(StatusFilter, {}, word, "status")
    except PolicyError as wrong:
        raise InvalidDefinition({wrong.field: [wrong.text]}) from None


def _shown(resources: Resources, asked: ApprovalView) -> Approval:
    row = asked.row
    broken = row.damage or asked.run.damage
    if broken is not None:
        name, about = f"{row.namespace}/{id_text(row.approval_id)}", log_fields(row)
        resources.damages.tell(resources.telemetry, "approval", name, broken, **about)
    return Approval(
        approval_id=id_text(row.approval_id),
        namespace=row.namespace,
        status=row.decision,
        run_id=id_text(row.run_id),
        root_run_id=id_text(row.root_run_id or row.run_id),
        schedule_id=row.schedule_id,
        workflow_id=row.workflow,
        node_id=row.node_id,
        origin=asked.origin,
        nominal=_time(asked.run.nominal),
        gates=known(names_from_text(row.gates)),
        inputs=asked.inputs,
        input_hash=row.input_hash,
        requested_at=_time(row.requested_at),
        expires_at=None if row.expires_at >= NEVER else time_of(row.expires_at),
        approvals_required=row.approvals_required,
        approvers=known(row.approvers),
        votes=tuple(
            ApprovalVote(
                by=vote.principal, decision=Decision(vote.decision), reason=vote.reason, at=_time(vote.voted_at)
            )
            for vote in asked.votes
        ),
        decided_at=time_of(row.decided_at),
        decided_by=row.decider,
        reason=row.reason,
        proposed_inputs=None if broken is not None else row.proposed,
        standing_id=None if row.standing_id is None else id_text(row.standing_id),
        question=row.question,
        reply=None if broken is not None else _reply(row),
        action=asked.action,
        broken=broken,
        may_decide=broken is None and asked.refused is None,
        refusal=None if broken is not None or asked.refused is None else asked.refused.refusal,
        refusal_message=None if broken is not None or asked.refused is None else asked.refused.text,
        schedule_name=row.schedule_name or None,
        workflow_name=asked.workflow_name,
        agent=None if asked.agent is None else _agent(asked.agent),
    )


def _agent(agent: AgentDefinition) -> ApprovalAgent:
    return ApprovalAgent(agent_id=agent.agent_id, name=agent.name or None, url=agent.url)


def _reply(row: QuestionRow) -> str | None:
    reply = proposed_reply(row.question, row.modifications)
    return reply if reply is None or may_show_reply(from_text(row.gates)) else MASK


def _stands(row: StandingRow, end: StandingEnd | None = None) -> StandingApproval:
    broken = damage_of(row.gates)
    return StandingApproval(
        standing_id=id_text(row.standing_id),
        schedule_id=row.schedule_id,
        workflow_id=row.workflow_id,
        revision=row.revision,
        gates=known(row.gates),
        until=time_of(expiry_of_grant(GrantTerms(row.created_at, row.until, row.max_uses, row.uses))),
        max_uses=row.max_uses,
        uses=row.uses,
        reason=row.reason,
        made_by=row.made_by,
        created_at=_time(row.created_at),
        broken=None if broken is None else f"gates: {broken}",
        active=end is None,
        ended_reason=None if end is None else end.value,
    )


def _time(instant: int) -> datetime:
    found = time_of(instant)
    assert found is not None  # an instant is given
    return found
