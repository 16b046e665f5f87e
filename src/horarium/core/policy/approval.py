"""Approval policies: the runs, steps and gates that need an approval, and replies to the question of an agent.

`requires_approval` speaks of the run: it is created awaiting approval. `mode` and `gates` speak of its steps. Gates
bind whatever the other two say, and merging policies can only add to them. `votes.py` decides who may approve, and
how many must.

An agent that has begun may stop to ask. `agent_input` asks for an answer in a text; `agent_auth` asks for permission
to go on, which an approval without a text gives. The inputs stay as they are. A vote is for inputs and text
together: for another text it is another vote.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from hashlib import sha256
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar, assert_never

from horarium.core.policy.names import (
    MAX_WHOLE,
    PolicyError,
    canonical_json,
    flag_or_none,
    parse_name,
    read_object,
    shown,
    texts,
    whole_or_none,
)
from horarium.instant import SECOND, Instant

T = TypeVar("T")

DEFAULT_EXPIRES_AFTER_SECONDS = 86_400
NEVER_SECONDS: Final = MAX_WHOLE
"""`expires_after_seconds` of a question that waits for ever; null in documents."""
NEVER: Final[Instant] = 2**62
"""`expires_at` of such a question: later than any clock, and a number that both databases order."""
MAX_REASON_LENGTH = 4_096
MAX_APPROVALS_REQUIRED = 100
ROLE_PREFIX: Final = "role:"
_NO_APPROVER: Final = f"{ROLE_PREFIX}agent"
# In force under `sensitive_actions` without being listed; `gates` adds to them.
SENSITIVE_GATES: Final = frozenset({"publish", "spend", "delete", "external_message", "schedule_change"})
AGENT_INPUT: Final = "agent_input"
"""The gate at which an agent asks for an answer, and not for leave."""
AGENT_AUTH: Final = "agent_auth"
AGENT_GATES: Final = frozenset({AGENT_INPUT, AGENT_AUTH})
"""Those at which an agent asks, whatever the policies say."""
BYPASS_EVENT: Final = "approval_bypass_attempt"


class ApprovalMode(StrEnum):
    EVERY_NODE = "every_node"
    SENSITIVE_ACTIONS = "sensitive_actions"
    ON_BLOCK = "on_block"


class WhileWaiting(StrEnum):
    """Meaning of a run that awaits approval for the next occurrence of its schedule."""

    COUNT = "count"  # busy, as any other
    SUPERSEDE = "supersede"  # out of date: it ends, and the newer one asks in its place
    IGNORE = "ignore"  # not busy


class ApprovalDecision(StrEnum):
    PENDING = "pending"
    APPROVED = "approved"
    REJECTED = "rejected"
    MODIFIED = "modified"
    EXPIRED = "expired"  # nobody decided in time, or its run ended otherwise


APPROVAL_ALIASES: Final[Mapping[str, ApprovalMode]] = MappingProxyType({})


def parse_approval_mode(value: object, field: str = "mode") -> ApprovalMode:
    return parse_name(ApprovalMode, APPROVAL_ALIASES, value, field)


@dataclass(frozen=True, slots=True)
class ApprovalPolicy:
    """None = not given here, so that a policy of lower precedence may say it."""

    requires_approval: bool | None = None
    mode: ApprovalMode | None = None
    gates: frozenset[str] = frozenset()
    expires_after_seconds: int | None = None
    approvals_required: int | None = None
    approvers: frozenset[str] = frozenset()
    allow_requester: bool | None = None
    while_waiting: WhileWaiting | None = None

    def __post_init__(self) -> None:
        flag_or_none("requires_approval", self.requires_approval)
        flag_or_none("allow_requester", self.allow_requester)
        if self.mode is not None and not isinstance(self.mode, ApprovalMode):
            raise PolicyError("mode", "must be an ApprovalMode")
        if self.while_waiting is not None and not isinstance(self.while_waiting, WhileWaiting):
            raise PolicyError("while_waiting", "must be a WhileWaiting")
        for name in ("gates", "approvers"):
            if not isinstance(getattr(self, name), frozenset):
                raise PolicyError(name, "must be a frozenset of strings")
            texts(name, getattr(self, name))
        if _NO_APPROVER in self.approvers:
            raise PolicyError("approvers", "an agent cannot approve; name other roles or principals")
        whole_or_none("expires_after_seconds", self.expires_after_seconds, least=1)
        whole_or_none("approvals_required", self.approvals_required, least=1, most=MAX_APPROVALS_REQUIRED)

    def expires_at(self, requested_at: Instant) -> Instant:
        seconds = self.expires_after_seconds or DEFAULT_EXPIRES_AFTER_SECONDS
        return NEVER if seconds == NEVER_SECONDS else requested_at + seconds * SECOND

    def document(self) -> dict[str, object]:
        """JSON form of the policy."""
        said: dict[str, object] = {}
        for each in fields(self):
            value = getattr(self, each.name)
            if isinstance(value, frozenset):
                if value:
                    said[each.name] = sorted(value)
            elif value is not None:
                said[each.name] = None if value == NEVER_SECONDS and each.name == _EXPIRES else value
        return said


_EXPIRES: Final = "expires_after_seconds"
_KEYS = tuple(each.name for each in fields(ApprovalPolicy))


def parse_approval_policy(value: object) -> ApprovalPolicy:
    """Read a policy; a null `expires_after_seconds` means never."""
    given: dict[str, Any] = read_object(
        value, "approval_policy", _KEYS, {"require_approval": "requires_approval"}, {_EXPIRES: NEVER_SECONDS}
    )
    if "mode" in given:
        given["mode"] = parse_approval_mode(given["mode"])
    if "while_waiting" in given:
        given["while_waiting"] = parse_name(WhileWaiting, {}, given["while_waiting"], "while_waiting")
    for name in ("gates", "approvers"):
        if name in given:
            given[name] = frozenset(texts(name, given[name]))
    return ApprovalPolicy(**given)


def merge_approval_policies(*policies: ApprovalPolicy | None) -> ApprovalPolicy:
    """Merge policies in the order of their precedence: schedule, assignment, agent, workflow, default.

    Any of them can require approval, gates add up, and of everything else the first given value wins.
    """
    said = [each for each in policies if each is not None]
    asks = any(each.requires_approval for each in said)
    return ApprovalPolicy(
        requires_approval=True if asks else _first_given(each.requires_approval for each in said),
        mode=_first_given(each.mode for each in said),
        gates=frozenset().union(*(each.gates for each in said)),
        expires_after_seconds=_first_given(each.expires_after_seconds for each in said),
        approvals_required=_first_given(each.approvals_required for each in said),
        approvers=next((each.approvers for each in said if each.approvers), frozenset()),
        allow_requester=_first_given(each.allow_requester for each in said),
        while_waiting=_first_given(each.while_waiting for each in said),
    )


def _first_given(values: Iterable[T | None]) -> T | None:
    return next((value for value in values if value is not None), None)


def run_needs_approval(policy: ApprovalPolicy, *, has_assignee: bool, has_steps: bool) -> bool:
    """Work with an assignee awaits approval unless the policy says otherwise.

    A run without steps is its own single node, so `every_node` holds it.
    """
    if policy.mode is ApprovalMode.EVERY_NODE and not has_steps:
        return True
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


class Skipping(NamedTuple):
    """Parts of a request that try to bypass an approval, if any."""

    approval_status: str | None = None
    skip: bool = False


NO_SKIPPING: Final = Skipping()


_STATUS_NAMES: Final = ("approval_status", "approvalStatus")
_SKIP_NAMES: Final = ("skip_approval", "skipApproval")


def _asks_nothing(approval_status: str) -> bool:
    return approval_status.lower() == ApprovalDecision.PENDING


def skipping_in(document: object) -> Skipping:
    """Read it from a document, which may spell each name either way, or both ways."""
    if not isinstance(document, Mapping):
        return NO_SKIPPING
    statuses = [str(document[name]) for name in _STATUS_NAMES if document.get(name) is not None]
    status = next((each for each in statuses if not _asks_nothing(each)), next(iter(statuses), None))
    return Skipping(status, any(document.get(name) for name in _SKIP_NAMES))


def detect_bypass(*, needs_approval: bool, approval_status: str | None = None, skip: bool = False) -> str | None:
    """Describe an attempt to bypass an approval, for the record; None = there is none.

    A caller may send `pending` or nothing; any other status would be a decision without an approver.
    """
    if not needs_approval:
        return None
    if approval_status is not None and not _asks_nothing(approval_status):
        return f"approval_status={approval_status[:64]}"
    return "skip_approval" if skip else None


# ── Replies to agents ─────────────────────────────────────────────────────────────────────────────────


REPLY: Final = "reply"
"""The one member of `modifications` that answers an agent."""
MAX_REPLY_BYTES: Final = 100_000
MAX_QUESTION: Final = 16_000
"""Characters of an agent's question that are kept."""
TOLD_QUESTION: Final = 500
"""Characters of it that events and the feed tell."""


def reply_in(modifications: object) -> str:
    """Raises PolicyError for what answers no agent."""
    if not isinstance(modifications, dict) or REPLY not in modifications:
        raise PolicyError("modifications", "must be an object with the key reply, the answer to the agent")
    others = sorted(str(name) for name in modifications if name != REPLY)
    if others:
        raise PolicyError("modifications", f"unknown key {shown(others[0])}; allowed: reply")
    reply = modifications[REPLY]
    if not isinstance(reply, str):
        raise PolicyError(f"modifications.{REPLY}", f"must be a string, not {shown(reply)}")
    if not reply.strip():
        raise PolicyError(f"modifications.{REPLY}", "must not be blank")
    if len(reply.encode("utf-8", "replace")) > MAX_REPLY_BYTES:
        raise PolicyError(f"modifications.{REPLY}", f"must have at most {MAX_REPLY_BYTES} bytes")
    return reply


def needs_reply(gates: Collection[str]) -> bool:
    """Tell whether an approval needs a reply."""
    return AGENT_INPUT in gates


def may_show_reply(gates: Collection[str]) -> bool:
    """Tell whether the reply may be shown; one that authenticates an agent may be a password."""
    return AGENT_AUTH not in gates


def agreed_hash(inputs: object, reply: str | None, texts: Mapping[str, object] | None = None) -> str:
    """Hash what a vote approves: the inputs, a reply, and the texts that a template was rendered to."""
    more: dict[str, object] = {} if reply is None else {REPLY: reply}
    if texts is not None:
        more["texts"] = texts
    return input_hash({"inputs": inputs, **more} if more else inputs)


def proposed_reply(question: str | None, modifications: object) -> str | None:
    """The text that somebody has proposed to answer an agent's question with; `question` None = no agent asks."""
    if question is None or not isinstance(modifications, dict):
        return None
    reply = modifications.get(REPLY)
    return reply if isinstance(reply, str) else None
