"""How much waits, and who has what in hand: counted over all tenants, and only so far."""

from __future__ import annotations

from typing import Any

import pytest
import sqlalchemy as sa
from store.rows import NOW, add_run

from horarium.core.document.states import FINAL, OPEN, RunState
from horarium.features.runs import count_rows
from horarium.features.runs.count_rows import LeaseHolder, WaitingGroup
from horarium.platform.database import Connection, Database


def test_what_waits_is_counted_by_kind_and_queue_the_most_first(database: Database) -> None:
    for at in (5, 3, 4):
        add_run(database, "ready", ready_at=NOW + at)
    add_run(database, "queued", kind="workflow", queue="mail")
    add_run(database, "queued", kind="workflow", queue="mail", namespace="other")
    add_run(database, "queued", kind="workflow", queue="a")
    add_run(database, "held", kind="celery")
    for state in ("running", "succeeded", "awaiting_approval"):
        add_run(database, state)
    assert database.read(count_rows.waiting_groups) == [
        WaitingGroup(RunState.READY, "http", None, 3),
        WaitingGroup(RunState.QUEUED, "workflow", "mail", 2),
        WaitingGroup(RunState.QUEUED, "workflow", "a", 1),
        WaitingGroup(RunState.HELD, "celery", None, 1),
    ]
    assert database.read(count_rows.oldest_ready) == NOW + 3


def test_open_runs_are_counted_by_state_along_indexes(database: Database) -> None:
    expected = dict.fromkeys(OPEN, 0)
    for count, state in enumerate(sorted(OPEN), 1):
        for _ in range(count):
            add_run(database, state, namespace=f"n{count}")
        expected[state] = count
    for state in FINAL:
        add_run(database, state)
    assert database.read(count_rows.by_state) == expected
    told: list[tuple[str, tuple[Any, ...]]] = []

    def plans(connection: Connection) -> list[str]:
        words = "EXPLAIN QUERY PLAN" if connection.dialect.name == "sqlite" else "EXPLAIN"
        if connection.dialect.name == "postgresql":
            connection.exec_driver_sql("SET LOCAL enable_seqscan = off")
        sa.event.listen(connection, "before_cursor_execute", lambda _c, _k, s, v, *_: told.append((s, v)))
        count_rows.by_state(connection)
        return [str([*connection.exec_driver_sql(f"{words} {s}", v)]) for s, v in list(told)]

    for plan in database.read(plans):
        assert "INDEX" in plan.upper(), plan
        assert "Seq Scan on" not in plan, plan


def test_a_long_queue_is_not_counted_to_its_end(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(count_rows, "MOST_COUNTED", 2)
    for _ in range(3):
        add_run(database, "ready")
    assert [each.runs for each in database.read(count_rows.waiting_groups)] == [2]


def test_who_has_runs_in_hand(database: Database) -> None:
    assert database.read(count_rows.lease_holders) == []
    for owner, until in (("w2", 7), ("w1", 5), ("w1", 9)):
        add_run(database, "running", lease_owner=owner, lease_until=NOW + until)
    add_run(database, "running")
    assert database.read(count_rows.lease_holders) == [LeaseHolder("w1", 2, NOW + 9), LeaseHolder("w2", 1, NOW + 7)]
