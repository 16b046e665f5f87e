"""What happened to runs is written in one place: rows, events and counts, each under its fence and its table."""

from __future__ import annotations

import json
from typing import Any

import pytest
import sqlalchemy as sa
from engine.builders import World
from store.rows import NOW, add_run, run_row

from horarium.core.document.states import RunState
from horarium.core.lifecycle.outcome import (
    Accepted,
    Block,
    Change,
    End,
    Finished,
    GivenBack,
    LaunchAnswered,
    Nothing,
    NothingCause,
    Progress,
    Reported,
    ReportedState,
    RetryLater,
    RunFailed,
    Unknown,
    UsedResources,
    WaitForTarget,
)
from horarium.errors import InvalidTransition
from horarium.features.runs.transition_rows import ReportedEvent, change_runs, record_event, record_events
from horarium.features.schedules.due_rows import Plannings
from horarium.instant import SECOND
from horarium.platform.database import Database
from horarium.platform.database.tables import approvals, run_events, runs

LEASED = {"lease_owner": "me", "lease_until": NOW + 30 * SECOND, "lease_epoch": 4, "launches": 1}


def change(database: Database, run_id: bytes, to: Change) -> Any:
    database.write(lambda c: change_runs(c, Plannings(), [(run_id, lambda _: to)], now=NOW))
    return run_row(database, run_id)


def events(database: Database, run_id: bytes) -> list[tuple[str, dict[str, Any]]]:
    statement = sa.select(run_events).where(run_events.c.run_id == run_id).order_by(run_events.c.sequence)
    rows = database.read(lambda c: c.execute(statement).all())
    assert [row.sequence for row in rows] == list(range(3, 3 + len(rows)))
    return [(row.event_type, json.loads(row.payload)) for row in rows]


def leased(database: Database, state: str = "launching", **given: Any) -> bytes:
    return add_run(database, state, **{**LEASED, "deadline": NOW + 60 * SECOND, "started_at": NOW - 1, **given})


def test_an_end_gives_the_lease_back_and_moves_the_fence(database: Database) -> None:
    run_id = leased(database)
    row = change(database, run_id, End(RunState.FAILED, {"n": 1}, "x\x00", "boom", "why", UsedResources(1, 2, 3), 1))
    assert (row.state, row.lease_owner, row.lease_until, row.lease_epoch) == ("failed", None, None, 5)
    assert (row.result, row.error, row.error_class, row.cause, row.attempt) == ('{"n":1}', "x�", "boom", "why", 1)
    assert (row.cost, row.tokens, row.tool_calls, row.finished_at) == (1, 2, 3, NOW)
    assert events(database, run_id) == [("run.failed", {"error": "x�", "error_class": "boom", "cause": "why"})]


@pytest.mark.parametrize(("own", "queue"), [(None, "ref"), ("mine", "mine")], ids=["named by target", "own"])
def test_queued_runs_wait_on_their_queue(database: Database, own: str | None, queue: str) -> None:
    run_id = leased(database, queue=own)
    row = change(database, run_id, WaitForTarget("ref", queued=True))
    assert (row.state, row.queue, row.started_at, row.lease_until) == ("queued", queue, None, None)
    assert (row.deadline, row.lease_epoch) == (NOW + 60 * SECOND, 4)
    assert events(database, run_id) == []


def test_accepted_runs_run_until_their_report(database: Database) -> None:
    run_id = leased(database)
    row = change(database, run_id, WaitForTarget("ref", queued=False))
    assert (row.state, row.reference, row.started_at, row.lease_until) == ("running", "ref", NOW - 1, None)
    assert events(database, run_id) == [("run.started", {})]


def test_a_known_failure_silences_whoever_still_speaks_for_the_attempt(database: Database) -> None:
    run_id = leased(database, cost=2)
    row = change(
        database,
        run_id,
        RetryLater(NOW + 5, 1, 0, error="x", error_class="boom", used=UsedResources(7, 8, 9), known=True),
    )
    assert (row.state, row.ready_at, row.attempt, row.launches) == ("ready", NOW + 5, 1, 0)
    assert (row.lease_epoch, row.lease_until, row.deadline, row.started_at) == (5, None, None, NOW - 1)
    assert (row.cost, row.tokens, row.tool_calls) == (7, 8, 9)
    assert (row.earlier_cost, row.earlier_tokens, row.earlier_tool_calls) == (7, 8, 9)
    assert events(database, run_id) == [("run.retried", {"attempt": 1, "error": "x", "error_class": "boom"})]


def test_after_an_unknown_outcome_the_last_holder_is_still_welcome(database: Database) -> None:
    run_id = leased(database, ends_by=NOW + 9)
    row = change(database, run_id, RetryLater(NOW + 5, 0, 1, error="gone"))
    assert (row.state, row.lease_epoch, row.deadline, row.ends_by) == ("ready", 4, None, NOW + 9)
    assert events(database, run_id) == [("run.redelivered", {"launches": 1, "error": "gone"})]


def test_what_was_not_begun_has_no_time_running(database: Database) -> None:
    run_id = leased(database, ends_by=NOW + 9)
    row = change(database, run_id, RetryLater(NOW, 0, 0, untouched=True, told=False))
    assert (row.state, row.started_at, row.ends_by, row.deadline) == ("ready", None, None, None)
    assert events(database, run_id) == []


def test_a_later_attempt_that_was_not_begun_keeps_the_time_of_the_run(database: Database) -> None:
    row = change(database, leased(database, ends_by=NOW + 9, attempt=1), RetryLater(NOW, 1, 0, untouched=True))
    assert (row.started_at, row.ends_by) == (NOW - 1, NOW + 9)


def test_progress_leaves_lease_and_deadline_alone(database: Database) -> None:
    run_id = leased(database, started_at=None)
    row = change(database, run_id, Progress(UsedResources(1, 2, 3), begins=True))
    assert (row.state, row.started_at, row.cost, row.lease_until) == ("running", NOW, 1, NOW + 30 * SECOND)
    assert events(database, run_id) == [("run.started", {})]


def test_a_gate_asks_for_approval_without_lease_and_deadline(database: Database) -> None:
    world = World(database)
    world.add()
    world.clock.move(60)
    world.tick()
    (run,) = world.runs()
    world.write(lambda c: c.execute(sa.update(runs).values(state="running", **LEASED)))
    row = change(database, run.run_id, Block("publish"))
    assert (row.state, row.lease_until, row.deadline, row.lease_epoch) == ("awaiting_approval", None, None, 5)
    assert database.read(lambda c: c.execute(sa.select(approvals.c.run_id)).scalars().all()) == [run.run_id]
    assert "run.blocked" in world.events(run.run_id)


@pytest.mark.parametrize(
    ("state", "to"),
    [
        ("held", End(RunState.SUCCEEDED)),
        ("awaiting_approval", End(RunState.FAILED)),
        ("succeeded", End(RunState.FAILED)),
        ("queued", Block("publish")),
    ],
)
def test_what_the_table_does_not_know_is_not_written(database: Database, state: str, to: Change) -> None:
    run_id = add_run(database, state)
    with pytest.raises(InvalidTransition):
        change(database, run_id, to)
    assert run_row(database, run_id).state == state


def test_a_holder_whose_lease_ran_out_takes_the_run_up_again_with_its_answer(database: Database) -> None:
    run_id = leased(database, "ready", lease_owner=None, lease_until=None)
    happened = LaunchAnswered(Accepted("ref"), 4)
    database.write(lambda c: record_event(c, Plannings(), run_id, happened, now=NOW))
    assert run_row(database, run_id).state == "running"


def test_events_in_one_batch_are_judged_one_by_one(database: Database) -> None:
    done, failed, lost, late = (leased(database) for _ in range(4))
    batch = [
        ReportedEvent(done, LaunchAnswered(Finished(1), 4)),
        ReportedEvent(failed, LaunchAnswered(RunFailed("boom"), 4)),
        ReportedEvent(lost, LaunchAnswered(Finished(2), 3)),
        ReportedEvent(late, LaunchAnswered(Unknown("?"), 4)),
        ReportedEvent(late, GivenBack(4, True)),
        ReportedEvent(b"?" * 16, GivenBack(4, True)),
    ]
    recorded = database.write(lambda c: record_events(c, Plannings(), batch, now=NOW))
    kinds = [type(each.change) for each in recorded]
    assert kinds == [End, RetryLater, Nothing, RetryLater, Nothing]
    assert recorded[2].change == Nothing(NothingCause.NOT_HELD)
    assert [run_row(database, each).state for each in (done, failed, lost, late)] == [
        "succeeded", "ready", "launching", "ready",
    ]  # fmt: skip


def test_a_repeated_failed_report_does_not_end_the_next_attempt(database: Database) -> None:
    run_id = add_run(database, "running", deadline=NOW + SECOND)
    failed = Reported(ReportedState.FAILED, attempt=0, proven=True)

    def say() -> Change:
        return database.write(lambda c: record_event(c, Plannings(), run_id, failed, now=NOW))

    assert isinstance(say(), RetryLater)
    database.write(lambda c: c.execute(sa.update(runs).values(state="running")))  # the next attempt is under way
    before = run_row(database, run_id)
    assert say() == Nothing(NothingCause.TOO_LATE)
    assert run_row(database, run_id) == before
