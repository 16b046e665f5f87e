"""Retries: accept the answer of an attempt, wait and repeat, or give up. Sends nothing itself.

Only safe requests are repeated: reads, and writes with an idempotency key. Retryable results: no connection, no answer
in time, 429, 502, 503, 504, and 409 while an earlier attempt with the same key is in progress.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeAlias, TypeVar
from uuid import uuid4

import httpx

from horarium.client.call import JSON, Call
from horarium.client.errors import PASSING, ClientError, UnexpectedAnswer, error_of, unreachable
from horarium.core.policy.retry import backoff, unit_hash

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
class Wait:
    seconds: float


Next: TypeAlias = Done[T] | Wait


@dataclass(slots=True)
class Exchange(Generic[T]):
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

    def failed(self, error: httpx.RequestError) -> Wait:
        told = unreachable(error, self.where)
        if not isinstance(error, _PASSING):
            raise told
        return self._again(told)

    def _again(self, error: ClientError) -> Wait:
        self.failures += 1
        safe = self.call.reads or self.call.idempotent
        if not safe or self.failures >= self.retries.attempts:
            raise error
        if not isinstance(error, PASSING):
            raise error
        least = error.retry_after or 0.0
        if least > self.retries.longest_wait_seconds:
            raise error
        return Wait(max(least, self.retries.wait_seconds(self.failures, self.key)))


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
