"""Append to the audit log and read it: each namespace has a chain of entries.

An append holds the head of the chain until the transaction ends. So it is the last statement of a transaction, and
never happens on the path of a fire, a trigger or a report. No other module writes these tables.
"""

from __future__ import annotations

import getpass
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection
from sqlalchemy.dialects import postgresql, sqlite

from horarium.core.audit_entries import (
    BEGINNING,
    Act,
    AuditAction,
    ChainEntry,
    ChainLink,
    DetailValue,
    check_chain,
    make_entry,
)
from horarium.instant import Instant
from horarium.platform.database.statements import from_text, storable_text, to_text
from horarium.platform.database.tables import audit, audit_heads

_MAX_TEXT = 256
_MAX_MEMBERS = 20
_PAGE = 500
_CHAINS_TRIED = 50


@dataclass(frozen=True, slots=True)
class ChainHead:
    """Where a chain stands. `trimmed` is the last entry that retention took; `own_after` the last of a namespace that
    had this name before.
    """

    end: ChainLink
    trimmed: ChainLink
    own_after: int


@dataclass(frozen=True, slots=True)
class EntryFilter:
    """Filter of entries; `recorded_until` is exclusive."""

    act: str | None = None
    principal: str | None = None
    recorded_since: Instant | None = None
    recorded_until: Instant | None = None


EVERYTHING = EntryFilter()


# ── writing ──────────────────────────────────────────────────────────────────────────────────────────


def append(connection: Connection, namespace: str, deeds: Sequence[AuditAction], *, now: Instant) -> None:
    """In the transaction of what they tell, as its last statements."""
    if not deeds:
        return
    last = _locked_end(connection, namespace)
    rows = []
    for deed in deeds:
        entry = make_entry(last, namespace, _storable(deed), now)
        rows.append(_row(entry))
        last = ChainLink(entry.sequence, entry.hash)
    connection.execute(sa.insert(audit), rows)
    mine = sa.update(audit_heads).where(audit_heads.c.namespace == namespace)
    connection.execute(mine.values(sequence=last.sequence, hash=last.hash))


def local_deed(act: Act, source: str, **detail: DetailValue) -> AuditAction:
    """Describe an act of a local user, who needs no token on the machine itself."""
    try:
        principal = f"os:{getpass.getuser()}"
    except (KeyError, OSError):  # a container may run as a number without a name
        principal = None
    return AuditAction(act, principal, source=source, detail=detail)


def begin_anew(connection: Connection, namespace: str) -> None:
    """A namespace is made: what one of the same name did before is not shown to it."""
    mine = sa.update(audit_heads).where(audit_heads.c.namespace == namespace)
    connection.execute(mine.values(own_after=audit_heads.c.sequence))


def trim(connection: Connection, *, recorded_before: Instant, limit: int) -> int:
    """Leaves out up to `limit` of the oldest entries of one chain, and a checkpoint in their place; how many."""
    oldest = sa.select(audit.c.namespace).where(audit.c.sequence == audit_heads.c.trimmed_sequence + 1)
    oldest = oldest.where(audit.c.namespace == audit_heads.c.namespace, audit.c.recorded_at < recorded_before)
    begun = sa.select(audit_heads.c.namespace).where(sa.exists(oldest)).order_by(audit_heads.c.namespace)
    # A chain that cannot be trimmed is in nobody's way.
    for namespace in connection.execute(begun.limit(_CHAINS_TRIED)).scalars().all():
        _locked_end(connection, namespace)
        until = _end_of_old(connection, namespace, recorded_before, limit)
        if until is not None:
            mine = sa.update(audit_heads).where(audit_heads.c.namespace == namespace)
            connection.execute(mine.values(trimmed_sequence=until.sequence, trimmed_hash=until.hash))
            old = sa.delete(audit).where(audit.c.namespace == namespace, audit.c.sequence <= until.sequence)
            return connection.execute(old).rowcount
    return 0


def _end_of_old(connection: Connection, namespace: str, recorded_before: Instant, limit: int) -> ChainLink | None:
    """In their order, so that a clock that was set back opens no gap; and no further than the chain is whole.

    A checkpoint behind an entry that somebody has changed would hide it for ever.
    """
    begin = _head(connection, namespace).trimmed
    page = read_page(connection, namespace, after=begin.sequence, limit=limit)
    old = takewhile(lambda entry: entry.recorded_at < recorded_before, page)
    whole = [step for step in check_chain(old, begin) if isinstance(step, ChainLink)]
    return whole[-1] if whole else None


def _locked_end(connection: Connection, namespace: str) -> ChainLink:
    """On SQLite the write transaction is the lock."""
    look = sa.select(audit_heads.c.sequence, audit_heads.c.hash).where(audit_heads.c.namespace == namespace)
    found = connection.execute(look.with_for_update()).one_or_none()
    if found is None:
        new = {"trimmed_sequence": BEGINNING.sequence, "trimmed_hash": BEGINNING.hash, "own_after": 0}
        insert = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
        begun = insert(audit_heads).values(namespace=namespace, sequence=0, hash=BEGINNING.hash, **new)
        connection.execute(begun.on_conflict_do_nothing())
        found = connection.execute(look.with_for_update()).one()
    return ChainLink(found.sequence, found.hash)


def _storable(deed: AuditAction) -> AuditAction:
    """Truncate external input before it is stored: the hash covers the stored text."""
    detail = {
        storable_text(name, _MAX_TEXT): storable_text(value, _MAX_TEXT) if isinstance(value, str) else value
        for name, value in list(deed.detail.items())[:_MAX_MEMBERS]
        if value is not None
    }
    return AuditAction(
        storable_text(deed.act, _MAX_TEXT),
        _cut(deed.principal),
        _cut(deed.address),
        _cut(deed.request_id),
        _cut(deed.source),
        detail,
    )


def _cut(text: str | None) -> str | None:
    return None if text is None else storable_text(text, _MAX_TEXT)


def _row(entry: ChainEntry) -> dict[str, Any]:
    deed = entry.deed
    return {
        "namespace": entry.namespace,
        "sequence": entry.sequence,
        "recorded_at": entry.recorded_at,
        "act": deed.act,
        "principal": deed.principal,
        "address": deed.address,
        "request_id": deed.request_id,
        "source": deed.source,
        "detail": to_text(deed.detail),
        "hash": entry.hash,
    }


# ── reading ──────────────────────────────────────────────────────────────────────────────────────────


def chains(connection: Connection) -> list[str]:
    """The namespaces that have a chain, also those that are gone; also where somebody has deleted the head."""
    both = sa.union(sa.select(audit_heads.c.namespace), sa.select(audit.c.namespace).distinct())
    return sorted(connection.execute(both).scalars())


def head(connection: Connection, namespace: str) -> ChainHead | None:
    """None = nothing was ever written."""
    found = connection.execute(sa.select(audit_heads).where(audit_heads.c.namespace == namespace)).one_or_none()
    if found is None:
        return None
    trimmed = ChainLink(found.trimmed_sequence, found.trimmed_hash)
    return ChainHead(ChainLink(found.sequence, found.hash), trimmed, found.own_after)


def link_at(connection: Connection, namespace: str, sequence: int) -> ChainLink | None:
    look = sa.select(audit.c.hash).where(audit.c.namespace == namespace, audit.c.sequence == sequence)
    found = connection.execute(look).scalar_one_or_none()
    return None if found is None else ChainLink(sequence, found)


def read_page(
    connection: Connection,
    namespace: str,
    wanted: EntryFilter = EVERYTHING,
    *,
    after: int = 0,
    before: int | None = None,
    newest_first: bool = False,
    limit: int = _PAGE,
) -> list[ChainEntry]:
    """Between two sequences, neither of which is meant."""
    where = [audit.c.namespace == namespace, audit.c.sequence > after, *_conditions(wanted)]
    if before is not None:
        where.append(audit.c.sequence < before)
    order = audit.c.sequence.desc() if newest_first else audit.c.sequence
    return [_entry(row) for row in connection.execute(sa.select(audit).where(*where).order_by(order).limit(limit))]


def walk(connection: Connection, namespace: str, after: int) -> Iterator[ChainEntry]:
    """All of them, oldest first, a page at a time."""
    while page := read_page(connection, namespace, after=after):
        yield from page
        after = page[-1].sequence


def _conditions(wanted: EntryFilter) -> list[sa.ColumnElement[bool]]:
    found = []
    if wanted.act is not None:
        found.append(audit.c.act == wanted.act)
    if wanted.principal is not None:
        found.append(audit.c.principal == wanted.principal)
    if wanted.recorded_since is not None:
        found.append(audit.c.recorded_at >= wanted.recorded_since)
    if wanted.recorded_until is not None:
        found.append(audit.c.recorded_at < wanted.recorded_until)
    return found


def _head(connection: Connection, namespace: str) -> ChainHead:
    found = head(connection, namespace)
    assert found is not None  # it was locked just now
    return found


def _entry(row: Any) -> ChainEntry:
    deed = AuditAction(row.act, row.principal, row.address, row.request_id, row.source, _detail(row.detail))
    return ChainEntry(row.namespace, row.sequence, row.recorded_at, deed, row.hash)


def _detail(text: str) -> dict[str, Any]:
    """Whoever has written nonsense into the table is found by the hash, not by a failure to read."""
    try:
        found = from_text(text)
    except ValueError:
        return {"unreadable": text[:_MAX_TEXT]}
    return found if isinstance(found, dict) else {"unreadable": text[:_MAX_TEXT]}
