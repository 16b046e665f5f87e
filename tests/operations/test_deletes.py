"""A delete of any size: the schedule is gone at once, nothing of it can start, and what waited is ended in parts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

import pytest
import sqlalchemy as sa
from engine.builders import multiply
from operations.desks import ADMIN, Office
from sqlalchemy import Connection

from horarium.core.document.states import RunState
from horarium.engine.janitor import Janitor
from horarium.features.runs import claim_rows, reports
from horarium.features.runs.work_rows import ReadyTarget
from horarium.features.schedules import lifecycle
from horarium.instant import HOUR
from horarium.platform.database import run_archive
from horarium.platform.database.errors import CommitUnknown, StoreUnavailable
from horarium.platform.database.run_archive import RunsTable
from horarium.platform.database.tables import positions, runs
from horarium.platform.database.wrapper import DatabaseWrapper, JoinedTransaction
from horarium.platform.errors import ScheduleNotFound

T = TypeVar("T")


def crowded(office: Office, active: int, held: int) -> bytes:
    """A schedule with that many runs that nobody has started; one more is being worked on."""
    uid = office.create(overlap_policy="buffer_all", max_concurrency=2).schedule_uid
    for _ in range(3):
        office.tick(60)
    running, ready, waiting = office.runs()
    assert (ready.state, waiting.state) == (RunState.READY, RunState.HELD)
    office.resources.database.write(
        lambda c: c.execute(sa.update(runs).where(runs.c.run_id == running.run_id).values(state="running"))
    )
    multiply(office.resources.database, ready.run_id, active - 1)
    multiply(office.resources.database, waiting.run_id, held - 1)
    return uid


def states(office: Office) -> Counter[tuple[str, bool]]:
    """How many runs are in each state, and whether somebody wants them stopped."""

    def statement(runs: RunsTable) -> sa.Select[Any]:
        asked = runs.c.stop_requested_at.is_not(None)
        return sa.select(runs.c.state, asked, sa.func.count()).group_by(runs.c.state, asked)

    found: Counter[tuple[str, bool]] = Counter()
    for state, is_asked, count in office.resources.database.read(lambda c: run_archive.rows_everywhere(c, statement)):
        found[state, bool(is_asked)] += count
    return found


def counts(office: Office, uid: bytes) -> tuple[int, int]:
    statement = sa.select(positions.c.active, positions.c.held).where(positions.c.schedule_uid == uid)
    return tuple(office.resources.database.read(lambda connection: connection.execute(statement).one()))


def claimed(office: Office) -> list[Any]:
    now = office.clock.now()
    everything = [(ReadyTarget("default", "workflow:report"), 10)]
    return office.resources.database.write(lambda c: claim_rows.candidates(c, everything, now))


def put_on_queue(office: Office, **values: Any) -> None:
    """As the dispatcher does with runs that are ready."""
    deadline = office.clock.now() + HOUR
    handed = sa.update(runs).where(runs.c.state == "ready")
    handed = handed.values(state="queued", queue="default", deadline=deadline, **values)
    office.resources.database.write(lambda c: c.execute(handed))


def tidy(office: Office) -> None:
    janitor = Janitor(office.resources.database, office.clock)
    while janitor.step().total:
        pass


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few at once, so that little is much."""
    monkeypatch.setattr(lifecycle, "_AT_ONCE", 5)
    monkeypatch.setattr(lifecycle, "_MOST_STEPS", 2)


@pytest.mark.parametrize("dialect", ["sqlite", pytest.param("postgresql", marks=pytest.mark.long)], indirect=True)
def test_more_runs_than_a_statement_takes_parameters_are_no_obstacle(office: Office) -> None:
    uid = crowded(office, 35_000, 35_000)
    lifecycle.delete(office.resources, ADMIN, "nightly")
    with pytest.raises(ScheduleNotFound):
        lifecycle.pause(office.resources, ADMIN, "nightly")
    found = states(office)
    open_and_wanted = {state for (state, asked), count in found.items() if not asked and count} - {"cancelled"}
    assert open_and_wanted == {"running"}
    assert found["cancelled", True] == 5_500
    assert sum(counts(office, uid)) == 70_001 - 5_500
    assert claimed(office) == []


@pytest.mark.usefixtures("small")
def test_what_a_delete_leaves_the_janitor_ends(office: Office) -> None:
    uid = crowded(office, 20, 20)
    lifecycle.delete(office.resources, ADMIN, "nightly")
    assert states(office)["cancelled", True] == 15
    tidy(office)
    assert states(office) == {("running", False): 1, ("cancelled", True): 40}
    assert counts(office, uid) == (1, 0)


@pytest.mark.both_databases
@pytest.mark.usefixtures("small")
def test_a_few_more_than_fit_at_once_are_all_ended_by_the_delete(office: Office) -> None:
    uid = crowded(office, 6, 6)
    lifecycle.delete(office.resources, ADMIN, "nightly")
    assert states(office) == {("running", False): 1, ("cancelled", True): 12}
    assert counts(office, uid) == (1, 0)
    ended = office.runs()[-1]
    assert (ended.cause, ended.error) == ("schedule_deleted", "the schedule was deleted before the run started")


@pytest.mark.both_databases
def test_a_delete_cancels_runs_on_a_pull_queue_and_no_worker_claims_them(office: Office) -> None:
    uid = office.create(overlap_policy="allow_all").schedule_uid
    for _ in range(3):
        office.tick(60)
    put_on_queue(office)
    [taken] = reports.claim(office.resources, ADMIN, "default")
    lifecycle.delete(office.resources, ADMIN, "nightly")
    assert states(office) == {("running", False): 1, ("cancelled", False): 2}
    assert {run.cause for run in office.runs() if run.state is RunState.CANCELLED} == {"schedule_deleted"}
    assert counts(office, uid) == (1, 0)
    assert reports.claim(office.resources, ADMIN, "default", limit=100) == []
    assert office.runs()[0].run_id == taken.run.row.run_id


@pytest.mark.usefixtures("small")
def test_the_janitor_ends_the_queued_runs_that_a_delete_leaves(office: Office) -> None:
    uid = crowded(office, 20, 20)
    put_on_queue(office)
    lifecycle.delete(office.resources, ADMIN, "nightly")
    assert reports.claim(office.resources, ADMIN, "default", limit=100) == []
    tidy(office)
    assert states(office) == {("running", False): 1, ("cancelled", True): 40}
    assert counts(office, uid) == (1, 0)


@pytest.mark.both_databases
def test_a_delete_leaves_runs_that_a_broker_has(office: Office) -> None:
    office.create(overlap_policy="allow_all")
    office.tick(60)
    put_on_queue(office, kind="celery")
    lifecycle.delete(office.resources, ADMIN, "nightly")
    assert states(office) == {("queued", False): 1}


class _Failing(DatabaseWrapper):
    """A database that goes away after so many writes."""

    def __init__(self, inner: Any, writes: int, error: Exception) -> None:
        super().__init__(inner)
        self.writes, self.error = writes, error

    def write(self, work: Callable[[Connection], T]) -> T:
        if not self.writes:
            raise self.error
        self.writes -= 1
        return super().write(work)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("error", [StoreUnavailable("gone"), CommitUnknown("gone")], ids=["gone", "unknown"])
def test_a_delete_that_is_cut_off_in_the_middle_is_done_all_the_same(office: Office, error: Exception) -> None:
    uid = crowded(office, 20, 20)
    whole = office.resources
    office.resources = replace(whole, database=_Failing(whole.database, 1, error))
    lifecycle.delete(office.resources, ADMIN, "nightly")
    office.resources = whole
    assert states(office)["cancelled", True] == 5
    assert claimed(office) == []
    tidy(office)
    assert (states(office)["cancelled", True], counts(office, uid)) == (40, (1, 0))


@pytest.mark.usefixtures("small")
def test_inside_a_larger_transaction_a_delete_ends_one_part(office: Office) -> None:
    crowded(office, 20, 20)
    whole = office.resources

    def larger(connection: Connection) -> None:
        joined = replace(whole, database=JoinedTransaction(whole.database, connection))
        lifecycle.delete(joined, ADMIN, "nightly")

    whole.database.write(larger)
    assert states(office)["cancelled", True] == 5
    assert {state for (state, asked) in states(office) if not asked} == {"running"}
