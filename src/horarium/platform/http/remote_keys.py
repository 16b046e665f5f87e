"""Fetch and remember the JWK set at `jwks_url`: seldom, one fetch at a time, within bounds. Choose its keys.

PyJWT parses the keys; docs/decisions/0036 says why its client does not fetch them.
"""

from __future__ import annotations

import asyncio
import ipaddress
import json
import ssl
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx
import jwt
from structlog.typing import FilteringBoundLogger

from horarium.errors import InvalidDefinition
from horarium.launchers.ssrf import Range, range_of
from horarium.platform.clock import Clock
from horarium.platform.settings import Settings

MAX_KEYS = 100
ALGORITHMS: Mapping[str, tuple[str, ...]] = {
    "oct": ("HS256", "HS384", "HS512"),
    "RSA": ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    "EC": ("ES256", "ES384", "ES512"),
    "OKP": ("EdDSA",),
}
"""The accepted algorithms of each key type (`kty`)."""
_SHARED = "oct"
# PyJWT raises TypeError for a key whose `alg` is a list.
_UNUSABLE = (ValueError, TypeError, KeyError, AttributeError, jwt.PyJWTError)


def own_keys(document: object) -> tuple[jwt.PyJWK, ...]:
    """Read the operator's key set. Raises ValueError for an unusable key, which is thus found at the start."""
    keys = _listed(document)
    for key in keys:
        try:
            jwt.PyJWK(key)
        except _UNUSABLE as wrong:
            raise ValueError(f"a key cannot be used: {type(wrong).__name__}") from None
    return _for_each_algorithm(keys)


def published_keys(document: object) -> tuple[jwt.PyJWK, ...]:
    """Read a published key set without unsupported keys (RFC 7517 section 5) and without shared secrets.

    A shared secret is none once it is published. Raises ValueError where nothing is left.
    """
    usable = [key for key in _listed(document) if key.get("kty") != _SHARED and _is_usable(key) and _signs(key)]
    if not usable:
        raise ValueError("it contains no usable public key")
    return _for_each_algorithm(usable)


def fitting(keys: Iterable[jwt.PyJWK], algorithm: str, name: str | None) -> Iterator[jwt.PyJWK]:
    """Choose the keys that may have signed a token: only those of its `kid` if it has one, otherwise all."""
    return (key for key in keys if key.algorithm_name == algorithm and (name is None or key.key_id == name))


def _listed(document: object) -> list[dict[str, Any]]:
    keys = document.get("keys") if isinstance(document, dict) else None
    if not isinstance(keys, list) or not all(isinstance(key, dict) for key in keys):
        raise ValueError("it is not a JSON object with a list of keys")
    if len(keys) > MAX_KEYS:
        raise ValueError(f"it contains more than {MAX_KEYS} keys")
    return keys


def _for_each_algorithm(keys: Iterable[dict[str, Any]]) -> tuple[jwt.PyJWK, ...]:
    """Parse each key once for each algorithm that it may verify, since a PyJWK is bound to one."""
    found = (_for_algorithm(key, each) for key in keys if _signs(key) for each in ALGORITHMS.get(key["kty"], ()))
    return tuple(key for key in found if key is not None)


def _for_algorithm(key: dict[str, Any], algorithm: str) -> jwt.PyJWK | None:
    """Return None if the key is too short for the algorithm, or restricted to another one."""
    if key.get("alg", algorithm) != algorithm:
        return None
    try:
        found = jwt.PyJWK(key, algorithm)
        return found if found.Algorithm.check_key_length(found.key) is None else None
    except _UNUSABLE:
        return None


def _is_usable(key: dict[str, Any]) -> bool:
    try:
        jwt.PyJWK(key)
    except _UNUSABLE:
        return False
    return True


def _signs(key: Mapping[str, Any]) -> bool:
    uses = key.get("key_ops", ["verify"])
    return key.get("use", "sig") == "sig" and isinstance(uses, list) and ("verify" in uses or "sign" in uses)


_FRESH_SECONDS = 600.0
_STALE_SECONDS = 86_400.0
_PAUSE_SECONDS = 30.0
_ASK_SECONDS = 5.0
_MAX_BYTES = 262_144
_MAX_URL = 2_048
# Requests that may wait for an answer at once: the others must not run out of threads.
_MOST_WAITING = 8

Fetch = Callable[[], tuple[jwt.PyJWK, ...]]


@dataclass(frozen=True, slots=True)
class Known:
    """Times are seconds of a clock that never goes back; None = not yet."""

    keys: tuple[jwt.PyJWK, ...] = ()
    read_at: float | None = None
    asked_at: float | None = None

    def good(self, now: float) -> tuple[jwt.PyJWK, ...]:
        return self.keys if self.read_at is not None and now - self.read_at < _STALE_SECONDS else ()

    def knows(self, name: str | None, now: float) -> bool:
        good = self.good(now)
        return bool(good) if name is None else any(key.key_id == name for key in good)

    def must_ask(self, name: str | None, now: float) -> bool:
        if self.asked_at is not None and now - self.asked_at < _PAUSE_SECONDS:
            return False
        return self.read_at is None or now - self.read_at >= _FRESH_SECONDS or not self.knows(name, now)


class RemoteKeys:
    """Asks in a thread of its own; who has a key that is known does not wait for it."""

    def __init__(self, fetch: Fetch, clock: Clock, log: FilteringBoundLogger) -> None:
        self._fetch = fetch
        self._clock = clock
        self._log = log
        self._lock = threading.Lock()
        self._known = Known()
        self._asking: threading.Thread | None = None
        self._waiting = threading.BoundedSemaphore(_MOST_WAITING)

    def current(self, name: str | None) -> tuple[jwt.PyJWK, ...]:
        """Those that are good now; `name` is what the token calls its key. Takes six seconds at most."""
        with self._lock:
            now = self._clock.monotonic()
            if self._asking is None and self._known.must_ask(name, now):
                self._known = replace(self._known, asked_at=now)
                self._asking = threading.Thread(target=self._ask, name="jwks", daemon=True)
                self._asking.start()
            asking, known = self._asking, self._known
        if asking is not None and not known.knows(name, now) and self._waiting.acquire(blocking=False):
            try:
                asking.join(_ASK_SECONDS + 1)
            finally:
                self._waiting.release()
        with self._lock:
            return self._known.good(self._clock.monotonic())

    def _ask(self) -> None:
        try:
            keys = self._fetch()
        except (ValueError, OSError) as wrong:
            self._log.error("jwt_keys_fetch_failed", error=str(wrong)[:200] or type(wrong).__name__)
        else:
            with self._lock:
                self._known = replace(self._known, keys=keys, read_at=self._clock.monotonic())
        finally:
            with self._lock:
                self._asking = None


def remote_keys(settings: Settings, clock: Clock, log: FilteringBoundLogger) -> RemoteKeys | None:
    """None where no URL is set; raises InvalidDefinition for one from which no keys may come. Asks nobody yet."""
    url = settings.jwks_url
    if url is None:
        return None
    check_url(url)
    trust = None if url.startswith("http:") else _trust(settings.jwks_ca_file)
    return RemoteKeys(lambda: fetch_keys(url, trust), clock, log)


def check_url(url: str) -> None:
    """Whoever can change the answer can let anybody in: it comes by TLS, or does not leave this machine."""
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL:
        raise InvalidDefinition({"jwks_url": ["is not a valid URL"]}) from None
    if len(url) > _MAX_URL or not parsed.host or parsed.userinfo or parsed.fragment:
        raise InvalidDefinition({"jwks_url": [f"must have a host, no password and at most {_MAX_URL} characters"]})
    if parsed.scheme != "https" and not (parsed.scheme == "http" and _is_this_machine(parsed.host)):
        raise InvalidDefinition({"jwks_url": ["must begin with https://, or http:// with a loopback address"]})


def _is_this_machine(host: str) -> bool:
    """Names are none: who answers for them may change."""
    try:
        return range_of(ipaddress.ip_address(host)) is Range.LOOPBACK
    except ValueError:
        return False


def _trust(ca_file: Path | None) -> ssl.SSLContext | None:
    if ca_file is None:
        return None
    try:
        return ssl.create_default_context(cafile=ca_file)
    except OSError as wrong:  # SSLError is one
        raise InvalidDefinition({"jwks_ca_file": [f"cannot be used: {wrong.strerror or wrong}"]}) from None


def fetch_keys(url: str, trust: ssl.SSLContext | None = None) -> tuple[jwt.PyJWK, ...]:
    """Raises ValueError or OSError. Redirects are not followed: they would lead past the check of the URL."""
    try:
        raw = asyncio.run(_within_bounds(url, trust))
        return published_keys(json.loads(raw))
    except TimeoutError:
        raise ValueError(f"no complete response within {_ASK_SECONDS:g} s") from None
    except httpx.HTTPError as wrong:
        raise ValueError(f"no response: {type(wrong).__name__} {wrong}") from None
    except RecursionError:
        raise ValueError("the response is nested too deep") from None


async def _within_bounds(url: str, trust: ssl.SSLContext | None) -> bytes:
    """The whole of it has one time limit: that of the library counts from byte to byte."""
    headers = {"Accept": "application/json", "Accept-Encoding": "identity"}
    async with (
        asyncio.timeout(_ASK_SECONDS),
        httpx.AsyncClient(verify=trust or True, trust_env=False, timeout=_ASK_SECONDS) as http,
        http.stream("GET", url, headers=headers) as response,
    ):
        if response.status_code != 200:
            raise ValueError(f"the response status is {response.status_code}")
        if response.headers.get("content-encoding", "identity") != "identity":
            raise ValueError("the response is compressed, which is not supported")
        read = bytearray()
        async for chunk in response.aiter_raw():
            read += chunk
            if len(read) > _MAX_BYTES:
                raise ValueError(f"the response has more than {_MAX_BYTES} bytes")
        return bytes(read)
