"""What holds for all processes on one database: facts by name, each said once."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy import Connection
from sqlalchemy.dialects import postgresql, sqlite

from horarium.store.tables import facts

_KEY = "secret_key"


def key_fingerprint(connection: Connection) -> str | None:
    """Of the key that signs; None = no process has brought one yet."""
    return connection.execute(sa.select(facts.c.value).where(facts.c.name == _KEY)).scalar_one_or_none()


def set_key_fingerprint(connection: Connection, fingerprint: str) -> None:
    """Unless there is one already."""
    insert = sqlite.insert if connection.dialect.name == "sqlite" else postgresql.insert
    connection.execute(insert(facts).values(name=_KEY, value=fingerprint).on_conflict_do_nothing())
