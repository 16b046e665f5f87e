"""How much a request may say before its body: the length of its address, the number and size of its headers.

A server bounds what it waits for; what comes in one piece, or through another server, is bounded here.
"""

from __future__ import annotations

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
        return TooMuch(414, "uri_too_long", f"path and query may have {MAX_TARGET_BYTES} bytes at most")
    headers = scope["headers"]
    if len(headers) > MAX_HEADERS:
        return TooMuch(431, "headers_too_large", f"a request may have {MAX_HEADERS} headers at most")
    if sum(len(name) + len(value) for name, value in headers) > MAX_HEADER_BYTES:
        return TooMuch(431, "headers_too_large", f"headers may have {MAX_HEADER_BYTES} bytes at most, all together")
    return None
