"""What shows that a report is about a delivery that its sender was given: a signature over run, attempt and gates.

It is handed to the target with the run, and comes back with the report, in the body or as the bearer token.
Nothing is stored: whoever has the key can make it again, so a redelivery carries the same one.

A push token is made from it, and lets nobody make it: an agent may say that there is news of the run, and
nothing else. What it is told may end up in a language model, which is no place for what ends a run.
"""

from __future__ import annotations

import hmac
import re
from base64 import urlsafe_b64encode
from dataclasses import dataclass, field
from hashlib import sha256
from typing import NamedTuple

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
