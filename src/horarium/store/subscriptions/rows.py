"""What a row of a subscription is, and how subscriptions are made, found, changed and deleted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from horarium.instant import Instant
from horarium.store.database.json_text import from_text, to_text
from horarium.store.database.typed_rows import TypedRows
from horarium.store.history.feed import START, FeedCursor, cursor_text, parse_cursor
from horarium.store.tables import dead_letters, subscriptions


def _cursor(text: str) -> FeedCursor:
    return parse_cursor(text) or START


@dataclass(frozen=True, slots=True)
class SubscriptionRow:
    """`secret` is sealed. `failures` are those of the entry after `cursor`, which is tried again at `retry_at`."""

    subscription_id: bytes
    namespace: str
    name: str
    kinds: list[str]
    filter: dict[str, Any]
    url: str
    secret: str
    version: int
    created_at: Instant
    updated_at: Instant
    cursor: FeedCursor
    failures: int
    retry_at: Instant | None
    delivered_count: int
    last_delivered_at: Instant | None
    last_error: str | None
    last_error_at: Instant | None
    lease_epoch: int

    def __repr__(self) -> str:
        return f"SubscriptionRow({self.namespace!r}, {self.name!r})"


ROWS = TypedRows(SubscriptionRow, subscriptions, kinds=from_text, filter=from_text, cursor=_cursor)


def insert(connection: Connection, row: SubscriptionRow) -> None:
    """Raises Conflict(`subscriptions_by_name`) if the namespace has one of that name."""
    connection.execute(
        sa.insert(subscriptions).values(
            subscription_id=row.subscription_id,
            namespace=row.namespace,
            **_said(row),
            created_at=row.created_at,
            cursor=cursor_text(row.cursor),
            failures=0,
            delivered_count=0,
            lease_epoch=0,
        )
    )


def update(connection: Connection, row: SubscriptionRow, *, expected_version: int) -> bool:
    """What its author says of it. What failed to be delivered is tried anew at once: the address may be another one."""
    mine = (
        subscriptions.c.namespace == row.namespace,
        subscriptions.c.subscription_id == row.subscription_id,
        subscriptions.c.version == expected_version,
    )
    fresh = {**_said(row), "failures": 0, "retry_at": None, "lease_until": None}
    return connection.execute(sa.update(subscriptions).where(*mine).values(**fresh)).rowcount == 1


def _said(row: SubscriptionRow) -> dict[str, Any]:
    return {
        "name": row.name,
        "kinds": to_text(row.kinds),
        "filter": to_text(row.filter),
        "url": row.url,
        "secret": row.secret,
        "version": row.version,
        "updated_at": row.updated_at,
    }


def find(connection: Connection, namespace: str, subscription_id: bytes) -> SubscriptionRow | None:
    mine = (subscriptions.c.namespace == namespace, subscriptions.c.subscription_id == subscription_id)
    return ROWS.one(connection, ROWS.select.where(*mine))


def find_by_name(connection: Connection, namespace: str, name: str) -> SubscriptionRow | None:
    mine = (subscriptions.c.namespace == namespace, subscriptions.c.name == name)
    return ROWS.one(connection, ROWS.select.where(*mine))


def of_namespace(connection: Connection, namespace: str) -> list[SubscriptionRow]:
    """By name; there are never many."""
    mine = subscriptions.c.namespace == namespace
    return ROWS.all_listed(connection, ROWS.select.where(mine).order_by(subscriptions.c.name))


def count(connection: Connection, namespace: str) -> int:
    statement = sa.select(sa.func.count()).select_from(subscriptions).where(subscriptions.c.namespace == namespace)
    found: int = connection.execute(statement).scalar_one()
    return found


def delete(connection: Connection, namespace: str, subscription_id: bytes) -> bool:
    """With its dead letters; whether it was there."""
    mine = (subscriptions.c.namespace == namespace, subscriptions.c.subscription_id == subscription_id)
    gone = connection.execute(sa.delete(subscriptions).where(*mine)).rowcount == 1
    if gone:
        connection.execute(sa.delete(dead_letters).where(dead_letters.c.subscription_id == subscription_id))
    return gone
