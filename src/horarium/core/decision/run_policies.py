"""Policies of a run when it is created, the terms under which it runs, and the full policies that targets and readers
get.

`settle` decides who works, whose policies hold, and the columns that follow. A team that takes turns sends another
agent with each run, and each agent may have policies and a budget of its own: so each who may work has a bundle of
policies that is known beforehand.

Policies are told in full, with the origin of every part. Terms are what a run may use, and the gates on its way;
every target gets them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from decimal import Decimal
from functools import lru_cache
from typing import Any, NamedTuple

from horarium.core.document.assignee import Assignee, AssigneeType, TeamDefinition, TeamStrategy, resolve_agent
from horarium.core.document.definition import Definition
from horarium.core.document.effective_policies import (
    Effective,
    PolicyOrigin,
    StatedPolicies,
    merge_policies,
    read_effective,
)
from horarium.core.document.field import amount
from horarium.core.document.json_values import Json
from horarium.core.document.planning import Planning
from horarium.core.policy.approval import (
    DEFAULT_EXPIRES_AFTER_SECONDS,
    NEVER_SECONDS,
    ApprovalMode,
    ApprovalPolicy,
    FailurePolicy,
    RetryPolicy,
    WhileWaiting,
    run_needs_approval,
)
from horarium.core.policy.limits import Budget, RunLimits
from horarium.core.policy.queue import USUAL_QUEUE, OwnQueue, QueuePolicy


class PolicyBundle(NamedTuple):
    """Policies for runs of one agent. `effective` None = only those of the schedule apply.

    `text` is stored with the run; `budget` is that of a member of a team, in addition to the team's.
    `native_scheduler`: the agent schedules its own work.
    """

    effective: Effective | None
    text: str | None
    budget: Budget = Budget()
    native_scheduler: bool = False


@dataclass(frozen=True, slots=True)
class CreationPolicies:
    """Policies for new runs of one schedule.

    `bundles` are by the working member of a team, or under None where there is no team. `workflow_version` is that of
    its stored workflow, if any; `queue` is its assignment's policy of overlap and priority.
    """

    assignee: Assignee | None
    bundles: Mapping[str | None, PolicyBundle]
    team: TeamDefinition | None = None
    workflow_version: int | None = None
    queue: QueuePolicy | None = None

    @property
    def takes_turns(self) -> bool:
        return self.team is not None and self.team.strategy is TeamStrategy.ROUND_ROBIN

    def member(self, turn: int) -> str | None:
        """Choose the working member of a team that was given `turn` runs before."""
        return None if self.team is None else resolve_agent(self.team, turn)

    def waits(self) -> bool:
        """Tell whether any policy requires approval, for any member."""
        return any(self.needs_approval(bundle.effective) for bundle in self.bundles.values())

    def needs_approval(self, effective: Effective | None) -> bool:
        """Return whether these policies require an approval of the run; None requires nothing."""
        has_steps = self.workflow_version is not None
        return effective is not None and run_needs_approval(effective.approval, has_assignee=False, has_steps=has_steps)

    def while_waiting(self) -> WhileWaiting | None:
        """First policy for runs that await approval; None = there is none."""
        said = (bundle.effective for bundle in self.bundles.values())
        found = (None if each is None else each.approval.while_waiting for each in said)
        return next((each for each in found if each is not None), None)

    def keep_own_time(self) -> bool:
        """Tell whether all agents that may work schedule themselves.

        If one member of a team does not, those who do have their turns as well: a skipped occurrence uses up no turn,
        and the team would stop at the first of them.
        """
        return all(bundle.native_scheduler for bundle in self.bundles.values())

    def bundle(self, member: str | None) -> PolicyBundle:
        return self.bundles[member]


class RunColumns(NamedTuple):
    """The columns of a run that depend on whose policies hold; all others are those of its planning."""

    needs_approval: bool
    reserve: Decimal
    attempt_ms: int | None
    runtime_seconds: int | None
    priority: int
    assignee: Assignee | None
    member: str | None
    effective: str | None
    workflow_version: int | None


def payer(assignee: Assignee) -> str:
    """Under which name money and runs of a day are counted: no id has a blank in it, so a team is never an agent."""
    return assignee.id if assignee.type is AssigneeType.AGENT else f"{assignee.type.value} {assignee.id}"


def payers(assignee: Assignee | None, member: str | None) -> tuple[str, ...]:
    """Everybody whose budget a run is counted against, beside its schedule's."""
    of_assignee = () if assignee is None else (payer(assignee),)
    return of_assignee if member is None else (*of_assignee, member)


def settle(planning: Planning, policies: CreationPolicies, member: str | None) -> RunColumns:
    """Settle policies for a new run. The schedule's are the minimum: an approval that it requires stays required."""
    bundle = policies.bundle(member)
    effective = bundle.effective
    if effective is None:
        return RunColumns(
            planning.needs_approval,
            planning.reserve,
            planning.attempt_ms,
            planning.runtime_seconds,
            planning.priority,
            policies.assignee,
            member,
            None,
            policies.workflow_version,
        )
    return RunColumns(
        planning.needs_approval or policies.needs_approval(effective),
        reserve_of(planning, effective),
        _attempt_ms(planning, effective),
        effective.limits.runtime_seconds,
        planning.priority,
        policies.assignee,
        member,
        bundle.text,
        policies.workflow_version,
    )


def reserve_of(planning: Planning, effective: Effective | None) -> Decimal:
    """Cost limit of a run, which is reserved for it."""
    if effective is None:
        return planning.reserve
    return Decimal(effective.limits.cost) if effective.limits.cost is not None else Decimal(0)


def _attempt_ms(planning: Planning, effective: Effective) -> int | None:
    """The time of an attempt, where the retry policy allows less of it than the action."""
    allowed = effective.retry.timeout_ms
    return None if allowed is None or allowed >= planning.timeout_seconds * 1_000 else allowed


def under_policies(planning: Planning, policies: CreationPolicies) -> Planning:
    """With what an assignment says of overlap and priority, and whoever has a word of runs that wait for a yes."""
    if policies.queue is not None:
        planning = under_queue(planning, policies.queue)
    return under_waiting(planning, policies.while_waiting())


@lru_cache(maxsize=65_536)
def under_waiting(planning: Planning, waiting: WhileWaiting | None) -> Planning:
    return planning if waiting in (None, planning.while_waiting) else replace(planning, while_waiting=waiting)


@lru_cache(maxsize=65_536)
def under_queue(planning: Planning, queue: QueuePolicy) -> Planning:
    """With the assignment's overlap and priority where the schedule has defaults."""
    own = OwnQueue(planning.overlap, planning.catchup, planning.priority)
    found = own.under(queue)
    if found == own:
        return planning
    return replace(planning, overlap=found.overlap, priority=found.priority)


# ── Policies in full ──────────────────────────────────────────────────────────────────────────────────


_APPROVAL, _RETRY, _FAILURE, _LIMITS = "approval_policy", "retry_policy", "failure_policy", "limits"
_QUEUE = "queue_policy"
# Of these each part may be somebody else's word; the others are taken whole.
_BY_PART = (_APPROVAL, _LIMITS)
_INTERNAL_FIELDS = frozenset({"unasked"})


@dataclass(frozen=True, slots=True)
class FullPolicies:
    """`origins` has a name for each part, as `approval_policy.mode`, and for each policy that is taken whole."""

    approval_policy: Mapping[str, Any]
    retry_policy: Mapping[str, Any]
    failure_policy: Mapping[str, Any]
    limits: Mapping[str, Any]
    origins: Mapping[str, PolicyOrigin]
    queue_policy: Mapping[str, Any] | None = None


def policies_of(
    effective: str | None, definition: Definition | None, *, of_schedule: bool = True
) -> FullPolicies | None:
    """By what was settled at the birth of a run, or else by its definition; None = neither can be read.

    `of_schedule`: a schedule created the run, so its queue policy applied.
    """
    queue = definition.queue if definition is not None and of_schedule else None
    if effective is not None:
        return _settled(effective, queue)
    if definition is None:
        return None
    own = StatedPolicies(
        PolicyOrigin.SCHEDULE, definition.approval, definition.retry, definition.failure, definition.limits
    )
    return _of_schedule(own, definition.assignee is not None, queue)


@lru_cache(maxsize=4_096)
def _settled(effective: str, queue: OwnQueue | None) -> FullPolicies | None:
    try:
        return full_policies(read_effective(effective), queue)
    except (ValueError, LookupError, TypeError, AttributeError):  # what cannot be read is one run's trouble
        return None


@lru_cache(maxsize=4_096)
def _of_schedule(said: StatedPolicies, has_assignee: bool, queue: OwnQueue | None) -> FullPolicies:
    """Where nobody but the schedule says anything."""
    return full_policies(merge_policies([said], has_assignee=has_assignee), queue)


def full_policies(effective: Effective, queue: OwnQueue | None) -> FullPolicies:
    policies = {
        _APPROVAL: policy_fields(in_force(effective.approval)) | _for_ever(effective.approval),
        _RETRY: policy_fields(effective.retry),
        _FAILURE: policy_fields(effective.failure),
        _LIMITS: policy_fields(effective.limits),
    }
    parts = [f"{name}.{part}" for name in _BY_PART for part in policies[name]]
    names = [*parts, _RETRY, _FAILURE]
    origins = {name: effective.origins.get(name, PolicyOrigin.DEFAULT) for name in names}
    if queue is None:
        return FullPolicies(**policies, origins=origins)
    found = queue.under(effective.queue)
    return FullPolicies(**policies, origins=origins | _queue_origins(queue, found), queue_policy=found.document())


def _queue_origins(own: OwnQueue, found: OwnQueue) -> dict[str, PolicyOrigin]:
    """A value that equals the default counts as not given."""
    origins = {}
    usual, before = USUAL_QUEUE.document(), own.document()
    for name, value in found.document().items():
        origin = PolicyOrigin.SCHEDULE if value != usual[name] else PolicyOrigin.DEFAULT
        origins[f"{_QUEUE}.{name}"] = origin if value == before[name] else PolicyOrigin.ASSIGNMENT
    return origins


def in_force(approval: ApprovalPolicy) -> ApprovalPolicy:
    """With what holds where nobody says anything; without a mode only the gates that are named hold a step."""
    return replace(
        approval,
        expires_after_seconds=approval.expires_after_seconds or DEFAULT_EXPIRES_AFTER_SECONDS,
        approvals_required=approval.approvals_required or 1,
        allow_requester=bool(approval.allow_requester),
        while_waiting=approval.while_waiting or WhileWaiting.COUNT,
    )


def _for_ever(approval: ApprovalPolicy) -> dict[str, Any]:
    """Null stands for a question that waits for ever."""
    return {"expires_after_seconds": None} if approval.expires_after_seconds == NEVER_SECONDS else {}


def policy_fields(policy: ApprovalPolicy | RetryPolicy | FailurePolicy | RunLimits) -> dict[str, Any]:
    """Every field of it; what is null was said by nobody, and is no limit."""
    found = {each.name: getattr(policy, each.name) for each in fields(policy)}
    return {name: _plain(value) for name, value in found.items() if name not in _INTERNAL_FIELDS}


def _plain(value: object) -> object:
    match value:
        case frozenset():
            return sorted(value)
        case tuple():
            return list(value)
        case Decimal():
            return amount(value)
        case _:
            return value


# ── Terms ─────────────────────────────────────────────────────────────────────────────────────────────


_TOOLS = "allow_tools"


@dataclass(frozen=True, slots=True)
class Terms:
    """`gates` need a yes: those that the policy names, and those that the node of a step declares.

    `approved_gates` have one for this run already: whoever comes to one of them goes on. `allow_tools` None = any;
    `limits` has those that there are.
    """

    approval_mode: ApprovalMode | None = None
    gates: tuple[str, ...] = ()
    approved_gates: tuple[str, ...] = ()
    limits: Mapping[str, Json] = field(default_factory=dict)
    allow_tools: tuple[str, ...] | None = None
    global_model_id: str | None = None

    def document(self) -> dict[str, Any]:
        return {
            "approval_mode": self.approval_mode,
            "gates": list(self.gates),
            "approved_gates": list(self.approved_gates),
            "limits": dict(self.limits),
            _TOOLS: None if self.allow_tools is None else list(self.allow_tools),
            "global_model_id": self.global_model_id,
        }


@lru_cache(maxsize=4_096)
def terms_of(
    approval: ApprovalPolicy,
    limits: RunLimits,
    global_model_id: str | None,
    *,
    has_assignee: bool,
    node_gates: tuple[str, ...] = (),
    approved_gates: tuple[str, ...] = (),
) -> Terms:
    """Where somebody is assigned, sensitive actions need a yes unless the policy says otherwise."""
    usual = ApprovalMode.SENSITIVE_ACTIONS if has_assignee else None
    given = {name: value for name, value in policy_fields(limits).items() if value is not None and name != _TOOLS}
    return Terms(
        approval_mode=usual if approval.mode is None else approval.mode,
        gates=tuple(sorted({*approval.gates, *node_gates})),
        approved_gates=approved_gates,
        limits=given,
        allow_tools=limits.allow_tools,
        global_model_id=global_model_id,
    )


def assignee_document(assignee_type: str | None, assignee: str | None, member: str | None) -> dict[str, str] | None:
    """As targets are told who works; `member` is the agent of a team whose turn it was."""
    if assignee is None:
        return None
    found = {"type": assignee_type or "agent", "id": assignee}
    return found if member is None else {**found, "member": member}
