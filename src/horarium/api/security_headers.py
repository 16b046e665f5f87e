"""What every answer tells a browser: not to guess, not to frame, not to load, and not to tell others where it was."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable
from hashlib import sha256

RawHeaders = list[tuple[bytes, bytes]]

_POLICY = b"content-security-policy"
_CACHING = b"cache-control"
_NOTHING = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
_ALWAYS: tuple[tuple[bytes, bytes], ...] = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
)


APP_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "font-src 'self'",
        "connect-src 'self'",
        "manifest-src 'self'",
        "base-uri 'self'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
"""Of the browser interface: files of this server, and no script or style inside a page."""


def policy(*, style: str = "", script: str = "", connects: bool = False) -> str:
    """The Content-Security-Policy of a page with these texts in it, and no others; `connects`: it may ask us."""
    parts = [_NOTHING]
    parts += [f"style-src {_hash(style)}"] * bool(style)
    parts += [f"script-src {_hash(script)}"] * bool(script)
    parts += ["connect-src 'self'"] * connects
    return "; ".join(parts)


def with_security(headers: Iterable[tuple[bytes, bytes]]) -> RawHeaders:
    """Add security headers; a response with a policy keeps that."""
    given = [*headers]
    if all(name.lower() != _POLICY for name, _ in given):
        given.append((_POLICY, _NOTHING.encode()))
    return [*given, *_ALWAYS]


def uncached(headers: RawHeaders) -> RawHeaders:
    """Forbid caching, unless the response sets its own rule."""
    if any(name.lower() == _CACHING for name, _ in headers):
        return headers
    return [*headers, (_CACHING, b"no-store")]


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"
