"""Tables of subscriptions to the feed, and of dead letters."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Index, Integer, LargeBinary, Table, Text

from horarium.platform.database.tables.schema import metadata, partial_index

subscriptions = Table(
    "subscriptions",
    metadata,
    Column("subscription_id", LargeBinary(16), primary_key=True),
    Column("namespace", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("kinds", Text, nullable=False),  # JSON
    Column("filter", Text, nullable=False),  # JSON
    Column("url", Text, nullable=False),
    Column("secret", Text, nullable=False),  # sealed: see `sealing.py`
    Column("version", Integer, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("updated_at", BigInteger, nullable=False),
    Column("cursor", Text, nullable=False),  # of the last entry that is settled
    Column("failures", Integer, nullable=False),  # of the entry after it
    Column("retry_at", BigInteger),
    Column("delivered_count", BigInteger, nullable=False),
    Column("last_delivered_at", BigInteger),
    Column("last_error", Text),
    Column("last_error_at", BigInteger),
    # Whoever delivers; the epoch fences one that was slow.
    Column("lease_epoch", Integer, nullable=False),
    Column("lease_until", BigInteger),
    # What the deliverer cannot read: its own filter or address (since when), and entries of the feed, which it skips.
    Column("parked_at", BigInteger),
    Column("unreadable_count", BigInteger),
    Column("last_unreadable", Text),
    Index("subscriptions_by_name", "namespace", "name", unique=True),
)

dead_letters = Table(
    "dead_letters",
    metadata,
    Column("dead_letter_id", LargeBinary(16), primary_key=True),
    Column("namespace", Text, nullable=False),
    Column("subscription_id", LargeBinary(16), nullable=False),
    Column("entry", Text, nullable=False),  # the id of the entry of the feed
    Column("kind", Text, nullable=False),
    Column("body", Text, nullable=False),  # as it was sent
    Column("attempts", Integer, nullable=False),
    Column("status", Integer),  # of the last answer; NULL = there was none
    Column("error", Text, nullable=False),
    Column("failed_at", BigInteger, nullable=False),
    Column("redeliver_at", BigInteger),  # when somebody asked for another delivery; NULL = nobody did
    Index("dead_letters_of_one", "subscription_id", "dead_letter_id"),
    partial_index("dead_letters_to_redeliver", "subscription_id", where="redeliver_at IS NOT NULL"),
)
