"""How secrets are kept that must be used again: sealed with a key that the database does not hold.

AES-256-GCM; its key comes from that of the installation. What is sealed is bound to its owner, so that a row that was
copied to another opens nothing there. Whoever writes a sealed row asks in the same transaction whether its key is
still that of the installation: what an older one seals nobody could open.
"""

from __future__ import annotations

import base64
import os
from hashlib import sha256

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from sqlalchemy import Connection

from horarium.errors import HorariumError
from horarium.store.installation import hold_key_fingerprint

_NONCE_BYTES = 12  # what NIST SP 800-38D recommends


class CannotUnseal(HorariumError):
    """It was sealed with another key, for another owner, or is damaged."""

    reason = "cannot_unseal"


class KeyReplaced(HorariumError):
    """The installation has a new key, and this process still has the one before."""

    reason = "secret_key_replaced"


class Sealer:
    def __init__(self, key: bytes, fingerprint: str | None = None) -> None:
        """`key` is that of the installation; what signs must not seal.

        `fingerprint` is what the installation knows the key by; None = it was not told, and nobody compares.
        """
        self.fingerprint = fingerprint
        self._cipher = AESGCM(sha256(b"horarium:seal:" + key).digest())

    def seal(self, secret: str, owner: bytes) -> str:
        nonce = os.urandom(_NONCE_BYTES)
        return base64.b64encode(nonce + self._cipher.encrypt(nonce, secret.encode(), owner)).decode()

    def unseal(self, sealed: str, owner: bytes) -> str:
        """Raises CannotUnseal."""
        try:
            raw = base64.b64decode(sealed, validate=True)
            return self._cipher.decrypt(raw[:_NONCE_BYTES], raw[_NONCE_BYTES:], owner).decode()
        except (InvalidTag, ValueError):
            raise CannotUnseal(
                "a stored secret cannot be decrypted with the key of this installation; set the secret again"
            ) from None


def seal_in(connection: Connection, sealer: Sealer, secret: str, owner: bytes) -> str:
    """Sealed for a row that this transaction writes; raises KeyReplaced."""
    require_key(connection, sealer)
    return sealer.seal(secret, owner)


def require_key(connection: Connection, sealer: Sealer) -> None:
    """Raises KeyReplaced if the key is not that of the installation, and keeps it from being replaced meanwhile."""
    known = hold_key_fingerprint(connection)
    if sealer.fingerprint is not None and known is not None and known != sealer.fingerprint:
        raise KeyReplaced(
            "the secret key was replaced while this process was running; restart this process with the new key"
        )
