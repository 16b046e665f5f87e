"""The tenants: every other row belongs to one of these."""

from __future__ import annotations

from dataclasses import dataclass, fields

import sqlalchemy as sa
from sqlalchemy import Connection

from horarium.instant import Instant
from horarium.store.tables import namespaces


@dataclass(frozen=True, slots=True)
class NamespaceRow:
    namespace: str
    description: str
    created_at: Instant


_ROW = [namespaces.c[each.name] for each in fields(NamespaceRow)]


_BY_NAME = sa.select(*_ROW).where(namespaces.c.namespace == sa.bindparam("name"))


def insert(connection: Connection, namespace: str, description: str, *, now: Instant) -> None:
    """Raises Conflict(`namespaces_pkey`) if there is one of that name."""
    connection.execute(sa.insert(namespaces).values(namespace=namespace, description=description, created_at=now))


def find(connection: Connection, namespace: str) -> NamespaceRow | None:
    found = connection.execute(_BY_NAME, {"name": namespace}).one_or_none()
    return None if found is None else NamespaceRow(*found)


def count(connection: Connection) -> int:
    number: int = connection.execute(sa.select(sa.func.count()).select_from(namespaces)).scalar_one()
    return number


def all_namespaces(connection: Connection) -> list[NamespaceRow]:
    return [NamespaceRow(*values) for values in connection.execute(sa.select(*_ROW).order_by(namespaces.c.namespace))]
