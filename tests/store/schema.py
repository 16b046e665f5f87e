"""What a database says about itself: its tables, indexes and constraints, as text that can be compared."""

from __future__ import annotations

import re

from sqlalchemy import Connection

# Where the migrations write down how far they are: no table of the program.
BOOKKEEPING = ("alembic_version", "schema_revision")


def definitions(connection: Connection) -> dict[str, str]:
    if connection.dialect.name == "postgresql":
        statement = (
            "SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'public' UNION ALL "
            "SELECT conrelid::regclass || '.' || conname, pg_get_constraintdef(oid) FROM pg_constraint "
            "WHERE connamespace = 'public'::regnamespace AND contype <> 'n' UNION ALL "
            "SELECT relname, reloptions::text FROM pg_class WHERE relname = 'positions'"
        )
    else:
        statement = "SELECT name, sql FROM sqlite_master WHERE type IN ('table', 'index') AND sql IS NOT NULL"
    rows = connection.exec_driver_sql(statement).all()
    return {name: re.sub(r"\s+", " ", text) for name, text in rows if not name.startswith(BOOKKEEPING)}
