"""Policies about approvals, retries and failures.

`requires_approval` is about the run: it is created awaiting approval. `mode` and `gates` are about its steps. Gates
bind whatever the other two say, and merging policies can only add to them. `votes.py` decides who may approve, and
how many must.

An agent that has begun may stop to ask. `agent_input` asks for an answer in a text; `agent_auth` asks for permission
to continue, which an approval without a text gives. The inputs stay as they are. A vote is for inputs and text
together: for another text it is another vote.

Retry policies decide whether and when a failure is tried again, failure policies the effect of a failed step on its
workflow. Each backoff has a jitter by hash, so that failures of one moment are not retried at one moment.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from hashlib import blake2b, sha256
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar, assert_never

from horarium.core.policy.queue import (
    MAX_WHOLE,
    PolicyError,
    canonical_json,
    flag_or_none,
    parse_name,
    read_object,
    shown,
    text,
    texts,
    whole_number,
    whole_or_none,
)
from horarium.instant import MILLISECOND, SECOND, Instant

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
MAX_NOTICE_QUESTION: Final = 500
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


MAX_RETRIES = 1_000


class RetryCause(StrEnum):
    TIMEOUT = "timeout"
    PROVIDER_ERROR = "provider_error"
    RATE_LIMIT = "rate_limit"
    CONTRACT_VIOLATED = "contract_violated"


RETRY_ALIASES: Final[Mapping[str, RetryCause]] = MappingProxyType(
    {"timed_out": RetryCause.TIMEOUT, "rate_limited": RetryCause.RATE_LIMIT}
)


class AgentFault(StrEnum):
    """Error classes of an agent's failure. `COUNTS_AS` says which of them are retried."""

    ERROR = "agent_error"
    FAILED = "agent_failed"
    REJECTED = "agent_rejected"
    EMPTY = "empty_response"
    TOO_LARGE = "reply_too_large"


# An agent that broke down or could not do it may manage next time. One that rejects a prompt, answers nothing or
# answers too much has done what it does: no policy makes it try again.
COUNTS_AS: Final[Mapping[str, RetryCause]] = MappingProxyType(
    {AgentFault.ERROR: RetryCause.PROVIDER_ERROR, AgentFault.FAILED: RetryCause.PROVIDER_ERROR}
)


TIME_LIMITS: Final = frozenset({"TimeLimitExceeded", "SoftTimeLimitExceeded"})
"""Exceptions by which a Celery worker ends a task whose time is over."""
NOT_REGISTERED: Final = "NotRegistered"
"""That of a worker which does not know the task: it will not know it the next time either."""


def parse_retry_cause(value: object, field: str = "retry_on") -> RetryCause:
    return parse_name(RetryCause, RETRY_ALIASES, value, field)


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Retries of a failed step; `timeout_ms` None = the default of its action.

    `unasked`: it is the default. A step that used all its time is then not repeated.
    """

    max_retries: int = 1
    backoff_ms: int = 1_000
    max_backoff_ms: int = 60_000
    retry_on: tuple[RetryCause, ...] = tuple(RetryCause)
    timeout_ms: int | None = None
    unasked: bool = False

    def __post_init__(self) -> None:
        whole_number("max_retries", self.max_retries, most=MAX_RETRIES)
        whole_number("backoff_ms", self.backoff_ms)
        whole_number("max_backoff_ms", self.max_backoff_ms)
        whole_or_none("timeout_ms", self.timeout_ms, least=1)
        if not isinstance(self.retry_on, tuple):
            raise PolicyError("retry_on", "must be a tuple of RetryCause")
        if not all(isinstance(cause, RetryCause) for cause in self.retry_on):
            raise PolicyError("retry_on", "must contain only RetryCause")


UNASKED = RetryPolicy(unasked=True)
_RETRY_KEYS = tuple(each.name for each in fields(RetryPolicy) if each.name != "unasked")


@dataclass(frozen=True, slots=True)
class LaunchRetry:
    """The budget of one delivery: how often an unreachable target is tried, apart from `max_retries`."""

    max_attempts: int = 5
    base_ms: int = 500
    max_ms: int = 30_000

    def __post_init__(self) -> None:
        whole_number("max_attempts", self.max_attempts, least=1, most=MAX_RETRIES)
        whole_number("base_ms", self.base_ms)
        whole_number("max_ms", self.max_ms)


def parse_retry_policy(value: object) -> RetryPolicy:
    given: dict[str, Any] = read_object(value, "retry_policy", _RETRY_KEYS)
    base = whole_number("backoff_ms", given.get("backoff_ms", UNASKED.backoff_ms))
    if base > UNASKED.max_backoff_ms:  # it is meant: it lifts a ceiling that nobody gave
        given.setdefault("max_backoff_ms", base)
    if "retry_on" in given:
        given["retry_on"] = _parse_causes(given["retry_on"])
    return RetryPolicy(**given)


def _parse_causes(value: object) -> tuple[RetryCause, ...]:
    if not isinstance(value, list | tuple) or len(value) > 100:
        raise PolicyError("retry_on", f"must be a short array of causes, not {shown(value)}")
    return tuple(dict.fromkeys(parse_retry_cause(item) for item in value))


def unit_hash(*parts: str | int) -> float:
    """A number in [0, 1) that depends on the parts alone: the same on every machine, after every restart."""
    digest = blake2b(digest_size=8)
    for part in parts:
        raw = str(part).encode("utf-8", "surrogatepass")
        # The length keeps ("a", "bc") and ("ab", "c") apart.
        digest.update(len(raw).to_bytes(8, "big") + raw)
    # 53 bits are what a float holds exactly; one more could round up to 1.0.
    return (int.from_bytes(digest.digest(), "big") >> 11) / 2**53


def backoff(base_ms: int, max_ms: int, attempt: int, unit: float) -> int:
    """Milliseconds before try number `attempt` + 1: min(max, base·2^(attempt-1))·(0.5 + 0.5·unit)."""
    if attempt < 1:
        raise ValueError(f"attempts are counted from 1, not {attempt}")
    if not 0 <= unit < 1:
        raise ValueError(f"unit must be in [0, 1), not {unit}")
    # Doubling max_ms.bit_length() times is above max_ms already; more would only build a huge integer.
    ceiling = min(max_ms, base_ms << min(attempt - 1, max_ms.bit_length()))
    return int(ceiling * (0.5 + 0.5 * unit))


@dataclass(frozen=True, slots=True)
class Retry:
    at: Instant


@dataclass(frozen=True, slots=True)
class GiveUp:
    """`reason` is `not_retryable`, `retries_exhausted` or `deadline_reached`."""

    reason: str


RetryOutcome: TypeAlias = Retry | GiveUp


def decide_retry(
    policy: RetryPolicy, *, attempt: int, error_class: str | None, deadline: Instant | None, now: Instant, key: str
) -> RetryOutcome:
    """`attempt` counts the known failures, this one included; `key` keeps herds apart.

    A failure without a class counts as `provider_error`, and so do some of an agent's; any other class that is not
    among the causes is the target's own word for something that trying again will not mend.
    """
    if _cause_of(error_class) not in policy.retry_on:
        return GiveUp("not_retryable")
    if attempt > policy.max_retries:
        return GiveUp("retries_exhausted")
    return _wait(policy.backoff_ms, policy.max_backoff_ms, attempt, deadline=deadline, now=now, key=key)


def cause_of_exception(error_class: str | None) -> str | None:
    """Cause that a policy knows for the class of a task's exception: a provider error, as in a function.

    A word of the policy itself is left as it is.
    """
    if error_class is None or error_class == NOT_REGISTERED or _cause_of(error_class) is not None:
        return error_class
    return (RetryCause.TIMEOUT if error_class in TIME_LIMITS else RetryCause.PROVIDER_ERROR).value


def decide_launch_until(
    policy: LaunchRetry, *, attempt: int, deadline: Instant, now: Instant, key: str
) -> RetryOutcome:
    """However often it takes, until the deadline. Towards the end the pauses are halves of what is left."""
    left = deadline - now
    if left < SECOND:
        return GiveUp("deadline_reached")
    pause = backoff(policy.base_ms, policy.max_ms, attempt, unit_hash(key, attempt)) * MILLISECOND
    return Retry(now + min(pause, left // 2))


def decide_launch_retry(
    policy: LaunchRetry, *, attempt: int, deadline: Instant | None, now: Instant, key: str
) -> RetryOutcome:
    """`attempt` counts the deliveries that failed, this one included."""
    if attempt >= policy.max_attempts:
        return GiveUp("retries_exhausted")
    return _wait(policy.base_ms, policy.max_ms, attempt, deadline=deadline, now=now, key=key)


def _cause_of(error_class: str | None) -> RetryCause | None:
    if error_class is None:
        return RetryCause.PROVIDER_ERROR
    if error_class in COUNTS_AS:
        return COUNTS_AS[error_class]
    try:
        return parse_retry_cause(error_class, "error_class")
    except PolicyError:
        return None


def _wait(base_ms: int, max_ms: int, attempt: int, *, deadline: Instant | None, now: Instant, key: str) -> RetryOutcome:
    at = now + backoff(base_ms, max_ms, attempt, unit_hash(key, attempt)) * MILLISECOND
    # A try that starts at the deadline could only time out.
    return GiveUp("deadline_reached") if deadline is not None and at >= deadline else Retry(at)


# ── Failed steps ──────────────────────────────────────────────────────────────────────────────────────


class FailureMode(StrEnum):
    ISOLATE = "isolate"
    HALT = "halt"
    FALLBACK = "fallback"


FAILURE_ALIASES: Final[Mapping[str, FailureMode]] = MappingProxyType({})


def parse_failure_mode(value: object, field: str = "mode") -> FailureMode:
    return parse_name(FailureMode, FAILURE_ALIASES, value, field)


@dataclass(frozen=True, slots=True)
class FailurePolicy:
    mode: FailureMode = FailureMode.ISOLATE
    fallback_assignee_id: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.mode, FailureMode):
            raise PolicyError("mode", "must be a FailureMode")
        if self.fallback_assignee_id is not None:
            text("fallback_assignee_id", self.fallback_assignee_id)
        elif self.mode is FailureMode.FALLBACK:
            raise PolicyError("fallback_assignee_id", "is required when mode is fallback")


def parse_failure_policy(value: object) -> FailurePolicy:
    given: dict[str, Any] = read_object(value, "failure_policy", ("mode", "fallback_assignee_id"))
    if "mode" in given:
        given["mode"] = parse_failure_mode(given["mode"])
    return FailurePolicy(**given)


@dataclass(frozen=True, slots=True)
class SkipDependants:
    """Steps that need the failed one are skipped; its siblings go on."""


@dataclass(frozen=True, slots=True)
class HaltRun:
    """Stop steps that have not started, and cancel those that run."""


@dataclass(frozen=True, slots=True)
class Reassign:
    """The step is tried by another assignee."""

    assignee_id: str


FailureOutcome: TypeAlias = SkipDependants | HaltRun | Reassign


def on_step_failure(policy: FailurePolicy, *, already_fallen_back: bool) -> FailureOutcome:
    """Asked after the retries; a fallback that fails too is isolated."""
    match policy.mode:
        case FailureMode.ISOLATE:
            return SkipDependants()
        case FailureMode.HALT:
            return HaltRun()
        case FailureMode.FALLBACK:
            if already_fallen_back or policy.fallback_assignee_id is None:
                return SkipDependants()
            return Reassign(policy.fallback_assignee_id)
        case _:
            assert_never(policy.mode)
