"""Create, list and revoke standing approvals, which approve future requests until they end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from horarium.core.document.document import from_canonical
from horarium.core.document.stored_workflow import WorkflowUse
from horarium.core.policy.approval import AGENT_INPUT, NEVER, ApprovalPolicy, parse_approval_policy
from horarium.core.policy.queue import PolicyError, texts
from horarium.core.policy.votes import GrantTerms, OpenRequest, Refusal, StandingEnd, Voter, expiry_of_grant, may_decide
from horarium.errors import InvalidDefinition
from horarium.features.approvals import standing_rows
from horarium.features.approvals.model import (
    ApproverRequired,
    SelfApprovalForbidden,
    StandingApprovalNotFound,
    StandingBody,
    TooManyStandingApprovals,
)
from horarium.features.approvals.service import principal_of
from horarium.features.approvals.standing_end_rows import bound_to, ends_of
from horarium.features.approvals.standing_rows import StandingRow
from horarium.features.resources import Resources, not_found
from horarium.features.schedules import lookup_rows
from horarium.features.schedules import rows as schedules
from horarium.features.schedules.creation import end_text
from horarium.features.schedules.drafts import hold_namespace, require_namespace
from horarium.instant import Instant
from horarium.platform.caller import Caller, checked_limit
from horarium.platform.database import Connection
from horarium.platform.errors import Forbidden
from horarium.platform.ids import id_text, new_id, parse_id
from horarium.platform.wire import Permission, Role

MAX_STANDING_APPROVALS = 1_000
"""In one namespace: each question looks at those that may be about it."""


class StandingApprovalView(NamedTuple):
    """`end` is the reason for which it has ended; None = it is active."""

    row: StandingRow
    end: StandingEnd | None


@dataclass(frozen=True, slots=True)
class StandingApprovalPage:
    standing: tuple[StandingApprovalView, ...]
    next_page_token: str | None


@dataclass(frozen=True, slots=True)
class _Subject:
    """The subject of a standing approval, with what determines who may decide."""

    schedule_uid: bytes | None
    workflow_id: str | None
    revision: int | None
    policy: ApprovalPolicy
    requesters: frozenset[str]
    schedule_id: str | None = None
    workflow: WorkflowUse | None = None


def create(resources: Resources, caller: Caller, asked: StandingBody) -> StandingRow:
    """Raises Forbidden for whoever could not decide such questions one by one."""
    caller.require(Permission.READ)
    now = resources.clock.now()
    gates, until = _checked(asked, now)
    ends = (expiry_of_grant(GrantTerms(now, until, asked.max_uses, 0)), caller.credential_ends_at)
    until = min((each for each in ends if each is not None), default=None)

    def work(connection: Connection) -> StandingRow:
        hold_namespace(connection, caller.namespace)
        subject = _subject(resources, connection, caller, asked)
        _check_decider(caller, subject)
        if standing_rows.count_of(connection, caller.namespace) >= MAX_STANDING_APPROVALS:
            raise TooManyStandingApprovals(
                f"the namespace has {MAX_STANDING_APPROVALS} standing approvals, the maximum; delete some first"
            )
        row = StandingRow(
            new_id(),
            caller.namespace,
            subject.schedule_uid,
            subject.workflow_id,
            subject.revision,
            gates,
            until,
            asked.max_uses,
            0,
            asked.reason,
            principal_of(caller),
            resources.clock.now(),
            caller.role.value,
            subject.schedule_id,
            caller.token_id or standing_rows.NO_TOKEN,
            bound_to(connection, caller.namespace, subject.workflow, gates),
        )
        standing_rows.insert(connection, row)
        return row

    return resources.database.write(work)


def list_standing_approvals(
    resources: Resources, caller: Caller, *, page_size: int | None = None, next_page_token: str | None = None
) -> StandingApprovalPage:
    caller.require(Permission.READ)
    limit = checked_limit(page_size)
    after = None if next_page_token is None else parse_id(next_page_token, "next_page_token")

    def look(connection: Connection) -> StandingApprovalPage:
        require_namespace(connection, caller.namespace)
        rows, more = standing_rows.page(connection, caller.namespace, after=after, limit=limit)
        ends = ends_of(connection, rows, resources.clock.now())
        shown = tuple(StandingApprovalView(row, ends[row.standing_id]) for row in rows)
        return StandingApprovalPage(shown, id_text(rows[-1].standing_id) if more else None)

    return resources.database.read(look)


def delete(resources: Resources, caller: Caller, standing_id: str) -> bytes:
    """By whoever gave it, or may approve: to take a yes back is never too much."""
    caller.require(Permission.READ)

    def work(connection: Connection) -> bytes:
        row = _find(connection, caller, standing_id)
        if row.made_by != principal_of(caller) and not caller.may(Permission.APPROVE):
            raise Forbidden(f"the role {caller.role} may not delete the standing approval of another user")
        standing_rows.delete(connection, row.standing_id)
        return row.standing_id

    return resources.database.write(work)


def _find(connection: Connection, caller: Caller, standing_id: str) -> StandingRow:
    try:
        row = standing_rows.find(connection, caller.namespace, parse_id(standing_id, "standing_id"))
    except InvalidDefinition:
        row = None
    if row is None:
        raise StandingApprovalNotFound(standing_id[:64])
    return row


def _checked(asked: StandingBody, now: Instant) -> tuple[tuple[str, ...], Instant | None]:
    problems: dict[str, list[str]] = {}
    if (asked.schedule_id is None) == (asked.workflow_id is None):
        problems["schedule_id"] = ["set either schedule_id or workflow_id"]
    gates: tuple[str, ...] = ()
    try:
        gates = tuple(sorted(texts("gates", asked.gates)))
    except PolicyError as wrong:
        problems["gates"] = [wrong.text]
    if AGENT_INPUT in gates:
        problems["gates"] = [f"{AGENT_INPUT} requires an answer, so it cannot be approved in advance"]
    if not gates and asked.schedule_id is None:
        problems["gates"] = ["must contain a gate; only a schedule_id can be approved without gates"]
    written = end_text(asked.until, asked.timezone)
    until = None if written is None else written.instant(now)
    if until is not None and until <= now:
        problems["until"] = ["must be in the future"]
    if asked.max_uses is not None and asked.max_uses < 1:
        problems["max_uses"] = ["must be 1 or more"]
    if problems:
        raise InvalidDefinition(problems)
    return gates, until


def _subject(resources: Resources, connection: Connection, caller: Caller, asked: StandingBody) -> _Subject:
    if asked.schedule_id is not None:
        row = schedules.find(connection, caller.namespace, asked.schedule_id)
        if row is None:
            raise not_found(resources, connection, caller, asked.schedule_id)
        revision = schedules.find_revision(connection, row.schedule_uid, row.revision)
        definition = None if revision is None else from_canonical(revision.document)
        policy = ApprovalPolicy() if definition is None else definition.approval
        wrote = frozenset(who for who in (row.created_by, row.edited_by) if who is not None)
        version = None if definition is None else definition.action.target.get("version")
        use = None if row.workflow is None else WorkflowUse(row.workflow, version if isinstance(version, int) else None)
        return _Subject(row.schedule_uid, None, row.revision, policy, wrote, row.schedule_id, use)
    assert asked.workflow_id is not None  # one of the two is given
    found = lookup_rows.workflow_author(connection, caller.namespace, asked.workflow_id)
    if found is None:
        raise InvalidDefinition({"workflow_id": [f"workflow {asked.workflow_id[:64]!r} not found"]})
    document, created_by = found
    given = document.get("approval_policy")
    policy = ApprovalPolicy() if given is None else parse_approval_policy(given)
    wrote = frozenset({created_by} if created_by else ())
    return _Subject(None, asked.workflow_id, None, policy, wrote, workflow=WorkflowUse(asked.workflow_id, None))


def _check_decider(caller: Caller, subject: _Subject) -> None:
    """As far as it is known now. What each question says of its own is asked when it is used."""
    policy = subject.policy
    question = OpenRequest(
        "",
        NEVER,
        approvers=policy.approvers,
        allow_requester=bool(policy.allow_requester),
        requesters=subject.requesters,
    )
    voter = Voter(
        principal_of(caller),
        caller.role.value,
        permitted=caller.may(Permission.APPROVE),
        is_agent=caller.role is Role.AGENT,
    )
    found = may_decide(question, voter)
    if found is None:
        return
    if found.refusal is Refusal.REQUESTER_MAY_NOT_DECIDE:
        raise SelfApprovalForbidden(found.text)
    raise ApproverRequired(found.text)
