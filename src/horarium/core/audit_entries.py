"""Chain of audit entries: the content of an entry, its hash, and the check of a chain.

Each namespace has a chain of its own, numbered from 1 without gaps. The hash of an entry is the SHA-256 of the hash
before it, as 64 hexadecimal digits, followed by the entry as canonical JSON: to change, remove or insert one, all
later entries must be written anew, and the head of the chain, which may be kept elsewhere.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import sha256

from horarium.errors import InvalidDefinition
from horarium.instant import Instant, to_rfc3339

DetailValue = str | int | bool | None
Detail = Mapping[str, DetailValue]

_HEAD = re.compile(r"([0-9]{1,18}):([0-9a-f]{64})")


class Act(StrEnum):
    """Acts that are no operation of the API; those are called what the operation is called."""

    LOGIN_FAILED = "login_failed"
    PERMISSION_REFUSED = "permission_refused"
    ADMIN_TOKEN_MADE = "admin_token_made"
    DATABASE_MIGRATED = "database_migrated"
    DATABASE_COPIED = "database_copied"
    SECRET_KEY_REPLACED = "secret_key_replaced"


@dataclass(frozen=True, slots=True)
class AuditAction:
    """An act with its actor, address, request and source."""

    act: str
    principal: str | None = None
    address: str | None = None
    request_id: str | None = None
    source: str | None = None
    detail: Detail = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ChainLink:
    """A place in a chain: an entry, and the hash that all entries up to it add up to."""

    sequence: int
    hash: str

    def __str__(self) -> str:
        return f"{self.sequence}:{self.hash}"


BEGINNING = ChainLink(0, "0" * 64)


@dataclass(frozen=True, slots=True)
class ChainEntry:
    """`hash` is the one that was written down with it."""

    namespace: str
    sequence: int
    recorded_at: Instant
    deed: AuditAction
    hash: str


@dataclass(frozen=True, slots=True)
class BrokenLink:
    """The first entry that is not as it was written, and why."""

    sequence: int
    why: str


def make_entry(before: ChainLink, namespace: str, deed: AuditAction, now: Instant) -> ChainEntry:
    sequence = before.sequence + 1
    return ChainEntry(namespace, sequence, now, deed, _hash(before.hash, namespace, sequence, now, deed))


def parse_link(text: str) -> ChainLink:
    """`17:` and 64 hexadecimal digits, as a check prints it."""
    found = _HEAD.fullmatch(text.strip())
    if found is None:
        raise InvalidDefinition(
            {"head": ["must be a sequence number, a colon and 64 hexadecimal digits, as printed by verify"]}
        )
    return ChainLink(int(found[1]), found[2])


def check_chain(
    entries: Iterable[ChainEntry], begin: ChainLink, kept: ChainLink | None = None
) -> Iterator[ChainLink | BrokenLink]:
    """Where the chain stands after each entry, oldest first; ends with the first that is broken.

    `begin` is the place that the first entry comes after; `kept` one that somebody has written down elsewhere.
    """
    last = begin
    for entry in entries:
        wrong = _check_entry(last, entry, kept)
        yield wrong or ChainLink(entry.sequence, entry.hash)
        if wrong is not None:
            return
        last = ChainLink(entry.sequence, entry.hash)


def check_end(
    last: ChainLink, begin: ChainLink, head: ChainLink | None, kept: ChainLink | None = None
) -> BrokenLink | None:
    """Check that the chain ends at its recorded head; None = it does."""
    if head is None:
        return (
            None
            if last == BEGINNING and kept is None
            else BrokenLink(last.sequence + 1, "the head of the chain is missing")
        )
    if head.sequence > last.sequence:
        return BrokenLink(last.sequence + 1, f"entries {last.sequence + 1} to {head.sequence} are missing")
    if head.sequence < last.sequence:
        return BrokenLink(head.sequence + 1, "it follows the head of the chain")
    if head.hash != last.hash:
        return BrokenLink(last.sequence, "the head of the chain does not match")
    if kept is not None and kept.sequence > last.sequence:
        return BrokenLink(last.sequence + 1, f"entries {last.sequence + 1} to {kept.sequence} are missing")
    if kept is not None and kept.sequence == begin.sequence and kept.hash != begin.hash:
        return BrokenLink(kept.sequence, "it differs from the checkpoint")
    return None


def _check_entry(before: ChainLink, entry: ChainEntry, kept: ChainLink | None) -> BrokenLink | None:
    due = before.sequence + 1
    if entry.sequence > due:
        gone = f"entries {due} to {entry.sequence - 1} are missing" if entry.sequence - 1 > due else "it is missing"
        return BrokenLink(due, gone)
    if entry.sequence < due:
        return BrokenLink(entry.sequence, "it occurs twice")
    if entry.hash != _hash(before.hash, entry.namespace, entry.sequence, entry.recorded_at, entry.deed):
        return BrokenLink(due, "its content was changed")
    if kept is not None and kept.sequence == due and kept.hash != entry.hash:
        return BrokenLink(due, "it differs from the checkpoint")
    return None


def canonical(namespace: str, sequence: int, recorded_at: Instant, deed: AuditAction) -> str:
    """JSON in ASCII, names in order, without blanks; what is not known is null."""
    whole = {
        "namespace": namespace,
        "sequence": sequence,
        "recorded_at": to_rfc3339(recorded_at),
        "act": deed.act,
        "principal": deed.principal,
        "address": deed.address,
        "request_id": deed.request_id,
        "source": deed.source,
        "detail": dict(deed.detail),
    }
    return json.dumps(whole, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def _hash(before: str, namespace: str, sequence: int, recorded_at: Instant, deed: AuditAction) -> str:
    return sha256((before + canonical(namespace, sequence, recorded_at, deed)).encode("ascii")).hexdigest()
