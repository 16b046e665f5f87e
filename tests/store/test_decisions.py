"""Decisions become rows: exactly these, together, or none."""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal
from itertools import repeat
from typing import Any

import pytest
import sqlalchemy as sa
from engine.builders import START, World

from horarium.core.decision.facts import Covers, Decision, Fire, Hold, Missed, Skip
from horarium.core.decision.record import Counts, NewId, ScheduleSubject, ScheduleWrites, record_decisions
from horarium.core.document.planning import Planning
from horarium.core.document.states import Origin, Position, Reason, Status
from horarium.features.schedules import due_rows
from horarium.features.schedules.decision_rows import ScheduleRecord, write_records
from horarium.features.schedules.due_rows import Claim, Plannings
from horarium.instant import MINUTE
from horarium.platform.database import Database
from horarium.platform.database.errors import DataError, UniqueConflict
from horarium.platform.database.statements import event_text
from horarium.platform.database.tables import positions
from horarium.platform.database.tables import schedules as schedules_table
from horarium.platform.ids import id_text, new_id

NOW = START + 10 * MINUTE
FIRST, SECOND_, THIRD = START + MINUTE, START + 2 * MINUTE, START + 3 * MINUTE


def ids() -> Any:
    return (NewId(value, id_text(value)) for value in (new_id() for _ in repeat(None)))


def claimed(world: World) -> list[Claim]:
    return world.write(lambda c: due_rows.claim(c, Plannings(), NOW, 100))


def page(claim: Claim, decisions: list[Decision], position: Position, **planning: Any) -> ScheduleRecord:
    plan = claim.planning
    assert isinstance(plan, Planning)
    plan = replace(plan, **planning)
    named = ScheduleSubject(claim.schedule_id, claim.revision, plan)
    entry = record_decisions(named, claim.counts, decisions, position, now=NOW, origin=Origin.SCHEDULED, ids=ids())
    return ScheduleRecord(claim.schedule_uid, claim.namespace, claim.revision, plan, entry)


def write(world: World, *pages: ScheduleRecord) -> None:
    world.write(lambda c: write_records(c, pages, now=NOW))


AFTER = Position(THIRD, NOW + MINUTE, Status.ACTIVE, 1, 2, 1)


def test_each_kind_of_decision_leaves_its_rows(database: Database) -> None:
    world = World(database)
    uid = world.add()
    (claim,) = claimed(world)
    decisions: list[Decision] = [
        Missed(FIRST, FIRST, 1, Reason.CATCHUP_CAP),
        Fire(SECOND_, SECOND_ + 5, 0, Covers(SECOND_, THIRD, 2)),
        Hold(THIRD, THIRD, 1, release_at=NOW + 9),
        Skip(THIRD + MINUTE, Reason.CALENDAR, {"calendar": "x"}),
    ]
    options = {"priority": 3, "queue": "q", "concurrency_key": "agent-1", "assignee": "ada", "workflow": "w"}
    write(world, page(claim, decisions, AFTER, reserve=Decimal("1.5"), timeout_seconds=77, **options))
    fired, held = world.runs(uid)
    assert (fired.state, fired.nominal, fired.due, fired.ready_at) == ("ready", SECOND_, SECOND_ + 5, NOW)
    assert (fired.covers_first, fired.covers_last, fired.covers_count) == (SECOND_, THIRD, 2)
    assert (fired.origin, fired.kind, fired.delivery, fired.revision) == ("scheduled", "http", "at_least_once", 1)
    assert (fired.priority, fired.queue, fired.concurrency_key, fired.assignee, fired.workflow) == (
        3,
        "q",
        "agent-1",
        "ada",
        "w",
    )
    assert (fired.reserved, fired.timeout_seconds, fired.trigger_number, fired.rotation_index) == (1_500_000, 77, 1, 0)
    assert (fired.attempt, fired.launches, fired.lease_epoch, fired.cost, fired.tokens, fired.tool_calls) == (0,) * 6
    assert (fired.created_at, fired.needs_approval, fired.next_event, fired.inputs) == (NOW, False, 3, None)
    assert (held.state, held.ready_at, held.trigger_number, held.covers_count) == ("held", NOW + 9, None, None)
    assert held.next_event == 4  # that it is held is read off its row, as event 3
    events = world.history(uid)
    assert [(event.sequence, event.event_type, event.nominal, event.nominal_last) for event in events] == [
        (1, "ScheduleMissed", FIRST, FIRST),
        (2, "ScheduleTriggered", SECOND_, THIRD),
        (3, "ScheduleBuffered", THIRD, THIRD),
        (4, "ScheduleTriggerSkipped", THIRD + MINUTE, THIRD + MINUTE),
    ]
    assert [event.run_id for event in events] == [None, fired.run_id, held.run_id, None]
    assert {event.namespace for event in events} == {"default"}
    assert json.loads(events[1].payload)["workflow_run_id"] == id_text(fired.run_id)


def test_the_position_is_moved_as_the_plan_says(database: Database) -> None:
    world = World(database)
    uid, untouched = world.add("a"), world.add("b")
    before = world.position(untouched)
    claim = next(each for each in claimed(world) if each.schedule_uid == uid)
    write(world, page(claim, [Fire(FIRST, FIRST), Skip(SECOND_, Reason.CALENDAR)], AFTER))
    row = world.position(uid)
    assert (row.status, row.next_due, row.decided_until) == ("active", NOW + MINUTE, THIRD)
    assert (row.runs_born, row.rotation_index, row.next_sequence) == (2, 1, 3)
    assert (row.active, row.held, row.fires_count, row.skipped_count) == (1, 0, 1, 1)
    assert (row.last_fired_at, row.last_run_id) == (NOW, world.runs(uid)[0].run_id)
    assert (row.last_skip_reason, row.last_skipped_at, row.last_dispatch_status) == (
        "calendar",
        NOW,
        "skipped_calendar",
    )
    assert world.position(untouched) == before


def test_a_finished_schedule_is_due_no_more(database: Database) -> None:
    world = World(database)
    uid = world.add()
    (claim,) = claimed(world)
    write(world, page(claim, [Fire(FIRST, FIRST)], AFTER._replace(status=Status.FINISHED, next_due=None)))
    assert (world.position(uid).status, world.position(uid).next_due) == ("finished", None)


def test_a_schedule_whose_runs_are_used_up_is_deleted_with_its_last_run(database: Database) -> None:
    world = World(database)
    uid = world.add("a")
    world.add("b")
    claim = next(each for each in claimed(world) if each.schedule_uid == uid)
    write(world, page(claim, [Fire(FIRST, FIRST)], AFTER._replace(status=Status.DELETED, next_due=None)))
    rows = world.database.read(lambda c: c.execute(sa.select(schedules_table)).all())
    deleted = {row.schedule_id: (row.deleted_at, row.version) for row in rows}
    assert deleted == {"a": (NOW, 2), "b": (None, 1)}
    assert [event.event_type for event in world.history(uid)] == ["ScheduleTriggered", "ScheduleDeleted"]


def test_many_schedules_are_written_at_once(database: Database) -> None:
    world = World(database)
    uids = [world.add(f"s{number}") for number in range(20)]
    write(world, *(page(claim, [Fire(FIRST, FIRST)], AFTER) for claim in claimed(world)))
    assert {row.schedule_uid for row in world.runs()} == set(uids)
    assert all(world.position(uid).next_due == NOW + MINUTE for uid in uids)


def test_a_batch_without_births_or_events_moves_the_position_only(database: Database) -> None:
    world = World(database)
    uid = world.add()
    (claim,) = claimed(world)
    assert isinstance(claim.planning, Planning)
    write(world, ScheduleRecord(uid, "default", 1, claim.planning, ScheduleWrites(AFTER, Counts(), (), ())))
    assert world.position(uid).decided_until == THIRD
    assert (world.runs(), world.history(uid)) == ([], [])


# ── refusals: nothing is left of a batch that one row spoils ─────────────────────────────────────────


@pytest.mark.parametrize(
    "planning",
    [{"timeout_seconds": 2**70}, {"priority": -(2**70)}, {"queue": "half \ud800"}],
    ids=["too large", "too small", "surrogate"],
)
def test_a_value_that_no_database_holds_is_a_data_error(database: Database, planning: dict[str, Any]) -> None:
    world = World(database)
    world.add("a")
    world.add("b")
    first, second = claimed(world)
    with pytest.raises(DataError):
        write(world, page(first, [Fire(FIRST, FIRST)], AFTER), page(second, [Fire(FIRST, FIRST)], AFTER, **planning))
    assert world.runs() == []
    assert world.position(first.schedule_uid).decided_until == START


@pytest.mark.parametrize("dialect", ["postgresql"])
def test_a_nul_that_postgresql_alone_refuses_is_a_data_error_too(database: Database) -> None:
    world = World(database)
    world.add()
    (claim,) = claimed(world)
    with pytest.raises(DataError):
        write(world, page(claim, [Fire(FIRST, FIRST)], AFTER, queue="a\x00b"))
    assert world.runs() == []


def test_a_second_run_for_an_occurrence_is_a_conflict_and_changes_nothing(database: Database) -> None:
    world = World(database)
    uid = world.add()
    (claim,) = claimed(world)
    write(world, page(claim, [Fire(FIRST, FIRST)], AFTER))
    later = claim._replace(counts=claim.counts._replace(next_sequence=2))
    with pytest.raises(UniqueConflict) as taken:
        write(world, page(later, [Fire(FIRST, FIRST)], AFTER._replace(runs_born=99)))
    assert taken.value.constraint == "runs_one_per_occurrence"
    assert (len(world.runs(uid)), world.position(uid).runs_born) == (1, 2)


def test_a_sequence_that_is_taken_is_a_conflict(database: Database) -> None:
    world = World(database)
    world.add()
    (claim,) = claimed(world)
    write(world, page(claim, [Skip(FIRST, Reason.CALENDAR)], AFTER))
    with pytest.raises(UniqueConflict) as taken:
        write(world, page(claim, [Skip(SECOND_, Reason.CALENDAR)], AFTER))
    assert taken.value.constraint == "history_in_order"


# ── JSON ─────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "value",
    [{"b": 1, "a": [True, None, "é"]}, 2**80, {"n": -(2**70)}, "half \ud800 pair", "nul \x00", [1.5, "x"]],
    ids=["plain", "big", "nested big", "surrogate", "nul", "list"],
)
def test_every_json_value_comes_back_from_a_column_as_it_was(database: Database, value: Any) -> None:
    world = World(database)
    uid = world.add()
    world.write(lambda c: c.execute(sa.update(positions).values(last_error=event_text(value))))
    assert json.loads(world.position(uid).last_error) == value


def test_tuples_sets_and_decimals_become_json() -> None:
    assert json.loads(event_text({"a": (1, 2), "b": frozenset({3}), "c": Decimal("1.5")})) == {
        "a": [1, 2],
        "b": [3],
        "c": "1.5",
    }


def test_keys_keep_their_order() -> None:
    assert event_text({"b": 1, "a": 2}) == '{"b":1,"a":2}'
