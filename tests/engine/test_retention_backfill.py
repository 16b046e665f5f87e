"""What retention has deleted is not run again: a repeated backfill asks history, and where that is gone, nobody."""

from __future__ import annotations

from typing import Any

import pytest
import sqlalchemy as sa
from operations.desks import ADMIN, Office
from world import FakeClock

from horarium.core.document.states import RunState
from horarium.engine.retention import RetentionLoop, RetentionOptions
from horarium.features.cluster.verification import verify
from horarium.features.runs.retention_rows import set_checkpoint
from horarium.features.schedules import lifecycle
from horarium.features.schedules.backfills import BackfillOccurrence, BackfillResult, backfill
from horarium.instant import DAY, HOUR, MINUTE, Instant
from horarium.platform.clock import SystemClock
from horarium.platform.database import Database
from horarium.platform.database.tables import positions

RUNS = RetentionOptions(keep_runs_days=1)
BOTH = RetentionOptions(keep_runs_days=1, keep_history_days=1)


@pytest.fixture
def office(database: Database) -> Office:
    """Tomorrow noon: ids carry the machine's time, which must not lie after the times of the test."""
    clock = FakeClock((SystemClock().now() // DAY + 1) * DAY + 12 * HOUR)
    return Office.on(database, clock)


def forget(office: Office, options: RetentionOptions) -> None:
    chore = RetentionLoop(office.resources.database, office.clock, options)
    while chore.step().more:
        pass


def fill(office: Office, start: Instant, minutes: int, **options: Any) -> BackfillResult:
    return backfill(office.resources, ADMIN, "nightly", start=start, end=start + minutes * MINUTE, **options)


def finish_all(office: Office) -> None:
    for run in office.runs():
        if run.state is RunState.READY:
            office.end(run)


def reasons(done: BackfillResult) -> list[str]:
    return ["started" if row.reason is None else row.reason.value for row in done.rows]


def has_no_run(office: Office, row: BackfillOccurrence) -> bool:
    return all(run.nominal != row.nominal for run in office.runs())


def busy(office: Office) -> Instant:
    """A window of six minutes: three were backfilled before the schedule was made, three were fired on time."""
    created = office.clock.now()
    office.create(overlap_policy="allow_all")
    fill(office, created - 2 * MINUTE, 3)
    for _ in range(4):
        office.tick(60)
    finish_all(office)
    lifecycle.pause(office.resources, ADMIN, "nightly")
    office.clock.move(3 * 86_400)
    return created - 2 * MINUTE


@pytest.mark.parametrize("dry_run", [True, False], ids=["dry run", "real"])
def test_history_remembers_the_runs_that_retention_deleted(office: Office, dry_run: bool) -> None:
    window = busy(office)
    forget(office, RUNS)
    assert len(office.runs()) == 1  # the newest stays for conditions
    done = fill(office, window, 6, dry_run=dry_run)
    assert reasons(done) == ["already_exists"] * 6
    assert sum(has_no_run(office, row) for row in done.rows) == 6
    assert len(office.runs()) == 1
    assert list(verify(office.resources, ADMIN)) == []


@pytest.mark.parametrize("dry_run", [True, False], ids=["dry run", "real"])
def test_where_history_is_gone_too_nothing_is_run_again(office: Office, dry_run: bool) -> None:
    window = busy(office)
    forget(office, BOTH)
    assert office.kinds() == ["Created", "Paused"]
    done = fill(office, window, 6, dry_run=dry_run)
    assert reasons(done) == ["already_exists"] * 6
    assert all(row.detail is not None and row.detail["retention"] for row in done.rows)
    assert len(office.runs()) == 1
    assert list(verify(office.resources, ADMIN)) == []


def test_what_came_after_the_forgotten_past_can_be_filled(office: Office) -> None:
    window = busy(office)
    forget(office, BOTH)
    paused = fill(office, window + 2 * DAY, 3)
    assert reasons(paused) == ["started"] * 3
    assert reasons(fill(office, window + 2 * DAY, 4)) == ["already_exists"] * 3 + ["started"]


@pytest.mark.both_databases
def test_the_oldest_decision_that_is_left_says_from_where_on_all_is_known(office: Office) -> None:
    """The checkpoint lies later: new zone rules set it too, and forget nothing."""
    window = busy(office)
    forget(office, BOTH)
    fill(office, window + 2 * DAY, 1)
    set_far = {"sequence": office.events()[-1].sequence + 1, "decided_until": office.clock.now()}
    uid = office.resources.database.read(lambda c: c.execute(sa.select(positions.c.schedule_uid)).scalar_one())
    office.resources.database.write(lambda c: set_checkpoint(c, uid, now=office.clock.now(), **set_far))
    office.clock.move(3 * 86_400)
    assert reasons(fill(office, window + 5 * DAY, 2)) == ["started", "started"]
    assert reasons(fill(office, window + 2 * DAY, 2)) == ["already_exists"] * 2


def test_new_zone_rules_forget_nothing(office: Office) -> None:
    window = busy(office)
    uid = office.resources.database.read(lambda c: c.execute(sa.select(positions.c.schedule_uid)).scalar_one())
    mark = {"sequence": office.events()[-1].sequence + 1, "decided_until": office.clock.now()}
    office.resources.database.write(lambda c: set_checkpoint(c, uid, now=office.clock.now(), **mark))
    done = fill(office, window, 9)
    assert reasons(done) == ["already_exists"] * 7 + ["started"] * 2


def test_what_was_skipped_can_be_filled_while_history_is_kept(office: Office) -> None:
    """It never had a run, and history says so."""
    created = office.clock.now()
    office.create(overlap_policy="skip")
    for _ in range(3):
        office.tick(60)
    finish_all(office)
    office.clock.move(3 * 86_400)
    lifecycle.pause(office.resources, ADMIN, "nightly")
    forget(office, RUNS)
    done = fill(office, created + MINUTE, 3)
    assert reasons(done)[:2] == ["already_exists", "started"]
