"""Runs as rows, put there past every door."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from engine.builders import START

from horarium.platform.database import Database
from horarium.platform.database.tables import runs
from horarium.platform.ids import new_id

NOW = START


def add_run(database: Database, state: str = "ready", **given: Any) -> bytes:
    zeros: dict[str, Any] = {"TEXT": "x", "BOOLEAN": False}
    row = {column.name: zeros.get(str(column.type), 0) for column in runs.columns if not column.nullable}
    row |= {"run_id": new_id(), "namespace": "default", "origin": "manual", "state": state, "kind": "http"}
    row |= {"timeout_seconds": 3_600, "ready_at": NOW, "delivery": "at_least_once", "next_event": 3} | given
    database.write(lambda c: c.execute(sa.insert(runs).values(**row)))
    return bytes(row["run_id"])


def run_row(database: Database, run_id: bytes) -> Any:
    return database.read(lambda c: c.execute(sa.select(runs).where(runs.c.run_id == run_id)).one())
