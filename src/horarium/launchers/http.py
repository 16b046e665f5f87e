"""Runs as HTTP calls: one signed CloudEvent to the URL of the action, and its answer as the outcome.

`Idempotency-Key` and `webhook-id` carry the delivery key. Whether a second delivery is harmless is the
receiver's doing, so this launcher promises nothing about it: delivery is at least once.

A request counts as sent from its first header byte. Whatever goes wrong before is `Unreachable`. After it a
lost connection is `Unknown` and the deadline is `RunTimedOut`: the target may have acted.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import httpx
from standardwebhooks import Webhook

from horarium.clock import Clock
from horarium.instant import SECOND, to_datetime
from horarium.launchers.answer import outcome_of
from horarium.launchers.bounds import CancelAsked, DeadlineReached, Ended, run_within
from horarium.launchers.cloudevent import STRUCTURED, binary_headers, header_text, structured
from horarium.launchers.launcher import Launcher, LaunchRequest
from horarium.launchers.payload import NotJson, clean_text, encode
from horarium.launchers.preflight import Cleared, preflight
from horarium.launchers.ssrf import Guard
from horarium.launchers.transport import TargetForbidden, guarded_client
from horarium.life.outcome import Outcome, Refused, RunCancelled, RunTimedOut, Unknown, Unreachable
from horarium.schedule.read_action import MAX_HEADER_VALUE, MAX_URL, METHODS

WITH_BODY = frozenset({"POST", "PUT", "PATCH"})

_OURS = frozenset(
    {
        "accept-encoding",
        "connection",
        "content-length",
        "host",
        "idempotency-key",
        "te",
        "traceparent",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "webhook-id",
        "webhook-signature",
        "webhook-timestamp",
    }
)
# RFC 9110 sections 5.1 and 5.5; control characters in a value would start a header of their own.
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}", re.ASCII)
_HEADER_VALUE = re.compile(r"[\x20-\x7e\t]*", re.ASCII)
_TIDY_SECONDS = 1.0


class _BadAction(ValueError):
    """The action cannot be turned into a request; the message says which field is wrong."""


@dataclass(slots=True)
class _Progress:
    """Whether the first byte has left; httpcore tells it through its trace extension."""

    sent: bool = False

    async def trace(self, event: str, _details: Mapping[str, Any]) -> None:
        if event.endswith("send_request_headers.started"):
            self.sent = True


class HttpLauncher(Launcher):
    kind = "http"
    honours_key = False
    concurrency = None
    can_poll = False

    def __init__(
        self,
        clock: Clock,
        *,
        guard: Guard | None = None,
        secrets: Mapping[str, str | Sequence[str]] | None = None,
        source: str = "urn:horarium",
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """`secrets` are Standard Webhooks secrets by name; several under one name sign side by side (rotation)."""
        self._clock = clock
        self._source = source
        self._signers = {name: _signers(name, value) for name, value in (secrets or {}).items()}
        self._guard = guard or Guard()
        self._client = guarded_client(self._guard, tls=tls)

    async def close(self) -> None:
        await self._client.aclose()
        self._guard.close()

    async def launch(self, request: LaunchRequest) -> Outcome:
        cleared = preflight(request, self._clock)
        if not isinstance(cleared, Cleared):
            return cleared
        progress = _Progress()
        try:
            outgoing = self._build(request, progress)
        except _BadAction as wrong:
            return Refused(str(wrong))
        end = await run_within(
            self._exchange(outgoing, progress, request.report_token),
            seconds=cleared.seconds_left,
            cancelled=request.cancelled,
            grace_seconds=_TIDY_SECONDS,
        )
        match end:
            case Ended(outcome):
                return outcome
            case DeadlineReached():
                late = "no answer before the deadline"
                return RunTimedOut(late) if progress.sent else Unreachable(late)
            case CancelAsked():
                heard = "the target may have acted on it" if progress.sent else "nothing was sent"
                return RunCancelled(f"cancelled while the request was under way; {heard}")

    async def _exchange(self, outgoing: httpx.Request, progress: _Progress, token: str | None) -> Outcome:
        try:
            response = await self._client.send(outgoing, stream=True)
            try:
                return await outcome_of(response, self._clock.now(), hidden=token)
            finally:
                await response.aclose()
        except (TargetForbidden, httpx.UnsupportedProtocol, httpx.LocalProtocolError) as wrong:
            return Refused(_said(wrong))
        except (httpx.HTTPError, OSError) as wrong:
            return _lost(_said(wrong), progress)

    def _build(self, request: LaunchRequest, progress: _Progress) -> httpx.Request:
        target = request.action.target
        method = _method(target.get("method"))
        url = _url(target.get("url"))
        body = self._body(request) if method in WITH_BODY else b""
        try:
            return self._client.build_request(
                method,
                url,
                headers=self._headers(request, body),
                content=body,
                extensions={"trace": progress.trace, "group": request.namespace},
            )
        except (UnicodeError, httpx.InvalidURL) as wrong:
            raise _BadAction(f"the request cannot be written: {_said(wrong)}") from None

    def _headers(self, request: LaunchRequest, body: bytes) -> dict[str, str]:
        target = request.action.target
        return {
            # The one header of ours that an action may change: some receivers know `application/json` only.
            **({"content-type": STRUCTURED} if body else binary_headers(request, self._source)),
            **_user_headers(target.get("headers")),
            "accept-encoding": "identity",
            "idempotency-key": header_text(request.key),
            **({"traceparent": request.traceparent} if request.traceparent is not None else {}),
            **self._signature(request, target.get("secret"), body),
        }

    def _body(self, request: LaunchRequest) -> bytes:
        try:
            return encode(structured(request, self._source))
        except NotJson as wrong:
            raise _BadAction(f"the event {wrong}") from None

    def _signature(self, request: LaunchRequest, secret: object, body: bytes) -> dict[str, str]:
        """Standard Webhooks: HMAC over id, time and body. An unknown secret is no reason to send unsigned."""
        if secret is None:
            return {}
        signers = self._signers.get(secret) if isinstance(secret, str) else None
        if signers is None:
            raise _BadAction(f"no secret is configured under the name {clean_text(repr(secret), 100)}")
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
        raise ValueError(f"the secret {name!r} is not base64 text, with or without whsec_ in front") from None


def _method(value: object) -> str:
    method = "POST" if value is None else value
    if not isinstance(method, str) or method.upper() not in METHODS:
        shown = clean_text(repr(method), 100)
        raise _BadAction(f"method must be one of {', '.join(METHODS)}, not {shown}")
    return method.upper()


def _url(value: object) -> httpx.URL:
    if not isinstance(value, str) or not 0 < len(value) <= MAX_URL:
        raise _BadAction(f"url must be a text of 1 to {MAX_URL} characters")
    try:
        url = httpx.URL(value)
    except (httpx.InvalidURL, UnicodeError, ValueError) as wrong:
        raise _BadAction(f"url: {_said(wrong)}") from None
    if url.scheme not in ("http", "https"):
        raise _BadAction(f"url: only http and https are launched, not {clean_text(url.scheme, 50)!r}")
    if not url.raw_host:
        raise _BadAction("url: it names no host")
    if url.port is not None and not 0 < url.port < 65_536:
        raise _BadAction(f"url: {url.port} is no port")
    if url.userinfo:
        raise _BadAction("url: credentials do not belong there; name a secret or give a header")
    return url


def _user_headers(value: object) -> dict[str, str]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise _BadAction("headers must be an object of texts")
    found: dict[str, str] = {}
    for name, text in value.items():
        if not isinstance(name, str) or not _HEADER_NAME.fullmatch(name):
            raise _BadAction(f"headers: {clean_text(repr(name), 100)} is no header name")
        if name.lower() in _OURS or name.lower().startswith("ce-"):
            raise _BadAction(f"headers: {name} is written by the launcher itself")
        if not isinstance(text, str) or len(text) > MAX_HEADER_VALUE or not _HEADER_VALUE.fullmatch(text):
            raise _BadAction(f"headers: {name} must be printable ASCII of at most {MAX_HEADER_VALUE} characters")
        found[name.lower()] = text
    return found


def _lost(error: str, progress: _Progress) -> Unknown | Unreachable:
    return Unknown(error) if progress.sent else Unreachable(error)


def _said(wrong: BaseException) -> str:
    return clean_text(str(wrong) or type(wrong).__name__, 500)
