"""Repair: counts are set right, lost plans are found again, and what is right is left alone."""

from __future__ import annotations

from typing import Any

import pytest
import sqlalchemy as sa
from operations.desks import NOON, Office
from sqlalchemy import Connection
from structlog.testing import capture_logs

from horarium.core.document.states import Status
from horarium.engine import janitor as repair_chore
from horarium.engine.janitor import Janitor, Repair, Repaired
from horarium.features.cluster import repair_rows
from horarium.instant import MINUTE, to_rfc3339
from horarium.platform.database import Database
from horarium.platform.database.statements import key_owner
from horarium.platform.database.tables import counters, plannings, positions


@pytest.fixture
def office(database: Database) -> Office:
    return Office.on(database)


def mend(office: Office) -> list[Repaired]:
    chore = Repair(office.resources.database, office.clock)
    steps = [chore.step()]
    while steps[-1].more:
        steps.append(chore.step())
        assert len(steps) < 100, "a pass never ends"
    return steps


def change(office: Office, uid: bytes, **values: Any) -> None:
    def work(connection: Connection) -> None:
        connection.execute(sa.update(positions).where(positions.c.schedule_uid == uid).values(**values))

    office.resources.database.write(work)


def position(office: Office, uid: bytes) -> Any:
    statement = sa.select(positions).where(positions.c.schedule_uid == uid)
    return office.resources.database.read(lambda c: c.execute(statement).one())


def keys(office: Office) -> dict[str, int]:
    statement = sa.select(counters).where(counters.c.kind == "key")
    return {row.owner: row.value for row in office.resources.database.read(lambda c: c.execute(statement).all())}


def buffered(office: Office, schedule_id: str = "nightly", **parts: Any) -> bytes:
    """One run active, two held, one ended."""
    uid = office.create(schedule_id, overlap_policy="buffer_all", **parts).schedule_uid
    for _ in range(4):
        office.tick(60)
    office.end(office.runs(schedule_id)[0])
    return uid


def test_what_is_right_is_left_alone(office: Office) -> None:
    uid = buffered(office, concurrency_key="agent")
    before = position(office, uid)
    with capture_logs() as lines:
        assert mend(office) == [Repaired()]
    assert (position(office, uid), lines) == (before, [])
    assert keys(office) == {"key:default agent": 1}


@pytest.mark.both_databases
@pytest.mark.parametrize(("active", "held"), [(0, 0), (5, 2), (1, 0), (-1, 9)])
def test_wrong_counts_are_set_right_and_told(office: Office, active: int, held: int) -> None:
    uid = buffered(office)
    other = office.create("other").schedule_uid
    change(office, uid, active=active, held=held)
    with capture_logs() as lines:
        assert mend(office) == [Repaired(recounted=1)]
    assert lines == [
        {
            "event": "counts_repaired",
            "log_level": "warning",
            "namespace": "default",
            "schedule_id": "nightly",
            "active": f"{active} → 1",
            "held": f"{held} → 2",
        }
    ]
    assert [(row.active, row.held) for row in (position(office, uid), position(office, other))] == [(1, 2), (0, 0)]
    assert mend(office) == [Repaired()]


def test_counts_of_a_schedule_without_open_runs_become_nothing(office: Office) -> None:
    uid = office.create().schedule_uid
    change(office, uid, active=3, held=1)
    mend(office)
    assert (position(office, uid).active, position(office, uid).held) == (0, 0)


@pytest.mark.both_databases
def test_counts_are_right_when_they_are_looked_at_under_the_lock(office: Office) -> None:
    uid = buffered(office)
    assert office.resources.database.write(lambda c: repair_rows.recount(c, uid)) is None
    assert office.resources.database.write(lambda c: repair_rows.recount(c, b"nobody")) is None


@pytest.mark.both_databases
def test_schedules_are_looked_at_in_pieces(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repair_chore, "_LOOKS", 2)
    uids = [office.create(f"s{number}").schedule_uid for number in range(5)]
    for uid in uids:
        change(office, uid, active=1)
    assert [step.recounted for step in mend(office)] == [2, 2, 1]


# ── keys ─────────────────────────────────────────────────────────────────────────────────────────────


def set_key(office: Office, owner: str, value: int | None) -> None:
    def work(connection: Connection) -> None:
        connection.execute(sa.delete(counters).where(counters.c.owner == owner))
        if value is not None:
            connection.execute(sa.insert(counters).values(kind="key", owner=owner, day=0, value=value))

    office.resources.database.write(work)


@pytest.mark.both_databases
@pytest.mark.parametrize("value", [0, 7, -2, None], ids=["nothing", "too many", "below nothing", "gone"])
def test_the_holders_of_a_key_are_counted_anew(office: Office, value: int | None) -> None:
    buffered(office, concurrency_key="agent:7")
    owner = key_owner("default", "agent:7")
    set_key(office, owner, value)
    assert mend(office) == [Repaired(keys=1)]
    assert keys(office) == {owner: 1}


def test_a_key_that_nobody_holds_counts_nothing(office: Office) -> None:
    buffered(office)
    set_key(office, "key:default free", 2)
    assert mend(office) == [Repaired(keys=1)]
    assert keys(office) == {"key:default free": 0}
    assert office.resources.database.write(lambda c: repair_rows.recount_key(c, "key:default free")) is None


def test_a_run_that_waited_for_a_miscounted_key_is_let_go_afterwards(office: Office) -> None:
    office.create(overlap_policy="allow_all", concurrency_key="agent")
    set_key(office, "key:default agent", 1)
    office.tick(60)
    assert office.states() == ["held"]
    mend(office)
    Janitor(office.resources.database, office.clock).step()
    assert office.states() == ["ready"]


# ── lost plans ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.both_databases
def test_an_active_schedule_without_a_plan_gets_one_from_its_last_decision_on(office: Office) -> None:
    uid = office.create(overlap_policy="allow_all").schedule_uid
    office.tick(60)
    change(office, uid, next_due=None)
    office.tick(180)  # nobody sees it
    assert len(office.runs()) == 1
    with capture_logs() as lines:
        assert mend(office) == [Repaired(planned=1)]
    assert [(line["event"], line["namespace"], line["schedule_id"], line["status"]) for line in lines] == [
        ("schedule_replanned", "default", "nightly", "active")
    ]
    assert position(office, uid).next_due == NOON + 2 * MINUTE
    office.tick()
    assert [run.nominal for run in office.runs()] == [NOON + n * MINUTE for n in range(1, 5)]


def test_a_schedule_without_a_future_is_finished(office: Office) -> None:
    uid = office.create(spec={"at": [to_rfc3339(NOON + MINUTE)]}).schedule_uid
    change(office, uid, next_due=None, decided_until=NOON + MINUTE)
    assert mend(office) == [Repaired(planned=1)]
    assert (position(office, uid).status, position(office, uid).next_due) == (Status.FINISHED, None)


def test_a_plan_that_cannot_be_made_is_set_aside(office: Office) -> None:
    uid = office.create().schedule_uid

    def spoil(connection: Connection) -> None:
        connection.execute(sa.update(plannings).values(text="{"))

    office.resources.database.write(spoil)
    change(office, uid, next_due=None)
    chore = Repair(office.resources.database, office.clock)
    assert chore.step() == Repaired(planned=1)
    assert position(office, uid).status == Status.BROKEN
    assert office.kinds() == ["Created", "Broken"]
    assert chore.step() == Repaired()


@pytest.mark.parametrize("status", [status for status in Status if status is not Status.ACTIVE], ids=str)
def test_only_active_schedules_need_a_plan(office: Office, status: Status) -> None:
    uid = office.create().schedule_uid
    change(office, uid, next_due=None, status=status.value)
    assert mend(office) == [Repaired()]
    found = office.resources.database.write(lambda c: repair_rows.plan_again(c, office.resources.known, uid, NOON))
    assert found is None


@pytest.mark.both_databases
def test_more_lost_plans_than_one_step_takes_are_all_found(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repair_chore, "_UNPLANNED", 2)
    for number in range(5):
        change(office, office.create(f"s{number}").schedule_uid, next_due=None)
    assert [step.planned for step in mend(office)] == [2, 2, 1]
    assert office.resources.database.read(lambda c: repair_rows.unplanned(c, 10)) == []
