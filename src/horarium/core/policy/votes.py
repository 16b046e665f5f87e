"""Votes about an open approval request, and the end of standing approvals.

One more vote leaves the request open, approves or rejects it. A vote counts for the inputs that were shown. `modify`
changes them: votes for the old inputs no longer count, and the voter who modified them has approved the new ones.

A standing approval ends by time, by use, or with its grantor's credential, its schedule or its workflow.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final, TypeAlias, assert_never

from horarium.core.policy.approval import AGENT_INPUT, ROLE_PREFIX, ApprovalDecision
from horarium.core.policy.queue import parse_name
from horarium.instant import DAY, Instant

RUN_CANCELLED: Final = "run_cancelled"
"""The reason of a question that was never answered because its run ended otherwise."""
SUPERSEDED: Final = "superseded"
"""The reason of one in whose place a newer occurrence asks."""
# Of which people may be told what they are, rather than what they are not.
_MOST_NAMED = 5


class Decision(StrEnum):
    """Decision on an approval request."""

    APPROVE = "approve"
    REJECT = "reject"
    MODIFY = "modify"


DECISION_ALIASES: Final[Mapping[str, Decision]] = MappingProxyType(
    {"approved": Decision.APPROVE, "rejected": Decision.REJECT, "modified": Decision.MODIFY}
)


def parse_decision(value: object, field: str = "decision") -> Decision:
    return parse_name(Decision, DECISION_ALIASES, value, field)


@dataclass(frozen=True, slots=True)
class Vote:
    """One yes, for the inputs of that hash."""

    principal: str
    input_hash: str


@dataclass(frozen=True, slots=True)
class OpenRequest:
    """An approval request. `approvers` empty = any holder of the permission.

    `requesters` may decide only with `allow_requester`.
    """

    input_hash: str
    expires_at: Instant
    decision: ApprovalDecision = ApprovalDecision.PENDING
    reason: str | None = None
    decider: str | None = None
    approvals_required: int = 1
    approvers: frozenset[str] = frozenset()
    allow_requester: bool = False
    requesters: frozenset[str] = frozenset()
    votes: tuple[Vote, ...] = ()


@dataclass(frozen=True, slots=True)
class Voter:
    """A voter. `permitted`: the role holds the permission. `is_worker`: the voter does the work under approval."""

    principal: str
    role: str
    permitted: bool
    is_agent: bool = False
    is_worker: bool = False


class Refusal(StrEnum):
    """Reason code of a rejected decision."""

    APPROVAL_REQUIRED = "approval_required"
    NOT_AN_APPROVER = "not_an_approver"
    REQUESTER_MAY_NOT_DECIDE = "requester_may_not_decide"
    ALREADY_DECIDED = "already_decided"
    APPROVAL_EXPIRED = "approval_expired"
    INPUTS_CHANGED = "inputs_changed"


@dataclass(frozen=True, slots=True)
class VoteRefused:
    refusal: Refusal
    text: str


@dataclass(frozen=True, slots=True)
class StillOpen:
    """It was counted, or was there before; `missing` more must agree."""

    missing: int


@dataclass(frozen=True, slots=True)
class Approved:
    """Enough have said yes to the inputs of this hash."""

    input_hash: str


@dataclass(frozen=True, slots=True)
class Rejected:
    """One no is enough."""


Judgement: TypeAlias = VoteRefused | StillOpen | Approved | Rejected


def may_decide(question: OpenRequest, voter: Voter) -> VoteRefused | None:
    """None = this person may. An agent, and whoever does the work, never: to let them would be no approval."""
    if voter.is_agent or voter.is_worker:
        who = "an agent" if voter.is_agent else "the worker of the run"
        return VoteRefused(Refusal.APPROVAL_REQUIRED, f"{who} may not decide approval requests")
    if question.approvers and question.approvers.isdisjoint(names_of(voter.principal, voter.role)):
        return VoteRefused(
            Refusal.NOT_AN_APPROVER, f"only {_shown(question.approvers)} may decide this approval request"
        )
    if not question.approvers and not voter.permitted:
        return VoteRefused(Refusal.NOT_AN_APPROVER, f"the role {voter.role} may not approve")
    if voter.principal in question.requesters and not question.allow_requester:
        return VoteRefused(Refusal.REQUESTER_MAY_NOT_DECIDE, _ALONE)
    return None


def names_of(principal: str, role: str) -> set[str]:
    """Under which a list of approvers may have somebody; nobody has a role by being called like one."""
    return {f"{ROLE_PREFIX}{role}"} | (set() if principal.startswith(ROLE_PREFIX) else {principal})


_ALONE: Final = (
    "you created or requested this run, so you cannot approve it; ask another approver, "
    "use a token with another subject, or set allow_requester: true in the approval_policy"
)


def judge(
    question: OpenRequest,
    voter: Voter,
    decision: Decision,
    *,
    now: Instant,
    current_hash: str,
    shown_hash: str | None = None,
    new_hash: str | None = None,
) -> Judgement:
    """The hashes are of the run's inputs, of those that the voter says were shown, and of those that `modify` makes."""
    wrong = vote_refused(question, voter, now)
    if wrong is not None:
        return wrong
    if current_hash != question.input_hash or shown_hash not in (None, question.input_hash):
        return VoteRefused(Refusal.INPUTS_CHANGED, "the inputs changed after you read them; review the new inputs")
    match decision:
        case Decision.REJECT:
            return Rejected()
        case Decision.APPROVE:
            return count_votes(question, [*question.votes, Vote(voter.principal, question.input_hash)])
        case Decision.MODIFY:
            if new_hash is None:
                raise ValueError("a decision to modify needs the hash of the new inputs")
            votes = [each for each in question.votes if each.input_hash == new_hash]
            return count_votes(question, [*votes, Vote(voter.principal, new_hash)])
        case _:
            assert_never(decision)


def vote_refused(question: OpenRequest, voter: Voter, now: Instant) -> VoteRefused | None:
    """Whatever they have to say: who may not speak is not told what is wrong with it."""
    return may_decide(question, voter) or _closed(question, now)


def count_votes(question: OpenRequest, votes: Collection[Vote]) -> StillOpen | Approved:
    """Those for the inputs of the last vote; a person counts once, however often it is said."""
    shown = next(reversed([*votes])).input_hash
    heard = {each.principal for each in votes if each.input_hash == shown}
    missing = question.approvals_required - len(heard)
    return StillOpen(missing) if missing > 0 else Approved(shown)


def _closed(question: OpenRequest, now: Instant) -> VoteRefused | None:
    if question.decision is ApprovalDecision.EXPIRED and question.reason is not None:
        return VoteRefused(Refusal.ALREADY_DECIDED, f"the approval request is closed: {question.reason}")
    if question.decision is ApprovalDecision.EXPIRED:
        return VoteRefused(Refusal.APPROVAL_EXPIRED, "the approval request expired and the run has ended")
    if question.decision is not ApprovalDecision.PENDING:
        by = "" if question.decider is None else f" by {question.decider}"
        return VoteRefused(Refusal.ALREADY_DECIDED, f"the approval request was already {question.decision.value}{by}")
    if now >= question.expires_at:
        return VoteRefused(Refusal.APPROVAL_EXPIRED, "the approval request has expired")
    return None


def _shown(approvers: Iterable[str]) -> str:
    first = sorted(approvers)
    return ", ".join(first[:_MOST_NAMED]) + (", …" if len(first) > _MOST_NAMED else "")


# ── standing approvals ───────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class StandingGrant:
    """A yes given beforehand, to questions about these gates; `revision` is the schedule's when it was given."""

    gates: frozenset[str]
    maker: Voter
    revision: int | None = None
    until: Instant | None = None
    max_uses: int | None = None
    uses: int = 0


def grant_covers(
    standing: StandingGrant,
    question: OpenRequest,
    *,
    gates: Collection[str],
    revision: int | None,
    whole_run: bool,
    now: Instant,
    brings_inputs: bool = False,
) -> bool:
    """Tell whether a standing approval covers these gates of a run of that revision.

    `whole_run`: the request is whether the run may start at all. For that, and for a step that waits without a gate,
    the approval was given for the revision of that time and is valid for nothing else: not for a run whose inputs
    come with the request (`brings_inputs`). A question of an agent cannot be answered in advance.
    """
    if AGENT_INPUT in gates:
        return False
    if standing.until is not None and now >= standing.until:
        return False
    if standing.max_uses is not None and standing.uses >= standing.max_uses:
        return False
    if not standing.gates.issuperset(gates) or may_decide(question, standing.maker) is not None:
        return False
    by_gates_alone = bool(gates) and not whole_run
    as_agreed = revision is not None and standing.revision == revision and not (whole_run and brings_inputs)
    return by_gates_alone or as_agreed


# ── Ends of standing approvals ────────────────────────────────────────────────────────────────────────


DEFAULT_GRANT_LIFE: Final = 90 * DAY
"""The life of a standing approval that names neither an end nor a number of uses."""


class StandingEnd(StrEnum):
    """The reasons for which a standing approval has ended."""

    EXPIRED = "expired"
    USED_UP = "used_up"
    CREDENTIAL_ENDED = "credential_ended"  # the grantor's token was revoked or has expired
    ROLE_CHANGED = "role_changed"
    SCHEDULE_DELETED = "schedule_deleted"
    SCHEDULE_CHANGED = "schedule_changed"
    WORKFLOW_DELETED = "workflow_deleted"
    WORKFLOW_CHANGED = "workflow_changed"


@dataclass(frozen=True, slots=True)
class GrantTerms:
    """The limits that a standing approval was created with, and the uses so far."""

    created_at: Instant
    until: Instant | None
    max_uses: int | None
    uses: int


@dataclass(frozen=True, slots=True)
class Circumstances:
    """The present state of what a standing approval depends on.

    `credential_live` and `role_kept` are true where no token stands behind the approval. `gated_nodes_kept`: no gated
    node of its workflow was edited. `revision_kept`: the schedule is as it was; asked only where no gate is named.
    """

    credential_live: bool = True
    role_kept: bool = True
    schedule_there: bool = True
    revision_kept: bool = True
    workflow_there: bool = True
    gated_nodes_kept: bool = True


def expiry_of_grant(terms: GrantTerms) -> Instant | None:
    if terms.until is None and terms.max_uses is None:
        return terms.created_at + DEFAULT_GRANT_LIFE
    return terms.until


def end_of_grant(terms: GrantTerms, seen: Circumstances, now: Instant) -> StandingEnd | None:
    """Return the first reason that applies; None = it is active."""
    expiry = expiry_of_grant(terms)
    reasons = (
        (StandingEnd.CREDENTIAL_ENDED, not seen.credential_live),
        (StandingEnd.ROLE_CHANGED, not seen.role_kept),
        (StandingEnd.SCHEDULE_DELETED, not seen.schedule_there),
        (StandingEnd.WORKFLOW_DELETED, not seen.workflow_there),
        (StandingEnd.SCHEDULE_CHANGED, not seen.revision_kept),
        (StandingEnd.WORKFLOW_CHANGED, not seen.gated_nodes_kept),
        (StandingEnd.EXPIRED, expiry is not None and now >= expiry),
        (StandingEnd.USED_UP, terms.max_uses is not None and terms.uses >= terms.max_uses),
    )
    return next((reason for reason, applies in reasons if applies), None)
