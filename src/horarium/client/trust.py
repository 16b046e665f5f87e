"""Certificates: authorities that verify the server, and the certificate of the client."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from horarium.errors import InvalidDefinition

# Commands that ask no server read this file too, and do not wait for what speaks TLS.
if TYPE_CHECKING:
    import ssl

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
