"""What holds for all processes on one database, by name: who signs, which zone rules planned, when was counted."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy import Connection
from sqlalchemy.dialects import postgresql, sqlite

from horarium.instant import Instant
from horarium.store.tables import installation

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
