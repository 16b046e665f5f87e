"""What shows that a report is about an attempt that its sender was given: a signature over run and attempt.

It is handed to the target with the run, and comes back with the report, in the body or as the bearer token.
Nothing is stored: whoever has the key can make it again, so a redelivery carries the same one.
"""

from __future__ import annotations

import hmac
from base64 import urlsafe_b64encode
from dataclasses import dataclass, field
from hashlib import sha256

PREFIX = "hrt_"
_PURPOSE = b"report:"
_SIGNATURE_BYTES = 24
# More than any attempt has, and few enough for eight bytes.
_MAX_DIGITS = 9


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

    def make(self, run_id: bytes, attempt: int) -> str:
        return f"{PREFIX}{attempt}.{_signature(self.key, run_id, attempt)}"

    def attempt_of(self, token: str, run_id: bytes) -> int | None:
        """The attempt that the token stands for; None for a token that is not of this run."""
        number, dot, signature = token.removeprefix(PREFIX).partition(".")
        if not dot or not 0 < len(number) <= _MAX_DIGITS or not (number.isascii() and number.isdigit()):
            return None
        if number != str(int(number)):  # one spelling for each: what a token may do is counted by its text
            return None
        given = signature.encode("utf-8", "replace")
        wanted = (_signature(key, run_id, int(number)).encode() for key in self.keys)
        return int(number) if any(hmac.compare_digest(given, each) for each in wanted) else None

    def report_url(self, run_id: str) -> str | None:
        return None if self.url is None else f"{self.url.rstrip('/')}/api/runs/{run_id}/report"


def _signature(key: bytes, run_id: bytes, attempt: int) -> str:
    signed = hmac.new(key, _PURPOSE + run_id + attempt.to_bytes(8, "big"), sha256).digest()
    return urlsafe_b64encode(signed[:_SIGNATURE_BYTES]).decode()


def is_report_token(secret: str) -> bool:
    return secret.startswith(PREFIX)
