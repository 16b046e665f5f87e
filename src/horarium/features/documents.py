"""Agents, teams and assignments as stored documents: create, replace, change in part, list and read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Generic, TypeVar

from horarium.core.document.json_values import DocumentProblems, UnreadableEntry, check_storable
from horarium.core.policy.queue import PolicyError, checked_id
from horarium.errors import HorariumError, InvalidDefinition
from horarium.features.agents.definition import DocumentShape
from horarium.features.agents.rows import NamedDocument, NamedDocuments
from horarium.features.resources import Resources
from horarium.features.schedules.drafts import check_bytes, check_rows, hold_namespace, require_namespace
from horarium.instant import Instant
from horarium.platform.caller import Caller, checked_limit
from horarium.platform.database import Connection, limits
from horarium.platform.database.errors import CannotRead, UniqueConflict
from horarium.platform.errors import AlreadyExists, NotFound, VersionMismatch
from horarium.platform.wire import Permission, WriteOutcome

V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class StoredDocument(Generic[V]):
    """`outcome` is what a write has done."""

    value: V
    version: int
    created_at: Instant
    updated_at: Instant
    bundle: str | None = None
    outcome: WriteOutcome = WriteOutcome.UNCHANGED
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DocumentPage(Generic[V]):
    """`next_page_token` is the name of the last one; None = there are no more."""

    found: tuple[StoredDocument[V] | UnreadableEntry, ...]
    next_page_token: str | None


@dataclass(frozen=True, slots=True)
class CheckedColumns(Generic[V]):
    """Result of a check: columns to write in addition to the document, and whether they changed."""

    columns: Mapping[str, Any]
    changed: bool = False
    warnings: tuple[str, ...] = ()


Check = Callable[[Resources, Connection, Caller, V], CheckedColumns[V]]


@dataclass(frozen=True, slots=True)
class DocumentKind(Generic[V]):
    """One kind of documents; `check` is called for each that is written."""

    rows: NamedDocuments
    shape: DocumentShape[V]
    not_found: type[NotFound]
    already_exists: type[AlreadyExists]
    check: Check[V]

    def read(self, document: object) -> V:
        """Raises InvalidDefinition."""
        return _read(self.shape.parse, document)

    def name_of(self, value: V) -> str:
        name: str = self.shape.document(value)[self.shape.id_name]
        return name

    def stored(self, row: NamedDocument, outcome: WriteOutcome = WriteOutcome.UNCHANGED) -> StoredDocument[V]:
        """Read a stored document. Raises CannotRead."""
        try:
            value = self.shape.parse(row.document)
        except (HorariumError, ValueError, TypeError, AttributeError) as wrong:
            raise CannotRead(self.rows.table.name.removesuffix("s"), row.name, f"document: {wrong}"[:200]) from wrong
        return StoredDocument(value, row.version, row.created_at, row.updated_at, row.bundle, outcome)

    def list_page(
        self, resources: Resources, caller: Caller, page_size: int | None, next_page_token: str | None
    ) -> DocumentPage[V]:
        """List by name. A document that cannot be read says so in its place."""
        caller.require(Permission.READ)
        limit = checked_limit(page_size)
        after = None if next_page_token is None else _token(next_page_token)

        def look(connection: Connection) -> DocumentPage[V]:
            require_namespace(connection, caller.namespace)
            rows, more = self.rows.list_page(connection, caller.namespace, after=after, limit=limit)
            return DocumentPage(tuple(map(self._readable, rows)), rows[-1].name if more and rows else None)

        return resources.database.read(look)

    def _readable(self, row: NamedDocument) -> StoredDocument[V] | UnreadableEntry:
        try:
            return self.stored(row)
        except CannotRead as wrong:
            return UnreadableEntry(row.name, wrong.detail)

    def get(self, resources: Resources, caller: Caller, name: str) -> StoredDocument[V]:
        caller.require(Permission.READ)

        def look(connection: Connection) -> StoredDocument[V]:
            require_namespace(connection, caller.namespace)
            return self.stored(self.find(connection, caller, name))

        return resources.database.read(look)

    def find(self, connection: Connection, caller: Caller, name: str, *, lock: bool = False) -> NamedDocument:
        """Raises NotFound."""
        row = self.rows.find(connection, caller.namespace, name, lock=lock)
        if row is None:
            raise self.not_found(name)
        return row

    def create(
        self, resources: Resources, caller: Caller, document: object, check: Check[V] | None = None
    ) -> StoredDocument[V]:
        """`check` in the place of the usual one."""
        caller.require(Permission.WRITE)
        value, asked = self.read(document), check or self.check

        def work(connection: Connection) -> StoredDocument[V]:
            hold_namespace(connection, caller.namespace)
            return self._insert(resources, connection, caller, value, asked(resources, connection, caller, value))

        try:
            return resources.database.write(work)
        except UniqueConflict:
            raise self.already_exists(self.name_of(value)) from None

    def put(
        self,
        resources: Resources,
        caller: Caller,
        name: str,
        document: Mapping[str, Any],
        check: Check[V] | None = None,
        *,
        if_version: int | None = None,
    ) -> StoredDocument[V]:
        """The whole document; the name in the path is its name. An equal one changes nothing."""
        caller.require(Permission.WRITE)
        value, asked = self.read({self.shape.id_name: name, **document}), check or self.check
        self._require_name(value, name)

        def work(connection: Connection) -> StoredDocument[V]:
            hold_namespace(connection, caller.namespace)
            row = self.rows.find(connection, caller.namespace, name, lock=True)
            if row is None and if_version is not None:
                raise self.not_found(name)
            _require_version(row, if_version)
            written = asked(resources, connection, caller, value)
            if row is None:
                return self._insert(resources, connection, caller, value, written)
            return self._replace(resources, connection, caller, row, value, written)

        try:
            return resources.database.write(work)
        except UniqueConflict:
            return resources.database.write(work)  # somebody was faster; now it is there

    def patch(
        self,
        resources: Resources,
        caller: Caller,
        name: str,
        changes: Mapping[str, Any],
        check: Check[V] | None = None,
        *,
        if_version: int | None = None,
    ) -> StoredDocument[V]:
        """Merge changes into a stored document (RFC 7396): null sets a field back, the others stay."""
        caller.require(Permission.WRITE)
        asked = check or self.check

        def work(connection: Connection) -> StoredDocument[V]:
            hold_namespace(connection, caller.namespace)
            row = self.find(connection, caller, name, lock=True)
            _require_version(row, if_version)
            value = _read(partial(self.shape.patched, self.stored(row).value), changes)
            self._require_name(value, name)
            written = asked(resources, connection, caller, value)
            return self._replace(resources, connection, caller, row, value, written)

        return resources.database.write(work)

    def _require_name(self, value: V, name: str) -> None:
        if self.name_of(value) != name:
            raise InvalidDefinition({self.shape.id_name: [f"cannot be changed; the current value is {name}"]})

    def _insert(
        self, resources: Resources, connection: Connection, caller: Caller, value: V, written: CheckedColumns[V]
    ) -> StoredDocument[V]:
        now, document = resources.clock.now(), self.shape.document(value)
        name = self.name_of(value)
        check_rows(connection, limits.limit_of_table(self.rows.table), caller.namespace)
        self.rows.insert(connection, caller.namespace, name, document, now=now, **written.columns)
        check_bytes(resources, connection, caller.namespace, document, now)
        return StoredDocument(value, 1, now, now, None, WriteOutcome.CREATED, written.warnings)

    def _replace(
        self,
        resources: Resources,
        connection: Connection,
        caller: Caller,
        row: NamedDocument,
        value: V,
        written: CheckedColumns[V],
    ) -> StoredDocument[V]:
        now, document, before = resources.clock.now(), self.shape.document(value), row.document
        if document == before and not written.changed:
            return replace(self.stored(row), warnings=written.warnings)
        kept_columns = {name: column for name, column in written.columns.items() if name != "turn"}
        version = self.rows.update(
            connection, caller.namespace, row.name, document, expected_version=row.version, now=now, **kept_columns
        )
        check_bytes(resources, connection, caller.namespace, document, now, before=before)
        return StoredDocument(value, version, row.created_at, now, row.bundle, WriteOutcome.UPDATED, written.warnings)


def _read(parse: Callable[[object], V], document: object) -> V:
    """Raise InvalidDefinition."""
    problems = DocumentProblems()
    check_storable(document, problems)
    problems.raise_any()
    try:
        return parse(document)
    except PolicyError as wrong:
        raise InvalidDefinition({wrong.field: [wrong.text]}) from None


def _require_version(row: NamedDocument | None, if_version: int | None) -> None:
    if row is not None and if_version is not None and row.version != if_version:
        raise VersionMismatch(if_version, row.version)


def _token(text: str) -> str:
    """A page begins behind a name."""
    try:
        return checked_id("next_page_token", text)
    except PolicyError as wrong:
        raise InvalidDefinition({wrong.field: [wrong.text]}) from None
