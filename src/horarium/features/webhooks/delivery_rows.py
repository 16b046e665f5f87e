"""SQL of deliveries: due subscriptions, their leases and cursors, and dead letters.

One process at a time delivers for a subscription, under a lease. The epoch of the lease fences a process that was so
slow that another has begun: its writes then change nothing. A dead letter is stored with the last response, and sent
again on request.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from horarium.features.history import entry_rows
from horarium.features.history.entry_rows import FeedCursor, FeedRow, cursor_text
from horarium.features.webhooks.rows import ROWS, SubscriptionRow
from horarium.instant import SECOND, Instant
from horarium.platform.database.statements import TypedRows, object_from_text
from horarium.platform.database.tables import (
    dead_letters,
    schedule_attributes,
    schedule_revisions,
    schedules,
    subscriptions,
)

LEASE_SECONDS = 60


@dataclass(frozen=True, slots=True)
class DeliveryPage:
    """Next rows of the feed for a subscription, with the ids and labels of their schedules."""

    rows: Sequence[FeedRow]
    schedule_ids: dict[bytes, str]
    labels: dict[bytes, dict[str, str]]


def due(connection: Connection, now: Instant, *, after: bytes, limit: int) -> list[SubscriptionRow]:
    """The next ones in the order of their births for which nobody delivers and no pause lasts."""
    asked = sa.exists().where(
        dead_letters.c.subscription_id == subscriptions.c.subscription_id, dead_letters.c.redeliver_at.is_not(None)
    )
    statement = (
        ROWS.select.where(
            subscriptions.c.subscription_id > after,
            _is_free(now),
            sa.or_(subscriptions.c.retry_at.is_(None), subscriptions.c.retry_at <= now, asked),
        )
        .order_by(subscriptions.c.subscription_id)
        .limit(limit)
    )
    return ROWS.all_listed(connection, statement)


def with_work(connection: Connection, rows: Sequence[SubscriptionRow]) -> list[SubscriptionRow]:
    """Return those that have not been told of everything, or that are to be told something again.

    One question for each namespace, however many subscriptions it has.
    """
    ids = [row.subscription_id for row in rows]
    asked = sa.select(dead_letters.c.subscription_id).where(
        dead_letters.c.subscription_id.in_(ids), dead_letters.c.redeliver_at.is_not(None)
    )
    again = set(connection.execute(asked.distinct()).scalars()) if ids else set()
    newest: dict[str, FeedCursor | None] = {}
    for namespace in {row.namespace for row in rows}:
        found, _ = entry_rows.newest(connection, namespace, limit=1)
        newest[namespace] = found[0].cursor if found else None
    return [row for row in rows if row.subscription_id in again or _is_behind(connection, row, newest[row.namespace])]


def _is_behind(connection: Connection, row: SubscriptionRow, newest: FeedCursor | None) -> bool:
    if newest is None:
        return False
    if row.cursor.epoch == newest.epoch:
        return row.cursor.place < newest.place
    return bool(entry_rows.onward(connection, row.namespace, after=row.cursor, limit=1)[0])


def park(connection: Connection, row: SubscriptionRow, error: str, now: Instant, *, retry_at: Instant) -> bool:
    """Set aside a subscription that cannot be read until it is edited, or can be read at a later look."""
    parked_at = sa.func.coalesce(subscriptions.c.parked_at, now)
    values = {"retry_at": retry_at, "last_error": error, "last_error_at": now, "parked_at": parked_at}
    return _write(connection, row, now, values)


def take(connection: Connection, subscription_id: bytes, now: Instant) -> SubscriptionRow | None:
    """Ours until the lease ends; None = another process was faster, or it is gone."""
    taken = connection.execute(
        sa.update(subscriptions)
        .where(subscriptions.c.subscription_id == subscription_id, _is_free(now))
        .values(lease_epoch=subscriptions.c.lease_epoch + 1, lease_until=now + LEASE_SECONDS * SECOND)
    )
    if taken.rowcount != 1:
        return None
    return ROWS.one(connection, ROWS.select.where(subscriptions.c.subscription_id == subscription_id))


def give_back(connection: Connection, row: SubscriptionRow) -> None:
    mine = (subscriptions.c.subscription_id == row.subscription_id, subscriptions.c.lease_epoch == row.lease_epoch)
    connection.execute(sa.update(subscriptions).where(*mine).values(lease_until=None))


def renew(connection: Connection, row: SubscriptionRow, now: Instant) -> bool:
    """The lease goes on; False = the subscription is no longer ours, or was changed or deleted."""
    return _write(connection, row, now, {})


def next_page(connection: Connection, row: SubscriptionRow, limit: int, *, with_labels: bool) -> DeliveryPage:
    rows, _ = entry_rows.onward(connection, row.namespace, after=row.cursor, limit=limit)
    uids = sorted({each.event.schedule_uid for each in rows if each.event.schedule_uid is not None})
    labels = _labels(connection, uids) if with_labels and uids else {}
    return DeliveryPage(rows, entry_rows.schedule_ids(connection, uids), labels)


def move(
    connection: Connection,
    row: SubscriptionRow,
    cursor: FeedCursor,
    now: Instant,
    *,
    delivered: int = 0,
    unreadable: Sequence[str] = (),
) -> bool:
    """Settle everything up to the cursor; False = another process holds its lease.

    `delivered` entries have arrived, and those that `unreadable` names were skipped.
    """
    values: dict[str, Any] = {"cursor": cursor_text(cursor), "failures": 0, "retry_at": None, "parked_at": None}
    if delivered:
        values |= {"delivered_count": subscriptions.c.delivered_count + delivered, "last_delivered_at": now}
    if unreadable:
        count = sa.func.coalesce(subscriptions.c.unreadable_count, 0)
        values |= {"unreadable_count": count + len(unreadable), "last_unreadable": unreadable[-1]}
    return _write(connection, row, now, values)


def postpone(connection: Connection, row: SubscriptionRow, error: str, now: Instant, *, retry_at: Instant) -> bool:
    """The entry after the cursor could not be delivered, and is tried again later."""
    values = {"failures": row.failures + 1, "retry_at": retry_at, "last_error": error, "last_error_at": now}
    return _write(connection, row, now, values)


def give_up(connection: Connection, row: SubscriptionRow, cursor: FeedCursor, error: str, now: Instant) -> bool:
    """The entry is settled without having been delivered."""
    values = {"cursor": cursor_text(cursor), "failures": 0, "retry_at": None, "last_error": error, "last_error_at": now}
    return _write(connection, row, now, values)


def _write(connection: Connection, row: SubscriptionRow, now: Instant, values: dict[str, Any]) -> bool:
    """The lease goes on from here."""
    held = sa.update(subscriptions).where(*_held(row))
    return connection.execute(held.values(**values, lease_until=now + LEASE_SECONDS * SECOND)).rowcount == 1


def _held(row: SubscriptionRow) -> tuple[sa.ColumnElement[bool], ...]:
    return (
        subscriptions.c.subscription_id == row.subscription_id,
        subscriptions.c.lease_epoch == row.lease_epoch,
        # Its author may have changed where it leads, or how often it has failed, meanwhile.
        subscriptions.c.version == row.version,
    )


def _is_free(now: Instant) -> sa.ColumnElement[bool]:
    return sa.or_(subscriptions.c.lease_until.is_(None), subscriptions.c.lease_until <= now)


def _labels(connection: Connection, uids: Sequence[bytes]) -> dict[bytes, dict[str, str]]:
    rows = connection.execute(
        sa.select(schedule_attributes.c.schedule_uid, schedule_attributes.c.name, schedule_attributes.c.value).where(
            schedule_attributes.c.schedule_uid.in_(list(uids)), schedule_attributes.c.kind == "label"
        )
    )
    found: dict[bytes, dict[str, str]] = {}
    for row in rows:
        found.setdefault(row.schedule_uid, {})[row.name] = row.value
    return found | _labels_of_deleted(connection, uids)


def _labels_of_deleted(connection: Connection, uids: Sequence[bytes]) -> dict[bytes, dict[str, str]]:
    """From their last documents: no filter of lists finds them any more, and what befell them is news all the same."""
    current = sa.and_(
        schedule_revisions.c.schedule_uid == schedules.c.schedule_uid,
        schedule_revisions.c.revision == schedules.c.revision,
    )
    documents = (
        sa.select(schedules.c.schedule_uid, schedule_revisions.c.document)
        .join(schedule_revisions, current)
        .where(schedules.c.schedule_uid.in_(list(uids)), schedules.c.deleted_at.is_not(None))
    )
    return {uid: _labels_in(document) for uid, document in connection.execute(documents)}


def _labels_in(document: str) -> dict[str, str]:
    """A document that cannot be read has no labels."""
    labels = object_from_text(document).get("labels")
    return labels if isinstance(labels, dict) else {}


MOST_DEAD_LETTERS = 1_000
"""Of one subscription; the oldest go first."""


@dataclass(frozen=True, slots=True)
class DeadLetterRow:
    """`status` is that of the last answer, None = there was none; `redeliver_at` when it was asked for once more."""

    dead_letter_id: bytes
    namespace: str
    subscription_id: bytes
    entry: str
    kind: str
    body: str
    attempts: int
    status: int | None
    error: str
    failed_at: Instant
    redeliver_at: Instant | None


_ROWS = TypedRows(DeadLetterRow, dead_letters)


def insert_dead_letter(connection: Connection, letter: DeadLetterRow) -> None:
    connection.execute(sa.insert(dead_letters).values(**{name: getattr(letter, name) for name in letter.__slots__}))
    of_one = dead_letters.c.subscription_id == letter.subscription_id
    newest_first = sa.select(dead_letters.c.dead_letter_id).where(of_one).order_by(dead_letters.c.dead_letter_id.desc())
    first_too_many = connection.execute(newest_first.offset(MOST_DEAD_LETTERS).limit(1)).scalar_one_or_none()
    if first_too_many is not None:
        old = (of_one, dead_letters.c.dead_letter_id <= first_too_many)
        connection.execute(sa.delete(dead_letters).where(*old))


def dead_letter_page(
    connection: Connection, subscription_id: bytes, *, before: bytes | None, limit: int
) -> list[DeadLetterRow]:
    """Newest first."""
    mine = dead_letters.c.subscription_id == subscription_id
    older = sa.true() if before is None else dead_letters.c.dead_letter_id < before
    statement = _ROWS.select.where(mine, older).order_by(dead_letters.c.dead_letter_id.desc()).limit(limit)
    return _ROWS.all_listed(connection, statement)


def count_dead_letters(connection: Connection, subscription_ids: Collection[bytes]) -> dict[bytes, int]:
    """Count dead letters by subscription that has any."""
    statement = (
        sa.select(dead_letters.c.subscription_id, sa.func.count())
        .where(dead_letters.c.subscription_id.in_(list(subscription_ids)))
        .group_by(dead_letters.c.subscription_id)
    )
    return {row[0]: row[1] for row in connection.execute(statement)}


def request_redelivery(
    connection: Connection, subscription_id: bytes, ids: Collection[bytes] | None, now: Instant
) -> int:
    """To be sent once more, None = all; how many."""
    mine = sa.update(dead_letters).where(dead_letters.c.subscription_id == subscription_id)
    if ids is not None:
        mine = mine.where(dead_letters.c.dead_letter_id.in_(list(ids)))
    return connection.execute(mine.values(redeliver_at=now)).rowcount


def requested_redeliveries(connection: Connection, subscription_id: bytes, limit: int) -> list[DeadLetterRow]:
    """Read them oldest first; one that cannot be read is marked."""
    mine = (dead_letters.c.subscription_id == subscription_id, dead_letters.c.redeliver_at.is_not(None))
    return _ROWS.all_listed(connection, _ROWS.select.where(*mine).order_by(dead_letters.c.dead_letter_id).limit(limit))


def delete_dead_letter(connection: Connection, dead_letter_id: bytes) -> None:
    connection.execute(sa.delete(dead_letters).where(dead_letters.c.dead_letter_id == dead_letter_id))


def put_aside(connection: Connection, dead_letter_id: bytes) -> None:
    """Keep it, and do not send it again until somebody asks."""
    mine = sa.update(dead_letters).where(dead_letters.c.dead_letter_id == dead_letter_id)
    connection.execute(mine.values(redeliver_at=None))


def failed_again(connection: Connection, letter: DeadLetterRow, status: int | None, error: str, now: Instant) -> None:
    """It stays, and is not sent again until somebody asks."""
    connection.execute(
        sa.update(dead_letters)
        .where(dead_letters.c.dead_letter_id == letter.dead_letter_id)
        .values(attempts=letter.attempts + 1, status=status, error=error, failed_at=now, redeliver_at=None)
    )
