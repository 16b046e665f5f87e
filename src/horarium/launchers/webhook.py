"""How a message is sent to whoever wants to be told: one signed POST, and whether it arrived.

The request travels as launches do: the address is judged before it is called, redirects are not followed, and the
signature is that of Standard Webhooks, over id, time and body.
"""

from __future__ import annotations

import asyncio
import base64
import ssl
from dataclasses import dataclass
from typing import TypeAlias

import httpx
from standardwebhooks import Webhook

from horarium.clock import Clock
from horarium.instant import SECOND, to_datetime
from horarium.launchers.cloudevent import STRUCTURED
from horarium.launchers.exchange import Answer, BadRequest, Dialler, Exchange, Lost, TargetForbidden
from horarium.launchers.outgoing import BadAction, place_of
from horarium.launchers.payload import clean_text
from horarium.launchers.ssrf import Guard

TIMEOUT_SECONDS = 10.0
MAX_SECRET = 200
_LEAST_SECRET_BYTES = 16
_MAX_ANSWER = 500


@dataclass(frozen=True, slots=True)
class Message:
    """`group` is the namespace on whose behalf it is sent; `id` is the same at each repetition."""

    url: str
    id: str
    body: bytes
    secret: str
    group: str

    def __repr__(self) -> str:
        return f"Message({self.id!r})"


@dataclass(frozen=True, slots=True)
class Delivered:
    status: int


@dataclass(frozen=True, slots=True)
class Undelivered:
    """`status` None = nobody answered."""

    error: str
    status: int | None = None


Delivery: TypeAlias = Delivered | Undelivered


def check_address(url: object) -> str | None:
    """What is wrong with it; None = nothing that can be seen without calling it."""
    try:
        place_of(url)
    except BadAction as wrong:
        return str(wrong).removeprefix("url: ").removeprefix("url ")
    return None


def check_secret(secret: str) -> str | None:
    """What is wrong with it; None = nothing."""
    wrong = f"must be base64 text of {_LEAST_SECRET_BYTES} bytes or more, with or without whsec_ in front"
    if len(secret) > MAX_SECRET:
        return f"must not be longer than {MAX_SECRET} characters"
    text = secret.removeprefix("whsec_").rstrip("=")
    try:
        key = base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except ValueError:
        return wrong
    return None if len(key) >= _LEAST_SECRET_BYTES else wrong


class WebhookSender:
    def __init__(
        self, clock: Clock, guard: Guard, *, timeout_seconds: float = TIMEOUT_SECONDS, tls: ssl.SSLContext | None = None
    ) -> None:
        self._clock = clock
        self._guard = guard
        self._timeout = timeout_seconds
        self._tls = tls
        self._dialler: Dialler | None = None

    async def send(self, message: Message) -> Delivery:
        """Never raises for what the far end does; no answer within the time is none."""
        try:
            place, target = place_of(message.url)
            headers = self._headers(message)
            named = [(name.encode("ascii"), value.encode("ascii")) for name, value in headers.items()]
            exchange = Exchange("POST", target, [(b"host", place.authority), *named], message.body)
            async with asyncio.timeout(self._timeout):
                wire = await self._dial().dial(place, message.group)
                try:
                    return await _delivery(await exchange.send(wire))
                finally:
                    wire.close()
        except TimeoutError:
            return Undelivered(f"no answer within {self._timeout:g} s")
        except (BadAction, BadRequest, TargetForbidden, Lost, UnicodeError) as wrong:
            return Undelivered(clean_text(str(wrong) or type(wrong).__name__, _MAX_ANSWER))

    def close(self) -> None:
        self._guard.close()

    def _dial(self) -> Dialler:
        """Made when it is first needed: to read the certificates takes a moment, and most services tell nobody."""
        if self._dialler is None:
            self._dialler = Dialler(self._guard, self._tls or httpx.create_ssl_context(trust_env=False))
        return self._dialler

    def _headers(self, message: Message) -> dict[str, str]:
        now = self._clock.now()
        signature = Webhook(message.secret).sign(message.id, to_datetime(now), message.body.decode())
        return {
            "accept": "*/*",
            "user-agent": "horarium",
            "content-type": STRUCTURED,
            "content-length": str(len(message.body)),
            "connection": "close",
            "accept-encoding": "identity",
            "webhook-id": message.id,
            "webhook-timestamp": str(now // SECOND),
            "webhook-signature": signature,
        }


async def _delivery(answer: Answer) -> Delivery:
    if 200 <= answer.status < 300:
        return Delivered(answer.status)
    try:
        raw, _ = await answer.read(4 * _MAX_ANSWER)
    except Lost:
        raw = b""
    said = clean_text(raw.decode("utf-8", "replace"), _MAX_ANSWER)
    if 300 <= answer.status < 400:
        said = "redirects are not followed"
    return Undelivered(f"HTTP {answer.status}: {said}".removesuffix(": "), answer.status)
