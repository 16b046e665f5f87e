"""Values of the whole installation, and the seal of secrets with its key.

A value has a name: the fingerprint of the key, the zone rules of the last plans, the time of the last count.

Secrets that must be used again are sealed with AES-256-GCM; the key is derived from that of the installation, which
the database does not hold. A sealed value is bound to its owner, so that a row that was copied to another opens
nothing there. A transaction that writes a sealed row checks that its key is still that of the installation: a value
that was sealed with an older key could not be opened.
"""

from __future__ import annotations

import base64
import os
from hashlib import sha256

import sqlalchemy as sa
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from sqlalchemy import Connection
from sqlalchemy.dialects import postgresql, sqlite

from horarium.errors import HorariumError
from horarium.instant import Instant
from horarium.platform.database.tables import installation

_KEY = "secret_key"
_TZDATA = "tzdata"
_COUNTED = "bytes_counted_at"
_FORGETS_FROM = "forgets_runs_by_default_from"
_SHUT_OUT = "older_shut_out_at"


def key_fingerprint(connection: Connection) -> str | None:
    """Fingerprint of the signing key; None = no process has recorded one yet."""
    return _find(connection, _KEY)


def hold_key_fingerprint(connection: Connection) -> str | None:
    """The same, and whoever replaces the key waits until this transaction ends, or this one until it has done so."""
    statement = sa.select(installation.c.value).where(installation.c.name == _KEY)
    return connection.execute(statement.with_for_update(read=True)).scalar_one_or_none()


def set_key_fingerprint(connection: Connection, fingerprint: str) -> None:
    """Unless there is one already."""
    connection.execute(_insert(connection, _KEY, fingerprint).on_conflict_do_nothing())


def replace_key_fingerprint(connection: Connection, old: str, new: str) -> bool:
    """Replace the fingerprint if it is `old`, and tell whether it was; no process seals until this transaction ends."""
    mine = sa.update(installation).where(installation.c.name == _KEY, installation.c.value == old)
    return connection.execute(mine.values(value=new)).rowcount == 1


def planned_with(connection: Connection) -> str | None:
    """The tzdata version that planned what is stored; None = nobody has said."""
    return _find(connection, _TZDATA)


def set_planned_with(connection: Connection, version: str) -> None:
    row = _insert(connection, _TZDATA, version)
    connection.execute(row.on_conflict_do_update(index_elements=["name"], set_={"value": version}))


def bytes_counted_at(connection: Connection) -> Instant:
    """When somebody last began to count what namespaces store; 0 = never."""
    return int(_find(connection, _COUNTED) or 0)


def set_bytes_counted_at(connection: Connection, now: Instant) -> None:
    row = _insert(connection, _COUNTED, str(now))
    connection.execute(row.on_conflict_do_update(index_elements=["name"], set_={"value": str(now)}))


def forgets_from(connection: Connection) -> Instant | None:
    """From when on runs are forgotten though nobody has said for how long; None = nobody has announced it yet."""
    found = _find(connection, _FORGETS_FROM)
    return None if found is None else int(found)


def announce_forgetting(connection: Connection, since: Instant) -> None:
    """Unless somebody has already."""
    connection.execute(_insert(connection, _FORGETS_FROM, str(since)).on_conflict_do_nothing())


def older_shut_out_at(connection: Connection) -> Instant:
    """When code that knows less than the newest tables was last shut out; 0 = by the migration itself, or never."""
    return int(_find(connection, _SHUT_OUT) or 0)


def set_older_shut_out_at(connection: Connection, now: Instant) -> None:
    row = _insert(connection, _SHUT_OUT, str(now))
    connection.execute(row.on_conflict_do_update(index_elements=["name"], set_={"value": str(now)}))


def _find(connection: Connection, name: str) -> str | None:
    statement = sa.select(installation.c.value).where(installation.c.name == name)
    return connection.execute(statement).scalar_one_or_none()


def _insert(connection: Connection, name: str, value: str) -> sqlite.Insert | postgresql.Insert:
    insert = sqlite.insert if connection.dialect.name == "sqlite" else postgresql.insert
    return insert(installation).values(name=name, value=value)


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
