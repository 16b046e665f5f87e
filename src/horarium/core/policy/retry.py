"""Retry and failure policies: whether and when a failure is tried again, and what a step that has failed does to its
workflow.

Each backoff has a jitter by hash, so that failures of one moment are not retried at one moment.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from hashlib import blake2b
from types import MappingProxyType
from typing import Any, Final, TypeAlias, assert_never

from horarium.core.policy.names import PolicyError, parse_name, read_object, shown, text, whole_number, whole_or_none
from horarium.instant import MILLISECOND, SECOND, Instant

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
_KEYS = tuple(each.name for each in fields(RetryPolicy) if each.name != "unasked")


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
    given: dict[str, Any] = read_object(value, "retry_policy", _KEYS)
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
