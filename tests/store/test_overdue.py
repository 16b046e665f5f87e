"""Runs that time has overtaken are found by those who can end them, and their events are numbered."""

from __future__ import annotations

import pytest
import sqlalchemy as sa
from sqlalchemy import Connection
from store.rows import NOW, add_run

from horarium.core.document.states import FINAL, RunEventType, RunState
from horarium.features.agents import task_rows
from horarium.features.agents.task_rows import UnwantedTask
from horarium.features.runs import work_rows as store
from horarium.features.runs.update_rows import add_event
from horarium.instant import SECOND
from horarium.platform.database import Database
from horarium.platform.database.tables import approvals, run_events
from horarium.platform.ids import new_id


def test_lost_leases_are_found_the_longest_lost_first(database: Database) -> None:
    first, second = (add_run(database, "launching", lease_until=NOW + at * SECOND) for at in (30, 31))
    lost = database.read(lambda c: store.lost_leases(c, NOW + 30 * SECOND, 10))
    assert lost == []  # exactly at its end a lease still holds
    lost = database.read(lambda c: store.lost_leases(c, NOW + 40 * SECOND, 10))
    assert [work.run_id for work in lost] == [first, second]
    limited = database.read(lambda c: store.lost_leases(c, NOW + 40 * SECOND, 1))
    assert [work.run_id for work in limited] == [first]


def test_the_holder_of_a_lease_has_a_moment_to_keep_the_deadline_itself(database: Database) -> None:
    run_id = add_run(database, "launching", deadline=NOW, lease_until=NOW + 30 * SECOND)
    assert database.read(lambda c: store.past_deadline(c, NOW + SECOND, 10)) == []
    (late,) = database.read(lambda c: store.past_deadline(c, NOW + 2 * SECOND, 10))
    assert late.run_id == run_id


def test_workers_behind_a_broker_may_say_what_nobody_was_there_to_hear(database: Database) -> None:
    told, _, held = (
        add_run(database, "running", deadline=NOW, **fields)
        for fields in ({"kind": "http"}, {"kind": "celery"}, {"kind": "celery", "lease_until": NOW})
    )
    later = NOW + 60 * SECOND
    late = database.read(lambda c: store.past_deadline(c, later, 10, unheard=NOW + 1))
    assert {work.run_id for work in late} == {told, held}
    assert len(database.read(lambda c: store.past_deadline(c, later, 10, unheard=NOW))) == 3


# ── what time overtakes ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("state", sorted(RunState))
def test_deadlines_end_what_has_been_handed_out(database: Database, state: RunState) -> None:
    run_id = add_run(database, state.value, deadline=NOW)
    late = database.read(lambda c: store.past_deadline(c, NOW, 10))
    handed_out = state in {RunState.LAUNCHING, RunState.QUEUED, RunState.RUNNING}
    assert [work.run_id for work in late] == ([run_id] if handed_out else [])
    assert database.read(lambda c: store.past_deadline(c, NOW - 1, 10)) == []


@pytest.mark.parametrize("state", sorted(RunState))
def test_the_unwanted_are_found_by_who_can_end_them(database: Database, state: RunState) -> None:
    add_run(database, state.value, stop_requested_at=NOW)
    add_run(database, state.value)
    here = database.read(lambda c: store.stop_requested(c, 10))
    there = database.read(lambda c: store.taken_and_unwanted(c, 10))
    assert len(here) == (state in {RunState.HELD, RunState.AWAITING_APPROVAL, RunState.READY})
    assert len(there) == (state in {RunState.QUEUED, RunState.RUNNING})


def test_what_somebody_holds_is_his_to_stop(database: Database) -> None:
    add_run(database, "running", stop_requested_at=NOW, lease_until=NOW + 1)
    assert database.read(lambda c: store.taken_and_unwanted(c, 10)) == []


def test_unanswered_approvals_are_closed_once(database: Database) -> None:
    run_id, approval_id = add_run(database, "awaiting_approval"), new_id()
    base = {"namespace": "default", "input_hash": "x", "gates": "[]", "requested_at": 1}
    rows = [
        base | {"approval_id": approval_id, "run_id": run_id, "decision": "pending", "expires_at": NOW},
        base | {"approval_id": new_id(), "run_id": new_id(), "decision": "pending", "expires_at": NOW + 1},
        base | {"approval_id": new_id(), "run_id": new_id(), "decision": "approved", "expires_at": NOW - 1},
    ]
    database.write(lambda c: c.execute(sa.insert(approvals), rows))
    (late,) = database.read(lambda c: store.unanswered_approvals(c, NOW, 10))
    assert (late.approval_id, late.run_id) == (approval_id, run_id)
    assert database.write(lambda c: store.expire_approval(c, approval_id, NOW))
    assert not database.write(lambda c: store.expire_approval(c, approval_id, NOW))


# ── the pull queue and following ─────────────────────────────────────────────────────────────────────


def test_only_targets_that_can_be_asked_are_followed(database: Database) -> None:
    followed = add_run(database, "running", kind="a2a")
    add_run(database, "running", kind="http")
    add_run(database, "running", kind="a2a", ready_at=NOW + 1)
    add_run(database, "running", kind="a2a", lease_until=NOW + 1)
    add_run(database, "queued", kind="a2a")
    assert database.write(lambda c: store.to_follow(c, [], NOW, 10)) == []
    (work,) = database.write(lambda c: store.to_follow(c, ["a2a"], NOW, 10))
    assert work.run_id == followed
    database.write(lambda c: store.ask_later(c, [(work, NOW + 9)]))
    assert {each.run_id for each in database.write(lambda c: store.to_follow(c, ["a2a"], NOW + 5, 10))} != {followed}
    published = add_run(database, "queued", kind="celery")
    assert [each.run_id for each in database.write(lambda c: store.to_follow(c, ["celery"], NOW, 10))] == [published]


def test_the_events_of_a_run_are_numbered_without_gaps(database: Database) -> None:
    run_id = add_run(database)

    def write(connection: Connection) -> None:
        for number in range(3):
            add_event(connection, run_id, RunEventType.RUN_RETRIED, NOW, {"n": number})

    database.write(write)
    stored = database.read(lambda c: c.execute(sa.select(run_events).order_by(run_events.c.sequence)).all())
    assert [(each.sequence, each.payload) for each in stored] == [(3, '{"n":0}'), (4, '{"n":1}'), (5, '{"n":2}')]


def test_the_world_of_runs_is_closed_under_its_states() -> None:
    """If a state is added, the tables above must say what becomes of it."""
    assert set(RunState) - FINAL == {
        RunState.HELD,
        RunState.AWAITING_APPROVAL,
        RunState.READY,
        RunState.LAUNCHING,
        RunState.QUEUED,
        RunState.RUNNING,
    }


# ── what agents are still to be told ─────────────────────────────────────────────────────────────────


def test_a_crowd_of_unwanted_tasks_of_one_tenant_stands_in_nobody_elses_way(database: Database) -> None:
    crowd = [UnwantedTask(new_id(), f"t{number}", "crowd", "deaf") for number in range(10)]
    other = UnwantedTask(new_id(), "t", "other", "writer")
    database.write(lambda c: task_rows.add_unwanted(c, crowd, NOW))
    database.write(lambda c: task_rows.add_unwanted(c, [other], NOW + SECOND))
    taken = database.write(lambda c: task_rows.take_unwanted(c, NOW + SECOND, 4, 10))
    assert sorted(task.namespace for task in taken) == ["crowd", "crowd", "crowd", "other"]
    later = database.write(lambda c: task_rows.take_unwanted(c, NOW + SECOND, 50, 10))
    assert {task.reference for task in later} == {task.reference for task in crowd} - {task.reference for task in taken}
