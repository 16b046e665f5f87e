"""Rows of runs made by hand, for tests about what is shown of them."""

from __future__ import annotations

from typing import Any

from horarium.platform.database import Database
from horarium.platform.database.tables import approvals, run_events, runs
from horarium.platform.ids import new_id


def add_run(database: Database, **given: Any) -> bytes:
    """A ready run by hand, unless said otherwise; the id of it."""
    zeros: dict[str, Any] = {"TEXT": "x", "BOOLEAN": False}
    row = {column.name: zeros.get(str(column.type), 0) for column in runs.columns if not column.nullable}
    row |= {"run_id": new_id(), "namespace": "default", "origin": "manual", "state": "ready"}
    row |= {"delivery": "at_least_once"} | given
    database.write(lambda c: c.execute(runs.insert().values(**row)))
    return bytes(row["run_id"])


def add_step(database: Database, parent: bytes, node: str, **given: Any) -> bytes:
    below = {"parent_run_id": parent, "root_run_id": given.pop("root", parent), "node_id": node, "node_path": node}
    return add_run(database, **below, **given)


def add_event(database: Database, run_id: bytes, sequence: int, at: int, kind: str = "node.started") -> None:
    row = {"run_id": run_id, "sequence": sequence, "event_type": kind, "recorded_at": at, "payload": "{}"}
    database.write(lambda c: c.execute(run_events.insert().values(**row)))


def add_approval(database: Database, run_id: bytes, **given: Any) -> bytes:
    row: dict[str, Any] = {
        "approval_id": new_id(),
        "namespace": "default",
        "run_id": run_id,
        "input_hash": "x",
        "gates": "[]",
        "decision": "pending",
        "requested_at": 1,
        "expires_at": 2,
    }
    row |= given
    database.write(lambda c: c.execute(approvals.insert().values(**row)))
    return bytes(row["approval_id"])
