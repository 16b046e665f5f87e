"""Answers about the audit log, and the text whose hash a client can verify."""

from __future__ import annotations

from horarium.core.audit_entries import AuditAction, ChainEntry, ChainLink
from horarium.instant import from_datetime, to_datetime
from horarium.platform.wire import Answer, Object, Rows, Time


class AuditEntry(Answer, frozen=True, kw_only=True):
    """An audit entry. `detail` identifies the target; `detail.count` is the number of rejected requests of one minute
    that the entry covers. `source` is the interface. `hash` includes the hash of the previous entry.
    """

    namespace: str
    sequence: int
    recorded_at: Time
    act: str
    principal: str | None
    address: str | None
    request_id: str | None
    source: str | None
    detail: Object
    hash: str


class AuditLink(Answer, frozen=True, kw_only=True):
    """A position in the hash chain."""

    sequence: int
    hash: str


class Audit(Answer, frozen=True, kw_only=True):
    """Audit entries. `head`: last entry of the chain (null if empty). `begin`: position before the first retained
    entry. `next_page_token` continues in the requested order.
    """

    namespace: str
    entries: Rows[AuditEntry]
    begin: AuditLink
    head: AuditLink | None
    next_page_token: str | None


def shown_entry(entry: ChainEntry) -> AuditEntry:
    deed = entry.deed
    return AuditEntry(
        namespace=entry.namespace,
        sequence=entry.sequence,
        recorded_at=to_datetime(entry.recorded_at),
        act=deed.act,
        principal=deed.principal,
        address=deed.address,
        request_id=deed.request_id,
        source=deed.source,
        detail=dict(deed.detail),
        hash=entry.hash,
    )


def read_entry(shown: AuditEntry) -> ChainEntry:
    deed = AuditAction(shown.act, shown.principal, shown.address, shown.request_id, shown.source, dict(shown.detail))
    return ChainEntry(shown.namespace, shown.sequence, from_datetime(shown.recorded_at), deed, shown.hash)


def shown_link(link: ChainLink) -> AuditLink:
    return AuditLink(sequence=link.sequence, hash=link.hash)
