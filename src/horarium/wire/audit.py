"""What is answered about the audit, and how a client makes of it again what was hashed."""

from __future__ import annotations

from horarium.audit import Deed, Entry, Link
from horarium.instant import from_datetime, to_datetime
from horarium.wire.answer import Answer, Object, Rows, Time


class AuditEntry(Answer, frozen=True, kw_only=True):
    """`detail` names what was acted on; `count` in it is how many refusals of one minute the entry stands for.

    `principal` and `address` are who and from where, `source` the door. `hash` ties it to the entry before it.
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
    """A place in the chain."""

    sequence: int
    hash: str


class Audit(Answer, frozen=True, kw_only=True):
    """`head` is the last entry of the chain, null where there is none; `begin` the place before the first that is kept.

    `next_page_token` leads on in the order that was asked for.
    """

    namespace: str
    entries: Rows[AuditEntry]
    begin: AuditLink
    head: AuditLink | None
    next_page_token: str | None


def shown_entry(entry: Entry) -> AuditEntry:
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


def read_entry(shown: AuditEntry) -> Entry:
    deed = Deed(shown.act, shown.principal, shown.address, shown.request_id, shown.source, dict(shown.detail))
    return Entry(shown.namespace, shown.sequence, from_datetime(shown.recorded_at), deed, shown.hash)


def shown_link(link: Link) -> AuditLink:
    return AuditLink(sequence=link.sequence, hash=link.hash)
