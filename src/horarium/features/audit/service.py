"""Read and verify the audit. Admins of a namespace see their own, admins of the installation see all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import partial

from horarium.core.audit_entries import BEGINNING, BrokenLink, ChainEntry, ChainLink, check_chain, check_end
from horarium.errors import InvalidDefinition
from horarium.features.resources import Resources
from horarium.features.tenants import rows as tenant_rows
from horarium.platform.caller import Caller, checked_limit
from horarium.platform.database import Connection, Database, audit_chain
from horarium.platform.database.audit_chain import EVERYTHING, ChainHead, EntryFilter
from horarium.platform.errors import NamespaceNotFound
from horarium.platform.wire import Permission

_MAX_NAME = 128
_MAX_DIGITS = 18


class AuditOrder(StrEnum):
    NEWEST = "newest"
    OLDEST = "oldest"


def parse_order(text: str | None) -> AuditOrder:
    try:
        return AuditOrder.NEWEST if text is None else AuditOrder(text)
    except ValueError:
        raise InvalidDefinition({"order": ["must be newest or oldest"]}) from None


@dataclass(frozen=True, slots=True)
class AuditPage:
    """`begin` is the place before the first entry that the caller may see."""

    namespace: str
    entries: tuple[ChainEntry, ...]
    begin: ChainLink
    head: ChainLink | None
    next_page_token: str | None


@dataclass(frozen=True, slots=True)
class ChainCheck:
    """One chain: how many entries were looked at, where it ends, and the first that is broken.

    `begin` is the place before the first that was looked at.
    """

    namespace: str
    entries: int
    head: ChainLink
    broken: BrokenLink | None
    begin: ChainLink = BEGINNING


def read(
    resources: Resources,
    caller: Caller,
    wanted: EntryFilter = EVERYTHING,
    *,
    namespace: str | None = None,
    order: AuditOrder = AuditOrder.NEWEST,
    page_size: int | None = None,
    next_page_token: str | None = None,
) -> AuditPage:
    """Raises NamespaceNotFound for another tenant's, as for one that never was."""
    caller.require(Permission.ADMINISTER)
    chosen = caller.namespace if namespace is None else namespace
    if chosen != caller.namespace and not caller.everywhere:
        raise NamespaceNotFound(chosen[:_MAX_NAME])
    limit = checked_limit(page_size)
    cursor = None if next_page_token is None else _sequence(next_page_token)
    is_newest_first = order is AuditOrder.NEWEST

    def look(connection: Connection) -> AuditPage:
        head = audit_chain.head(connection, chosen)
        if head is None and tenant_rows.find_namespace(connection, chosen) is None:
            raise NamespaceNotFound(chosen[:_MAX_NAME])
        begin = _begin(connection, chosen, head, whole=caller.everywhere)
        after = begin.sequence if is_newest_first or cursor is None else max(begin.sequence, cursor)
        before = cursor if is_newest_first else None
        found = audit_chain.read_page(
            connection,
            chosen,
            wanted,
            after=after,
            before=before,
            newest_first=is_newest_first,
            limit=limit + 1,
        )
        shown = tuple(found[:limit])
        following = str(shown[-1].sequence) if len(found) > limit else None
        return AuditPage(chosen, shown, begin, None if head is None else head.end, following)

    return resources.database.read(look)


def check(database: Database, *, namespace: str | None = None, kept: ChainLink | None = None) -> Iterator[ChainCheck]:
    """Each chain, or the one of a namespace, recomputed from its rows; `kept` is a place in that one chain."""
    names = database.read(audit_chain.chains) if namespace is None else [namespace]
    for name in names:
        yield database.read(partial(_check, namespace=name, kept=kept))


def refuse_forgotten(kept: ChainLink | None, begin: ChainLink) -> None:
    """Reject a head before the checkpoint: those entries are deleted and cannot be compared."""
    if kept is not None and kept.sequence < begin.sequence:
        raise InvalidDefinition(
            {"head": [f"entries up to {begin.sequence} were deleted by retention; use a newer head"]}
        )


def _check(connection: Connection, namespace: str, kept: ChainLink | None) -> ChainCheck:
    head = audit_chain.head(connection, namespace)
    begin = BEGINNING if head is None else head.trimmed
    refuse_forgotten(kept, begin)
    last, count = begin, 0
    for step in check_chain(audit_chain.walk(connection, namespace, begin.sequence), begin, kept):
        if isinstance(step, BrokenLink):
            return ChainCheck(namespace, count, last, step, begin)
        last, count = step, count + 1
    end = None if head is None else head.end
    return ChainCheck(namespace, count, last, check_end(last, begin, end, kept), begin)


def _begin(connection: Connection, namespace: str, head: ChainHead | None, *, whole: bool) -> ChainLink:
    if head is None:
        return BEGINNING
    if whole or head.own_after <= head.trimmed.sequence:
        return head.trimmed
    return audit_chain.link_at(connection, namespace, head.own_after) or head.trimmed


def _sequence(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS):
        raise InvalidDefinition({"next_page_token": ["must be the next_page_token of the previous page"]})
    return int(text)
