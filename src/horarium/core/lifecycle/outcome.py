"""Outcomes of a launch, tokens that prove a report, and the removal of secrets from an outcome.

Each outcome says what is known of one delivery.

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
else. What an agent is told may end up in a language model, which must not hold what ends a run.
"""

from __future__ import annotations

import hmac
import re
from base64 import urlsafe_b64encode
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import NamedTuple, TypeAlias

from horarium.core.document.json_values import Json
from horarium.core.document.secret_values import Redactor

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
