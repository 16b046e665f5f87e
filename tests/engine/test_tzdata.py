"""An upgrade of tzdata: plans that it moves are made anew, in the future only, and an audit can follow."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta, timezone

import pytest
import sqlalchemy as sa
from operations.desks import ADMIN, Office
from sqlalchemy import Connection
from structlog.testing import capture_logs
from world import FakeClock

from horarium.core.document.planning import compile_planning
from horarium.core.document.states import Status
from horarium.core.recurrence.zone import Zone, load_zone
from horarium.engine import chores
from horarium.engine.chores import TzdataUpgrade
from horarium.features.cluster import repair_rows
from horarium.features.cluster.verification import verify
from horarium.features.schedules import lifecycle
from horarium.features.schedules import service as schedule_service
from horarium.features.schedules.rows import ScheduleRow, find
from horarium.instant import DAY, HOUR, MINUTE, Instant, from_rfc3339, to_rfc3339
from horarium.platform.database import Database, installation
from horarium.platform.database.tables import checkpoints, plannings, positions
from horarium.platform.database.tables import installation as installation_table

MIDNIGHT = from_rfc3339("2026-11-15T00:00:00Z")
NINE_THERE = {"cron_expressions": ["0 9 * * *"], "timezone": "Europe/Istanbul"}
NINE_HERE = {"cron_expressions": ["0 9 * * *"]}

Upgrade = Callable[[str, int], Office]


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(MIDNIGHT)


@pytest.fixture
def upgrade(database: Database, clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> Upgrade:
    """A process that starts with a version of tzdata in which Istanbul is so many hours east of UTC."""

    def start(version: str, hours: int) -> Office:
        there = Zone("Europe/Istanbul", timezone(timedelta(hours=hours)))  # type: ignore[arg-type]  # a zone made by hand
        monkeypatch.setattr(chores, "tzdata_version", lambda: version)
        monkeypatch.setattr(
            "horarium.core.recurrence.spec.load_zone", lambda name: there if name == there.key else load_zone(name)
        )
        compile_planning.cache_clear()
        return Office.on(database, clock)

    yield start
    compile_planning.cache_clear()  # of plans in a zone that never was


def follow(office: Office) -> int:
    """A whole pass; how many steps it took."""
    chore = TzdataUpgrade(office.resources.database, office.clock)
    steps = 1
    while chore.step():
        steps += 1
    return steps


def row_of(office: Office, schedule_id: str = "nightly") -> ScheduleRow:
    row = office.resources.database.read(lambda connection: find(connection, "default", schedule_id))
    assert row is not None
    return row


def stored(office: Office) -> str | None:
    return office.resources.database.read(installation.planned_with)


def test_where_nobody_has_said_which_version_planned_everything_is_looked_at(upgrade: Upgrade) -> None:
    office = upgrade("1", 3)
    office.create(spec=NINE_THERE)

    def forget(connection: Connection) -> None:
        connection.execute(sa.delete(installation_table))

    office.resources.database.write(forget)
    assert stored(office) is None
    assert follow(office) == 1
    assert stored(office) == "1"
    assert office.kinds() == ["Created"]


@pytest.mark.both_databases
@pytest.mark.parametrize(("hours", "at"), [(2, 7), (4, 5), (-3, 12)], ids=["an hour later", "an hour earlier", "far"])
def test_a_plan_that_moves_begins_a_generation(upgrade: Upgrade, hours: int, at: int) -> None:
    office = upgrade("1", 3)
    office.create(spec=NINE_THERE)
    follow(office)
    assert row_of(office).next_due == MIDNIGHT + 6 * HOUR
    later = upgrade("2", hours)
    follow(later)
    row = row_of(later)
    assert (row.next_due, row.generation, row.revision, row.status) == (MIDNIGHT + at * HOUR, 2, 1, Status.ACTIVE)
    event = later.events()[-1]
    assert event.event_type == "ScheduleUpdated"
    assert event.payload == {
        "changed_fields": ["tzdata"],
        "next_fire_at": to_rfc3339(MIDNIGHT + at * HOUR),
        "revision": 1,
        "generation": 2,
        "command_context": {"source": "engine", "reason": "tzdata 1 → 2"},
    }
    assert stored(later) == "2"
    later.tick(at * 3_600)
    assert later.runs()[0].nominal == MIDNIGHT + at * HOUR
    assert list(verify(later.resources, ADMIN)) == []


def test_what_does_not_move_is_left_alone(upgrade: Upgrade) -> None:
    office = upgrade("1", 3)
    office.create(spec=NINE_HERE)
    follow(office)
    before = row_of(office)
    later = upgrade("2", 2)
    follow(later)
    assert row_of(later) == before
    assert later.kinds() == ["Created"]


def test_the_same_version_is_not_looked_at(upgrade: Upgrade) -> None:
    office = upgrade("1", 3)
    follow(office)
    office.create(spec=NINE_THERE)
    later = upgrade("1", 2)
    follow(later)
    assert later.kinds() == ["Created"]


def test_a_time_that_has_passed_is_never_moved(upgrade: Upgrade, clock: FakeClock) -> None:
    office = upgrade("1", 3)
    office.create(spec=NINE_THERE)
    follow(office)
    clock.move(6 * 3_600)
    later = upgrade("2", 2)
    follow(later)
    assert row_of(later).next_due == MIDNIGHT + 6 * HOUR
    assert later.kinds() == ["Created"]
    later.tick(3_600)
    assert list(verify(later.resources, ADMIN)) == []


def test_an_occurrence_that_the_new_rules_put_into_the_past_is_recorded_and_not_fired(
    upgrade: Upgrade, clock: FakeClock
) -> None:
    office = upgrade("1", 3)
    office.create(spec=NINE_THERE)
    follow(office)
    clock.move(5 * 3_600 + 1_800)
    later = upgrade("2", 4)
    follow(later)
    assert later.kinds() == ["Created", "Missed", "Updated"]
    missed = later.events()[1]
    assert (missed.nominal, missed.payload["reason"], missed.payload["count"]) == (MIDNIGHT + 5 * HOUR, "superseded", 1)
    assert row_of(later).next_due == MIDNIGHT + DAY + 5 * HOUR
    later.tick(3_600)
    assert later.runs() == []
    assert list(verify(later.resources, ADMIN)) == []


def test_decisions_under_the_old_rules_are_no_finding(upgrade: Upgrade, clock: FakeClock) -> None:
    office = upgrade("1", 3)
    office.create(spec=NINE_THERE, overlap_policy="allow_all")
    follow(office)
    for _ in range(4):
        office.tick(86_400)
    later = upgrade("2", 2)
    follow(later)
    for _ in range(3):
        later.tick(86_400)
    assert [run.nominal % DAY for run in later.runs()] == [6 * HOUR] * 4 + [7 * HOUR] * 3
    assert list(verify(later.resources, ADMIN)) == []
    schedule_service.update(later.resources, ADMIN, "nightly", {"note": "an edit that leaves the spec alone"})
    assert row_of(later).generation == 2
    later.tick(86_400)
    assert list(verify(later.resources, ADMIN)) == []


def test_a_paused_schedule_shows_its_new_time(upgrade: Upgrade) -> None:
    office = upgrade("1", 3)
    office.create(spec=NINE_THERE)
    lifecycle.pause(office.resources, ADMIN, "nightly")
    follow(office)
    later = upgrade("2", 2)
    follow(later)
    row = row_of(later)
    assert (row.status, row.next_due, row.generation) == (Status.PAUSED, MIDNIGHT + 7 * HOUR, 2)
    lifecycle.resume(later.resources, ADMIN, "nightly")
    later.tick(86_400)
    assert list(verify(later.resources, ADMIN)) == []


def test_what_a_pause_has_overtaken_is_left_to_the_resume(upgrade: Upgrade, clock: FakeClock) -> None:
    office = upgrade("1", 3)
    office.create(spec={**NINE_THERE, "jitter_seconds": 36_000})
    due = row_of(office).next_due
    assert due is not None
    clock.set((MIDNIGHT + 6 * HOUR + due) // 2)  # nominal is over, due is not
    lifecycle.pause(office.resources, ADMIN, "nightly")
    later = upgrade("2", 2)
    follow(later)
    assert (row_of(later).next_due, row_of(later).generation) == (due, 1)


def test_a_schedule_that_loses_its_last_occurrence_is_finished(upgrade: Upgrade) -> None:
    office = upgrade("1", 3)
    end = to_rfc3339(MIDNIGHT + 6 * HOUR + 30 * MINUTE)
    office.create(spec={**NINE_THERE, "end_at": end})
    follow(office)
    later = upgrade("2", 2)
    follow(later)
    assert (row_of(later).status, row_of(later).next_due) == (Status.FINISHED, None)
    assert "next_fire_at" not in later.events()[-1].payload
    assert list(verify(later.resources, ADMIN)) == []


def test_a_plan_that_cannot_be_read_is_left_to_the_tick(upgrade: Upgrade) -> None:
    office = upgrade("1", 3)
    office.create(spec=NINE_THERE)
    follow(office)

    def spoil(connection: Connection) -> None:
        connection.execute(sa.update(plannings).values(text="{"))

    office.resources.database.write(spoil)
    later = upgrade("2", 2)
    follow(later)
    assert (row_of(later).next_due, stored(later)) == (MIDNIGHT + 6 * HOUR, "2")


@pytest.mark.both_databases
def test_many_are_looked_at_in_pieces_and_one_line_tells_how_many_moved(
    upgrade: Upgrade, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chores, "_LOOKS", 2)
    office = upgrade("1", 3)
    for number in range(5):
        office.create(f"s{number}", spec=NINE_THERE if number < 4 else NINE_HERE)
    follow(office)
    later = upgrade("2", 2)
    with capture_logs() as lines:
        assert follow(later) == 3
    assert [line for line in lines if line["event"] == "tzdata_upgraded"] == [
        {"event": "tzdata_upgraded", "log_level": "info", "before": "1", "version": "2", "moved": 4}
    ]


@pytest.mark.both_databases
def test_two_processes_that_start_together_move_a_schedule_once(
    upgrade: Upgrade, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chores, "_LOOKS", 1)
    office = upgrade("1", 3)
    for number in range(3):
        office.create(f"s{number}", spec=NINE_THERE)
    follow(office)
    later = upgrade("2", 2)
    one, other = (TzdataUpgrade(later.resources.database, later.clock) for _ in range(2))
    while one.step() | other.step():
        pass
    for number in range(3):
        assert later.kinds(f"s{number}") == ["Created", "Updated"]
        assert row_of(later, f"s{number}").generation == 2


@pytest.mark.both_databases
def test_a_schedule_that_was_decided_meanwhile_is_not_moved(upgrade: Upgrade, clock: FakeClock) -> None:
    office = upgrade("1", 3)
    written = office.create(spec=NINE_THERE)
    later = upgrade("2", 2)

    def move(now: Instant) -> object:
        return later.resources.database.write(
            lambda c: repair_rows.move_plan(
                c, later.resources.known, written.schedule_uid, "default", now=now, because="x"
            )
        )

    assert move(MIDNIGHT + 6 * HOUR) is None  # its time has come
    assert move(MIDNIGHT) is not None
    assert move(MIDNIGHT) is None
    lifecycle.delete(later.resources, ADMIN, "nightly")
    assert move(MIDNIGHT) is None


def test_the_checkpoint_says_that_older_decisions_cannot_be_recomputed(upgrade: Upgrade) -> None:
    office = upgrade("1", 3)
    office.create(spec=NINE_THERE)
    follow(office)
    office.tick(86_400)
    decided = row_of(office).decided_until
    later = upgrade("2", 2)
    follow(later)
    [mark] = later.resources.database.read(lambda c: c.execute(sa.select(checkpoints)).all())
    assert (mark.sequence, mark.decided_until) == (3, decided)
    [position] = later.resources.database.read(lambda c: c.execute(sa.select(positions)).all())
    assert position.decided_until == later.clock.now()
