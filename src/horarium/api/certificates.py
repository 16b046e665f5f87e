"""Who comes with a client certificate: its names are looked up among `tls_principals`, and the first one known counts.

That the certificate is good, and of an authority that the operator trusts, was found out when TLS began; the server
leaves it in the state of the request, where no caller can write.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from starlette.types import Scope

from horarium.clock import Clock
from horarium.errors import InvalidDefinition
from horarium.instant import SECOND
from horarium.operations.errors import Unauthorized
from horarium.settings import CertificateHolder, Settings
from horarium.wire.roles import Role

STATE = "certificate"
_MAX_NAMES = 20
_MAX_NAME = 255
# What a name of each kind looks like: one that is written as another kind could pass for it.
_SHAPES: Mapping[str, re.Pattern[str]] = {
    "DNS": re.compile(r"[A-Za-z0-9*_.-]+"),
    "URI": re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[!-~]+"),
    "email": re.compile(r"[!-9;-?A-~]+@[A-Za-z0-9.-]+"),
}


@dataclass(frozen=True, slots=True)
class Certificate:
    """One that was found good when its bearer connected. `expires_at` is in seconds since the epoch."""

    names: tuple[str, ...]
    expires_at: float


def certificate_of(scope: Scope) -> Certificate | None:
    found: Certificate | None = (scope.get("state") or {}).get(STATE)
    return found


def read_certificate(peer: Mapping[str, Any]) -> Certificate:
    """Read what the library returns for a verified one.

    The common name counts where it has no other (RFC 6125).
    """
    others = peer.get("subjectAltName", ())
    if others:
        names = [text for kind, text in others if kind in _SHAPES and _SHAPES[kind].fullmatch(text)]
    else:
        subject = (pair for part in peer.get("subject", ()) for pair in part)
        names = [text for kind, text in subject if kind == "commonName" and ":" not in text]
    good = tuple(name_of(text) for text in names if text.isprintable() and 0 < len(text) <= _MAX_NAME)
    return Certificate(good[:_MAX_NAMES], ssl.cert_time_to_seconds(peer["notAfter"]))


def name_of(text: str) -> str:
    """Hosts are the same in capitals; addresses of mail and URIs need not be."""
    return text if "@" in text or ":" in text else text.lower()


class Holders:
    """Those whom the operator knows by their certificates."""

    def __init__(self, settings: Settings, clock: Clock) -> None:
        """Raises InvalidDefinition."""
        self._clock = clock
        self._known = {name_of(name): _checked(name, each) for name, each in settings.tls_principals.items()}

    def __bool__(self) -> bool:
        """Where nobody is known, a certificate opens the connection and says nothing about who asks."""
        return bool(self._known)

    def identify(self, certificate: Certificate) -> tuple[str, Role, str]:
        """Principal, role and home; raises Unauthorized."""
        if self._clock.now() >= certificate.expires_at * SECOND:  # a connection may outlive it
            raise Unauthorized("The client certificate has expired.")
        found = next((self._known[name] for name in certificate.names if name in self._known), None)
        if found is None:
            raise Unauthorized("Client certificate not recognised.")
        return found.principal, Role(found.role), found.namespace


def _checked(name: str, holder: CertificateHolder) -> CertificateHolder:
    if holder.role not in set(Role):
        raise InvalidDefinition({f"tls_principals.{name[:64]}.role": [f"must be one of {', '.join(Role)}"]})
    if not holder.principal.isprintable():
        raise InvalidDefinition({f"tls_principals.{name[:64]}.principal": ["must be printable"]})
    return holder
