"""Responses that are stored by idempotency key, and returned when a request is repeated."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from horarium.instant import Instant
from horarium.platform.database.statements import from_text, to_text
from horarium.platform.database.tables import idempotency


@dataclass(frozen=True, slots=True)
class Remembered:
    """Another `request_hash` under the same key is another request: the caller made a mistake."""

    request_hash: str
    status: int
    answer: Any
    created_at: Instant


def claim(connection: Connection, namespace: str, key: str) -> bool:
    """Claim a request until the transaction ends; False if another transaction is processing it.

    SQLite needs no such claim: there, one transaction writes at a time.
    """
    if connection.dialect.name != "postgresql":
        return True
    name = blake2b(f"{namespace}\n{key}".encode(), digest_size=8).digest()
    number = int.from_bytes(name, "big", signed=True)
    return bool(
        connection.execute(sa.select(sa.func.pg_try_advisory_xact_lock(sa.literal(number, sa.BigInteger)))).scalar_one()
    )


def remember(
    connection: Connection, namespace: str, key: str, *, request_hash: str, status: int, answer: object, now: Instant
) -> None:
    """In the transaction of the request itself, so that both happen or neither.

    Raises Conflict(`idempotency_pkey`) if the same request has been answered meanwhile.
    """
    connection.execute(
        sa.insert(idempotency).values(
            namespace=namespace,
            key=key,
            request_hash=request_hash,
            status=status,
            answer=to_text(answer),
            created_at=now,
        )
    )


def use_once(connection: Connection, namespace: str, key: str, *, now: Instant) -> None:
    """Record that something was used which is good for one use and no longer than an answer is remembered.

    Raises Conflict(`idempotency_pkey`) if it was used before. No caller's key looks like `key`: theirs begin with a
    principal and a line break.
    """
    remember(connection, namespace, key, request_hash="", status=0, answer=None, now=now)


def recall(connection: Connection, namespace: str, key: str) -> Remembered | None:
    statement = sa.select(
        idempotency.c.request_hash, idempotency.c.status, idempotency.c.answer, idempotency.c.created_at
    ).where(idempotency.c.namespace == namespace, idempotency.c.key == key)
    found = connection.execute(statement).one_or_none()
    if found is None:
        return None
    return Remembered(found.request_hash, found.status, from_text(found.answer), found.created_at)


def purge(connection: Connection, *, created_before: Instant, limit: int) -> int:
    """Forgets up to `limit` old answers; how many."""
    old = (
        sa.select(idempotency.c.namespace, idempotency.c.key)
        .where(idempotency.c.created_at < created_before)
        .order_by(idempotency.c.created_at)
        .limit(limit)
    )
    keys = sa.tuple_(idempotency.c.namespace, idempotency.c.key)
    return connection.execute(sa.delete(idempotency).where(keys.in_(old))).rowcount
