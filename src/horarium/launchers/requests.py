"""Requests of http actions: address, method and headers, checked and parsed once for many runs; and CloudEvents.

A due run is a CloudEvents 1.0 event, with the same bytes at every redelivery. `id` is the delivery key, so a
receiver that drops events with a known `source` and `id`, as the specification allows, runs each delivery once.
`time` is the nominal time, not the time of sending.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import quote

import httpx
import orjson

from horarium.core.document.checks import MAX_HEADER_VALUE, METHODS
from horarium.core.document.definition import Action
from horarium.core.document.json_values import MAX_URL, Json
from horarium.core.document.secret_values import DEFAULT_PORTS, pin
from horarium.instant import to_rfc3339
from horarium.launchers.exchange import HttpOrigin
from horarium.launchers.launcher import LaunchRequest
from horarium.launchers.payload import check, clean_text, dump

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
    place: HttpOrigin
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


def place_of(value: object) -> tuple[HttpOrigin, bytes]:
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
def _parsed(text: str) -> tuple[HttpOrigin, bytes]:
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
    place = HttpOrigin(url.scheme == "https", host, url.port or DEFAULT_PORTS[url.scheme], url.netloc)
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


# ── CloudEvents ───────────────────────────────────────────────────────────────────────────────────────


EVENT_TYPE = "dev.horarium.run.due.v1"
STRUCTURED = "application/cloudevents+json"
_VISIBLE = "".join(chr(code) for code in range(0x21, 0x7F) if chr(code) not in '"%')


def attributes(request: LaunchRequest, source: str) -> dict[str, str]:
    """The context attributes (section 3 of the specification); `traceparent` is its tracing extension."""
    subject = request.schedule_id if request.schedule_id is not None else f"runs/{request.run_id}"
    found = {
        "specversion": "1.0",
        "id": request.key,
        "source": source,
        "type": EVENT_TYPE,
        "subject": f"{request.namespace}/{subject}",
        "time": to_rfc3339(request.nominal),
    }
    return found if request.traceparent is None else {**found, "traceparent": request.traceparent}


def event_body(request: LaunchRequest, source: str, inputs: bytes) -> bytes:
    """The event as one JSON object: structured content mode, for requests with a body. Raises NotJson.

    `inputs` is the JSON text of the run's inputs, which was checked and written before the launch began.
    """
    for part in (request.labels, request.memo, request.search_attributes):
        if part:
            check(part)
    event = {
        **attributes(request, source),
        "datacontenttype": "application/json",
        "data": {**data(request), "inputs": orjson.Fragment(inputs)},
    }
    return dump(event)


def binary_headers(request: LaunchRequest, source: str) -> dict[str, str]:
    """The event as headers: binary content mode, for methods without a body. The run's identity travels along."""
    own = {
        "runid": request.run_id,
        "rootrunid": request.root_run_id,
        "nodeid": request.node_id,
        "attempt": str(request.attempt),
        "reporturl": request.report_url,
        "reporttoken": request.report_token,
    }
    everything = {**attributes(request, source), **own}
    return {f"ce-{name}": header_text(value) for name, value in everything.items() if value is not None}


def header_text(value: str) -> str:
    """Percent-encoding of the HTTP binding (section 3.1.3.2): whatever is not visible ASCII, and `"` and `%`."""
    return quote(value, safe=_VISIBLE)


def data(request: LaunchRequest) -> dict[str, Json]:
    """Description of a run without its inputs."""
    return {
        "run_id": request.run_id,
        "schedule_id": request.schedule_id,
        "namespace": request.namespace,
        "workflow_instance_id": request.instance_id,
        "key": request.key,
        "nominal": to_rfc3339(request.nominal),
        "due": to_rfc3339(request.due),
        "deadline": to_rfc3339(request.deadline),
        "origin": request.origin,
        "attempt": request.attempt,
        "report_url": request.report_url,
        "report_token": request.report_token,
        "trigger_number": request.trigger_number,
        "user_id": request.user_id,
        "labels": dict(request.labels),
        "memo": dict(request.memo),
        "search_attributes": dict(request.search_attributes),
        "workflow": None if request.workflow is None else dict(request.workflow),
        "node_id": request.node_id,
        "parent_run_id": request.parent_run_id,
        "root_run_id": request.root_run_id,
        "assignee": None if request.assignee is None else dict(request.assignee),
        **request.terms.document(),
    }
