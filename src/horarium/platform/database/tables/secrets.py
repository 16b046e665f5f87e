"""Table of secrets: sealed values by name."""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, Integer, PrimaryKeyConstraint, Table, Text

from horarium.platform.database.tables.schema import metadata

secrets = Table(
    "secrets",
    metadata,
    Column("namespace", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("sealed", Text, nullable=False),  # see `sealing.py`
    Column("hosts", Text),  # JSON; NULL = it may go to any
    Column("generated", Boolean, nullable=False),  # made of a credential that a definition held in plain
    Column("principal", Text),  # who set it last
    Column("version", Integer, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("updated_at", BigInteger, nullable=False),
    PrimaryKeyConstraint("namespace", "name"),
)
