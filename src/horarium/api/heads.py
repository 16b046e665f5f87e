"""Limits of a request's head: the length of its address, the number and size of its headers, one length of its body.

A server bounds what it waits for; what comes in one piece, or through another server, is bounded here.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from starlette.types import Scope

MAX_TARGET_BYTES = 8_192
MAX_HEADERS = 100
MAX_HEADER_BYTES = 32_768


class TooMuch(NamedTuple):
    status: int
    reason: str
    message: str


def too_much(scope: Scope) -> TooMuch | None:
    """None = it is little enough."""
    target = len(scope.get("raw_path") or scope["path"].encode()) + len(scope.get("query_string", b""))
    if target > MAX_TARGET_BYTES:
        return TooMuch(414, "uri_too_long", f"Path and query have more than {MAX_TARGET_BYTES} bytes.")
    headers = scope["headers"]
    if (ambiguous := ambiguous_length(headers, scope.get("http_version", "1.1"))) is not None:
        return TooMuch(400, "malformed_request", ambiguous)
    if len(headers) > MAX_HEADERS:
        return TooMuch(431, "headers_too_large", f"The request has more than {MAX_HEADERS} headers.")
    if sum(len(name) + len(value) for name, value in headers) > MAX_HEADER_BYTES:
        return TooMuch(431, "headers_too_large", f"The headers have more than {MAX_HEADER_BYTES} bytes in total.")
    return None


def ambiguous_length(headers: Iterable[tuple[bytes, bytes]], version: str) -> str | None:
    """Return why two servers may disagree about where the body ends (RFC 9112, section 6.3), or None.

    A proxy that reads one header and a server that reads the other split one message into two: request smuggling.
    """
    found: dict[bytes, set[bytes]] = {b"content-length": set(), b"transfer-encoding": set()}
    for name, value in headers:
        if name in found:
            found[name].update(each.strip() for each in value.split(b","))
    lengths, codings = found[b"content-length"], found[b"transfer-encoding"]
    if lengths and codings:
        return "The request has both Content-Length and Transfer-Encoding. Send only one of them."
    if len(lengths) > 1:
        return "The request has two values of Content-Length. Send only one."
    if codings and version == "1.0":
        return "HTTP/1.0 does not support Transfer-Encoding. Send Content-Length, or use HTTP/1.1."
    return None
