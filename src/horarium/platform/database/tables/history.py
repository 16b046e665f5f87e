"""Tables of the history and the feed: entries, the servers that wrote them, and checkpoints."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Index, Integer, LargeBinary, Table, Text

from horarium.platform.database.tables.schema import ROW_NUMBER, metadata, partial_index

history = Table(
    "history",
    metadata,
    Column("feed_id", ROW_NUMBER, primary_key=True, autoincrement=True),
    # The transaction that wrote the row, where the database tells: a reader of the feed must not pass
    # the oldest one that is still running, or it would skip rows that commit late.
    Column("transaction_id", BigInteger, server_default=None),
    Column("schedule_uid", LargeBinary(16)),  # NULL = of a run that no schedule asked for
    Column("sequence", BigInteger),  # NULL = a notice: the feed tells it, and no audit stream numbers it
    Column("namespace", Text, nullable=False),
    Column("event_type", Text, nullable=False),
    Column("recorded_at", BigInteger, nullable=False),
    Column("nominal", BigInteger),  # of the occurrence, or the first of a range
    Column("nominal_last", BigInteger),  # the last of a range
    Column("run_id", LargeBinary(16)),
    Column("payload", Text, nullable=False),
    # On PostgreSQL this one and the primary key have `recorded_at` behind them, by which the table is partitioned; the
    # numbers come from the position, under its lock.
    Index("history_in_order", "schedule_uid", "sequence", unique=True),
    Index("history_feed", "namespace", "transaction_id", "feed_id"),
    # What was decided about the occurrences of a window of time, across schedules.
    partial_index("history_by_occurrence", "namespace", "nominal", where="nominal IS NOT NULL"),
    # For retention, which forgets notices by their age alone.
    partial_index("history_notices", "recorded_at", where="sequence IS NULL"),
    # No number is given twice, as PostgreSQL has it: a cursor may stand behind rows that were deleted since.
    sqlite_autoincrement=True,
)

# The servers that have written history, one after the other: see `feed.py`. SQLite has none.
feed_epochs = Table(
    "feed_epochs",
    metadata,
    Column("epoch", Integer, primary_key=True, autoincrement=False),
    Column("server", Text, nullable=False),
    Column("first_feed_id", BigInteger, nullable=False),
)

# What retention leaves behind: history before `sequence` is gone, and was complete up to `decided_until`.
checkpoints = Table(
    "checkpoints",
    metadata,
    Column("schedule_uid", LargeBinary(16), primary_key=True),
    Column("sequence", BigInteger, nullable=False),
    Column("decided_until", BigInteger, nullable=False),
    Column("made_at", BigInteger, nullable=False),
)
