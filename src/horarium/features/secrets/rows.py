"""SQL of secrets: seal, list without values, open, delete with their owner, and seal with a new key.

A value is bound to its namespace and name: a row that is copied to another opens nothing there.

A generated secret is deleted with the schedule, or the run without one, whose credentials it holds. It stays if its
owner exists again, because a new schedule has the same id.

All sealed values get a new key, together with the fingerprint of the key, in one transaction. The fingerprint comes
first: a transaction that seals holds it until its end, so nothing is sealed with the old key at the same time or
later.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection, Row, Table
from sqlalchemy.dialects import postgresql, sqlite

from horarium.core.document.checks import SECRET_KEY, found_in, is_generated_for, of_run, of_schedule
from horarium.instant import Instant
from horarium.platform.database import run_archive
from horarium.platform.database.installation import CannotUnseal, KeyReplaced, Sealer, replace_key_fingerprint, seal_in
from horarium.platform.database.statements import TypedRows, from_text, to_text
from horarium.platform.database.tables import (
    run_definitions,
    schedule_revisions,
    schedules,
    secrets,
    subscriptions,
)
from horarium.platform.ids import id_text


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


# Of one schedule, the newest: each may have a megabyte.
_MOST_REVISIONS = 50
_NAMES_ONE = f'%"{SECRET_KEY}"%'


def forget_of_schedule(connection: Connection, uid: bytes, namespace: str, schedule_id: str) -> None:
    """For whoever deletes it."""
    mine = (schedule_revisions.c.schedule_uid == uid, schedule_revisions.c.document.like(_NAMES_ONE))
    newest = sa.select(schedule_revisions.c.document).where(*mine).order_by(schedule_revisions.c.revision.desc())
    texts = connection.execute(newest.limit(_MOST_REVISIONS)).scalars()
    _forget(connection, namespace, of_schedule(schedule_id), texts.all())


def forget_of_schedules(connection: Connection, uids: Collection[bytes]) -> None:
    """For whoever takes their rows away: those that have no schedule of the same id beside them."""
    if not uids:
        return
    other = schedules.alias()
    again = sa.exists().where(
        other.c.namespace == schedules.c.namespace,
        other.c.schedule_id == schedules.c.schedule_id,
        other.c.schedule_uid.not_in(list(uids)),
    )
    named = sa.exists().where(
        schedule_revisions.c.schedule_uid == schedules.c.schedule_uid, schedule_revisions.c.document.like(_NAMES_ONE)
    )
    columns = sa.select(schedules.c.schedule_uid, schedules.c.namespace, schedules.c.schedule_id)
    for row in connection.execute(columns.where(schedules.c.schedule_uid.in_(list(uids)), ~again, named)).all():
        forget_of_schedule(connection, row.schedule_uid, row.namespace, row.schedule_id)


def forget_of_runs(connection: Connection, run_ids: Collection[bytes]) -> None:
    """The same for runs that no schedule asked for."""
    found = run_archive.rows_everywhere(
        connection,
        lambda runs: (
            sa.select(runs.c.run_id, runs.c.namespace, run_definitions.c.document)
            .join_from(run_definitions, runs, runs.c.run_id == run_definitions.c.run_id)
            .where(run_definitions.c.run_id.in_(list(run_ids)), run_definitions.c.document.like(_NAMES_ONE))
        ),
    )
    for row in found:
        _forget(connection, row.namespace, of_run(id_text(row.run_id)), [row.document])


def _forget(connection: Connection, namespace: str, owner: str, texts: Sequence[str]) -> None:
    named = {str(each[SECRET_KEY]) for text in texts for _, each in found_in(from_text(text))}
    names = [name for name in named if is_generated_for(owner, name)]
    if names:
        mine = (secrets.c.namespace == namespace, secrets.c.generated, secrets.c.name.in_(names))
        connection.execute(sa.delete(secrets).where(*mine))


# A secret may have 64 KiB: few enough to be held at once.
_BATCH = 200


@dataclass(frozen=True, slots=True)
class SealedColumn:
    """`owner` is what a value of it is bound to."""

    table: Table
    column: str
    owner: Callable[[Row[Any]], bytes]


@dataclass(frozen=True, slots=True)
class UnreadableSecret:
    """A row that the old key did not open either, and that stays as it is."""

    table: str
    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class Resealed:
    count: int
    unreadable: tuple[UnreadableSecret, ...]


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
    unreadable: list[UnreadableSecret] = []
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
) -> tuple[list[dict[str, Any]], list[UnreadableSecret]]:
    changes: list[dict[str, Any]] = []
    broken: list[UnreadableSecret] = []
    for row in rows:
        owner = sealed.owner(row)
        try:
            text = new.seal(old.unseal(getattr(row, sealed.column), owner), owner)
        except CannotUnseal:
            broken.append(UnreadableSecret(sealed.table.name, row.namespace, row.name))
            continue
        keys = {f"the_{key.name}": getattr(row, key.name) for key in sealed.table.primary_key.columns}
        changes.append({**keys, "fresh": text})
    return changes, broken


def _write(connection: Connection, sealed: SealedColumn, changes: list[dict[str, Any]]) -> None:
    if changes:
        named = (key == sa.bindparam(f"the_{key.name}") for key in sealed.table.primary_key.columns)
        update = sa.update(sealed.table).where(*named).values({sealed.column: sa.bindparam("fresh")})
        connection.execute(update, changes)
