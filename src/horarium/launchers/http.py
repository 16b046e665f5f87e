"""Runs as HTTP calls: one signed CloudEvent to the URL of the action, and its response as the outcome.

`Idempotency-Key` and `webhook-id` carry the delivery key. Only the receiver decides whether a second delivery is
harmless, so this launcher promises nothing about it: delivery is at least once.

A request counts as sent from its first header byte. An error before it is `Unreachable`. After it, a lost connection
is `Unknown` and the deadline is `RunTimedOut`: the target may have acted.

| response                           | outcome                                                                |
|------------------------------------|------------------------------------------------------------------------|
| 202                                | Accepted; reference = `reference` or `id` of the body, else `Location` |
| other 2xx                          | Finished with the body                                                 |
| 408, 425                           | Unreachable: the target reports that it did not begin                  |
| 429                                | Busy; of class `rate_limit` if it lasts                                |
| 503 with `Retry-After`             | Busy                                                                   |
| 502, 504; 503 without it           | Unknown: a proxy cannot tell what became of the request                |
| 500, other 5xx, 6xx and above      | RunFailed, `provider_error`: the target tried, a retry is a new attempt|
| 3xx                                | Refused: a redirect would bypass the check of the address              |
| other 4xx                          | Refused                                                                |

A number above 599 counts as a 5xx (RFC 9110 section 15). An incomplete response is no response, unless its status
alone proves that the run is not done.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping, Sequence
from datetime import UTC
from email.utils import parsedate_to_datetime

import httpx
from standardwebhooks import Webhook

from horarium.audience import USUAL, Audience
from horarium.core.document import reader
from horarium.core.document.json_values import Json
from horarium.core.lifecycle.outcome import (
    Accepted,
    Busy,
    Finished,
    Outcome,
    Refused,
    RunCancelled,
    RunFailed,
    RunTimedOut,
    Unknown,
    Unreachable,
)
from horarium.core.policy.approval import RetryCause
from horarium.instant import SECOND, Instant, from_datetime, to_datetime
from horarium.launchers.exchange import ConnectionLost, Dialler, Exchange, HttpResponse, InvalidRequest, TargetForbidden
from horarium.launchers.launcher import Launcher, LaunchRequest
from horarium.launchers.payload import (
    MAX_RESULT_BYTES,
    CancelRequested,
    Cleared,
    NotJson,
    WorkEnded,
    WorkTimedOut,
    clean_text,
    preflight,
    read,
    run_within,
)
from horarium.launchers.requests import STRUCTURED, BadAction, Outbox, Outgoing, binary_headers, event_body, header_text
from horarium.launchers.ssrf import AddressGuard
from horarium.platform.clock import Clock

# ── responses ─────────────────────────────────────────────────────────────────────────────────────────


MAX_REFERENCE = 1_024
MAX_RETRY_AFTER_SECONDS = 86_400.0
_SNIPPET_CHARACTERS = 500
_SNIPPET_SECONDS = 5.0
_NOT_BEGUN = frozenset({408, 425})
# A gateway that lost its upstream, or a server that goes down: the request may have been carried out behind it.
_NOBODY_KNOWS = frozenset({502, 503, 504})


async def outcome_of(answer: HttpResponse, now: Instant, *, hidden: str | None = None) -> Outcome:
    """Reads the body as far as it is wanted; a connection that breaks is the caller's to catch.

    `hidden` is what no error may show, although the target sends it back: errors are kept and read by many.
    """
    status = answer.status
    if 200 <= status < 300:
        result = await _body(answer)
        return Accepted(_reference(result, answer.header(b"location"))) if status == 202 else Finished(result)
    if 300 <= status < 400:
        return Refused(f"HTTP {status}: redirects are not followed; set the final URL")
    said = shown(status, await opening(answer), hidden)
    return not_done(status, said, answer.header(b"retry-after"), now)


def not_done(status: int, said: str, wish: str | None, now: Instant) -> Outcome:
    """Outcome of a status of 400 or more; `wish` is the header `Retry-After`."""
    if status == 429:
        return Busy(retry_after(wish, now), sent=True, error_class=RetryCause.RATE_LIMIT)
    if status == 503 and wish is not None:
        return Busy(retry_after(wish, now), sent=True)
    if status in _NOT_BEGUN:
        return Unreachable(said, sent=True)
    if status in _NOBODY_KNOWS:
        return Unknown(said)
    return Refused(said) if status < 500 else RunFailed(said, RetryCause.PROVIDER_ERROR)


async def _body(answer: HttpResponse) -> Json:
    """The raw bytes, never unpacked: `identity` was asked for, and a packed megabyte can hold a gigabyte."""
    raw, cut = await answer.read(MAX_RESULT_BYTES)
    packed = (answer.header(b"content-encoding") or "identity").strip().lower()
    if packed not in ("", "identity"):
        return {"undecoded": clean_text(packed, 100), "size_bytes": len(raw)}
    kind = (answer.header(b"content-type") or "").partition(";")[0].strip().lower()
    return read(raw, cut=cut, expect_json=False if kind.startswith("text/") else None)


async def opening(answer: HttpResponse) -> bytes:
    """Only for people: the status has said already what became of the run, so a body that does not come is left out."""
    try:
        async with asyncio.timeout(_SNIPPET_SECONDS):
            raw, _ = await answer.read(4 * _SNIPPET_CHARACTERS)
    except (ConnectionLost, TimeoutError):
        return b""
    return raw


def shown(status: int, raw: bytes, hidden: str | None) -> str:
    """A status and how its body begins, in one line."""
    text = " ".join(raw.decode("utf-8", "replace").split())
    snippet = clean_text(text.replace(hidden, "…") if hidden else text, _SNIPPET_CHARACTERS)
    return f"HTTP {status}: {snippet}".removesuffix(": ")


def _reference(result: Json, location: str | None) -> str | None:
    if isinstance(result, dict):
        for name in ("reference", "id"):
            value = result.get(name)
            if isinstance(value, str | int) and not isinstance(value, bool) and value != "":
                return clean_text(str(value), MAX_REFERENCE)
    return clean_text(location, MAX_REFERENCE) if location else None


def retry_after(value: str | None, now: Instant) -> float | None:
    """RFC 9110 section 10.2.3: seconds, or a date. What is neither is as good as nothing said."""
    if value is None:
        return None
    text = value.strip()
    if text.isascii() and text.isdigit():
        return min(float(text[:12]), MAX_RETRY_AFTER_SECONDS)
    try:
        moment = parsedate_to_datetime(text[:64])
        # A date without a zone is GMT by the same RFC; Python leaves `-0000` naive.
        seconds = (from_datetime(moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - now) / SECOND
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return min(max(seconds, 0.0), MAX_RETRY_AFTER_SECONDS)


_TIDY_SECONDS = 1.0
# What an action may say otherwise.
_DEFAULTS = {"accept": "*/*", "user-agent": "horarium"}


class HttpLauncher(Launcher):
    declares = reader.HTTP
    kind = declares.name
    honours_key = False
    concurrency = None
    can_poll = False

    def __init__(
        self,
        clock: Clock,
        *,
        guard: AddressGuard | None = None,
        secrets: Mapping[str, str | Sequence[str]] | None = None,
        audiences: Mapping[str, Audience] | None = None,
        source: str = "urn:horarium",
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """`secrets` are Standard Webhooks secrets by name; several under one name sign side by side (rotation).

        `audiences` says for whom each is; one that is not named there is for the usual namespace.
        """
        self._clock = clock
        self._source = source
        self._signers = {name: _signers(name, value) for name, value in (secrets or {}).items()}
        self._audiences = dict(audiences or {})
        self._guard = guard or AddressGuard()
        # The certificates that httpx brings: a small container may have none of its own.
        self._dialler = Dialler(self._guard, tls or httpx.create_ssl_context(trust_env=False))
        self._outbox = Outbox()

    async def close(self) -> None:
        self._guard.close()

    async def launch(self, request: LaunchRequest) -> Outcome:
        cleared = preflight(request, self._clock)
        if not isinstance(cleared, Cleared):
            return cleared
        try:
            outgoing = self._outbox.outgoing(request.action, remember=not request.secrets)
            exchange = self._exchange(outgoing, request, cleared.inputs)
        except (BadAction, InvalidRequest) as wrong:
            return Refused(_said(wrong))
        end = await run_within(
            self._send(outgoing, exchange, request),
            seconds=cleared.seconds_left,
            cancelled=request.cancelled,
            grace_seconds=_TIDY_SECONDS,
        )
        match end:
            case WorkEnded(outcome):
                return outcome
            case WorkTimedOut():
                late = "no response before the deadline"
                return RunTimedOut(late) if exchange.sent else Unreachable(late)
            case CancelRequested():
                heard = "the target may have processed the request" if exchange.sent else "nothing was sent"
                return RunCancelled(f"cancelled during the request; {heard}")

    async def _send(self, outgoing: Outgoing, exchange: Exchange, request: LaunchRequest) -> Outcome:
        try:
            wire = await self._dialler.dial(outgoing.place, request.namespace)
            try:
                answer = await exchange.send(wire)
                return await outcome_of(answer, self._clock.now(), hidden=request.report_token)
            finally:
                wire.close()
        except TargetForbidden as wrong:
            return Refused(_said(wrong))
        except ConnectionLost as wrong:
            return Unknown(_said(wrong)) if exchange.sent else Unreachable(_said(wrong))

    def _exchange(self, outgoing: Outgoing, request: LaunchRequest, inputs: bytes) -> Exchange:
        try:
            body = event_body(request, self._source, inputs) if outgoing.has_body else b""
        except NotJson as wrong:
            raise BadAction(f"the event {wrong}") from None
        headers = self._headers(outgoing, request, body)
        try:
            named = [(name.encode("ascii"), value.encode("ascii")) for name, value in headers.items()]
        except UnicodeError as wrong:
            raise BadAction(f"the request cannot be encoded: {wrong}") from None
        return Exchange(outgoing.method, outgoing.target, [(b"host", outgoing.place.authority), *named], body)

    def _headers(self, outgoing: Outgoing, request: LaunchRequest, body: bytes) -> dict[str, str]:
        return {
            **_DEFAULTS,
            # The one header of the event that an action may change: some receivers know `application/json` only.
            **({"content-type": STRUCTURED} if body else binary_headers(request, self._source)),
            **outgoing.headers,
            **({"content-length": str(len(body))} if body else {}),
            "connection": "close",
            "accept-encoding": "identity",
            "idempotency-key": header_text(request.key),
            **({"traceparent": request.traceparent} if request.traceparent is not None else {}),
            **self._signature(request, outgoing.secret, body),
        }

    def _signature(self, request: LaunchRequest, secret: object, body: bytes) -> dict[str, str]:
        """Standard Webhooks: HMAC over id, time and body. An unknown secret is no reason to send unsigned."""
        if secret is None:
            return {}
        signers = self._signers.get(secret) if isinstance(secret, str) else None
        if signers is None or request.namespace not in self._audiences.get(str(secret), USUAL):
            raise BadAction(f"the secret {clean_text(repr(secret), 100)} is not configured")
        now = self._clock.now()
        name, text = header_text(request.key), body.decode()
        return {
            "webhook-id": name,
            "webhook-timestamp": str(now // SECOND),
            "webhook-signature": " ".join(each.sign(name, to_datetime(now), text) for each in signers),
        }


def _signers(name: str, value: str | Sequence[str]) -> tuple[Webhook, ...]:
    try:
        return tuple(Webhook(secret) for secret in ([value] if isinstance(value, str) else value))
    except Exception:  # the library raises classes of its own and of base64; none may show the secret
        raise ValueError(f"the secret {name!r} must be a base64 string, with or without the prefix whsec_") from None


def _said(wrong: BaseException) -> str:
    return clean_text(str(wrong) or type(wrong).__name__, 500)
