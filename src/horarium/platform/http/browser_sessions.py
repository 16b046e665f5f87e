"""Session cookies of browsers, and the check for requests from other sites."""

from __future__ import annotations

import os
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from horarium.instant import SECOND, Instant
from horarium.platform.errors import OperationError

MAX_SECRET = 2_900
"""Characters of a token that a cookie can hold: browsers drop those of more than 4,096 bytes."""
CODE_PREFIX: Final = "hsc_"
_MAX_COOKIE: Final = 4_096
_PURPOSE: Final = b"horarium:session"
_CODE_PURPOSE: Final = b"horarium:sign-in-code"
_NONCE_BYTES: Final = 12  # what NIST SP 800-38D recommends
_END_BYTES: Final = 8
_DIGEST_CHARS: Final = 10
_HOST_PREFIX: Final = "__Host-"
_SECURE_PREFIX: Final = "__Secure-"


@dataclass(frozen=True, slots=True)
class OpenedSession:
    """`until` is when the session ends, whatever the token says."""

    secret: str = field(repr=False)
    until: Instant


@dataclass(frozen=True, slots=True)
class OpenedCode:
    """`until` is when the code ends; `session_until` when the session did in which it was made, None = in none.

    `code_id` is the same however the code is spelled.
    """

    code_id: str
    secret: str = field(repr=False)
    until: Instant
    session_until: Instant | None


class SessionCookies:
    """Makes and reads them. Printing it shows no key."""

    def __init__(self, key: bytes) -> None:
        """`key` is that of the installation."""
        own = HKDF(SHA256(), length=32, salt=None, info=_PURPOSE).derive(key)
        self._cipher = AESGCM(own)
        # Services on one host share their cookies, whatever their ports: each knows its own by the name.
        self.name = f"horarium_{sha256(_PURPOSE + b':name:' + own).hexdigest()[:_DIGEST_CHARS]}"
        self._secure_names = (f"{_HOST_PREFIX}{self.name}", f"{_SECURE_PREFIX}{self.name}")

    def name_for(self, path: str, *, secure: bool) -> str:
        """Return the name under which browsers let only this host, over TLS, set the cookie (RFC 6265bis, 4.1.3).

        A cookie below a path cannot have the stricter of the two prefixes.
        """
        if not secure:
            return self.name
        return self._secure_names[0] if path == "/" else self._secure_names[1]

    def seal(self, secret: str, until: Instant) -> str:
        return self._sealed(secret, until, _PURPOSE)

    def unseal(self, value: str) -> OpenedSession | None:
        """None for what we have not made, or somebody has changed."""
        return self._unsealed(value, _PURPOSE)

    def seal_code(self, secret: str, until: Instant, session_until: Instant | None = None) -> str:
        """Seal a code that replaces a token in a link.

        Other users of the machine may see the command that opens the link.
        """
        end = "" if session_until is None else str(session_until)
        return CODE_PREFIX + self._sealed(f"{end} {secret}", until, _CODE_PURPOSE)

    def unseal_code(self, code: str) -> OpenedCode | None:
        """None for what is no such code."""
        value = code.removeprefix(CODE_PREFIX)
        opened = self._unsealed(value, _CODE_PURPOSE) if code.startswith(CODE_PREFIX) else None
        if opened is None:
            return None
        end, _, secret = opened.secret.partition(" ")
        return OpenedCode(_raw(value)[:_NONCE_BYTES].hex(), secret, opened.until, int(end) if end else None)

    def _sealed(self, secret: str, until: Instant, purpose: bytes) -> str:
        nonce = os.urandom(_NONCE_BYTES)
        plain = until.to_bytes(_END_BYTES, "big", signed=True) + secret.encode()
        return urlsafe_b64encode(nonce + self._cipher.encrypt(nonce, plain, purpose)).decode().rstrip("=")

    def _unsealed(self, value: str, purpose: bytes) -> OpenedSession | None:
        if len(value) > _MAX_COOKIE:
            return None
        try:
            raw = _raw(value)
            plain = self._cipher.decrypt(raw[:_NONCE_BYTES], raw[_NONCE_BYTES:], purpose)
            return OpenedSession(plain[_END_BYTES:].decode(), int.from_bytes(plain[:_END_BYTES], "big", signed=True))
        except (InvalidTag, ValueError):
            return None

    def shown_in(self, headers: Iterable[str], *, secure: bool) -> list[str]:
        """Return the values of our cookies in these `Cookie` headers, as the browser orders them: nearest path first.

        By TLS only prefixed names count: any other host of the domain may have set the plain one. All values count,
        or whoever sets cookies could hide the session of the browser behind many others. Headers are short.
        """
        names = self._secure_names if secure else (*self._secure_names, self.name)
        return list(dict.fromkeys(value for name, value in _pairs(headers) if name in names))

    def names_in(self, headers: Iterable[str]) -> set[str]:
        names = (*self._secure_names, self.name)
        return {name for name, _ in _pairs(headers) if name in names}


def set_header(name: str, value: str, *, path: str, seconds: int, secure: bool) -> str:
    """`Set-Cookie`: no script reads it, no other site's page sends it, and no other host gets it."""
    kept = f"{name}={value}; Path={path}; Max-Age={max(0, seconds)}; HttpOnly; SameSite=Strict"
    return f"{kept}; Secure" if secure else kept


def clear_header(name: str, *, path: str) -> str:
    """Browsers hear of a prefixed name only what is `Secure`."""
    return set_header(name, "", path=path, seconds=0, secure=name.startswith("__"))


def seconds_until(end: Instant, now: Instant) -> int:
    return max(0, (end - now) // SECOND)


def _raw(value: str) -> bytes:
    return urlsafe_b64decode(value.encode("ascii") + b"=" * (-len(value) % 4))


def _pairs(headers: Iterable[str]) -> Iterator[tuple[str, str]]:
    texts = (text for header in headers for text in header.split(";"))
    for text in texts:
        name, _, value = text.strip().partition("=")
        yield name, value.strip('"')


SOURCE_HEADER: Final = "x-horarium-source"
UI: Final = "ui"
_SAFE: Final = frozenset({"GET", "HEAD"})
_OWN_PAGE: Final = "same-origin"
# A typed address or a bookmark: no page asked.
_NO_PAGE: Final = "none"
_DEFAULT_PORTS: Final = {"http": ":80", "https": ":443"}


class CrossSite(OperationError):
    reason = "cross_site"
    status = 403

    def __init__(self) -> None:
        super().__init__(
            "A browser session works only from pages of this service. Send `Authorization: Bearer …` instead."
        )


@dataclass(frozen=True, slots=True)
class RequestSource:
    """Source of a request as its headers state it. `own` are the origins under which the service is called."""

    method: str
    site: str | None = None
    origin: str | None = None
    source: str | None = None
    own: Collection[str] = ()


def is_foreign(sender: RequestSource) -> bool:
    """Tell whether it comes from a page of another site, as far as it states one; a program states none."""
    if sender.site is not None:
        return sender.site not in (_OWN_PAGE, _NO_PAGE)
    return sender.origin is not None and sender.origin not in sender.own


def is_our_page(sender: RequestSource) -> bool:
    """Tell whether a cookie counts: to read, unless another site's page sends it; to change, if this site's page does.

    No form and no link can send the header that names the source, and no script of another origin without permission.
    """
    if is_foreign(sender):
        return False
    if sender.method in _SAFE:
        return True
    shown = sender.site == _OWN_PAGE if sender.site is not None else sender.origin is not None
    return shown and sender.source == UI


def origin_of(scheme: str, host: str) -> str:
    """As browsers spell it: in lower case, without the usual port."""
    return f"{scheme}://{host.lower().removesuffix(_DEFAULT_PORTS.get(scheme, ''))}"
