"""What an action of kind http asks to be sent: its address, method and headers, checked and read once for many runs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import httpx

from horarium.core.document.checks import MAX_HEADER_VALUE, METHODS
from horarium.core.document.definition import Action
from horarium.core.document.json_values import MAX_URL
from horarium.core.document.secret_values import DEFAULT_PORTS, pin
from horarium.launchers.exchange import Place
from horarium.launchers.payload import clean_text

WITH_BODY = frozenset({"POST", "PUT", "PATCH"})
_MAX_REMEMBERED = 1_024

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


class BadAction(ValueError):
    """The action cannot be turned into a request; the message says which field is wrong."""


@dataclass(frozen=True, slots=True)
class Outgoing:
    """`headers` are those of the action, by their names in lower case; `secret` names what signs it."""

    method: str
    place: Place
    target: bytes
    headers: Mapping[str, str]
    secret: object

    @property
    def has_body(self) -> bool:
        return self.method in WITH_BODY


class Outbox:
    """Actions never change, so one that was read is known again by its identity, which is kept from being reused."""

    def __init__(self) -> None:
        self._read: dict[int, tuple[Action, Outgoing]] = {}

    def outgoing(self, action: Action, *, remember: bool = True) -> Outgoing:
        """Raises BadAction. What holds secrets is made for one launch, and not remembered."""
        if not remember:
            return read(action)
        known = self._read.get(id(action))
        if known is not None:
            return known[1]
        if len(self._read) >= _MAX_REMEMBERED:
            self._read.clear()
        outgoing = read(action)
        self._read[id(action)] = (action, outgoing)
        return outgoing


def read(action: Action) -> Outgoing:
    target = action.target
    method = _method(target.get("method"))
    place, path = place_of(target.get("url"))
    return Outgoing(method, place, path, _headers(target.get("headers")), target.get("secret"))


def _method(value: object) -> str:
    method = "POST" if value is None else value
    if not isinstance(method, str) or method.upper() not in METHODS:
        shown = clean_text(repr(method), 100)
        raise BadAction(f"method must be one of {', '.join(METHODS)}, not {shown}")
    return method.upper()


def place_of(value: object) -> tuple[Place, bytes]:
    """Where an address leads, and what is asked for there. Raises BadAction."""
    if not isinstance(value, str) or not 0 < len(value) <= MAX_URL:
        raise BadAction(f"url must be a string of 1 to {MAX_URL} characters")
    return _parsed(value)


def destination_of(url: object) -> str:
    """Return the pin of the place that will be dialled; empty for what cannot be called, which the launch will say."""
    try:
        place, _ = place_of(url)
    except BadAction:
        return ""
    return pin("https" if place.secure else "http", place.host, place.port)


@lru_cache(maxsize=_MAX_REMEMBERED)
def _parsed(text: str) -> tuple[Place, bytes]:
    try:
        url = httpx.URL(text)
    except (httpx.InvalidURL, UnicodeError, ValueError) as wrong:
        raise BadAction(f"url: {clean_text(str(wrong), 500)}") from None
    if url.scheme not in DEFAULT_PORTS:
        raise BadAction(f"url: scheme must be http or https, not {clean_text(url.scheme, 50)!r}")
    if url.port is not None and not 0 < url.port < 65_536:
        raise BadAction(f"url: {url.port} is not a valid port")
    if url.userinfo:
        raise BadAction("url: must not contain credentials; use a secret or a header")
    host = _host(url)
    place = Place(url.scheme == "https", host, url.port or DEFAULT_PORTS[url.scheme], url.netloc)
    return place, url.raw_path


def _host(url: httpx.URL) -> str:
    """The name as it is written: decoded and encoded again, `xn--fa-hia` (faß) would become `fass`, somebody else."""
    host = url.raw_host.decode("ascii")
    if not host.rstrip(".") or host.startswith("."):
        raise BadAction("url: contains no host")
    if ":" not in host:
        try:
            host.rstrip(".").encode("idna")  # as the look-up and TLS will do; a label may be too long, or empty
        except UnicodeError:
            raise BadAction(f"url: {clean_text(repr(host), 100)} is not a valid host name") from None
    return host


def _headers(value: object) -> dict[str, str]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise BadAction("headers must be an object with string values")
    found: dict[str, str] = {}
    for name, text in value.items():
        if not isinstance(name, str) or not _HEADER_NAME.fullmatch(name):
            raise BadAction(f"headers: {clean_text(repr(name), 100)} is not a valid header name")
        if name.lower() in _OURS or name.lower().startswith("ce-"):
            raise BadAction(f"headers: {name} is set by the launcher")
        if not isinstance(text, str) or len(text) > MAX_HEADER_VALUE or not _HEADER_VALUE.fullmatch(text):
            raise BadAction(f"headers: {name} must be printable ASCII of at most {MAX_HEADER_VALUE} characters")
        found[name.lower()] = text
    return found
