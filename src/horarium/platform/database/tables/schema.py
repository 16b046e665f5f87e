"""Metadata that lists all tables, the type of row numbers, and partial indexes."""

from __future__ import annotations

from typing import Any

from sqlalchemy import BigInteger, Index, Integer, MetaData, text

metadata = MetaData()
# Tables that only PostgreSQL has; no list of all tables names them.
postgres_metadata = MetaData()

# SQLite counts rows with INTEGER only; PostgreSQL needs BIGINT to be as wide.
ROW_NUMBER = BigInteger().with_variant(Integer, "sqlite")


def partial_index(name: str, *columns: Any, where: str, unique: bool = False) -> Index:
    return Index(name, *columns, unique=unique, postgresql_where=text(where), sqlite_where=text(where))
