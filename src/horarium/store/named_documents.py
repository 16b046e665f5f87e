"""Rows that are a document under a name in a namespace, with a version that each change moves."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection, Table

from horarium.instant import Instant
from horarium.store.database.json_text import from_text, to_text
from horarium.store.database.page_bytes import Row, page, sized
from horarium.store.errors import Conflict


@dataclass(frozen=True, slots=True)
class NamedDocument:
    """`text` is the document as it is kept: one that cannot be read must not break a list."""

    namespace: str
    name: str
    text: str
    version: int
    created_at: Instant
    updated_at: Instant
    bundle: str | None = None

    @property
    def document(self) -> dict[str, Any]:
        found: dict[str, Any] = from_text(self.text)
        return found


class NamedDocuments:
    """The rows of one table, whose primary key is the namespace and a name."""

    def __init__(self, table: Table) -> None:
        self.table = table
        _, self.key = table.primary_key.columns
        c = table.c
        columns = (c.namespace, self.key, c.document, c.version, c.created_at, c.updated_at, c.bundle)
        self._select = sa.select(*columns)
        self._sized = sized(self._select, c.document)

    def insert(
        self,
        connection: Connection,
        namespace: str,
        name: str,
        document: Mapping[str, Any],
        *,
        now: Instant,
        **more: Any,
    ) -> None:
        """`more` are other columns. Raises Conflict if the name is taken."""
        values = {"namespace": namespace, self.key.name: name, "document": to_text(document), "version": 1}
        connection.execute(sa.insert(self.table).values(**values, created_at=now, updated_at=now, **more))

    def update(
        self,
        connection: Connection,
        namespace: str,
        name: str,
        document: Mapping[str, Any],
        *,
        expected_version: int,
        now: Instant,
        **more: Any,
    ) -> int:
        """The new version. Raises Conflict if it is gone or was changed since."""
        values = {"document": to_text(document), "version": expected_version + 1, "updated_at": now, **more}
        is_same = self.table.c.version == expected_version
        changed = connection.execute(
            sa.update(self.table).where(*self._named(namespace, name), is_same).values(**values)
        )
        if changed.rowcount != 1:
            raise Conflict(f"{self.table.name}.version")
        return expected_version + 1

    def delete(self, connection: Connection, namespace: str, name: str) -> bool:
        """Return whether a document was deleted."""
        return connection.execute(sa.delete(self.table).where(*self._named(namespace, name))).rowcount == 1

    def set_bundle(self, connection: Connection, namespace: str, name: str, bundle: str | None) -> None:
        connection.execute(sa.update(self.table).where(*self._named(namespace, name)).values(bundle=bundle))

    def find(self, connection: Connection, namespace: str, name: str, *, lock: bool = False) -> NamedDocument | None:
        statement = self._select.where(*self._named(namespace, name))
        found = connection.execute(statement.with_for_update() if lock else statement).one_or_none()
        return None if found is None else NamedDocument(*found)

    def find_many(self, connection: Connection, namespace: str, names: Collection[str]) -> dict[str, NamedDocument]:
        """Those that exist, by name."""
        if not names:
            return {}
        wanted = self._select.where(self.table.c.namespace == namespace, self.key.in_(names))
        return {row.name: row for row in (NamedDocument(*each) for each in connection.execute(wanted))}

    def names_of_bundle(self, connection: Connection, namespace: str, bundle: str, most: int) -> list[str]:
        own = (self.table.c.namespace == namespace, self.table.c.bundle == bundle)
        return list(connection.execute(sa.select(self.key).where(*own).order_by(self.key).limit(most)).scalars())

    def list_page(
        self,
        connection: Connection,
        namespace: str,
        *,
        after: str | None = None,
        limit: int,
        where: Sequence[sa.ColumnElement[bool]] = (),
    ) -> tuple[list[NamedDocument], bool]:
        """By name, as many as fit in a page; and whether there are more."""
        statement = self._sized.where(self.table.c.namespace == namespace, *where).order_by(self.key).limit(limit + 1)
        if after is not None:
            statement = statement.where(self.key > after)
        found = connection.execute(statement).all()

        def load(rows: Sequence[Row]) -> Mapping[Row, Any]:
            by_name = {row[1]: row for row in rows}
            own = (self.table.c.namespace == namespace, self.key.in_(list(by_name)))
            documents = connection.execute(sa.select(self.key, self.table.c.document).where(*own))
            return {by_name[name]: document for name, document in documents}

        rows, more = page(found, limit, 2, load)
        return [NamedDocument(*row) for row in rows], more

    def _named(self, namespace: str, name: str) -> tuple[sa.ColumnElement[bool], ...]:
        return self.table.c.namespace == namespace, self.key == name
