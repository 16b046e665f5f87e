"""Runs as HTTP calls: one signed CloudEvent to the URL of the action, and its answer as the outcome.

`Idempotency-Key` and `webhook-id` carry the delivery key. Whether a second delivery is harmless is the
receiver's doing, so this launcher promises nothing about it: delivery is at least once.

A request counts as sent from its first header byte. Whatever goes wrong before is `Unreachable`. After it a
lost connection is `Unknown` and the deadline is `RunTimedOut`: the target may have acted.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping, Sequence

import httpx
from standardwebhooks import Webhook

from horarium.audience import USUAL, Audience
from horarium.core.document import kinds
from horarium.core.lifecycle.outcome import Outcome, Refused, RunCancelled, RunTimedOut, Unknown, Unreachable
from horarium.instant import SECOND, to_datetime
from horarium.launchers.answer import outcome_of
from horarium.launchers.bounds import CancelAsked, DeadlineReached, Ended, run_within
from horarium.launchers.cloudevent import STRUCTURED, binary_headers, event_body, header_text
from horarium.launchers.exchange import BadRequest, Dialler, Exchange, Lost, TargetForbidden
from horarium.launchers.launcher import Launcher, LaunchRequest
from horarium.launchers.outgoing import BadAction, Outbox, Outgoing
from horarium.launchers.payload import NotJson, clean_text
from horarium.launchers.preflight import Cleared, preflight
from horarium.launchers.ssrf import Guard
from horarium.platform.clock import Clock

_TIDY_SECONDS = 1.0
# What an action may say otherwise.
_DEFAULTS = {"accept": "*/*", "user-agent": "horarium"}


class HttpLauncher(Launcher):
    declares = kinds.HTTP
    kind = declares.name
    honours_key = False
    concurrency = None
    can_poll = False

    def __init__(
        self,
        clock: Clock,
        *,
        guard: Guard | None = None,
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
        self._guard = guard or Guard()
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
        except (BadAction, BadRequest) as wrong:
            return Refused(_said(wrong))
        end = await run_within(
            self._send(outgoing, exchange, request),
            seconds=cleared.seconds_left,
            cancelled=request.cancelled,
            grace_seconds=_TIDY_SECONDS,
        )
        match end:
            case Ended(outcome):
                return outcome
            case DeadlineReached():
                late = "no response before the deadline"
                return RunTimedOut(late) if exchange.sent else Unreachable(late)
            case CancelAsked():
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
        except Lost as wrong:
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
