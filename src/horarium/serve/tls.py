"""TLS at our own door: the certificate that we show, which is read again when it changes, and those that we ask for.

At least TLS 1.2. With `tls_client_ca` whoever connects must have a certificate of that authority, unless
`tls_client_optional` lets others in with a token alone. A file that is replaced by a bad one changes nothing.
"""

from __future__ import annotations

import asyncio
import os
import ssl
from pathlib import Path
from typing import Any

from cryptography import x509
from structlog.typing import FilteringBoundLogger

from horarium.api.certificates import STATE, read_certificate
from horarium.errors import InvalidDefinition
from horarium.instant import Instant, from_datetime
from horarium.settings import Settings, is_loopback

_LOOK_SECONDS = 5.0
_NEEDS = {"tls_key": "tls_cert", "tls_key_password": "tls_cert", "tls_client_ca": "tls_cert",
          "tls_client_optional": "tls_client_ca", "tls_principals": "tls_client_ca"}  # fmt: skip


class Tls:
    """TLS of the listening server. `open_tls` makes it."""

    def __init__(self, settings: Settings, cert: Path) -> None:
        self._cert = cert
        self._key = settings.tls_key
        # Never None: the library would ask for it at the terminal.
        self._password = "" if settings.tls_key_password is None else settings.tls_key_password.get_secret_value()
        self._stamp = self._looks()
        self.context = self._loaded()
        if settings.tls_client_ca is not None:
            self._ask_for_certificates(settings.tls_client_ca, optional=settings.tls_client_optional)

    def renew(self) -> bool:
        """Reload changed files, if they are valid, and tell whether they changed; new connections use them."""
        stamp = self._looks()
        if stamp == self._stamp:
            return False
        self._stamp = stamp
        self._loaded()
        self.context.load_cert_chain(self._cert, self._key, self._password)
        return True

    async def keep_current(self, log: FilteringBoundLogger) -> None:
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            try:
                if self.renew():
                    log.info("tls_certificate_reloaded", file=str(self._cert))
            except InvalidDefinition as wrong:
                log.error("tls_certificate_reload_failed", error=wrong.message)

    def _loaded(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.options |= ssl.OP_NO_COMPRESSION | ssl.OP_NO_RENEGOTIATION
        context.set_alpn_protocols(["http/1.1"])
        _check_readable("tls_cert", self._cert)
        if self._key is not None:
            _check_readable("tls_key", self._key)
        try:
            context.load_cert_chain(self._cert, self._key, self._password)
        except (ssl.SSLError, ValueError) as wrong:
            why = getattr(wrong, "reason", None) or str(wrong)
            raise InvalidDefinition({"tls_cert": [f"does not match its private key: {why[:200]}"]}) from None
        return context

    def _ask_for_certificates(self, authority: Path, *, optional: bool) -> None:
        """No sessions are taken up again: the certificate would not be looked at another time."""
        _check_readable("tls_client_ca", authority)
        try:
            self.context.load_verify_locations(cafile=authority)
        except ssl.SSLError as wrong:
            raise InvalidDefinition({"tls_client_ca": [f"contains no certificate: {wrong.reason}"]}) from None
        self.context.verify_mode = ssl.CERT_OPTIONAL if optional else ssl.CERT_REQUIRED
        self.context.options |= ssl.OP_NO_TICKET
        self.context.num_tickets = 0

    def _looks(self) -> tuple[tuple[int, int, int] | None, ...]:
        return tuple(_stamp(path) for path in (self._cert, self._key) if path is not None)


def open_tls(settings: Settings) -> Tls | None:
    """None where no certificate is set. Raises InvalidDefinition."""
    for name, needed in _NEEDS.items():
        if getattr(settings, name) and getattr(settings, needed) is None:
            raise InvalidDefinition({name: [f"requires {needed}"]})
    return None if settings.tls_cert is None else Tls(settings, settings.tls_cert)


def in_the_clear(settings: Settings) -> str | None:
    """Warn of an address that others can reach without TLS or a proxy."""
    if settings.tls_cert is not None or settings.behind_proxy or is_loopback(settings.host):
        return None
    return f"Tokens are sent unencrypted to {settings.host}: TLS is not configured"


IN_THE_CLEAR_REMEDY = "use --tls-cert and --tls-key, or --behind-proxy if a proxy terminates TLS"


def expiry_of(certificate: Path) -> Instant:
    """Expiry of the first certificate in the file; raises ValueError or OSError."""
    return from_datetime(x509.load_pem_x509_certificate(certificate.read_bytes()).not_valid_after_utc)


def with_certificate(state: dict[str, Any], transport: asyncio.BaseTransport) -> dict[str, Any]:
    """The state of requests on a connection; uvicorn tells the application nothing about certificates."""
    peer = transport.get_extra_info("peercert")
    return {**state, STATE: read_certificate(peer)} if peer else state


def _check_readable(name: str, path: Path) -> None:
    """The library tells neither which file it was, nor that it is no file."""
    try:
        path.open("rb").close()
    except OSError as wrong:
        raise InvalidDefinition({name: [f"cannot read {path}: {wrong.strerror}"]}) from None


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
