"""The secrets of tenants: sealed when they come, listed without their values, opened by whoever has the key.

A value is bound to its namespace and name: a row that somebody copies to another opens nothing there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection
from sqlalchemy.dialects import postgresql, sqlite

from horarium.instant import Instant
from horarium.store.database.json_text import from_text, to_text
from horarium.store.database.typed_rows import TypedRows
from horarium.store.sealing import CannotUnseal, Sealer, seal_in
from horarium.store.tables import secrets


def _hosts(text: str | None) -> tuple[str, ...] | None:
    return None if text is None else tuple(from_text(text))


@dataclass(frozen=True, slots=True)
class SecretName:
    """A secret without its value. `hosts` are those that it may go to, None = any; `principal` set it last."""

    namespace: str
    name: str
    hosts: tuple[str, ...] | None
    generated: bool
    principal: str | None
    version: int
    created_at: Instant
    updated_at: Instant


@dataclass(frozen=True, slots=True)
class SecretRow(SecretName):
    sealed: str

    def __repr__(self) -> str:
        return f"SecretRow({self.namespace!r}, {self.name!r})"

    def unseal(self, sealer: Sealer) -> str:
        """Raises CannotUnseal."""
        return sealer.unseal(self.sealed, owner_of(self.namespace, self.name))


_NAMES = TypedRows(SecretName, secrets, hosts=_hosts)
_ROWS = TypedRows(SecretRow, secrets, hosts=_hosts)


def owner_of(namespace: str, name: str) -> bytes:
    """Context to which the encrypted value is bound; no part can contain a slash."""
    return f"secret:{namespace}/{name}".encode()


def put(
    connection: Connection,
    sealer: Sealer,
    namespace: str,
    name: str,
    value: str,
    hosts: Sequence[str] | None,
    generated: bool,
    now: Instant,
    *,
    principal: str | None = None,
) -> SecretName:
    """Its version is 1 if there was none. Raises KeyReplaced."""
    fresh: dict[str, Any] = {
        "sealed": seal_in(connection, sealer, value, owner_of(namespace, name)),
        "hosts": None if hosts is None else to_text(list(hosts)),
        "generated": generated,
        "principal": principal,
        "updated_at": now,
    }
    insert = sqlite.insert if connection.dialect.name == "sqlite" else postgresql.insert
    row = insert(secrets).values(namespace=namespace, name=name, version=1, created_at=now, **fresh)
    changed = {**fresh, "version": secrets.c.version + 1}
    written = row.on_conflict_do_update(index_elements=["namespace", "name"], set_=changed)
    found = connection.execute(written.returning(*_NAMES.select.selected_columns)).one()
    return _NAMES.read(found)


def find(connection: Connection, namespace: str, name: str) -> SecretName | None:
    return _NAMES.one(connection, _NAMES.select.where(*_named(namespace, name)))


def find_all(connection: Connection, namespace: str, names: Collection[str]) -> dict[str, SecretRow]:
    """Read those that exist, by name, with their sealed values. Raises CannotRead."""
    return {row.name: row for row in _ROWS.all(connection, _wanted(namespace, names))} if names else {}


def find_listed(connection: Connection, namespace: str, names: Collection[str]) -> dict[str, SecretRow]:
    """Read the same for launches: a secret that cannot be read is marked, and goes nowhere."""
    return {row.name: row for row in _ROWS.all_listed(connection, _wanted(namespace, names))} if names else {}


def _wanted(namespace: str, names: Collection[str]) -> sa.Select[Any]:
    return _ROWS.select.where(secrets.c.namespace == namespace, secrets.c.name.in_(names))


def find_names(connection: Connection, namespace: str, names: Collection[str]) -> dict[str, SecretName]:
    """Those that exist, by name, without their values: for whoever warns."""
    if not names:
        return {}
    wanted = _NAMES.select.where(secrets.c.namespace == namespace, secrets.c.name.in_(names))
    return {row.name: row for row in _NAMES.all(connection, wanted)}


def names(
    connection: Connection, namespace: str, *, after_name: str | None = None, limit: int | None = None
) -> list[SecretName]:
    """By name, without values."""
    statement = _NAMES.select.where(secrets.c.namespace == namespace).order_by(secrets.c.name)
    if after_name is not None:
        statement = statement.where(secrets.c.name > after_name)
    return _NAMES.all_listed(connection, statement if limit is None else statement.limit(limit))


def count(connection: Connection, namespace: str) -> int:
    """Without those that were made of credentials: they are as many as schedules have."""
    statement = sa.select(sa.func.count()).select_from(secrets)
    statement = statement.where(secrets.c.namespace == namespace, sa.not_(secrets.c.generated))
    number: int = connection.execute(statement).scalar_one()
    return number


def delete(connection: Connection, namespace: str, name: str) -> bool:
    """Return whether a secret was deleted."""
    return connection.execute(sa.delete(secrets).where(*_named(namespace, name))).rowcount == 1


def openable(sealer: Sealer | None, rows: Iterable[SecretRow]) -> list[str]:
    """The values of those that can be opened: no other was sent anywhere."""
    values: list[str] = []
    if sealer is None:
        return values
    for row in rows:
        with suppress(CannotUnseal):
            values.append(row.unseal(sealer))
    return values


def opened(sealer: Sealer, rows: Mapping[str, SecretRow]) -> dict[str, str]:
    """Their values, by name. Raises CannotUnseal."""
    return {name: row.unseal(sealer) for name, row in rows.items()}


def _named(namespace: str, name: str) -> tuple[sa.ColumnElement[bool], ...]:
    return secrets.c.namespace == namespace, secrets.c.name == name
