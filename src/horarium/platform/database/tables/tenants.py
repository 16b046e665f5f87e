"""Tables of namespaces, tokens, requests, processes, usage, and values of the installation."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, ForeignKey, Index, Integer, LargeBinary, PrimaryKeyConstraint, Table, Text

from horarium.platform.database.tables.schema import metadata, partial_index

namespaces = Table(
    "namespaces",
    metadata,
    Column("namespace", Text, primary_key=True),
    Column("description", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("deleted_at", BigInteger),  # nobody gets in any more; its rows are on their way out
    Column("quotas", Text),  # limits of its own, by name; NULL = those of the settings
    Column("keep_runs_days", Integer),  # NULL = as the settings say, 0 = for ever
    Column("keep_history_days", Integer),  # the same
    # What was found at the last count, and what the rows of `namespace_usage` had added when that count began.
    Column("bytes_stored", BigInteger, nullable=False, server_default="0"),
    Column("bytes_base", BigInteger, nullable=False, server_default="0"),
)

tokens = Table(
    "tokens",
    metadata,
    Column("token_id", LargeBinary(16), primary_key=True),
    Column("namespace", Text, ForeignKey("namespaces.namespace"), nullable=False),
    Column("sha256", Text, nullable=False, unique=True),
    Column("name", Text, nullable=False),
    Column("role", Text, nullable=False),
    Column("subject", Text),
    Column("created_at", BigInteger, nullable=False),
    Column("expires_at", BigInteger),
    Column("revoked_at", BigInteger),
    Column("last_used_at", BigInteger),
    # The secret before the last rotation, and until when it still opens the door.
    Column("previous_sha256", Text),
    Column("previous_until", BigInteger),
    Column("queues", Text),  # a JSON list of those that it is good for; NULL = all
    partial_index("tokens_by_previous", "previous_sha256", unique=True, where="previous_sha256 IS NOT NULL"),
)

idempotency = Table(
    "idempotency",
    metadata,
    Column("namespace", Text, nullable=False),
    Column("key", Text, nullable=False),
    Column("request_hash", Text, nullable=False),
    Column("status", Integer, nullable=False),
    Column("answer", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    PrimaryKeyConstraint("namespace", "key"),
    Index("idempotency_by_age", "created_at"),
)

# One row for each process and loop (its heartbeat moves when a step has been completed), and named ones
# such as `ticker`, whose `since` says from when on some ticker has been there without a break.
leases = Table(
    "leases",
    metadata,
    Column("name", Text, primary_key=True),
    Column("owner", Text, nullable=False),
    Column("since", BigInteger, nullable=False),
    Column("beat_at", BigInteger, nullable=False),
    Column("until", BigInteger),
    Column("info", Text, nullable=False),
)

# What holds for all processes on this database.
installation = Table(
    "installation",
    metadata,
    Column("name", Text, primary_key=True),  # see `installation.py`
    Column("value", Text, nullable=False),
)


# Sums that only grow, each in a few rows, so that writers of one namespace do not wait for each other: see `usage.py`.
namespace_usage = Table(
    "namespace_usage",
    metadata,
    Column("namespace", Text, nullable=False),
    Column("shard", Integer, nullable=False),
    Column("minute", BigInteger, nullable=False),  # of the clock: the one that `born` counts
    Column("born", BigInteger, nullable=False),
    Column("births", BigInteger, nullable=False),
    Column("schedules", BigInteger, nullable=False),
    Column("bytes", BigInteger, nullable=False),
    PrimaryKeyConstraint("namespace", "shard"),
)
