"""Access to the database."""

from __future__ import annotations

from sqlalchemy import Connection

from horarium.platform.database.transactions import Database, Dialect, open_database

__all__ = ["Connection", "Database", "Dialect", "open_database"]
