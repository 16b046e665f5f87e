"""Certificates made for a test: an authority, and what it, or nobody, vouches for."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
)
from cryptography.x509.oid import NameOID

DNS, URI, EMAIL = x509.DNSName, x509.UniformResourceIdentifier, x509.RFC822Name
LOOPBACK = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))


@dataclass(frozen=True)
class Files:
    cert: Path
    key: Path

    @property
    def pair(self) -> tuple[str, str]:
        return str(self.cert), str(self.key)


class Authority:
    """`ca` is the file with its own certificate."""

    def __init__(self, folder: Path, name: str = "authority") -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        own = self._builder(self._name, self._key.public_key(), days=(-1, 30))
        own = own.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        own = own.add_extension(_usage(ca=True), critical=True)
        self.ca = folder / f"{name}.pem"
        self.ca.write_bytes(own.sign(self._key, hashes.SHA256()).public_bytes(Encoding.PEM))

    def issue(
        self,
        file: str,
        *names: x509.GeneralName,
        common: str = "somebody",
        days: tuple[int, int] = (-1, 30),
        password: str | None = None,
    ) -> Files:
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])
        made = self._builder(subject, key.public_key(), days=days)
        made = made.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        made = made.add_extension(_usage(ca=False), critical=True)
        if names:
            made = made.add_extension(x509.SubjectAlternativeName(names), critical=False)
        files = Files(self._folder / f"{file}.pem", self._folder / f"{file}.key")
        files.cert.write_bytes(made.sign(self._key, hashes.SHA256()).public_bytes(Encoding.PEM))
        locked: KeySerializationEncryption = (
            NoEncryption() if password is None else BestAvailableEncryption(password.encode())
        )
        files.key.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, locked))
        return files

    def _builder(
        self, subject: x509.Name, key: ec.EllipticCurvePublicKey, *, days: tuple[int, int]
    ) -> x509.CertificateBuilder:
        now = datetime.now(UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now + timedelta(days=days[0]))
            .not_valid_after(now + timedelta(days=days[1]))
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
        )


def _usage(*, ca: bool) -> x509.KeyUsage:
    """Newer versions of Python ask for it, as RFC 5280 does."""
    return x509.KeyUsage(
        digital_signature=True, key_cert_sign=ca, crl_sign=ca, content_commitment=False, key_encipherment=False,
        data_encipherment=False, key_agreement=False, encipher_only=False, decipher_only=False,
    )  # fmt: skip
