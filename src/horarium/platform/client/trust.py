"""Trust in a server: certificates of the server and of the client, and rules for sending a token.

A token stored or set for one server is sent to no other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, urlsplit

from horarium.errors import InvalidDefinition

if TYPE_CHECKING:
    import ssl


# Commands that ask no server read this file too, and do not wait for what speaks TLS.

VARIABLES: Mapping[str, str] = {
    "ca_file": "HORARIUM_CA_FILE",
    "client_cert": "HORARIUM_CLIENT_CERT",
    "client_key": "HORARIUM_CLIENT_KEY",
}


@dataclass(frozen=True, slots=True)
class Trust:
    """Names of PEM files. Without `ca_file`, the default authorities apply. `client_cert` may contain the key."""

    ca_file: str | None = None
    client_cert: str | None = None
    client_key: str | None = None

    def over(self, other: Trust) -> Trust:
        """Fill missing values from `other`. A key belongs to its own certificate."""
        pair = self if self.client_cert or self.client_key else other
        return Trust(self.ca_file or other.ca_file, pair.client_cert, pair.client_key)

    def context(self) -> ssl.SSLContext | None:
        """Return the TLS context; None = defaults. Raises InvalidDefinition for unusable files."""
        if self == USUAL:
            return None
        import ssl

        import httpx

        if self.client_key and not self.client_cert:
            raise InvalidDefinition({"client_key": ["requires client_cert"]})
        for name in VARIABLES:
            _check_readable(name, getattr(self, name))
        try:
            made = ssl.create_default_context(cafile=self.ca_file) if self.ca_file else httpx.create_ssl_context()
        except ssl.SSLError as wrong:
            raise InvalidDefinition({"ca_file": [f"contains no certificate: {wrong.reason}"]}) from None
        if self.client_cert:
            try:
                # Never without a password: the library would ask for it at the terminal.
                made.load_cert_chain(self.client_cert, self.client_key, password="")
            except (ssl.SSLError, ValueError) as wrong:
                why = getattr(wrong, "reason", None) or str(wrong)
                raise InvalidDefinition({"client_cert": [f"cannot be used with its key: {why[:200]}"]}) from None
        return made


USUAL = Trust()


def trust_of(environ: Mapping[str, str]) -> Trust:
    return Trust(**{name: environ.get(variable) or None for name, variable in VARIABLES.items()})


def _check_readable(name: str, file: str | None) -> None:
    if file is not None:
        try:
            open(file, "rb").close()
        except (OSError, ValueError) as wrong:
            why = getattr(wrong, "strerror", None) or wrong
            raise InvalidDefinition({name: [f"{file[:200]!r} cannot be read: {why}"]}) from None


_PORTS = {"http": 80, "https": 443}


def same_server(one: str, other: str) -> bool:
    """Tell whether two URLs have the same scheme, host, port and path. An invalid URL matches none."""
    here, there = _place(one), _place(other)
    return here is not None and here == there


def on_this_machine(url: str) -> bool:
    """Tell whether a URL can only lead to this machine."""
    place = _place(url)
    if place is None:
        return False
    host = place[1]
    if host == "localhost":
        return True
    try:
        address = ip_address(host)
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified


def _place(url: str) -> tuple[str, str, int, str] | None:
    try:
        parts = urlsplit(url.strip())
        port = _port(parts)
    except ValueError:
        return None
    if parts.hostname is None or port is None:
        return None
    return parts.scheme.lower(), parts.hostname.lower(), port, parts.path.rstrip("/")


def _port(parts: SplitResult) -> int | None:
    """Raises ValueError for a port that is no number."""
    return parts.port if parts.port is not None else _PORTS.get(parts.scheme.lower())
