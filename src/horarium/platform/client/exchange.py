"""Attempts of a call: accept the answer, wait and repeat, or give up; and streams of server-sent events.

Nothing is sent here. Only safe requests are repeated: reads, and writes with an idempotency key. Retryable results:
no connection, no answer in time, 429, 502, 503, 504, and 409 while an earlier attempt with the same key is in
progress.

Streams have the format of the HTML standard, section 9.2. A new connection names the last event received, and the
server continues after it, so no event is lost.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeAlias, TypeVar
from uuid import uuid4

import httpx

from horarium.core.policy.approval import backoff, unit_hash
from horarium.features.history.model import UNREADABLE_KIND
from horarium.platform.client.call import JSON, Call
from horarium.platform.client.errors import (
    PASSING,
    ClientError,
    ServerUnavailable,
    UnexpectedAnswer,
    error_of,
    unreachable,
)

T = TypeVar("T")

IDEMPOTENCY_KEY = "Idempotency-Key"
NAMESPACE = "X-Namespace"
SOURCE = "X-Horarium-Source"
# Not among them: a wrong scheme, a request that breaks the protocol, an answer that cannot be unpacked: they stay so.
_PASSING = (httpx.TimeoutException, httpx.NetworkError, httpx.RemoteProtocolError)


@dataclass(frozen=True, slots=True)
class Retries:
    """Retry settings. `attempts` includes the first one. A longer `Retry-After` than `longest_wait_seconds` ends the
    retries.
    """

    attempts: int = 4
    base_ms: int = 200
    max_ms: int = 5_000
    longest_wait_seconds: float = 30.0

    def __post_init__(self) -> None:
        if self.attempts < 1 or self.base_ms < 0 or self.max_ms < 0 or self.longest_wait_seconds < 0:
            raise ValueError("attempts must be at least 1, and waits must not be negative")

    def wait_seconds(self, failures: int, key: str) -> float:
        return backoff(self.base_ms, self.max_ms, failures, unit_hash(key, failures)) / 1_000


NEVER = Retries(attempts=1)


@dataclass(frozen=True, slots=True)
class Done(Generic[T]):
    value: T


@dataclass(frozen=True, slots=True)
class RetryAfter:
    seconds: float


Next: TypeAlias = Done[T] | RetryAfter


@dataclass(slots=True)
class Attempts(Generic[T]):
    """All attempts of one call. Each attempt has the same idempotency key."""

    call: Call[T]
    retries: Retries
    where: str
    key: str = field(default_factory=lambda: str(uuid4()))
    failures: int = 0

    def __post_init__(self) -> None:
        self.key = self.call.key or self.key

    @property
    def headers(self) -> Mapping[str, str]:
        call = self.call
        headers = {"Accept": call.accept, **call.headers}
        if call.body is not None:
            headers["Content-Type"] = JSON
        if not call.reads and call.idempotent:
            headers[IDEMPOTENCY_KEY] = self.key
        return headers

    @property
    def request(self) -> dict[str, Any]:
        """The arguments of the request, for a client of either kind."""
        call = self.call
        return {
            "method": call.method,
            "url": call.path,
            "params": call.params,
            "content": call.content,
            "headers": self.headers,
        }

    def answered(self, response: httpx.Response) -> Next[T]:
        """The body has been read. Raises what the answer means, unless it is worth asking again."""
        if response.is_success:
            return Done(self.call.parse(_body(self.call, response)))
        if response.status_code in self.call.also and _is_json(response):
            return Done(self.call.parse(_body(self.call, response)))
        return self._again(error_of(response))

    def failed(self, error: httpx.RequestError) -> RetryAfter:
        told = unreachable(error, self.where)
        if not isinstance(error, _PASSING):
            raise told
        return self._again(told)

    def _again(self, error: ClientError) -> RetryAfter:
        self.failures += 1
        safe = self.call.reads or self.call.idempotent
        if not safe or self.failures >= self.retries.attempts:
            raise error
        if not isinstance(error, PASSING):
            raise error
        least = error.retry_after or 0.0
        if least > self.retries.longest_wait_seconds:
            raise error
        return RetryAfter(max(least, self.retries.wait_seconds(self.failures, self.key)))


def _body(call: Call[Any], response: httpx.Response) -> Any:
    if call.accept != JSON:
        return response.text
    if not response.content:
        return None
    try:
        return json.loads(response.content)
    except (ValueError, RecursionError):
        status = response.status_code
        raise UnexpectedAnswer(f"the answer to {call.method} {call.path} is not JSON", status=status) from None


def _is_json(response: httpx.Response) -> bool:
    kind: str = response.headers.get("content-type", "")
    return kind.partition(";")[0].strip() == JSON


# ── server-sent events ────────────────────────────────────────────────────────────────────────────────


SILENCE_SECONDS = 60.0
"""Seconds without data or comments after which a stream counts as broken."""

_RECONNECT_SECONDS = 1.0
_MAX_EVENT = 1_048_576


@dataclass(frozen=True, slots=True)
class ServerEvent:
    """An event. `id` is the newest ID of the stream, from this event or an earlier one."""

    data: str
    event: str = "message"
    id: str = ""


@dataclass(slots=True)
class Parser:
    """Chunks may be cut anywhere, also between the two characters of a line end."""

    last_id: str = ""
    retry_seconds: float = _RECONNECT_SECONDS
    _rest: str = ""
    _data: list[str] = field(default_factory=list)
    _size: int = 0
    _event: str = ""
    _id: str | None = None
    _begun: bool = False

    def feed(self, text: str) -> Iterator[ServerEvent]:
        if not self._begun and text:
            self._begun = True
            text = text.removeprefix("\ufeff")
        # A line feed that opens the next chunk may belong to a carriage return that closes this one: both wait.
        whole = self._rest + text
        held = "\r" if whole.endswith("\r") else ""
        *lines, rest = whole.removesuffix(held).replace("\r\n", "\n").replace("\r", "\n").split("\n")
        self._rest = rest + held
        if len(self._rest) > _MAX_EVENT:
            raise UnexpectedAnswer("a line of the stream is too long")
        for line in lines:
            message = self._line(line)
            if message is not None:
                yield message

    def _line(self, line: str) -> ServerEvent | None:
        if not line:
            return self._dispatch()
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        match name:
            case "data":
                self._data.append(value)
                self._size += len(value)
                if self._size > _MAX_EVENT:
                    raise UnexpectedAnswer("an event of the stream is too long")
            case "event":
                self._event = value
            case "id" if "\0" not in value:
                self._id = value
            case "retry" if value.isascii() and value.isdigit() and len(value) < 8:
                self.retry_seconds = int(value) / 1_000
            case _:
                pass  # a comment, or a field that the standard does not know
        return None

    def _dispatch(self) -> ServerEvent | None:
        """Only now does an id count: half an event must come again."""
        data, event = self._data, self._event or "message"
        self.last_id = self.last_id if self._id is None else self._id
        self._data, self._size, self._event, self._id = [], 0, "", None
        return ServerEvent("\n".join(data), event, self.last_id) if data else None


class Listening(Generic[T]):
    """A stream over several connections. Ends if the server returns 204, or fails too often in a row."""

    def __init__(self, call: Call[T], retries: Retries, where: str) -> None:
        self._call = call
        self._retries = retries
        self._where = where
        self._parser = Parser(last_id=call.headers.get("Last-Event-ID", ""))
        self._attempts = Attempts(call, retries, where)
        self.ended = False

    @property
    def request(self) -> dict[str, Any]:
        """Request of the next connection, which resumes where the last one broke."""
        last = self._parser.last_id
        # Whatever the broken connection left behind unfinished will come again.
        self._parser = Parser(last, self._parser.retry_seconds)
        headers = {"Last-Event-ID": last} if last else {}
        return Attempts(replace(self._call, headers=headers), self._retries, self._where).request

    def hear(self, text: str) -> Iterator[T]:
        if text:  # a comment will do: it is how a server says that it is still there
            self._attempts.failures = 0
        for message in self._parser.feed(text):
            if message.event != UNREADABLE_KIND:
                yield self._call.parse(_entry(message))

    def opened(self, response: httpx.Response) -> bool:
        """Tell whether there are events to read. If not, the body has been read."""
        if response.status_code == 204:
            self.ended = True
        return response.status_code == 200

    def refused(self, response: httpx.Response) -> float:
        """Seconds to wait; raises what the answer means, unless it is worth asking again."""
        if self.ended:
            return 0.0
        if response.is_success:
            raise error_of(response)
        waited = self._attempts.answered(response)
        return waited.seconds if isinstance(waited, RetryAfter) else 0.0

    def broken(self, error: httpx.RequestError) -> float:
        return max(self._attempts.failed(error).seconds, self._parser.retry_seconds)

    def closed(self) -> float:
        """The server has ended the answer, which is how it makes room; one that only ever does so is not well."""
        self._attempts.failures += 1
        if self._attempts.failures > self._retries.attempts:
            raise ServerUnavailable(f"{self._where} closes every stream immediately", reason="unreachable")
        return self._parser.retry_seconds


def _entry(message: ServerEvent) -> dict[str, Any]:
    """The data is the entry; the event says its id, and its kind unless the data does."""
    try:
        data = json.loads(message.data)
    except (ValueError, RecursionError):
        data = {"text": message.data}
    body = data if isinstance(data, dict) else {"data": data}
    return {"kind": message.event, **body, **({"id": message.id} if message.id else {})}
