"""One call to an agent and its result; a card is fetched in the same way.

Each call has its own connection, to an address that the guard has allowed (`exchange.py`), and ends within its
timeout whatever the agent does. A request counts as sent from its first byte: before it, the agent cannot have
begun; after it, only a reply tells the result.
"""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

import httpx
import orjson

from horarium.core.document.json_values import Json
from horarium.launchers.a2a.card import MAX_CARD_BYTES
from horarium.launchers.a2a.dialect import (
    OTHER_DIALECT_CODES,
    VERSION_HEADER,
    Dialect,
    Malformed,
    Reply,
    RpcFailed,
    read_reply,
)
from horarium.launchers.exchange import ConnectionLost, Dialler, Exchange, HttpOrigin, HttpResponse, InvalidRequest
from horarium.launchers.exchange import TargetForbidden as AddressForbidden
from horarium.launchers.http import opening, shown
from horarium.launchers.payload import LONGEST_WAIT_SECONDS, NotJson, check, clean_text, encode
from horarium.launchers.requests import BadAction, place_of
from horarium.launchers.ssrf import AddressGuard
from horarium.platform.clock import Clock

MAX_REPLY_BYTES: Final = 2 * 1_048_576
"""A result of one MiB, what JSON adds to its spelling, and the history round it."""
_TOKEN = re.compile(r"[\x21-\x7e]+", re.ASCII)
_ETAG = re.compile(r"[\x21-\x7e]{1,256}", re.ASCII)
_ALWAYS: Final[Mapping[str, str]] = {
    "accept": "application/json",
    "accept-encoding": "identity",
    "connection": "close",
    "user-agent": "horarium",
}


@dataclass(frozen=True, slots=True)
class RequestNotSent:
    """Nobody was reached; a later try may reach somebody."""

    error: str


@dataclass(frozen=True, slots=True)
class LostReply:
    """It was sent, and no whole reply came back."""

    error: str


@dataclass(frozen=True, slots=True)
class HttpStatus:
    """An answer that is no 2xx. `said` is for people, `retry_after` is that header as it came."""

    status: int
    said: str
    retry_after: str | None = None


@dataclass(frozen=True, slots=True)
class TooLarge:
    pass


@dataclass(frozen=True, slots=True)
class AgentAddressForbidden:
    """Nothing was sent and nothing will be: the address is not allowed, or the request cannot be written."""

    error: str


Called: TypeAlias = Reply | RequestNotSent | LostReply | HttpStatus | TooLarge | AgentAddressForbidden


@dataclass(frozen=True, slots=True)
class CardFetched:
    """`size` is in bytes, as it came."""

    document: Mapping[str, Json] = field(repr=False)
    etag: str | None
    size: int = 0


@dataclass(frozen=True, slots=True)
class CardUnchanged:
    pass


@dataclass(frozen=True, slots=True)
class CardFailed:
    """`answered`: somebody is there, who has no card at this address."""

    error: str
    answered: bool = True


FetchedCard: TypeAlias = CardFetched | CardUnchanged | CardFailed
_Unanswered: TypeAlias = RequestNotSent | LostReply | AgentAddressForbidden


@dataclass(frozen=True, slots=True)
class _AgentResponse:
    """`raw` is None where the body is longer than was wanted."""

    status: int
    raw: bytes | None
    kind: str
    packed: bool
    etag: str | None
    retry_after: str | None


class A2AClient:
    def __init__(self, clock: Clock, guard: AddressGuard, tls: ssl.SSLContext | None = None) -> None:
        self._clock = clock
        self._guard = guard
        self._tls = tls
        self._dialler: Dialler | None = None

    async def call(
        self,
        endpoint_url: str,
        *,
        namespace: str,
        dialect: Dialect,
        body: Mapping[str, Json],
        token: str | None,
        headers: Mapping[str, str] | None = None,
        seconds: float,
        most_bytes: int = MAX_REPLY_BYTES,
    ) -> Called:
        """Never raises because of the agent. `token` is given only where the address may see it."""
        if token is not None and not _TOKEN.fullmatch(token):
            return AgentAddressForbidden(
                "the agent's token cannot be sent in a header, because it is not printable ASCII"
            )
        given = {
            **(headers or {}),
            "content-type": "application/json",
            **({VERSION_HEADER.lower(): dialect.value} if dialect is Dialect.V1_0 else {}),
            **({} if token is None else {"authorization": f"Bearer {token}"}),
        }
        try:
            raw = encode(dict(body))
            place, exchange = _exchange("POST", endpoint_url, given, raw)
        except (NotJson, BadAction, InvalidRequest, UnicodeError) as wrong:
            return AgentAddressForbidden(f"the request cannot be encoded: {_message_of(wrong)}")
        heard = await self._ask(place, exchange, namespace, seconds, most_bytes)
        return _called(heard, body.get("id"), token) if isinstance(heard, _AgentResponse) else heard

    async def fetch_card(self, url: str, *, namespace: str, etag: str | None = None, seconds: float) -> FetchedCard:
        """No token goes along: a card is public, and whoever serves it may be somebody else."""
        try:
            place, exchange = _exchange("GET", url, {} if etag is None else {"if-none-match": etag}, b"")
        except (BadAction, InvalidRequest, UnicodeError) as wrong:
            return CardFailed(_message_of(wrong), answered=False)
        heard = await self._ask(place, exchange, namespace, seconds, MAX_CARD_BYTES)
        return (
            _card(heard, asked=etag is not None)
            if isinstance(heard, _AgentResponse)
            else CardFailed(heard.error, False)
        )

    def _dial(self) -> Dialler:
        """Made when it is first needed: to read the certificates takes a moment, and most services call no agent."""
        if self._dialler is None:
            # The certificates that httpx brings: a small container may have none of its own.
            self._dialler = Dialler(self._guard, self._tls or httpx.create_ssl_context(trust_env=False))
        return self._dialler

    async def _ask(
        self, place: HttpOrigin, exchange: Exchange, namespace: str, seconds: float, most_bytes: int
    ) -> _AgentResponse | _Unanswered:
        if seconds <= 0:
            return RequestNotSent("the deadline has passed")
        began = self._clock.monotonic()
        try:
            async with asyncio.timeout(min(seconds, LONGEST_WAIT_SECONDS)):
                wire = await self._dial().dial(place, namespace)
                try:
                    return await _hear(await exchange.send(wire), most_bytes)
                finally:
                    wire.close()
        except AddressForbidden as wrong:
            return AgentAddressForbidden(_message_of(wrong))
        except ConnectionLost as wrong:
            if not exchange.sent:
                return RequestNotSent(_message_of(wrong))
            # A round number of seconds is the mark of a proxy that gave up.
            return LostReply(f"{_message_of(wrong)}, after {self._clock.monotonic() - began:.1f} s")
        except TimeoutError:
            late = f"within {seconds:.3g} s"
            return LostReply(f"no answer {late}") if exchange.sent else RequestNotSent(f"no connection {late}")


def _exchange(method: str, url: str, headers: Mapping[str, str], body: bytes) -> tuple[HttpOrigin, Exchange]:
    place, path = place_of(url)
    written = {**headers, **_ALWAYS, **({"content-length": str(len(body))} if body else {})}
    named = [(name.encode("ascii"), value.encode("ascii")) for name, value in written.items()]
    return place, Exchange(method, path, [(b"host", place.authority), *named], body)


async def _hear(answer: HttpResponse, most_bytes: int) -> _AgentResponse:
    """The body is read only where it can be a reply: a stream of events need not end."""
    kind = (answer.header(b"content-type") or "").partition(";")[0].strip().lower()
    packed = (answer.header(b"content-encoding") or "identity").strip().lower() not in ("", "identity")
    raw: bytes | None = b""
    if not 200 <= answer.status < 300:
        raw = await opening(answer)
    elif kind != "text/event-stream" and not packed:
        read, more = await answer.read(most_bytes)
        raw = None if more else read
    etag, wish = answer.header(b"etag"), answer.header(b"retry-after")
    return _AgentResponse(answer.status, raw, kind, packed, etag, None if wish is None else clean_text(wish, 100))


def _called(heard: _AgentResponse, request_id: object, token: str | None) -> Called:
    if not 200 <= heard.status < 300:
        return _not_done(heard, token)
    if heard.raw is None:
        return TooLarge()
    if heard.kind == "text/event-stream":
        return Malformed("an event stream instead of a single response")
    if heard.packed:
        return Malformed("the response is compressed, although the request asked for `identity`")
    try:
        document = orjson.loads(heard.raw)
    except orjson.JSONDecodeError as wrong:
        return Malformed(clean_text(f"HTTP {heard.status} with a body that is not JSON: {wrong}", 500))
    reply = _without(read_reply(document), token)
    if not isinstance(reply, RpcFailed | Malformed) and document.get("id") != request_id:
        return Malformed("the ID of the response does not match the request")
    return reply


def _not_done(heard: _AgentResponse, token: str | None) -> Called:
    """A method or version that is not spoken is told as such, also by agents that give it a status of its own."""
    raw = heard.raw or b""
    if 300 <= heard.status < 400:
        return HttpStatus(heard.status, f"HTTP {heard.status}: redirects are not followed; set the final URL")
    try:
        reply = _without(read_reply(orjson.loads(raw)), token)
    except orjson.JSONDecodeError:
        reply = None
    if isinstance(reply, RpcFailed) and reply.code in OTHER_DIALECT_CODES:
        return reply
    return HttpStatus(heard.status, shown(heard.status, raw, token), heard.retry_after)


def _without(reply: Reply, token: str | None) -> Reply:
    """An error is kept and read by many; an agent may send back what it was sent."""
    if token is None or not isinstance(reply, RpcFailed):
        return reply
    return replace(reply, message=reply.message.replace(token, "…"))


def _card(heard: _AgentResponse, *, asked: bool) -> FetchedCard:
    if heard.status == 304 and asked:
        return CardUnchanged()
    if heard.status != 200:
        return CardFailed(f"HTTP {heard.status}")
    if heard.raw is None:
        return CardFailed(f"the card is larger than {MAX_CARD_BYTES} bytes")
    if heard.packed:
        return CardFailed("the response is compressed, although the request asked for `identity`")
    try:
        document = orjson.loads(heard.raw)
        check(document)
    except orjson.JSONDecodeError:
        return CardFailed("the card is not JSON")
    except NotJson as wrong:
        return CardFailed(f"it {wrong}")
    if not isinstance(document, dict):
        return CardFailed("the card is not an object")
    etag = heard.etag if heard.etag is not None and _ETAG.fullmatch(heard.etag) else None
    return CardFetched(document, etag, len(heard.raw))


def _message_of(wrong: BaseException) -> str:
    return clean_text(str(wrong) or type(wrong).__name__, 500)
