"""History, subscriptions, namespaces, credentials and the audit."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
    text,
)

metadata = MetaData()
ID = LargeBinary(16)

Table(
    "feed_epochs",
    metadata,
    Column("epoch", Integer, primary_key=True, autoincrement=False),
    Column("server", Text, nullable=False),
    Column("first_feed_id", BigInteger, nullable=False),
)

Table(
    "checkpoints",
    metadata,
    Column("schedule_uid", ID, primary_key=True),
    Column("sequence", BigInteger, nullable=False),
    Column("decided_until", BigInteger, nullable=False),
    Column("made_at", BigInteger, nullable=False),
)

Table(
    "subscriptions",
    metadata,
    Column("subscription_id", ID, primary_key=True),
    Column("namespace", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("kinds", Text, nullable=False),
    Column("filter", Text, nullable=False),
    Column("url", Text, nullable=False),
    Column("secret", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("updated_at", BigInteger, nullable=False),
    Column("cursor", Text, nullable=False),
    Column("failures", Integer, nullable=False),
    Column("retry_at", BigInteger),
    Column("delivered_count", BigInteger, nullable=False),
    Column("last_delivered_at", BigInteger),
    Column("last_error", Text),
    Column("last_error_at", BigInteger),
    Column("lease_epoch", Integer, nullable=False),
    Column("lease_until", BigInteger),
    Column("parked_at", BigInteger),
    Column("unreadable_count", BigInteger),
    Column("last_unreadable", Text),
)

Table(
    "dead_letters",
    metadata,
    Column("dead_letter_id", ID, primary_key=True),
    Column("namespace", Text, nullable=False),
    Column("subscription_id", ID, nullable=False),
    Column("entry", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("body", Text, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("status", Integer),
    Column("error", Text, nullable=False),
    Column("failed_at", BigInteger, nullable=False),
    Column("redeliver_at", BigInteger),
)

Table(
    "namespaces",
    metadata,
    Column("namespace", Text, primary_key=True),
    Column("description", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("deleted_at", BigInteger),
    Column("quotas", Text),
    Column("keep_runs_days", Integer),
    Column("keep_history_days", Integer),
    Column("bytes_stored", BigInteger, nullable=False, server_default="0"),
    Column("bytes_base", BigInteger, nullable=False, server_default="0"),
)

Table(
    "namespace_usage",
    metadata,
    Column("namespace", Text, nullable=False),
    Column("shard", Integer, nullable=False),
    Column("minute", BigInteger, nullable=False),
    Column("born", BigInteger, nullable=False),
    Column("births", BigInteger, nullable=False),
    Column("schedules", BigInteger, nullable=False),
    Column("bytes", BigInteger, nullable=False),
    PrimaryKeyConstraint("namespace", "shard"),
)

Table(
    "tokens",
    metadata,
    Column("token_id", ID, primary_key=True),
    Column("namespace", Text, ForeignKey("namespaces.namespace"), nullable=False),
    Column("sha256", Text, nullable=False, unique=True),
    Column("name", Text, nullable=False),
    Column("role", Text, nullable=False),
    Column("subject", Text),
    Column("created_at", BigInteger, nullable=False),
    Column("expires_at", BigInteger),
    Column("revoked_at", BigInteger),
    Column("last_used_at", BigInteger),
    Column("previous_sha256", Text),
    Column("previous_until", BigInteger),
    Column("queues", Text),
)

Table(
    "secrets",
    metadata,
    Column("namespace", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("sealed", Text, nullable=False),
    Column("hosts", Text),
    Column("generated", Boolean, nullable=False),
    Column("principal", Text),
    Column("version", Integer, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("updated_at", BigInteger, nullable=False),
    PrimaryKeyConstraint("namespace", "name"),
)

Table(
    "idempotency",
    metadata,
    Column("namespace", Text, nullable=False),
    Column("key", Text, nullable=False),
    Column("request_hash", Text, nullable=False),
    Column("status", Integer, nullable=False),
    Column("answer", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    PrimaryKeyConstraint("namespace", "key"),
)

Table(
    "leases",
    metadata,
    Column("name", Text, primary_key=True),
    Column("owner", Text, nullable=False),
    Column("since", BigInteger, nullable=False),
    Column("beat_at", BigInteger, nullable=False),
    Column("until", BigInteger),
    Column("info", Text, nullable=False),
)

Table(
    "installation",
    metadata,
    Column("name", Text, primary_key=True),
    Column("value", Text, nullable=False),
)

Table(
    "audit",
    metadata,
    Column("namespace", Text, nullable=False),
    Column("sequence", BigInteger, nullable=False),
    Column("recorded_at", BigInteger, nullable=False),
    Column("act", Text, nullable=False),
    Column("principal", Text),
    Column("address", Text),
    Column("request_id", Text),
    Column("source", Text),
    Column("detail", Text, nullable=False),
    Column("hash", Text, nullable=False),
    PrimaryKeyConstraint("namespace", "sequence"),
)

Table(
    "audit_heads",
    metadata,
    Column("namespace", Text, primary_key=True),
    Column("sequence", BigInteger, nullable=False),
    Column("hash", Text, nullable=False),
    Column("trimmed_sequence", BigInteger, nullable=False),
    Column("trimmed_hash", Text, nullable=False),
    Column("own_after", BigInteger, nullable=False),
)


def history(on_postgres: bool) -> Table:
    """PostgreSQL partitions the table by `recorded_at`, so the primary key contains it, and sets `transaction_id`."""
    transaction = text("(pg_current_xact_id()::text::bigint)") if on_postgres else None
    return Table(
        "history",
        MetaData(),
        Column("feed_id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True),
        Column("transaction_id", BigInteger, server_default=transaction),
        Column("schedule_uid", ID),
        Column("sequence", BigInteger),
        Column("namespace", Text, nullable=False),
        Column("event_type", Text, nullable=False),
        Column("recorded_at", BigInteger, primary_key=on_postgres, nullable=False, autoincrement=False),
        Column("nominal", BigInteger),
        Column("nominal_last", BigInteger),
        Column("run_id", ID),
        Column("payload", Text, nullable=False),
        postgresql_partition_by="RANGE (recorded_at)",
        sqlite_autoincrement=True,
    )
