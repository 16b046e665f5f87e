"""SQL of namespaces, to which all other rows belong, and of tokens.

Only the hash of a token is stored, so that a stolen database grants no access.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Collection
from dataclasses import dataclass, field
from hashlib import sha256

import sqlalchemy as sa
from sqlalchemy import Connection

from horarium.core.policy.limits import Overrides
from horarium.instant import Instant
from horarium.platform.database import audit_chain
from horarium.platform.database.columns import TypedRows, from_text, to_text
from horarium.platform.database.schema import DEFAULT_NAMESPACE
from horarium.platform.database.tables import namespaces, tokens
from horarium.platform.ids import new_id


@dataclass(frozen=True, slots=True)
class NamespaceRow:
    """`quotas` are limits of its own; days that are None are those of the settings."""

    namespace: str
    description: str
    created_at: Instant
    quotas: Overrides = field(default_factory=dict)
    keep_runs_days: int | None = None
    keep_history_days: int | None = None


_NAMESPACE_ROWS = TypedRows(NamespaceRow, namespaces, quotas=lambda text: from_text(text) or {})
_LIVE = namespaces.c.deleted_at.is_(None)
_BY_NAME = _NAMESPACE_ROWS.select.where(namespaces.c.namespace == sa.bindparam("name"), _LIVE)
_HELD = sa.select(namespaces.c.namespace).where(namespaces.c.namespace == sa.bindparam("name"), _LIVE)
_TWO = sa.select(sa.literal(1)).select_from(namespaces).where(_LIVE).limit(2)


def insert_namespace(connection: Connection, namespace: str, description: str, *, now: Instant) -> None:
    """Raises Conflict(`namespaces_pkey`) if there is one of that name, or its rows are still on their way out."""
    connection.execute(sa.insert(namespaces).values(namespace=namespace, description=description, created_at=now))
    audit_chain.begin_anew(connection, namespace)


def update_namespace(connection: Connection, row: NamespaceRow) -> None:
    """As it is to be from now on; the caller has locked it."""
    connection.execute(
        sa.update(namespaces)
        .where(namespaces.c.namespace == row.namespace)
        .values(
            description=row.description,
            quotas=to_text(dict(row.quotas)) if row.quotas else None,
            keep_runs_days=row.keep_runs_days,
            keep_history_days=row.keep_history_days,
        )
    )


def find_namespace(connection: Connection, namespace: str) -> NamespaceRow | None:
    return _NAMESPACE_ROWS.one(connection, _BY_NAME, {"name": namespace})


def lock_namespace(connection: Connection, namespace: str) -> bool:
    """Lock a namespace until the transaction ends, and tell whether it exists.

    On SQLite the write transaction is the lock.
    """
    own = _HELD.with_for_update(key_share=True)
    return connection.execute(own, {"name": namespace}).scalar_one_or_none() is not None


def hold_namespace(connection: Connection, namespace: str) -> bool:
    """Keep a namespace from deletion until the transaction ends, and tell whether it exists. Holders share it."""
    shared = _HELD.with_for_update(read=True, key_share=True)
    return connection.execute(shared, {"name": namespace}).scalar_one_or_none() is not None


def has_several_namespaces(connection: Connection) -> bool:
    return len(connection.execute(_TWO).all()) > 1


def all_namespaces(connection: Connection) -> list[NamespaceRow]:
    return _NAMESPACE_ROWS.all_listed(connection, _NAMESPACE_ROWS.select.where(_LIVE).order_by(namespaces.c.namespace))


def first_namespaces(connection: Connection, limit: int) -> list[str]:
    """In their order, at most so many."""
    names = sa.select(namespaces.c.namespace).where(_LIVE).order_by(namespaces.c.namespace).limit(limit)
    return list(connection.execute(names).scalars())


# Scanners for leaked secrets know tokens by such a beginning.
PREFIX = "hor_"
_SECRET_BYTES = 32


@dataclass(frozen=True, slots=True)
class TokenRow:
    """The hash stays inside this module. `queues` None = it is good for all."""

    token_id: bytes
    namespace: str
    name: str
    role: str
    subject: str | None
    created_at: Instant
    expires_at: Instant | None
    revoked_at: Instant | None
    last_used_at: Instant | None
    previous_until: Instant | None
    queues: frozenset[str] | None

    def is_live(self, now: Instant) -> bool:
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)


@dataclass(frozen=True, slots=True, repr=False)
class NewToken:
    """`secret` is shown to its owner once and kept nowhere; not even a traceback prints it."""

    token_id: bytes
    secret: str

    def __repr__(self) -> str:
        return f"IssuedToken({self.token_id!r}, secret=…)"


def _queues(text: str | None) -> frozenset[str] | None:
    return None if text is None else frozenset(from_text(text))


_TOKEN_ROWS = TypedRows(TokenRow, tokens, queues=_queues)
_BY_HASH = _TOKEN_ROWS.select.add_columns(tokens.c.sha256).where(tokens.c.sha256 == sa.bindparam("wanted"))
_BY_PREVIOUS = _TOKEN_ROWS.select.add_columns(tokens.c.previous_sha256).where(
    tokens.c.previous_sha256.is_not(None),
    tokens.c.previous_sha256 == sa.bindparam("wanted"),
    tokens.c.previous_until > sa.bindparam("now"),
)


def issue_token(
    connection: Connection,
    *,
    namespace: str,
    name: str,
    role: str,
    now: Instant,
    subject: str | None = None,
    expires_at: Instant | None = None,
    queues: Collection[str] | None = None,
) -> NewToken:
    """Raises DataError if there is no such namespace."""
    issued = NewToken(new_id(), _new_secret())
    connection.execute(
        sa.insert(tokens).values(
            token_id=issued.token_id,
            namespace=namespace,
            sha256=_hash(issued.secret),
            name=name,
            role=role,
            subject=subject,
            created_at=now,
            expires_at=expires_at,
            queues=None if queues is None else to_text(sorted(queues)),
        )
    )
    return issued


def find_token_by_secret(connection: Connection, secret: str, *, now: Instant) -> TokenRow | None:
    """None for what was never issued, is revoked or has expired: the caller learns no more than that."""
    wanted = _hash(secret)
    found = connection.execute(_BY_HASH, {"wanted": wanted}).one_or_none()
    if found is None:  # most are not rotated, and nobody pays for those that are
        found = connection.execute(_BY_PREVIOUS, {"wanted": wanted, "now": now}).one_or_none()
    if found is None or not hmac.compare_digest(found[-1], wanted):
        return None
    row = _TOKEN_ROWS.read(found[:-1])
    return row if row.is_live(now) else None


def find_token(connection: Connection, namespace: str, token_id: bytes) -> TokenRow | None:
    return _TOKEN_ROWS.one(connection, _TOKEN_ROWS.select.where(*_named(namespace, token_id)))


def all_tokens(connection: Connection, namespace: str) -> list[TokenRow]:
    """Oldest first; revoked and expired ones too."""
    return _TOKEN_ROWS.all_listed(
        connection, _TOKEN_ROWS.select.where(tokens.c.namespace == namespace).order_by(tokens.c.token_id)
    )


# More than a question about single principals needs.
_MOST_PRINCIPALS = 1_000


def principals(connection: Connection, namespace: str, roles: Collection[str], now: Instant) -> list[tuple[str, str]]:
    """Subjects of live tokens with one of the roles, and the roles. Admins of the default namespace are everywhere."""
    everywhere = sa.and_(tokens.c.namespace == DEFAULT_NAMESPACE, tokens.c.role == "admin")
    live = sa.and_(tokens.c.revoked_at.is_(None), sa.or_(tokens.c.expires_at.is_(None), tokens.c.expires_at > now))
    who = sa.func.coalesce(tokens.c.subject, tokens.c.name)
    found = sa.select(who, tokens.c.role).where(
        sa.or_(tokens.c.namespace == namespace, everywhere), tokens.c.role.in_(list(roles)), live
    )
    return [(each[0], each[1]) for each in connection.execute(found.distinct().limit(_MOST_PRINCIPALS))]


def rotate_token(
    connection: Connection, namespace: str, token_id: bytes, *, now: Instant, previous_until: Instant
) -> NewToken | None:
    """A new secret; the one before it is good until then, and the one before that no more. None if it is not live."""
    secret = _new_secret()
    changed = connection.execute(
        sa.update(tokens)
        .where(
            *_named(namespace, token_id),
            tokens.c.revoked_at.is_(None),
            sa.or_(tokens.c.expires_at.is_(None), tokens.c.expires_at > now),
        )
        .values(sha256=_hash(secret), previous_sha256=tokens.c.sha256, previous_until=previous_until)
    )
    return NewToken(token_id, secret) if changed.rowcount == 1 else None


def revoke_token(connection: Connection, namespace: str, token_id: bytes, *, now: Instant) -> bool:
    """Revoke a token and tell whether it was active; the first revocation stays on record."""
    changed = connection.execute(
        sa.update(tokens).where(*_named(namespace, token_id), tokens.c.revoked_at.is_(None)).values(revoked_at=now)
    )
    return changed.rowcount == 1


def revoke_named_token(connection: Connection, namespace: str, name: str, *, now: Instant) -> int:
    """All that have this name; how many were live until now."""
    named = tokens.c.namespace == namespace, tokens.c.name == name, tokens.c.revoked_at.is_(None)
    return connection.execute(sa.update(tokens).where(*named).values(revoked_at=now)).rowcount


def revoke_tokens_of_subject(connection: Connection, namespace: str, subject: str, role: str, *, now: Instant) -> int:
    """All whose bearer it is in this role; how many were live until now."""
    is_bearer = sa.func.coalesce(tokens.c.subject, tokens.c.name) == subject
    mine = tokens.c.namespace == namespace, is_bearer, tokens.c.role == role, tokens.c.revoked_at.is_(None)
    return connection.execute(sa.update(tokens).where(*mine).values(revoked_at=now)).rowcount


def touch_token(connection: Connection, token_id: bytes, *, now: Instant) -> None:
    """For people who wonder whether a token is still in use; callers do this now and then, not each time."""
    connection.execute(sa.update(tokens).where(tokens.c.token_id == token_id).values(last_used_at=now))


def _named(namespace: str, token_id: bytes) -> tuple[sa.ColumnElement[bool], ...]:
    return tokens.c.namespace == namespace, tokens.c.token_id == token_id


def _new_secret() -> str:
    return PREFIX + secrets.token_urlsafe(_SECRET_BYTES)


def _hash(secret: str) -> str:
    """Plain SHA-256 is enough for 256 random bits; there is nothing to guess."""
    return sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
