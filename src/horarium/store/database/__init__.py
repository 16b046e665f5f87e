"""The way to the database; whoever passes a `Connection` on need not know what it is."""

from __future__ import annotations

from sqlalchemy import Connection

from horarium.store.database.transactions import Database, Dialect, open_database

__all__ = ["Connection", "Database", "Dialect", "open_database"]
