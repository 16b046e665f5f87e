"""SQL of the calendars of namespaces; the built-in ones need no rows."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from horarium.instant import Instant
from horarium.platform.database.errors import UniqueConflict
from horarium.platform.database.statements import Row, TypedRows, from_text, page_within_bytes, sized, to_text
from horarium.platform.database.tables import calendars


@dataclass(frozen=True, slots=True)
class CalendarRow:
    namespace: str
    name: str
    document: dict[str, Any]
    version: int
    created_at: Instant
    updated_at: Instant
    bundle: str | None = None
    owner: str | None = None


def _document(text: str) -> dict[str, Any]:
    found = from_text(text)
    if not isinstance(found, dict):
        raise ValueError("not a JSON object")
    return found


_ROWS = TypedRows(CalendarRow, calendars, key="name", document=_document)
_SIZED = sized(_ROWS.select, calendars.c.document)
_NAME = _ROWS.place_of("name")


def insert(
    connection: Connection,
    namespace: str,
    name: str,
    document: Mapping[str, Any],
    *,
    now: Instant,
    bundle: str | None = None,
    owner: str | None = None,
) -> None:
    """Raises Conflict(`calendars_pkey`) if the name is taken."""
    connection.execute(
        sa.insert(calendars).values(
            namespace=namespace,
            name=name,
            document=to_text(document),
            version=1,
            created_at=now,
            updated_at=now,
            bundle=bundle,
            owner=owner,
        )
    )


def update(
    connection: Connection,
    namespace: str,
    name: str,
    document: Mapping[str, Any],
    *,
    expected_version: int,
    now: Instant,
) -> int:
    """The new version; Conflict(`calendars.version`) if it is gone or was changed since."""
    changed = connection.execute(
        sa.update(calendars)
        .where(*_named(namespace, name), calendars.c.version == expected_version)
        .values(document=to_text(document), version=expected_version + 1, updated_at=now)
    )
    if changed.rowcount != 1:
        raise UniqueConflict("calendars.version")
    return expected_version + 1


def set_bundle(connection: Connection, namespace: str, name: str, bundle: str | None) -> None:
    """The version stays: whoever moves it, too, says so elsewhere."""
    connection.execute(sa.update(calendars).where(*_named(namespace, name)).values(bundle=bundle))


def names_of_bundle(connection: Connection, namespace: str, bundle: str, most: int) -> list[str]:
    own = (calendars.c.namespace == namespace, calendars.c.bundle == bundle)
    statement = sa.select(calendars.c.name).where(*own).order_by(calendars.c.name).limit(most)
    return list(connection.execute(statement).scalars())


def delete(connection: Connection, namespace: str, name: str) -> bool:
    """Return whether a calendar was deleted."""
    return connection.execute(sa.delete(calendars).where(*_named(namespace, name))).rowcount == 1


def find(connection: Connection, namespace: str, name: str) -> CalendarRow | None:
    return _ROWS.one(connection, _ROWS.select.where(*_named(namespace, name)))


def find_many(connection: Connection, namespace: str, names: Collection[str]) -> dict[str, CalendarRow]:
    """Those that exist, by name."""
    wanted = _ROWS.select.where(calendars.c.namespace == namespace, calendars.c.name.in_(names))
    return {row.name: row for row in _ROWS.all(connection, wanted)}


def list_page(
    connection: Connection, namespace: str, *, after_name: str | None = None, limit: int
) -> tuple[list[CalendarRow], bool]:
    """By name, as many as fit in a page; and whether there are more."""
    statement = _SIZED.where(calendars.c.namespace == namespace).order_by(calendars.c.name).limit(limit + 1)
    if after_name is not None:
        statement = statement.where(calendars.c.name > after_name)
    found = connection.execute(statement).all()

    def load(rows: Sequence[Row]) -> Mapping[Row, Any]:
        by_name = {row[_NAME]: row for row in rows}
        own = (calendars.c.namespace == namespace, calendars.c.name.in_(list(by_name)))
        documents = connection.execute(sa.select(calendars.c.name, calendars.c.document).where(*own))
        return {by_name[name]: document for name, document in documents}

    rows, more = page_within_bytes(found, limit, _ROWS.place_of("document"), load)
    return [_ROWS.listed(row) for row in rows], more


def _named(namespace: str, name: str) -> tuple[sa.ColumnElement[bool], ...]:
    return calendars.c.namespace == namespace, calendars.c.name == name
