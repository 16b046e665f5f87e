"""The tenants: every other row belongs to one of these. `removal.py` takes one away."""

from __future__ import annotations

from dataclasses import dataclass, field

import sqlalchemy as sa
from sqlalchemy import Connection

from horarium.instant import Instant
from horarium.policy.quotas import Overrides
from horarium.store import audit
from horarium.store.database.json_text import from_text, to_text
from horarium.store.database.typed_rows import TypedRows
from horarium.store.tables import namespaces


@dataclass(frozen=True, slots=True)
class NamespaceRow:
    """`quotas` are limits of its own; days that are None are those of the settings."""

    namespace: str
    description: str
    created_at: Instant
    quotas: Overrides = field(default_factory=dict)
    keep_runs_days: int | None = None
    keep_history_days: int | None = None


_ROWS = TypedRows(NamespaceRow, namespaces, quotas=lambda text: from_text(text) or {})
_LIVE = namespaces.c.deleted_at.is_(None)
_BY_NAME = _ROWS.select.where(namespaces.c.namespace == sa.bindparam("name"), _LIVE)
_HELD = sa.select(namespaces.c.namespace).where(namespaces.c.namespace == sa.bindparam("name"), _LIVE)
_TWO = sa.select(sa.literal(1)).select_from(namespaces).where(_LIVE).limit(2)


def insert(connection: Connection, namespace: str, description: str, *, now: Instant) -> None:
    """Raises Conflict(`namespaces_pkey`) if there is one of that name, or its rows are still on their way out."""
    connection.execute(sa.insert(namespaces).values(namespace=namespace, description=description, created_at=now))
    audit.begin_anew(connection, namespace)


def update(connection: Connection, row: NamespaceRow) -> None:
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


def find(connection: Connection, namespace: str) -> NamespaceRow | None:
    return _ROWS.one(connection, _BY_NAME, {"name": namespace})


def lock(connection: Connection, namespace: str) -> bool:
    """Lock a namespace until the transaction ends, and tell whether it exists.

    On SQLite the write transaction is the lock.
    """
    own = _HELD.with_for_update(key_share=True)
    return connection.execute(own, {"name": namespace}).scalar_one_or_none() is not None


def hold(connection: Connection, namespace: str) -> bool:
    """Keep a namespace from deletion until the transaction ends, and tell whether it exists. Holders share it."""
    shared = _HELD.with_for_update(read=True, key_share=True)
    return connection.execute(shared, {"name": namespace}).scalar_one_or_none() is not None


def are_several(connection: Connection) -> bool:
    return len(connection.execute(_TWO).all()) > 1


def all_namespaces(connection: Connection) -> list[NamespaceRow]:
    return _ROWS.all_listed(connection, _ROWS.select.where(_LIVE).order_by(namespaces.c.namespace))


def first_names(connection: Connection, limit: int) -> list[str]:
    """In their order, at most so many."""
    names = sa.select(namespaces.c.namespace).where(_LIVE).order_by(namespaces.c.namespace).limit(limit)
    return list(connection.execute(names).scalars())
