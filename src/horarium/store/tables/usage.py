"""The table of what namespaces have added, by which their quotas are kept."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Integer, PrimaryKeyConstraint, Table, Text

from horarium.store.tables.schema import metadata

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
