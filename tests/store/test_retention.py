"""What retention deletes, what it leaves, and what it says about it: the verbs, one by one."""

from __future__ import annotations

from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy import Connection

from horarium.core.decision.record import NewEvent
from horarium.core.document.states import FINAL, MAX_RUNS_EXHAUSTED, EventType, Position, RunState, Status
from horarium.features.history import rows as history
from horarium.features.history.rows import append
from horarium.features.runs import retention_rows
from horarium.features.runs.retention_rows import LIFECYCLE, Found, Swept
from horarium.features.schedules.write_rows import Attribute, NewRevision, NewSchedule, insert_schedule
from horarium.instant import DAY, HOUR
from horarium.platform.database import Database
from horarium.platform.database.statements import schedule_owner
from horarium.platform.database.tables import (
    approval_votes,
    approvals,
    checkpoints,
    counters,
    positions,
    run_events,
    runs,
    schedule_attributes,
    schedule_revisions,
    standing_approvals,
    step_changes,
)
from horarium.platform.database.tables import schedules as schedules_table
from horarium.platform.ids import id_at, new_id

NOW = 20_000 * DAY
CUTOFF = NOW - 10 * DAY
OLD = CUTOFF - DAY
YOUNG = CUTOFF + DAY
_number = 0


def _id(created_at: int) -> bytes:
    """Unique, and in the order of the instants, as ids are."""
    global _number
    _number += 1
    return id_at(created_at)[:8] + _number.to_bytes(8, "big")


def make_schedule(
    database: Database, schedule_id: str = "s", *, status: Status = Status.ACTIVE, decided_until: int = NOW
) -> bytes:
    uid = new_id()
    revision = NewRevision({"a": 1}, "{}", "S", attributes=frozenset({Attribute("label", "team", "blue")}))
    position = Position(decided_until, None, status)
    new = NewSchedule(uid, "default", schedule_id, revision, position, source="runtime")
    database.write(lambda connection: insert_schedule(connection, new, now=OLD))
    return uid


def make_run(database: Database, uid: bytes | None, *, at: int = OLD, **given: Any) -> bytes:
    run_id = _id(at)
    values: dict[str, Any] = {
        "run_id": run_id, "namespace": "default", "schedule_uid": uid, "kind": "http", "origin": "scheduled",
        "state": "succeeded", "nominal": at, "due": at, "ready_at": at, "timeout_seconds": 60, "priority": 0,
        "delivery": "at_least_once", "attempt": 0, "launches": 1, "lease_epoch": 1, "needs_approval": False,
        "reserved": 0, "cost": 0, "tokens": 0, "tool_calls": 0, "next_event": 3, "created_at": at, "finished_at": at,
    }  # fmt: skip
    put(database, runs, [values | given])
    return run_id


def put(database: Database, table: sa.Table, rows: list[dict[str, Any]]) -> None:
    def work(connection: Connection) -> None:
        connection.execute(sa.insert(table), rows)

    database.write(work)


def add_events(database: Database, uid: bytes, *events: tuple[EventType, int, int | None]) -> None:
    """Kind, when, and about which occurrence; numbered from 1."""

    def work(connection: Connection) -> None:
        for number, (kind, at, nominal) in enumerate(events, 1):
            append(connection, [(uid, "default", [NewEvent(number, kind, nominal, nominal, None, {})])], now=at)

    database.write(work)


def count(database: Database, table: sa.Table) -> int:
    return database.read(
        lambda connection: connection.execute(sa.select(sa.func.count()).select_from(table)).scalar_one()
    )


def sequences(database: Database, uid: bytes) -> list[int]:
    return [row.sequence for row in database.read(lambda c: history.read(c, uid, limit=10_000))]


def mark(database: Database, uid: bytes) -> tuple[int, int, int] | None:
    statement = sa.select(checkpoints.c.sequence, checkpoints.c.decided_until, checkpoints.c.made_at)
    row = database.read(lambda c: c.execute(statement.where(checkpoints.c.schedule_uid == uid)).one_or_none())
    return None if row is None else (row[0], row[1], row[2])


def old_runs(database: Database, after: bytes = b"", looks: int = 100) -> Found:
    return database.read(lambda c: retention_rows.old_runs(c, finished_before=CUTOFF, after=after, looks=looks))


def trim(database: Database, *uids: bytes, **given: Any) -> Swept:
    return database.write(lambda c: retention_rows.trim_history(c, uids, recorded_before=CUTOFF, now=NOW, **given))


# ── which runs ───────────────────────────────────────────────────────────────────────────────────────


def test_an_old_run_goes_when_a_newer_one_has_finished(database: Database) -> None:
    uid = make_schedule(database)
    first = make_run(database, uid)
    make_run(database, uid, at=YOUNG)
    assert old_runs(database) == Found((first,), None)


def test_the_newest_finished_run_of_a_schedule_stays(database: Database) -> None:
    uid = make_schedule(database)
    make_run(database, uid)
    make_run(database, uid, at=YOUNG, state="running", finished_at=None)
    assert old_runs(database).ids == ()


def test_the_newest_finished_run_of_a_workflow_stays(database: Database) -> None:
    one, other = make_schedule(database, "one"), make_schedule(database, "other")
    make_run(database, one, workflow="report")
    make_run(database, one, at=YOUNG, workflow="another")
    assert old_runs(database).ids == ()
    make_run(database, other, at=YOUNG, workflow="report")
    assert len(old_runs(database).ids) == 1


def test_a_run_that_no_schedule_asked_for_goes_when_it_is_old(database: Database) -> None:
    alone = make_run(database, None, origin="manual")
    make_run(database, None, origin="manual", at=YOUNG)
    assert old_runs(database).ids == (alone,)


@pytest.mark.parametrize("state", [state for state in RunState if state not in FINAL], ids=str)
def test_an_open_run_stays_however_old(database: Database, state: RunState) -> None:
    uid = make_schedule(database)
    make_run(database, uid, state=state.value, finished_at=None)
    make_run(database, uid, at=YOUNG)
    assert old_runs(database).ids == ()


def test_a_run_that_ended_lately_stays_however_old_its_birth(database: Database) -> None:
    uid = make_schedule(database)
    make_run(database, uid, finished_at=YOUNG)
    make_run(database, uid, at=YOUNG)
    assert old_runs(database).ids == ()


def test_a_run_after_the_position_stays_since_it_is_the_lock_of_its_occurrence(database: Database) -> None:
    uid = make_schedule(database, decided_until=OLD - 1)
    make_run(database, uid)
    by_hand = make_run(database, uid, origin="manual")
    make_run(database, uid, at=YOUNG)
    assert old_runs(database).ids == (by_hand,)


def test_of_a_deleted_schedule_every_old_run_goes(database: Database) -> None:
    uid = make_schedule(database, status=Status.DELETED)
    only = make_run(database, uid, workflow="report")
    assert old_runs(database).ids == (only,)


def test_steps_are_no_finding_of_their_own(database: Database) -> None:
    uid = make_schedule(database, status=Status.DELETED)
    root = make_run(database, uid)
    make_run(database, uid, parent_run_id=root, root_run_id=root, origin="step", node_id="a")
    assert old_runs(database).ids == (root,)


def test_runs_are_looked_at_in_pieces(database: Database) -> None:
    uid = make_schedule(database, status=Status.DELETED)
    ids = [make_run(database, uid, at=OLD + n) for n in range(3)]
    first = old_runs(database, looks=2)
    assert first == Found((ids[0], ids[1]), ids[1])
    assert first.after is not None
    assert old_runs(database, first.after, looks=2) == Found((ids[2],), None)


# ── deleting runs ────────────────────────────────────────────────────────────────────────────────────


def test_a_run_takes_its_steps_events_and_approvals_with_it(database: Database) -> None:
    uid = make_schedule(database)
    root, other = make_run(database, uid), make_run(database, uid, at=OLD + 1)
    step = make_run(database, uid, parent_run_id=root, root_run_id=root, origin="step", node_id="a")
    for run_id in (root, other, step):
        add_run_events(database, run_id, 2)
        add_approval(database, run_id)
    nothing = dict.fromkeys(("cost", "tokens", "tool_calls"), 0) | {"finish": False}
    changes = [{"change_id": new_id(), "run_id": each, "step_run_id": step, **nothing} for each in (root, other)]
    put(database, step_changes, changes)
    swept = database.write(lambda c: retention_rows.delete_runs(c, [root]))
    assert swept == Swept(2 * 5 + 1, whole=True)
    left = database.read(lambda c: list(c.execute(sa.select(runs.c.run_id)).scalars()))
    assert left == [other]
    assert [count(database, each) for each in (run_events, approvals, approval_votes, step_changes)] == [2, 1, 1, 1]


def test_a_run_stays_while_one_of_its_steps_is_open(database: Database) -> None:
    uid = make_schedule(database)
    root, other = make_run(database, uid), make_run(database, uid, at=OLD + 1)
    step = make_run(database, uid, parent_run_id=root, root_run_id=root, origin="step", node_id="a", state="running")
    swept = database.write(lambda c: retention_rows.delete_runs(c, [root, other]))
    assert swept == Swept(1, whole=True)
    assert set(database.read(lambda c: c.execute(sa.select(runs.c.run_id)).scalars().all())) == {root, step}


def test_the_root_goes_last_when_there_is_too_much_for_one_transaction(database: Database) -> None:
    uid = make_schedule(database)
    root = make_run(database, uid)
    steps = [
        make_run(database, uid, parent_run_id=root, root_run_id=root, origin="step", node_id=str(n), nominal=n)
        for n in range(3)
    ]
    for run_id in (root, *steps):
        add_run_events(database, run_id, 2)
    seen = []
    while not (swept := database.write(lambda c: retention_rows.delete_runs(c, [root], limit=3))).whole:
        assert swept.rows == 3
        seen.append((count(database, run_events), count(database, runs)))
    assert seen == [(5, 4), (2, 4), (0, 3), (0, 0)]


def add_run_events(database: Database, run_id: bytes, number: int) -> None:
    rows = [
        {"run_id": run_id, "sequence": n, "event_type": "run.started", "recorded_at": OLD, "payload": "{}"}
        for n in range(number)
    ]
    put(database, run_events, rows)


def add_approval(database: Database, run_id: bytes) -> None:
    row = {"approval_id": new_id(), "namespace": "default", "run_id": run_id, "input_hash": "", "gates": "[]",
           "decision": "approved", "requested_at": OLD, "expires_at": OLD}  # fmt: skip
    put(database, approvals, [row])
    vote = {"approval_id": row["approval_id"], "principal": "p", "input_hash": "", "decision": "approved"}
    put(database, approval_votes, [{**vote, "voted_at": OLD}])


# ── history ──────────────────────────────────────────────────────────────────────────────────────────


def test_every_event_type_is_a_decision_or_part_of_a_life() -> None:
    decisions = {EventType.TRIGGERED, EventType.TRIGGER_SKIPPED, EventType.MISSED, EventType.BUFFERED}
    assert frozenset(EventType) - LIFECYCLE == decisions | {EventType.APPROVAL_BYPASS_ATTEMPT}


def test_old_decisions_go_and_the_life_of_the_schedule_stays(database: Database) -> None:
    uid = make_schedule(database)
    add_events(
        database,
        uid,
        (EventType.CREATED, OLD, None),
        (EventType.TRIGGERED, OLD, OLD - HOUR),
        (EventType.PAUSED, OLD, None),
        (EventType.RESUMED, OLD, None),
        (EventType.TRIGGER_SKIPPED, OLD, OLD + HOUR),
        (EventType.UPDATED, OLD, None),
        (EventType.MISSED, YOUNG, YOUNG),
    )
    assert trim(database, uid) == Swept(2, whole=True)
    assert sequences(database, uid) == [1, 3, 4, 6, 7]
    assert mark(database, uid) == (6, OLD + HOUR, NOW)


def test_without_an_occurrence_the_checkpoint_says_what_was_settled(database: Database) -> None:
    uid = make_schedule(database)
    add_events(
        database,
        uid,
        (EventType.CREATED, OLD, None),
        (EventType.TRIGGERED, OLD + 1, None),
        (EventType.PAUSED, YOUNG, None),
    )
    trim(database, uid)
    assert mark(database, uid) == (3, OLD, NOW)


def test_nothing_goes_behind_a_decision_that_is_young(database: Database) -> None:
    uid = make_schedule(database)
    add_events(
        database,
        uid,
        (EventType.TRIGGERED, OLD, 1),
        (EventType.TRIGGERED, YOUNG, 2),
        (EventType.TRIGGERED, OLD, 3),  # the clock was stepped back
    )
    assert trim(database, uid) == Swept(1, whole=True)
    assert sequences(database, uid) == [2, 3]


def test_a_decision_after_the_position_stays(database: Database) -> None:
    uid = make_schedule(database, decided_until=5)
    add_events(database, uid, (EventType.TRIGGERED, OLD, 5), (EventType.TRIGGERED, OLD, 6))
    assert trim(database, uid).rows == 1
    assert mark(database, uid) == (2, 5, NOW)


def test_nothing_to_forget_leaves_no_checkpoint(database: Database) -> None:
    uid = make_schedule(database)
    add_events(database, uid, (EventType.CREATED, OLD, None), (EventType.TRIGGERED, YOUNG, 1))
    assert trim(database, uid) == Swept(0, whole=True)
    assert mark(database, uid) is None


def test_a_long_history_goes_in_small_pieces(database: Database) -> None:
    uid, other = sorted([make_schedule(database, "s"), make_schedule(database, "t")])
    for each in (uid, other):
        add_events(database, each, *((EventType.TRIGGERED, OLD, n) for n in range(1, 6)))
    assert trim(database, other, uid, limit=3) == Swept(3, whole=False)
    assert (mark(database, uid), mark(database, other)) == ((4, 3, NOW), None)
    assert trim(database, other, uid, limit=3) == Swept(3, whole=False)
    assert trim(database, other, uid, limit=3) == Swept(3, whole=False)
    assert trim(database, other, uid, limit=3) == Swept(1, whole=True)
    assert (mark(database, uid), mark(database, other)) == ((6, 5, NOW), (6, 5, NOW))


def test_a_checkpoint_never_moves_back(database: Database) -> None:
    uid = make_schedule(database)
    for sequence, decided, now in ((5, 50, 500), (4, 60, 400), (6, 40, 600)):
        database.write(
            lambda c, s=sequence, d=decided, n=now: retention_rows.set_checkpoint(
                c, uid, sequence=s, decided_until=d, now=n
            )
        )
    assert mark(database, uid) == (6, 60, 600)


def test_schedules_with_old_decisions_are_found_in_pieces(database: Database) -> None:
    uids = sorted(make_schedule(database, f"s{n}") for n in range(4))
    add_events(database, uids[0], (EventType.CREATED, OLD, None))
    add_events(database, uids[1], (EventType.CREATED, OLD, None), (EventType.TRIGGERED, OLD, 1))
    add_events(database, uids[2], (EventType.TRIGGERED, YOUNG, 1))
    add_events(database, uids[3], (EventType.MISSED, OLD, 1))

    def look(after: bytes) -> Found:
        return database.read(
            lambda c: retention_rows.schedules_with_old_history(c, recorded_before=CUTOFF, after=after, looks=2)
        )

    assert look(b"") == Found((uids[1],), uids[1])
    assert look(uids[1]) == Found((uids[3],), uids[3])
    assert look(uids[3]) == Found((), None)


@pytest.mark.parametrize("dialect", ["postgresql"])
def test_a_schedule_that_a_ticker_holds_is_passed_over(database: Database) -> None:
    uid = make_schedule(database)
    add_events(database, uid, (EventType.TRIGGERED, OLD, 1))
    with database.engine.connect() as ticker, ticker.begin():
        ticker.execute(sa.select(positions).where(positions.c.schedule_uid == uid).with_for_update())
        assert trim(database, uid) == Swept(0, whole=True)
    assert trim(database, uid) == Swept(1, whole=True)


# ── whole schedules ──────────────────────────────────────────────────────────────────────────────────


def purge(database: Database, *uids: bytes) -> int:
    return database.write(lambda c: retention_rows.purge_schedules(c, uids, deleted_before=CUTOFF))


def deleted(database: Database, schedule_id: str = "s", at: int = OLD) -> bytes:
    uid = make_schedule(database, schedule_id, status=Status.DELETED)

    def work(connection: Connection) -> None:
        which = schedules_table.c.schedule_uid == uid
        connection.execute(sa.update(schedules_table).where(which).values(deleted_at=at))

    database.write(work)
    return uid


def gone(database: Database) -> Found:
    return database.read(lambda c: retention_rows.deleted_schedules(c, deleted_before=CUTOFF, after=b"", looks=10))


def test_a_schedule_that_was_deleted_long_ago_goes_whole(database: Database) -> None:
    uid, other = deleted(database), make_schedule(database, "other")
    for each in (uid, other):
        add_events(database, each, (EventType.CREATED, OLD, None), (EventType.DELETED, OLD, None))
        put(database, counters, [{"kind": "runs", "owner": schedule_owner(each), "day": 1, "value": 1}])
        yes = {"standing_id": new_id(), "namespace": "default", "schedule_uid": each, "gates": "[]", "uses": 0}
        put(database, standing_approvals, [{**yes, "made_by": "p", "made_role": "admin", "created_at": OLD}])
    assert gone(database) == Found((uid,), None)
    assert purge(database, uid, other) == 1
    tables = (schedules_table, positions, schedule_revisions, schedule_attributes, counters, standing_approvals)
    assert [count(database, table) for table in tables] == [1] * 6
    assert (sequences(database, uid), sequences(database, other)) == ([], [1, 2])


@pytest.mark.parametrize("why", ["deleted lately", "a run is left", "a decision is left"])
def test_a_deleted_schedule_stays_while_there_is_something_left(database: Database, why: str) -> None:
    uid = deleted(database, at=YOUNG if why == "deleted lately" else OLD)
    if why == "a run is left":
        make_run(database, uid)
    if why == "a decision is left":
        add_events(database, uid, (EventType.TRIGGERED, OLD, 1))
    assert gone(database).ids == ()
    assert purge(database, uid) == 0
    assert count(database, schedules_table) == 1


@pytest.mark.parametrize(
    ("source", "payload", "replaced", "stays"),
    [
        ("template", {"reason": MAX_RUNS_EXHAUSTED}, False, True),
        ("template", {"reason": MAX_RUNS_EXHAUSTED}, True, False),
        ("template", {}, False, False),
        ("runtime", {"reason": MAX_RUNS_EXHAUSTED}, False, False),
    ],
    ids=["is declared again", "a later one took its place", "deleted by hand", "nobody declares it again"],
)
def test_a_template_whose_runs_are_used_up_stays(
    database: Database, source: str, payload: dict[str, str], replaced: bool, stays: bool
) -> None:
    uid = deleted(database)

    def tell(connection: Connection) -> None:
        which = schedules_table.c.schedule_uid == uid
        connection.execute(sa.update(schedules_table).where(which).values(source=source))
        append(connection, [(uid, "default", [NewEvent(1, EventType.DELETED, None, None, None, payload)])], now=OLD)

    database.write(tell)
    if replaced:
        make_schedule(database)
    assert (gone(database).ids == ()) is stays
    assert (purge(database, uid) == 0) is stays


def test_only_daily_counters_of_days_that_are_over_go(database: Database) -> None:
    rows = [
        {"kind": kind, "owner": "x", "day": day, "value": 1}
        for kind, day in (("runs", 9), ("runs", 10), ("spent", 9), ("key", 0))
    ]
    put(database, counters, rows)
    assert database.write(lambda c: retention_rows.purge_counters(c, day_before=10)) == 2
    left = database.read(lambda c: {(row.kind, row.day) for row in c.execute(sa.select(counters))})
    assert left == {("runs", 10), ("key", 0)}
