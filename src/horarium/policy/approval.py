"""Approval: who must say yes before a run or a step may start, and what a yes is good for.

`requires_approval` speaks of the run: it is born waiting. `mode` and `gates` speak of its steps. Gates
bind whatever the other two say, and merging policies can only add to them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from hashlib import sha256
from types import MappingProxyType
from typing import Any, Final, TypeAlias, TypeVar, assert_never

from horarium.errors import ApprovalRefused
from horarium.instant import SECOND, Instant
from horarium.policy.json_text import canonical_json
from horarium.policy.names import (
    MAX_TEXT_LENGTH,
    PolicyError,
    flag_or_none,
    parse_name,
    read_object,
    text,
    texts,
    whole_or_none,
)

T = TypeVar("T")

DEFAULT_EXPIRES_AFTER_SECONDS = 86_400
MAX_REASON_LENGTH = 4_096
# In force under `sensitive_actions` without being listed; `gates` adds to them.
SENSITIVE_GATES: Final = frozenset({"publish", "spend", "delete", "external_message", "schedule_change"})
BYPASS_EVENT: Final = "approval_bypass_attempt"


class ApprovalMode(StrEnum):
    EVERY_NODE = "every_node"
    SENSITIVE_ACTIONS = "sensitive_actions"
    ON_BLOCK = "on_block"


class ApprovalDecision(StrEnum):
    PENDING = "pending"
    APPROVED = "approved"
    REJECTED = "rejected"
    MODIFIED = "modified"


ALIASES: Final[Mapping[str, ApprovalMode]] = MappingProxyType({})
DECISION_ALIASES: Final[Mapping[str, ApprovalDecision]] = MappingProxyType(
    {
        "approve": ApprovalDecision.APPROVED,
        "reject": ApprovalDecision.REJECTED,
        "modify": ApprovalDecision.MODIFIED,
    }
)


def parse(value: object, field: str = "mode") -> ApprovalMode:
    return parse_name(ApprovalMode, ALIASES, value, field)


def parse_decision(value: object, field: str = "decision") -> ApprovalDecision:
    return parse_name(ApprovalDecision, DECISION_ALIASES, value, field)


@dataclass(frozen=True, slots=True)
class ApprovalPolicy:
    """None = not given here, so that a policy of lower precedence may say it."""

    requires_approval: bool | None = None
    mode: ApprovalMode | None = None
    gates: frozenset[str] = frozenset()
    expires_after_seconds: int | None = None

    def __post_init__(self) -> None:
        flag_or_none("requires_approval", self.requires_approval)
        if self.mode is not None and not isinstance(self.mode, ApprovalMode):
            raise PolicyError("mode", "must be an ApprovalMode")
        if not isinstance(self.gates, frozenset):
            raise PolicyError("gates", "must be a frozenset of texts")
        texts("gates", self.gates)
        whole_or_none("expires_after_seconds", self.expires_after_seconds, least=1)

    def expires_at(self, requested_at: Instant) -> Instant:
        seconds = self.expires_after_seconds or DEFAULT_EXPIRES_AFTER_SECONDS
        return requested_at + seconds * SECOND


_KEYS = tuple(each.name for each in fields(ApprovalPolicy))


def parse_approval_policy(value: object) -> ApprovalPolicy:
    given: dict[str, Any] = read_object(value, "approval_policy", _KEYS, {"require_approval": "requires_approval"})
    if "mode" in given:
        given["mode"] = parse(given["mode"])
    if "gates" in given:
        given["gates"] = frozenset(texts("gates", given["gates"]))
    return ApprovalPolicy(**given)


def merge(
    schedule: ApprovalPolicy | None,
    assignment: ApprovalPolicy | None,
    agent: ApprovalPolicy | None,
    default: ApprovalPolicy | None,
) -> ApprovalPolicy:
    """The first given value wins, in the order of the arguments; gates add up."""
    policies = [each for each in (schedule, assignment, agent, default) if each is not None]
    return ApprovalPolicy(
        requires_approval=_first_given(each.requires_approval for each in policies),
        mode=_first_given(each.mode for each in policies),
        gates=frozenset().union(*(each.gates for each in policies)),
        expires_after_seconds=_first_given(each.expires_after_seconds for each in policies),
    )


def _first_given(values: Iterable[T | None]) -> T | None:
    return next((value for value in values if value is not None), None)


def run_needs_approval(policy: ApprovalPolicy, *, has_assignee: bool) -> bool:
    """Work that somebody is assigned to waits for a person unless the policy says otherwise."""
    return has_assignee if policy.requires_approval is None else policy.requires_approval


@dataclass(frozen=True, slots=True)
class StepWaits:
    """`gates` are those that hold the step; empty where the mode alone does."""

    gates: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StepProceeds:
    """Nothing holds the step."""


StepApproval: TypeAlias = StepWaits | StepProceeds


def step_needs_approval(
    policy: ApprovalPolicy, *, node_gates: Collection[str], reported_gate: str | None = None
) -> StepApproval:
    """`node_gates` are declared by the node, `reported_gate` is what a running step says it is blocked by."""
    touched = {*node_gates} if reported_gate is None else {*node_gates, reported_gate}
    listed = touched & policy.gates
    match policy.mode:
        case ApprovalMode.EVERY_NODE:
            return StepWaits(tuple(sorted(listed)))
        case ApprovalMode.SENSITIVE_ACTIONS:
            holding = listed | (touched & SENSITIVE_GATES)
        case ApprovalMode.ON_BLOCK:
            holding = listed if reported_gate is None else listed | {reported_gate}
        case None:
            holding = listed
        case _:
            assert_never(policy.mode)
    return StepWaits(tuple(sorted(holding))) if holding else StepProceeds()


def input_hash(inputs: object) -> str:
    """SHA-256 of the inputs as canonical JSON: sorted keys, no blanks, ASCII."""
    try:
        canonical = canonical_json(inputs)
    except (TypeError, ValueError, RecursionError) as wrong:
        raise PolicyError("inputs", f"cannot be written as JSON ({type(wrong).__name__})") from None
    return sha256(canonical.encode("ascii")).hexdigest()


@dataclass(frozen=True, slots=True)
class Approval:
    """One request for a yes, bound to a run and to the inputs that were shown."""

    approval_id: str
    run_id: str
    input_hash: str
    expires_at: Instant
    decision: ApprovalDecision = ApprovalDecision.PENDING
    decider: str | None = None
    reason: str | None = None
    decided_at: Instant | None = None

    def __post_init__(self) -> None:
        for field in ("approval_id", "run_id", "input_hash"):
            text(field, getattr(self, field))
        if not isinstance(self.decision, ApprovalDecision):
            raise PolicyError("decision", "must be an ApprovalDecision")
        decided = self.decision is not ApprovalDecision.PENDING
        if decided != (self.decided_at is not None) or decided != (self.decider is not None):
            raise PolicyError("decision", "a decision has a decider and a time, a pending approval neither")


@dataclass(frozen=True, slots=True)
class Approved:
    """`inputs_patch` is to be merged into the inputs; empty for a plain yes."""

    approval: Approval
    inputs_patch: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Rejected:
    approval: Approval


ApprovalOutcome: TypeAlias = Approved | Rejected


def decide_approval(
    approval: Approval,
    *,
    decision: ApprovalDecision,
    now: Instant,
    decider: str,
    current_input_hash: str,
    reason: str | None = None,
    modifications: object = None,
) -> ApprovalOutcome:
    """The outcome with the decided record, or ApprovalRefused: a decision is made once, in time, on what was shown."""
    _check_open(approval, now, current_input_hash)
    _check_words(decider, reason)

    def said() -> Approval:
        return replace(approval, decision=decision, decider=decider, reason=reason, decided_at=now)

    if modifications is not None and decision is not ApprovalDecision.MODIFIED:
        raise ApprovalRefused(f"only a decision to modify may change inputs, not {decision}")
    match decision:
        case ApprovalDecision.APPROVED:
            return Approved(said(), MappingProxyType({}))
        case ApprovalDecision.MODIFIED:
            return Approved(said(), _patch(modifications))
        case ApprovalDecision.REJECTED:
            return Rejected(said())
        case ApprovalDecision.PENDING:
            raise ApprovalRefused("pending is not a decision; approve, reject or modify")
        case _:
            assert_never(decision)


def _check_open(approval: Approval, now: Instant, current_input_hash: str) -> None:
    if approval.decision is not ApprovalDecision.PENDING:
        raise ApprovalRefused(f"the approval was {approval.decision.value} already, by {approval.decider}")
    if now >= approval.expires_at:
        raise ApprovalRefused("the approval has expired")
    if current_input_hash != approval.input_hash:
        raise ApprovalRefused("the inputs of the run changed after the approval was asked for")


def _check_words(decider: str, reason: str | None) -> None:
    if not 1 <= len(decider) <= MAX_TEXT_LENGTH:
        raise ApprovalRefused("a decision needs a decider")
    if reason is not None and len(reason) > MAX_REASON_LENGTH:
        raise ApprovalRefused(f"the reason is longer than {MAX_REASON_LENGTH} characters")


def _patch(modifications: object) -> Mapping[str, object]:
    if not isinstance(modifications, dict) or not modifications:
        raise ApprovalRefused("a decision to modify needs an object with the inputs to change")
    if not all(isinstance(key, str) for key in modifications):
        raise ApprovalRefused("the inputs to change must be named by texts")
    try:
        input_hash(modifications)
    except PolicyError as wrong:
        raise ApprovalRefused(f"the inputs to change are no JSON: {wrong.text}") from None
    return MappingProxyType(dict(modifications))


@dataclass(frozen=True, slots=True)
class BypassAttempt:
    """Somebody asked to get round an approval; it is refused and recorded under `BYPASS_EVENT`."""

    run_id: str
    principal: str
    asked: str


def detect_bypass(
    *, needs_approval: bool, run_id: str, principal: str, approval_status: str | None = None, skip: bool = False
) -> BypassAttempt | None:
    """A caller may ask for `pending` or for nothing; any other status would be a decision nobody made."""
    if not needs_approval:
        return None
    if approval_status is not None and approval_status.lower() != ApprovalDecision.PENDING:
        return BypassAttempt(run_id, principal, f"approval_status={approval_status[:64]}")
    return BypassAttempt(run_id, principal, "skip_approval") if skip else None
