"""What a database says about itself: its tables, indexes and constraints, as text that can be compared.

Partitions are left out: there are as many of them as weeks have gone by.
"""

from __future__ import annotations

import re

from sqlalchemy import Connection

# Where the migrations write down how far they are: no table of the program.
BOOKKEEPING = ("alembic_version", "schema_revision")


def definitions(connection: Connection) -> dict[str, str]:
    if connection.dialect.name == "postgresql":
        statement = (
            "SELECT indexname, replace(indexdef, ' ON ONLY ', ' ON ') FROM pg_indexes JOIN pg_class "
            "ON pg_class.oid = format('%%I.%%I', schemaname, tablename)::regclass "
            "WHERE schemaname = 'public' AND NOT relispartition UNION ALL "
            "SELECT conrelid::regclass || '.' || conname, pg_get_constraintdef(pg_constraint.oid) FROM pg_constraint "
            "JOIN pg_class ON pg_class.oid = conrelid "
            "WHERE connamespace = 'public'::regnamespace AND contype <> 'n' AND NOT relispartition UNION ALL "
            "SELECT relname, reloptions::text FROM pg_class WHERE relname = 'positions'"
        )
    else:
        statement = "SELECT name, sql FROM sqlite_master WHERE type IN ('table', 'index') AND sql IS NOT NULL"
    rows = connection.exec_driver_sql(statement).all()
    return {name: re.sub(r"\s+", " ", text) for name, text in rows if not name.startswith(BOOKKEEPING)}
