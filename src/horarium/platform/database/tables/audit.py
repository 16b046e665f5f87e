"""Tables of the audit log: its entries, and the head of the chain of each namespace.

Triggers reject every change of an entry, and its deletion unless a checkpoint covers it
(`migrations/initial/triggers.py`).
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Index, PrimaryKeyConstraint, Table, Text

from horarium.platform.database.tables.schema import metadata

audit = Table(
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
    Index("audit_by_act", "namespace", "act", "sequence"),
    Index("audit_by_principal", "namespace", "principal", "sequence"),
)

audit_heads = Table(
    "audit_heads",
    metadata,
    Column("namespace", Text, primary_key=True),
    Column("sequence", BigInteger, nullable=False),
    Column("hash", Text, nullable=False),
    # What retention has left out: the entries up to this one are gone, and this was the hash of the last of them.
    Column("trimmed_sequence", BigInteger, nullable=False),
    Column("trimmed_hash", Text, nullable=False),
    # Of a namespace whose name was another's before: what came before it is none of its business.
    Column("own_after", BigInteger, nullable=False),
)
