"""Looking at runs."""

from __future__ import annotations

from dataclasses import fields
from functools import partial
from typing import Any

import pytest
import sqlalchemy as sa
from run_rows import add_run as add
from run_rows import add_step

from horarium.core.document.states import Delivery, Origin, RunState
from horarium.features.runs import rows as runs_read
from horarium.features.runs.rows import RunEventRow, RunFilter, RunRow
from horarium.platform.database import Connection, Database
from horarium.platform.database.tables import run_events, runs, schedules
from horarium.platform.ids import new_id


def add_schedule(database: Database) -> bytes:
    uid = new_id()
    zeros: dict[str, Any] = {"TEXT": "x"}
    row = {column.name: zeros.get(str(column.type), 0) for column in schedules.columns if not column.nullable}
    row |= {"schedule_uid": uid, "namespace": "default", "schedule_id": "morning"}
    database.write(lambda c: c.execute(schedules.insert().values(**row)))
    return uid


def test_every_column_of_runs_is_in_the_row() -> None:
    assert {each.name for each in fields(RunRow)} == {column.name for column in runs.columns} | {
        "schedule_id",
        "schedule_name",
    }


def test_a_run_is_found_in_its_own_namespace_with_values_of_our_types(database: Database) -> None:
    uid = add_schedule(database)
    run_id = add(database, schedule_uid=uid, inputs='{"n":1}', result="[null]", needs_approval=True, state="held")
    row = database.read(lambda c: runs_read.find(c, "default", run_id))
    assert row is not None
    assert (row.state, row.origin, row.delivery) == (RunState.HELD, Origin.MANUAL, Delivery.AT_LEAST_ONCE)
    assert (row.inputs, row.result, row.needs_approval) == ({"n": 1}, [None], True)
    assert (row.schedule_id, row.schedule_uid) == ("morning", uid)
    assert database.read(lambda c: runs_read.find(c, "other", run_id)) is None


def test_a_run_without_schedule_or_inputs_has_none(database: Database) -> None:
    run_id = add(database)
    row = database.read(lambda c: runs_read.find(c, "default", run_id))
    assert row is not None
    assert (row.schedule_id, row.schedule_uid, row.inputs, row.result) == (None, None, None, None)


def test_a_run_is_found_by_the_key_that_its_caller_chose(database: Database) -> None:
    run_id = add(database, external_key="order-7")
    row = database.read(lambda c: runs_read.find_by_callers_key(c, "default", "order-7"))
    assert row is not None
    assert row.run_id == run_id
    assert database.read(lambda c: runs_read.find_by_callers_key(c, "other", "order-7")) is None


def test_pages_are_newest_first_and_end(database: Database) -> None:
    uid = new_id()
    born = [add(database, schedule_uid=uid, nominal=number) for number in range(5)]
    add(database, schedule_uid=new_id())
    pages, before = [], None
    while True:
        page = database.read(lambda c, before=before: runs_read.page_of_schedule(c, uid, before=before, limit=2))
        pages.append([row.run_id for row in page.rows])
        before = page.before
        if before is None:
            break
    assert pages == [[born[4], born[3]], [born[2], born[1]], [born[0]]]


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (RunFilter(), {"plain", "done", "for the team"}),
        (RunFilter(with_steps=True), {"plain", "done", "for the team", "step"}),
        (RunFilter(states={RunState.SUCCEEDED}), {"done"}),
        (RunFilter(states=()), set()),
        (RunFilter(origins={Origin.MANUAL}), {"plain"}),
        (RunFilter(workflow="report"), {"done"}),
        (RunFilter(assignee="agent-1"), {"done"}),
        (RunFilter(assignee="team-1"), {"for the team"}),
        (RunFilter(assignee="agent-2"), {"for the team"}),
        (RunFilter(assignee="agent-2", states={RunState.FAILED}), set()),
        (RunFilter(queue="q"), {"plain"}),
        (RunFilter(workflow="other"), set()),
    ],
    ids=[
        "roots",
        "steps too",
        "a state",
        "no state",
        "origin",
        "workflow",
        "assignee",
        "a team",
        "its member",
        "a state of theirs",
        "queue",
        "nobody's workflow",
    ],
)
def test_a_page_of_a_namespace_can_be_filtered(database: Database, wanted: RunFilter, expected: set[str]) -> None:
    root = add(database, external_key="plain", queue="q")
    add(database, external_key="done", state="succeeded", origin="api", workflow="report", assignee="agent-1")
    add(database, external_key="step", origin="step", parent_run_id=root, root_run_id=root)
    team = {"assignee_type": "team", "assignee": "team-1", "member": "agent-2"}
    add(database, external_key="for the team", origin="backfill", **team)
    add(database, external_key="foreign", namespace="other", assignee="agent-1", member="agent-2")
    page = database.read(lambda c: runs_read.page_of_namespace(c, "default", wanted, limit=10))
    assert {row.external_key for row in page.rows} == expected
    assert page.before is None


def test_the_pages_of_an_assignee_hold_both_what_is_its_own_and_what_it_does_for_its_team(database: Database) -> None:
    mine = [
        add(database, **({"assignee": "a"} if number % 2 else {"assignee": "t", "member": "a"})) for number in range(5)
    ]
    add(database, assignee="b")
    found, before = [], None
    while True:
        page = database.read(
            lambda c, before=before: runs_read.page_of_namespace(
                c, "default", RunFilter(assignee="a"), before=before, limit=2
            )
        )
        found += [row.run_id for row in page.rows]
        before = page.before
        if before is None:
            break
    assert found == mine[::-1]


def test_the_steps_of_one_run_are_listed_by_their_parent_and_by_their_root(database: Database) -> None:
    root = add(database)
    child = add_step(database, root, "sub", workflow="w", workflow_version=1)
    below = add_step(database, child, "c1", root=root)
    add_step(database, add(database), "sub")
    ask = partial(runs_read.page_of_namespace, limit=10)
    of_parent = database.read(lambda c: ask(c, "default", RunFilter(parent=root)))
    assert [row.run_id for row in of_parent.rows] == [child]
    of_root = database.read(lambda c: ask(c, "default", RunFilter(root=root)))
    assert [row.run_id for row in of_root.rows] == [below, child]
    assert database.read(lambda c: ask(c, "other", RunFilter(root=root))).rows == ()


def test_the_steps_of_a_run_come_in_the_order_of_their_birth(database: Database) -> None:
    root = add(database)
    steps = [add(database, parent_run_id=root, root_run_id=root, origin="step", node_id=node) for node in "ba"]
    add(database, parent_run_id=new_id(), root_run_id=new_id(), origin="step")
    rows = database.read(lambda c: runs_read.steps(c, root))
    assert [row.run_id for row in rows] == steps
    assert [row.node_id for row in rows] == ["b", "a"]


def test_events_come_in_order_and_in_pieces(database: Database) -> None:
    run_id = new_id()
    rows = [
        {"run_id": run_id, "sequence": n, "event_type": "run.started", "recorded_at": n, "payload": f'{{"n":{n}}}'}
        for n in (4, 3, 5)
    ]
    database.write(lambda c: c.execute(run_events.insert(), rows))
    events = database.read(lambda c: runs_read.events(c, run_id))
    assert events == [RunEventRow(n, "run.started", n, {"n": n}) for n in (3, 4, 5)]
    rest = database.read(lambda c: runs_read.events(c, run_id, after_sequence=3, limit=1))
    assert [each.sequence for each in rest] == [4]
    assert database.read(lambda c: runs_read.events(c, new_id())) == []


def test_what_went_wrong_is_found_by_its_own_index(database: Database) -> None:
    """However much went well: there and, where there is one, in the archive."""
    add(database, state="timed_out")
    plans: list[str] = []

    def explain(connection: Any, cursor: Any, statement: str, parameters: Any, *_rest: Any) -> None:
        if "ORDER BY runs.run_id DESC" in statement:
            words = "EXPLAIN QUERY PLAN" if connection.dialect.name == "sqlite" else "EXPLAIN"
            rows = cursor.connection.execute(f"{words} {statement}", parameters)
            plans.append("\n".join(str(tuple(row)) for row in rows))

    def look(connection: Connection) -> None:
        if connection.dialect.name == "postgresql":  # which reads a small table whole, and rightly
            for other in ("seqscan", "bitmapscan", "sort"):
                connection.exec_driver_sql(f"SET LOCAL enable_{other} = off")
        sa.event.listen(connection, "before_cursor_execute", explain)
        wanted = RunFilter(states={RunState.TIMED_OUT})
        assert len(runs_read.page_of_namespace(connection, "default", wanted, limit=5).rows) == 1

    database.read(look)
    assert len(plans) == (1 if database.dialect == "sqlite" else 2)
    assert all("unsuccessful" in plan and "TEMP B-TREE" not in plan for plan in plans), plans
