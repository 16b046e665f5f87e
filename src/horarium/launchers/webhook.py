"""Messages to subscribers: one signed POST, and its delivery or failure.

Requests work as for launches: the address is checked before it is called, redirects are not followed, and the
signature is that of Standard Webhooks, over ID, time and body.
"""

from __future__ import annotations

import asyncio
import base64
import ssl
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeAlias

import httpx
from standardwebhooks import Webhook

from horarium.instant import SECOND, to_datetime
from horarium.launchers.exchange import (
    ConnectionLost,
    Dialler,
    Exchange,
    HttpOrigin,
    HttpResponse,
    InvalidRequest,
    TargetForbidden,
    Wire,
)
from horarium.launchers.payload import clean_text
from horarium.launchers.requests import STRUCTURED, BadAction, place_of
from horarium.launchers.ssrf import AddressGuard
from horarium.platform.clock import Clock

TIMEOUT_SECONDS = 10.0
MAX_SECRET = 200
_LEAST_SECRET_BYTES = 16
_MAX_ANSWER = 500
# Of the answer to a message that was taken: more of it, or a slow one, costs the connection.
_MAX_REST = 16_384
_REST_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class WebhookMessage:
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
    """Find what is wrong with a URL without calling it; None = nothing."""
    try:
        place_of(url)
    except BadAction as wrong:
        return str(wrong).removeprefix("url: ").removeprefix("url ")
    return None


def check_secret(secret: str) -> str | None:
    """Find what is wrong with a secret; None = nothing."""
    wrong = f"must be a base64 string of {_LEAST_SECRET_BYTES} bytes or more, with or without the prefix whsec_"
    if len(secret) > MAX_SECRET:
        return f"must not be longer than {MAX_SECRET} characters"
    text = secret.removeprefix("whsec_").rstrip("=")
    try:
        key = base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except ValueError:
        return wrong
    return None if len(key) >= _LEAST_SECRET_BYTES else wrong


@dataclass(frozen=True, slots=True)
class _ReusedWire:
    """A connection that stands, with where it leads and on whose behalf: it serves nothing else."""

    key: tuple[HttpOrigin, str]
    wire: Wire


class Channel:
    """Sends one message after the other; not for several at a time."""

    def __init__(self, sender: WebhookSender) -> None:
        self._sender = sender
        self._kept: _ReusedWire | None = None

    async def send(self, message: WebhookMessage) -> Delivery:
        """Send a message as `WebhookSender.send` does."""
        kept, self._kept = self._kept, None
        try:
            delivery, self._kept = await self._sender.exchange(message, kept)
            return delivery
        finally:
            if kept is not None and self._kept is not kept:
                kept.wire.close()

    def close(self) -> None:
        if self._kept is not None:
            self._kept.wire.close()
            self._kept = None


class WebhookSender:
    def __init__(
        self,
        clock: Clock,
        guard: AddressGuard,
        *,
        timeout_seconds: float = TIMEOUT_SECONDS,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._clock = clock
        self._guard = guard
        self._timeout = timeout_seconds
        self._tls = tls
        self._dialler: Dialler | None = None

    async def send(self, message: WebhookMessage) -> Delivery:
        """Send on a connection of its own. No answer within the time is none; what the far end does never raises."""
        channel = self.channel()
        try:
            return await channel.send(message)
        finally:
            channel.close()

    def channel(self) -> Channel:
        """Open a way for messages that follow each other: they share a connection while the far end keeps it."""
        return Channel(self)

    async def exchange(self, message: WebhookMessage, kept: _ReusedWire | None) -> tuple[Delivery, _ReusedWire | None]:
        """Send once; return what became of it, and the connection if it can be used again."""
        try:
            place, target = place_of(message.url)
            async with asyncio.timeout(self._timeout):
                if kept is not None and kept.key == (place, message.group) and kept.wire.is_idle:
                    with suppress(ConnectionLost):  # closed meanwhile: a message may arrive twice, so it is sent again
                        return await self._over(kept, target, message)
                fresh = _ReusedWire((place, message.group), await self._dial().dial(place, message.group))
                return await self._over(fresh, target, message)
        except TimeoutError:
            return Undelivered(f"no answer within {self._timeout:g} s"), None
        except (BadAction, InvalidRequest, TargetForbidden, ConnectionLost, UnicodeError) as wrong:
            return Undelivered(clean_text(str(wrong) or type(wrong).__name__, _MAX_ANSWER)), None

    async def _over(
        self, kept: _ReusedWire, target: bytes, message: WebhookMessage
    ) -> tuple[Delivery, _ReusedWire | None]:
        may_go_on = False
        try:
            headers = self._headers(message)
            named = [(name.encode("ascii"), value.encode("ascii")) for name, value in headers.items()]
            host = (b"host", kept.key[0].authority)
            answer = await Exchange("POST", target, [host, *named], message.body).send(kept.wire)
            delivery = await _delivery(answer)
            may_go_on = answer.may_go_on
        finally:
            if not may_go_on:
                kept.wire.close()
        return delivery, kept if may_go_on else None

    def close(self) -> None:
        self._guard.close()

    def _dial(self) -> Dialler:
        """Made when it is first needed: to read the certificates takes a moment, and most services tell nobody."""
        if self._dialler is None:
            self._dialler = Dialler(self._guard, self._tls or httpx.create_ssl_context(trust_env=False))
        return self._dialler

    def _headers(self, message: WebhookMessage) -> dict[str, str]:
        now = self._clock.now()
        signature = Webhook(message.secret).sign(message.id, to_datetime(now), message.body.decode())
        return {
            "accept": "*/*",
            "user-agent": "horarium",
            "content-type": STRUCTURED,
            "content-length": str(len(message.body)),
            "accept-encoding": "identity",
            "webhook-id": message.id,
            "webhook-timestamp": str(now // SECOND),
            "webhook-signature": signature,
        }


async def _delivery(answer: HttpResponse) -> Delivery:
    """Read what is said of a refusal. A message that was taken is delivered, however long the rest of the answer is."""
    if 200 <= answer.status < 300:
        with suppress(TimeoutError, ConnectionLost):  # only for the sake of the connection
            async with asyncio.timeout(_REST_SECONDS):
                await answer.read(_MAX_REST)
        return Delivered(answer.status)
    try:
        raw, _ = await answer.read(4 * _MAX_ANSWER)
    except ConnectionLost:
        raw = b""
    said = clean_text(raw.decode("utf-8", "replace"), _MAX_ANSWER)
    if 300 <= answer.status < 400:
        said = "redirects are not followed"
    return Undelivered(f"HTTP {answer.status}: {said}".removesuffix(": "), answer.status)
