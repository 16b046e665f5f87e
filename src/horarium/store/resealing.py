"""How everything that is sealed gets a new key: all of it and the key's fingerprint, in one transaction.

The fingerprint comes first. Whoever seals holds it until its own transaction ends, so that nothing is sealed with the
old key beside this or after it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection, Row, Table

from horarium.store.installation import replace_key_fingerprint
from horarium.store.sealing import CannotUnseal, KeyReplaced, Sealer
from horarium.store.secrets import owner_of
from horarium.store.tables import secrets, subscriptions

# A secret may have 64 KiB: few enough to be held at once.
_BATCH = 200


@dataclass(frozen=True, slots=True)
class SealedColumn:
    """`owner` is what a value of it is bound to."""

    table: Table
    column: str
    owner: Callable[[Row[Any]], bytes]


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A row that the old key did not open either, and that stays as it is."""

    table: str
    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class Resealed:
    count: int
    unreadable: tuple[Unreadable, ...]


SEALED = (
    SealedColumn(secrets, "sealed", lambda row: owner_of(row.namespace, row.name)),
    SealedColumn(subscriptions, "secret", lambda row: row.subscription_id),
)


def reseal_all(connection: Connection, old: Sealer, new: Sealer) -> Resealed:
    """Raises KeyReplaced if `old` is not that of the installation (any more)."""
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql("SET LOCAL statement_timeout = 0")
    if old.fingerprint is None or new.fingerprint is None:
        raise ValueError("a key without a fingerprint cannot be replaced")
    if not replace_key_fingerprint(connection, old.fingerprint, new.fingerprint):
        raise KeyReplaced("another process replaced the key at the same time; nothing was changed")
    count = 0
    unreadable: list[Unreadable] = []
    for each in SEALED:
        for rows in _batches(connection, each):
            changes, broken = _resealed(each, rows, old, new)
            _write(connection, each, changes)
            count += len(changes)
            unreadable += broken
    return Resealed(count, tuple(unreadable))


def _batches(connection: Connection, sealed: SealedColumn) -> Iterator[Sequence[Row[Any]]]:
    """By primary key, so that no more than one batch is held."""
    keys = list(sealed.table.primary_key.columns)
    columns = dict.fromkeys([*keys, sealed.table.c.namespace, sealed.table.c.name, sealed.table.c[sealed.column]])
    statement = sa.select(*columns).order_by(*keys).limit(_BATCH)
    rows = connection.execute(statement).all()
    while rows:
        yield rows
        last = sa.tuple_(*(sa.literal(getattr(rows[-1], key.name), key.type) for key in keys))
        rows = connection.execute(statement.where(sa.tuple_(*keys) > last)).all()


def _resealed(
    sealed: SealedColumn, rows: Sequence[Row[Any]], old: Sealer, new: Sealer
) -> tuple[list[dict[str, Any]], list[Unreadable]]:
    changes: list[dict[str, Any]] = []
    broken: list[Unreadable] = []
    for row in rows:
        owner = sealed.owner(row)
        try:
            text = new.seal(old.unseal(getattr(row, sealed.column), owner), owner)
        except CannotUnseal:
            broken.append(Unreadable(sealed.table.name, row.namespace, row.name))
            continue
        keys = {f"the_{key.name}": getattr(row, key.name) for key in sealed.table.primary_key.columns}
        changes.append({**keys, "fresh": text})
    return changes, broken


def _write(connection: Connection, sealed: SealedColumn, changes: list[dict[str, Any]]) -> None:
    if changes:
        named = (key == sa.bindparam(f"the_{key.name}") for key in sealed.table.primary_key.columns)
        update = sa.update(sealed.table).where(*named).values({sealed.column: sa.bindparam("fresh")})
        connection.execute(update, changes)
