"""Outcomes of a launch, and events in the life of a run.

Each outcome says what is known of one delivery:

| outcome       | what is known                                                       |
|---------------|---------------------------------------------------------------------|
| Finished      | the work is done, here is its result                                |
| Accepted      | the target has it; its report, a poll or the deadline ends the run  |
| Asked         | the target has begun, and waits for an answer to its question       |
| Refused       | the target will never take it as it is; a retry is pointless        |
| Busy          | the target has no capacity now; nothing was started                 |
| Unreachable   | nothing was started; a later retry may reach it                     |
| Unknown       | it was sent, and whether it arrived is unknown                      |
| RunFailed     | the work ran and failed                                             |
| RunTimedOut   | the deadline came first                                             |
| RunCancelled  | the run was cancelled, and it stopped                               |

A report token is a signature over run, attempt and gates. The target gets it with the run and returns it with the
report, in the body or as the bearer token. It is not stored: the key makes it again, so a redelivery carries the
same one. A push token is made from it, and cannot be turned back: an agent may announce news of the run, and nothing
else. A prompt may end up in a language model, which must not have a token that ends a run.

An event is an answer of the launcher, a report of the target, the passing of time or a stop. `react` turns it into a
change. An event names its fence, since the run may have moved on before the event is handled: `epoch` is the lease,
`attempt` the delivery that it is about.

A change ends the run, waits for its target, retries it, continues it, awaits approval, or does nothing.
"""

from __future__ import annotations

import hmac
import re
from base64 import urlsafe_b64encode
from dataclasses import dataclass, field, replace
from enum import StrEnum
from hashlib import sha256
from typing import Any, NamedTuple, TypeAlias

from horarium.core.document.json_values import Json
from horarium.core.document.secret_values import Redactor
from horarium.core.document.states import RunState
from horarium.instant import Instant

# ── Outcomes ──────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Finished:
    result: Json = None
    cost: float | None = None
    tokens: int | None = None
    tool_calls: int | None = None


@dataclass(frozen=True, slots=True)
class Accepted:
    """`queued`: it waits for a worker and has not started. `reference` is the target's own name for it."""

    reference: str | None = None
    queued: bool = False


@dataclass(frozen=True, slots=True)
class Asked:
    """`gate` is what kind of question it is, `reference` the target's own name for what waits there."""

    gate: str
    question: str
    reference: str


@dataclass(frozen=True, slots=True)
class Refused:
    error: str


@dataclass(frozen=True, slots=True)
class Busy:
    """`retry_after_seconds` is the target's own wish; None = it named no time.

    `sent`: it was the target that said so, after a byte had left. `error_class`: what a target that stays
    busy is a failure of, for the retry policy; None = the run is skipped then, which is no failure.
    """

    retry_after_seconds: float | None = None
    sent: bool = False
    error_class: str | None = None


@dataclass(frozen=True, slots=True)
class Unreachable:
    """`sent`: a byte had left, and the target said that it had not begun."""

    error: str
    sent: bool = False


@dataclass(frozen=True, slots=True)
class Unknown:
    error: str


@dataclass(frozen=True, slots=True)
class RunFailed:
    """`error_class` is what the retry policy asks for: `timeout`, `provider_error` … or the target's own word."""

    error: str
    error_class: str | None = None
    result: Json = None
    cost: float | None = None
    tokens: int | None = None
    tool_calls: int | None = None


@dataclass(frozen=True, slots=True)
class RunTimedOut:
    error: str


@dataclass(frozen=True, slots=True)
class RunCancelled:
    error: str


@dataclass(frozen=True, slots=True)
class StillRunning:
    """A poll's answer that is no outcome: ask again later."""


Outcome: TypeAlias = (
    Finished | Accepted | Asked | Refused | Busy | Unreachable | Unknown | RunFailed | RunTimedOut | RunCancelled
)


# ── Redaction ─────────────────────────────────────────────────────────────────────────────────────────


def without_secrets(outcome: Outcome, redactor: Redactor) -> Outcome:
    match outcome:
        case Finished(result):
            return replace(outcome, result=redactor.json(result))
        case Accepted(str() as reference):
            return replace(outcome, reference=redactor.text(reference))
        case Asked(question=question):
            return replace(outcome, question=redactor.text(question))
        case RunFailed(error, error_class, result):
            kept = None if error_class is None else redactor.text(error_class)
            return replace(outcome, error=redactor.text(error), error_class=kept, result=redactor.json(result))
        case Refused(error) | Unreachable(error) | Unknown(error) | RunTimedOut(error) | RunCancelled(error):
            return replace(outcome, error=redactor.text(error))
        case Accepted() | Busy():
            return outcome


# ── Report tokens ─────────────────────────────────────────────────────────────────────────────────────


PREFIX = "hrt_"
PUSH_PREFIX = "hpt_"
_PURPOSE = b"report:"
_PUSH_PURPOSE = b"push"
_SIGNATURE_BYTES = 24
# More digits than any attempt has, and few enough for eight bytes; one spelling for each number, since what a token may
# do is counted by its text.
_FENCE = re.compile(r"(?P<attempt>0|[1-9][0-9]{0,8})(?:g(?P<gates>[1-9][0-9]{0,8}))?")


class Fence(NamedTuple):
    """One delivery of a run. What comes after a gate is another one than what came before it."""

    attempt: int
    gates_passed: int = 0

    @property
    def text(self) -> str:
        return str(self.attempt) if self.gates_passed == 0 else f"{self.attempt}g{self.gates_passed}"


@dataclass(frozen=True, slots=True)
class ReportTokens:
    """`key` is the installation's own; `url` is where this service is seen from outside, None = nobody has said.

    What was signed with one of the `previous` keys is recognised too; nothing is signed with them any more.
    """

    key: bytes = field(repr=False)
    url: str | None = None
    previous: tuple[bytes, ...] = field(default=(), repr=False)

    @property
    def keys(self) -> tuple[bytes, ...]:
        """The one that is in use, then those before it."""
        return (self.key, *self.previous)

    def make(self, run_id: bytes, attempt: int, gates_passed: int = 0) -> str:
        fence = Fence(attempt, gates_passed)
        return f"{PREFIX}{fence.text}.{_signature(self.key, run_id, fence)}"

    def fence_of(self, token: str, run_id: bytes) -> Fence | None:
        """The delivery that the token stands for; None for a token that is not of this run."""
        text, dot, signature = token.removeprefix(PREFIX).partition(".")
        found = _FENCE.fullmatch(text)
        if not dot or found is None:
            return None
        fence = Fence(int(found["attempt"]), int(found["gates"] or 0))
        given = signature.encode("utf-8", "replace")
        wanted = (_signature(key, run_id, fence).encode() for key in self.keys)
        return fence if any(hmac.compare_digest(given, each) for each in wanted) else None

    def fence_of_push(self, token: str, run_id: bytes) -> Fence | None:
        """The same for a push token."""
        found = _FENCE.fullmatch(token.removeprefix(PUSH_PREFIX).partition(".")[0])
        if not is_push_token(token) or found is None:
            return None
        fence = Fence(int(found["attempt"]), int(found["gates"] or 0))
        given = token.encode("utf-8", "replace")
        wanted = (push_token(f"{PREFIX}{fence.text}.{_signature(key, run_id, fence)}").encode() for key in self.keys)
        return fence if any(hmac.compare_digest(given, each) for each in wanted) else None

    def attempt_of(self, token: str, run_id: bytes) -> int | None:
        """The attempt that it is about; None for a token that is not of this run."""
        fence = self.fence_of(token, run_id)
        return None if fence is None else fence.attempt

    def report_url(self, run_id: str) -> str | None:
        return None if self.url is None else f"{self.url.rstrip('/')}/api/runs/{run_id}/report"


def _signature(key: bytes, run_id: bytes, fence: Fence) -> str:
    after = b"" if fence.gates_passed == 0 else fence.gates_passed.to_bytes(8, "big")
    signed = hmac.new(key, _PURPOSE + run_id + fence.attempt.to_bytes(8, "big") + after, sha256).digest()
    return urlsafe_b64encode(signed[:_SIGNATURE_BYTES]).decode()


def is_report_token(secret: str) -> bool:
    return secret.startswith(PREFIX)


def push_token(report_token: str) -> str:
    """Token for an agent in place of the report token, for the same delivery."""
    fence = report_token.removeprefix(PREFIX).partition(".")[0]
    digest = hmac.new(report_token.encode(), _PUSH_PURPOSE, sha256).digest()
    return f"{PUSH_PREFIX}{fence}.{urlsafe_b64encode(digest[:_SIGNATURE_BYTES]).decode()}"


def push_url(report_url: str) -> str:
    """Where a push goes, of a run whose reports go there."""
    return f"{report_url.removesuffix('/report')}/pushes"


def is_push_token(secret: str) -> bool:
    return secret.startswith(PUSH_PREFIX)


# ── Events ────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class LaunchAnswered:
    """The launcher, or the target that it polled; the holder of the lease speaks."""

    outcome: Outcome
    epoch: int


@dataclass(frozen=True, slots=True)
class TargetAccepted:
    """The target has it, under a name of its own; the holder of the lease stays with it."""

    reference: str
    epoch: int


class ReportedState(StrEnum):
    """State that a target may report for its run."""

    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    CANCELLED = "cancelled"
    BLOCKED = "blocked"


@dataclass(frozen=True, slots=True)
class Reported:
    """`cost` is in millionths of a credit; usage is that of this attempt alone.

    `epoch` and `attempt` are None where the reporter does not say. `by` is who reports. `proven`: the attempt is
    shown by the token that its target was handed, and with it `gates_passed`, what had been agreed to by then.
    """

    state: ReportedState
    result: Json = None
    error: str | None = None
    error_class: str | None = None
    cost: int | None = None
    tokens: int | None = None
    tool_calls: int | None = None
    gate: str | None = None
    epoch: int | None = None
    attempt: int | None = None
    by: str | None = None
    proven: bool = False
    gates_passed: int | None = None


@dataclass(frozen=True, slots=True)
class LostLease:
    """Its holder was not heard of in time: nobody knows what became of it."""

    epoch: int


@dataclass(frozen=True, slots=True)
class GivenBack:
    """Its holder stops in good order, in the midst of it. `begun`: the target may have heard of it."""

    epoch: int
    begun: bool


@dataclass(frozen=True, slots=True)
class UnstorableAnswer:
    """Its holder has an answer that cannot be written down."""

    error: str
    epoch: int


@dataclass(frozen=True, slots=True)
class DeadlinePassed:
    """The time of this attempt, or of the whole run, is over."""


@dataclass(frozen=True, slots=True)
class WaitedTooLong:
    """Its target has no place for it, and has had none for as long as that is worth waiting for."""


@dataclass(frozen=True, slots=True)
class CancelledUnstarted:
    """Somebody wants it no more, and nobody outside has seen it."""

    error: str
    cause: str | None = None


@dataclass(frozen=True, slots=True)
class CancelledOutside:
    """Somebody wants it no more, and the target that has it was told."""

    error: str


@dataclass(frozen=True, slots=True)
class Terminated:
    """It ends now, whoever has it."""

    error: str
    cause: str | None = None


@dataclass(frozen=True, slots=True)
class ApprovalExpired:
    """Nobody said yes in time, or a newer occurrence asks in its place (`cause` superseded)."""

    cause: str | None = None


@dataclass(frozen=True, slots=True)
class ApprovalGiven:
    """As many as were needed said yes, to these inputs; None = as they are. `modified`: not to those first shown."""

    approval_id: bytes
    inputs: Json = None
    modified: bool = False


@dataclass(frozen=True, slots=True)
class ApprovalRefused:
    """Somebody said no."""

    reason: str | None = None


@dataclass(frozen=True, slots=True)
class WorkflowEnded:
    """All its nodes are over, or nothing more is to be waited for; its state is a final one."""

    state: RunState
    result: Json = None
    error: str | None = None
    error_class: str | None = None
    cause: str | None = None


Event: TypeAlias = (
    LaunchAnswered
    | TargetAccepted
    | Reported
    | LostLease
    | GivenBack
    | UnstorableAnswer
    | DeadlinePassed
    | WaitedTooLong
    | CancelledUnstarted
    | CancelledOutside
    | Terminated
    | ApprovalExpired
    | ApprovalGiven
    | ApprovalRefused
    | WorkflowEnded
)


# ── Changes ───────────────────────────────────────────────────────────────────────────────────────────


class UsedResources(NamedTuple):
    """Usage of a run in all its attempts; `cost` in millionths of a credit."""

    cost: int
    tokens: int
    tool_calls: int


@dataclass(frozen=True, slots=True)
class End:
    """The run is over. `attempt` counts its known failures, this one included; None = as they were, as is `used`."""

    state: RunState
    result: Any = None
    error: str | None = None
    error_class: str | None = None
    cause: str | None = None
    used: UsedResources | None = None
    attempt: int | None = None
    detail: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class WaitForTarget:
    """The target has it: a report, a poll or the deadline will end it. `queued`: no worker has begun."""

    reference: str | None
    queued: bool


@dataclass(frozen=True, slots=True)
class Begin:
    """The target has it under this name. `held`: whoever holds the run stays with it; else who takes it next does."""

    reference: str
    held: bool = True


@dataclass(frozen=True, slots=True)
class RetryLater:
    """Back to ready. `attempt` counts known failures, `launches` the deliveries tried within the attempt.

    `known`: the attempt is over, so that whoever still speaks for it is not heard. `untouched`: nothing
    has begun in it, so that its time has not begun either. `told`: the run's events mention it. `follows`: whoever
    takes it next looks for what was begun, under the name and within the time that it has. `timed`: its time runs on.
    """

    ready_at: Instant
    attempt: int
    launches: int
    busy_since: Instant | None = None
    error: str | None = None
    error_class: str | None = None
    used: UsedResources | None = None
    known: bool = False
    untouched: bool = False
    told: bool = True
    follows: bool = False
    timed: bool = False


@dataclass(frozen=True, slots=True)
class Progress:
    """It runs. `begins`: this is the first word of it."""

    used: UsedResources
    begins: bool


@dataclass(frozen=True, slots=True)
class Block:
    """It came to a gate, and waits for a yes without lease and without deadline.

    `question` is what the target wants to know, `reference` its name for what waits there; None = as it was.
    """

    gate: str
    question: str | None = None
    reference: str | None = None


@dataclass(frozen=True, slots=True)
class Admit:
    """It may start, or go on, with these inputs; None = with those it has. `modified`: they were changed on the way."""

    approval_id: bytes
    ready_at: Instant
    inputs: Any = None
    modified: bool = False


class NothingCause(StrEnum):
    """Why an event changes nothing."""

    SAID_BEFORE = "said_before"  # the run ended just so
    TOO_LATE = "too_late"  # the run has ended otherwise, or the attempt is over
    NOT_HELD = "not_held"  # whoever says it does not hold the run
    UNPROVEN = "unproven"  # whoever says it shows no right to
    NOT_SO = "not_so"  # what was seen without a lock is no longer so


@dataclass(frozen=True, slots=True)
class Nothing:
    why: NothingCause


Change: TypeAlias = End | WaitForTarget | Begin | RetryLater | Progress | Block | Admit | Nothing
