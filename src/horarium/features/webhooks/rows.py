"""SQL of subscriptions: create, find, change and delete them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from horarium.core.document.json_values import damage_of
from horarium.features.history.entry_rows import START, FeedCursor, cursor_text, parse_cursor
from horarium.instant import Instant
from horarium.platform.database.statements import (
    Scope,
    TypedRows,
    names_from_text,
    object_from_text,
    to_text,
    within_scope,
)
from horarium.platform.database.tables import dead_letters, subscriptions

_AT_ONCE = 900


def _kinds(text: str) -> list[str]:
    return list(names_from_text(text))


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

    @property
    def damage(self) -> str | None:
        """The parts that cannot be read, with the causes; the subscription receives nothing until they are edited."""
        parts = {"kinds": self.kinds, "filter": self.filter}
        found = (f"{name}: {why}" for name, part in parts.items() if (why := damage_of(part)) is not None)
        return "; ".join(found) or None

    def __repr__(self) -> str:
        return f"SubscriptionRow({self.namespace!r}, {self.name!r})"


ROWS = TypedRows(SubscriptionRow, subscriptions, kinds=_kinds, filter=object_from_text, cursor=_cursor)


@dataclass(frozen=True, slots=True)
class DeliveryProblems:
    """Since when a subscription is parked because it cannot be read, and how many entries of the feed it skipped."""

    parked_at: Instant | None = None
    unreadable_count: int = 0
    last_unreadable: str | None = None


NO_PROBLEMS = DeliveryProblems()


def problems_of(connection: Connection, ids: Sequence[bytes]) -> dict[bytes, DeliveryProblems]:
    """Return the problems of those that have any."""
    c = subscriptions.c
    some = sa.or_(c.parked_at.is_not(None), c.unreadable_count > 0)
    asked = sa.select(c.subscription_id, c.parked_at, c.unreadable_count, c.last_unreadable)
    found: dict[bytes, DeliveryProblems] = {}
    for start in range(0, len(ids), _AT_ONCE):
        for row in connection.execute(asked.where(c.subscription_id.in_(list(ids[start : start + _AT_ONCE])), some)):
            found[row.subscription_id] = DeliveryProblems(row.parked_at, row.unreadable_count or 0, row.last_unreadable)
    return found


def count_problems(connection: Connection) -> tuple[int, int]:
    """Count parked subscriptions, and entries of the feed that subscriptions have skipped, in all namespaces."""
    c = subscriptions.c
    parked, skipped = connection.execute(sa.select(sa.func.count(c.parked_at), sa.func.sum(c.unreadable_count))).one()
    return int(parked), int(skipped or 0)


def insert(connection: Connection, row: SubscriptionRow) -> None:
    """Raises Conflict(`subscriptions_by_name`) if the namespace has one of that name."""
    connection.execute(
        sa.insert(subscriptions).values(
            subscription_id=row.subscription_id,
            namespace=row.namespace,
            **_values(row),
            created_at=row.created_at,
            cursor=cursor_text(row.cursor),
            failures=0,
            delivered_count=0,
            lease_epoch=0,
        )
    )


def update(connection: Connection, row: SubscriptionRow, *, expected_version: int) -> bool:
    """Store an edited subscription. Failed deliveries are retried at once: the address may have changed."""
    mine = (
        subscriptions.c.namespace == row.namespace,
        subscriptions.c.subscription_id == row.subscription_id,
        subscriptions.c.version == expected_version,
    )
    fresh = {**_values(row), "failures": 0, "retry_at": None, "lease_until": None, "parked_at": None}
    return connection.execute(sa.update(subscriptions).where(*mine).values(**fresh)).rowcount == 1


def _values(row: SubscriptionRow) -> dict[str, Any]:
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


def page(
    connection: Connection, scope: Scope, *, after: tuple[str, str] | None = None, limit: int | None = None
) -> list[SubscriptionRow]:
    """By namespace and name, those behind the pair `after`."""
    key = sa.tuple_(subscriptions.c.namespace, subscriptions.c.name)
    behind = sa.true() if after is None else key > sa.tuple_(*after)
    listed = ROWS.select.where(within_scope(subscriptions.c.namespace, scope), behind)
    return ROWS.all_listed(connection, listed.order_by(*key.clauses).limit(limit))


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
