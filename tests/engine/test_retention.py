"""Retention at work: what is forgotten step by step, and that an audit never notices."""

from __future__ import annotations

import asyncio
import random
from collections.abc import MutableMapping, Sequence
from functools import partial
from typing import Any

import pytest
import sqlalchemy as sa
import structlog
from operations.desks import ADMIN, Office
from sqlalchemy import Connection
from world import FakeClock

from horarium.core.audit_entries import AuditAction
from horarium.core.document.states import RunState
from horarium.core.recurrence.zone import tzdata_version
from horarium.engine.engine import Engine, EngineOptions
from horarium.engine.janitor import JanitorResult
from horarium.engine.partitions import UpkeepResult
from horarium.engine.retention import RetentionLoop, RetentionOptions, RetentionResult
from horarium.engine.ticker import Tick
from horarium.features.audit.service import check
from horarium.features.cluster.verification import verify
from horarium.features.forecast.service import explain
from horarium.features.runs import rows as runs_read
from horarium.features.runs.starts import start_run
from horarium.features.runs.transition_rows import SettledRun
from horarium.features.schedules import backfills, lifecycle, triggers
from horarium.features.schedules import service as schedule_service
from horarium.features.tenants import service as tenant_service
from horarium.instant import DAY, HOUR, Instant
from horarium.launchers.registry import Registry
from horarium.platform.clock import SystemClock
from horarium.platform.database import Database, audit_chain, idempotency, installation, processes
from horarium.platform.database.tables import (
    approvals,
    checkpoints,
    history,
    plannings,
    positions,
    run_definitions,
    run_events,
    runs,
    schedule_revisions,
)
from horarium.platform.database.tables import idempotency as answers_table
from horarium.platform.database.tables import installation as installation_table
from horarium.platform.database.tables import leases as leases_table
from horarium.platform.database.tables import namespaces as namespaces_table
from horarium.platform.database.tables import schedules as schedules_table
from horarium.platform.database.wrapper import SharedClock
from horarium.serve.preparers import preparers_with

BOTH = RetentionOptions(keep_history_days=1, keep_runs_days=1)


@pytest.fixture
def office(database: Database) -> Office:
    """Tomorrow noon: ids carry the machine's time, which must not lie after the times of the test."""
    clock = FakeClock((SystemClock().now() // DAY + 1) * DAY + 12 * HOUR)
    return Office.on(database, clock)


def retention(office: Office, options: RetentionOptions = BOTH) -> RetentionLoop:
    return RetentionLoop(office.resources.database, office.clock, options)


def whole_pass(chore: RetentionLoop) -> list[RetentionResult]:
    steps = [chore.step()]
    while steps[-1].more:
        steps.append(chore.step())
        assert len(steps) < 500, "a pass never ends"
    return steps


def count(office: Office, table: sa.Table) -> int:
    statement = sa.select(sa.func.count()).select_from(table)
    return office.resources.database.read(lambda c: int(c.execute(statement).scalar_one()))


def busy(office: Office, minutes: int = 5, schedule_id: str = "nightly", **parts: Any) -> None:
    """Fires each minute; all runs end at once."""
    office.create(schedule_id, overlap_policy="allow_all", **parts)
    for _ in range(minutes):
        office.tick(60)
        for run in office.runs(schedule_id):
            if run.state is RunState.READY:
                office.end(run)


def outage(office: Office) -> None:
    """Two days without a ticker; what was missed is one decision."""
    office.clock.move(2 * 86_400)
    office.world.tick()


# ── what goes ────────────────────────────────────────────────────────────────────────────────────────


def test_by_default_everything_is_kept(office: Office) -> None:
    busy(office)
    office.clock.move(10_000 * 86_400)
    assert whole_pass(retention(office, RetentionOptions())) == [RetentionResult(leases=1)]
    assert (count(office, runs), count(office, history)) == (5, 6 + 5)  # with a notice of each end


@pytest.mark.both_databases
def test_old_runs_and_decisions_go_and_the_newest_run_stays(office: Office) -> None:
    busy(office)
    lifecycle.pause(office.resources, ADMIN, "nightly")
    office.clock.move(2 * 86_400)
    steps = whole_pass(retention(office))
    assert (sum(step.history for step in steps), sum(step.notices for step in steps)) == (5, 5)
    assert (count(office, runs), count(office, run_events)) == (1, 1)
    assert office.kinds() == ["Created", "Paused"]
    assert list(verify(office.resources, ADMIN)) == []


def test_what_is_young_stays(office: Office) -> None:
    busy(office)
    office.clock.move(86_000)
    assert sum(step.history + step.runs for step in whole_pass(retention(office))) == 0


@pytest.mark.both_databases
def test_runs_may_be_forgotten_without_their_history(office: Office) -> None:
    busy(office)
    office.clock.move(2 * 86_400)
    whole_pass(retention(office, RetentionOptions(keep_runs_days=1)))
    assert (count(office, runs), count(office, history), count(office, checkpoints)) == (1, 6 + 5, 0)
    assert list(verify(office.resources, ADMIN)) == []


@pytest.mark.both_databases
def test_history_may_be_forgotten_without_the_runs(office: Office) -> None:
    busy(office)
    office.clock.move(2 * 86_400)
    whole_pass(retention(office, RetentionOptions(keep_history_days=1)))
    assert (count(office, runs), count(office, history)) == (5, 1)
    assert list(verify(office.resources, ADMIN)) == []


@pytest.mark.both_databases
def test_days_that_no_clock_can_count_keep_no_other_namespace_from_forgetting(office: Office) -> None:
    busy(office)
    tenant_service.create_namespace(office.resources, ADMIN, "vast")
    vast = sa.update(namespaces_table).where(namespaces_table.c.namespace == "vast")
    most = vast.values(keep_runs_days=2**31 - 1, keep_history_days=2**31 - 1)
    office.resources.database.write(lambda connection: connection.execute(most))
    office.clock.move(2 * 86_400)
    whole_pass(retention(office))
    assert (count(office, runs), count(office, history)) == (1, 1)


class _Heard(list[MutableMapping[str, Any]]):
    """A log that keeps what it is told."""

    def __call__(self, _logger: Any, _name: str, event: MutableMapping[str, Any]) -> Any:
        self.append(event)
        raise structlog.DropEvent


def test_days_that_nobody_has_chosen_are_announced_a_week_before_they_count(office: Office) -> None:
    busy(office)
    lifecycle.pause(office.resources, ADMIN, "nightly")
    office.clock.move(100 * 86_400)
    said = _Heard()
    log = structlog.wrap_logger(None, processors=[said])
    database, options = office.resources.database, RetentionOptions(keep_runs_days=90, runs_by_default=True)
    whole_pass(RetentionLoop(database, office.clock, options, log))
    assert count(office, runs) == 5
    assert [(each["runs"], each["older_than_days"]) for each in said] == [(5, 90)]
    office.clock.move(6 * 86_400)
    whole_pass(RetentionLoop(database, office.clock, options, log))
    assert (count(office, runs), len(said)) == (5, 2), "each process that starts says it"
    office.clock.move(2 * 86_400)
    whole_pass(RetentionLoop(database, office.clock, options, log))
    assert (count(office, runs), len(said)) == (1, 2), "the newest that ended stays"
    assert list(verify(office.resources, ADMIN)) == []
    born = office.events()[1].nominal
    assert born is not None
    told = explain(office.resources, ADMIN, "nightly", born)
    assert (told.fires, told.recorded is not None) == (True, True), "history tells what the run cannot any more"


def test_a_namespace_has_days_of_its_own(office: Office) -> None:
    busy(office)
    change = partial(tenant_service.change_namespace, office.resources, ADMIN, "default")
    office.clock.move(10 * 86_400)
    keep = RetentionOptions(keep_runs_days=30)
    whole_pass(retention(office, keep))
    assert count(office, runs) == 5
    change(retention={"keep_runs_days": 9, "keep_history_days": 9})
    whole_pass(retention(office, keep))
    assert (count(office, runs), count(office, history)) == (1, 1)
    change(retention={"keep_runs_days": None, "keep_history_days": "default"})
    lifecycle.pause(office.resources, ADMIN, "nightly")
    busy(office, schedule_id="other")
    office.clock.move(100 * 86_400)
    whole_pass(retention(office, keep))
    assert count(office, runs) == 6, "for ever, whatever the settings say"
    change(retention={"keep_runs_days": "default"})
    whole_pass(retention(office, keep))
    assert count(office, runs) == 2


@pytest.mark.both_databases
def test_a_decision_lost_after_the_checkpoint_is_still_found(office: Office) -> None:
    busy(office)
    outage(office)
    whole_pass(retention(office))
    for _ in range(3):
        office.tick(60)
    lost = office.events()[-2]

    def lose(connection: Connection) -> None:
        connection.execute(sa.delete(history).where(history.c.feed_id == lost.feed_id))

    office.resources.database.write(lose)
    assert list(verify(office.resources, ADMIN)) != []


@pytest.mark.both_databases
def test_a_schedule_that_was_deleted_long_ago_is_gone_with_all_it_had(office: Office) -> None:
    busy(office)
    lifecycle.delete(office.resources, ADMIN, "nightly")
    busy(office, 1, "other")
    office.clock.move(2 * 86_400)
    chore = retention(office)
    whole_pass(chore)
    whole_pass(chore)  # it goes when nothing of it is left, at the latest in the pass after that
    assert (count(office, schedules_table), count(office, positions), count(office, schedule_revisions)) == (1, 1, 1)
    assert (count(office, runs), count(office, approvals)) == (1, 0)
    assert list(verify(office.resources, ADMIN)) == []


def test_a_deleted_schedule_stays_where_runs_are_kept_for_ever(office: Office) -> None:
    busy(office)
    lifecycle.delete(office.resources, ADMIN, "nightly")
    office.clock.move(2 * 86_400)
    chore = retention(office, RetentionOptions(keep_history_days=1))
    whole_pass(chore)
    whole_pass(chore)
    assert (count(office, schedules_table), count(office, runs)) == (1, 5)


@pytest.mark.both_databases
def test_old_answers_and_dead_processes_are_forgotten_whatever_is_kept(office: Office) -> None:
    now = office.clock.now()

    def prepare(connection: Connection) -> None:
        for key, age in (("old", 25 * HOUR), ("young", 23 * HOUR)):
            idempotency.remember(connection, "default", key, request_hash="h", status=200, answer={}, now=now - age)
        processes.beat_lease(connection, "process:dead", "dead", now - 2 * DAY, 30, {})
        processes.beat_lease(connection, "process:slow", "slow", now - HOUR, 30, {})

    office.resources.database.write(prepare)
    [step] = whole_pass(retention(office, RetentionOptions()))
    assert (step.answers, step.leases) == (1, 1)
    assert (count(office, answers_table), count(office, leases_table)) == (1, 1)


@pytest.mark.both_databases
def test_what_a_run_without_a_schedule_leaves_behind_goes_with_it(office: Office) -> None:
    for number in range(3):
        started = start_run(office.resources, ADMIN, {"workflow_id": "w"}, key=str(number))
        run = office.resources.database.read(lambda c, s=started: runs_read.find(c, "default", s.run_id))
        assert run is not None
        if number:
            office.end(run)
        office.clock.move(1)
    assert (count(office, runs), count(office, run_definitions)) == (3, 3)
    assert (count(office, schedule_revisions), count(office, plannings)) == (0, 0)  # it belongs to no schedule
    office.clock.move(3 * 86_400)
    chore = retention(office, RetentionOptions(keep_runs_days=1))
    for _ in range(2):
        whole_pass(chore)
    # One has not ended, and conditions may ask for the newest that has: these stay, with all that they need.
    assert (count(office, runs), count(office, run_definitions)) == (2, 2)


@pytest.mark.both_databases
def test_the_texts_of_a_schedule_go_after_it(office: Office) -> None:
    busy(office, 1)
    schedule_service.update(office.resources, ADMIN, "nightly", {"spec": {"cron_expressions": ["*/7 * * * *"]}})
    lifecycle.delete(office.resources, ADMIN, "nightly")
    busy(office, 1, "other", spec={"cron_expressions": ["*/9 * * * *"]})
    assert count(office, plannings) == 3
    office.clock.move(2 * 86_400)
    chore = retention(office)
    for _ in range(3):
        whole_pass(chore)
    assert (count(office, schedule_revisions), count(office, plannings)) == (1, 1)


# ── step by step ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.both_databases
def test_many_schedules_are_forgotten_in_groups_and_the_next_pass_begins_anew(office: Office) -> None:
    for number in range(45):
        office.create(f"s{number}", overlap_policy="allow_all")
    office.tick(60)
    office.clock.move(2 * 86_400)
    chore = retention(office, RetentionOptions(keep_history_days=1))
    steps = whole_pass(chore)
    assert [step.history for step in steps if step.history] == [20, 20, 5]
    assert whole_pass(chore) == [RetentionResult()]
    outage(office)
    office.clock.move(2 * 86_400)
    whole_pass(chore)
    assert count(office, history) == 45  # that they were created


@pytest.mark.both_databases
def test_two_processes_at_once_do_no_harm(office: Office) -> None:
    busy(office, 20)
    office.clock.move(2 * 86_400)
    one, other = retention(office), retention(office)
    done = [step for _ in range(5) for step in (one.step(), other.step())]
    assert sum(step.history for step in done) == 20
    assert list(verify(office.resources, ADMIN)) == []


def test_the_engine_runs_the_rarer_chores_from_its_start(office: Office) -> None:
    miscounted = office.create(overlap_policy="allow_all").schedule_uid
    # Retention passes by what another chore holds at that moment, for an hour: nobody else touches a deleted one.
    gone = office.create("gone", overlap_policy="allow_all").schedule_uid
    office.tick(60)
    lifecycle.delete(office.resources, ADMIN, "gone")

    def spoil(connection: Connection) -> None:
        # On PostgreSQL an engine goes by the database's clock, whatever ours says: only the rows can be old.
        connection.execute(sa.update(history).where(history.c.schedule_uid == gone).values(recorded_at=0))
        connection.execute(sa.update(positions).where(positions.c.schedule_uid == miscounted).values(active=7))
        connection.execute(sa.delete(installation_table))

    office.resources.database.write(spoil)
    options = EngineOptions(retention=RetentionOptions(keep_history_days=1), dispatches=False)
    clock = SharedClock(office.clock, office.resources.database)
    engine = Engine(
        office.resources.database,
        clock,
        Registry([]),
        owner="test",
        observer=Unheard(),
        preparers=preparers_with(),
        options=options,
    )

    async def live() -> None:
        stop = asyncio.Event()
        running = asyncio.create_task(engine.run(stop))
        async with asyncio.timeout(60):
            while not {"tzdata", "repair", "retention"} <= engine.pulse.completed.keys():
                await asyncio.sleep(0.02)
        stop.set()
        await running

    asyncio.run(live())
    assert engine.pulse.failures == {}
    assert office.resources.database.read(installation.planned_with) == tzdata_version()
    of_miscounted = sa.select(positions.c.active).where(positions.c.schedule_uid == miscounted)
    assert office.resources.database.read(lambda c: c.execute(of_miscounted).scalar_one()) < 7
    trimmed = sa.select(checkpoints.c.schedule_uid)
    assert office.resources.database.read(lambda c: c.execute(trimmed).scalars().all()) == [gone]


class Unheard:
    """A observer that nobody asks."""

    def ticked(self, tick: Tick, now: Instant) -> None: ...
    def settled(self, runs: Sequence[SettledRun], now: Instant) -> None: ...
    def tidied(self, tidied: JanitorResult, now: Instant) -> None: ...
    def upkept(self, upkept: UpkeepResult, now: Instant) -> None: ...


# ── an audit never notices ───────────────────────────────────────────────────────────────────────────

SPECS = ["*/10 * * * *", "*/20 * * * *", "5-59/25 * * * *"]
OVERLAPS = ["skip", "buffer_one", "buffer_all", "allow_all", "cancel_other"]


@pytest.mark.parametrize("seed", range(5))
def test_whatever_is_done_and_forgotten_verify_stays_silent(office: Office, seed: int) -> None:
    forget_in_between(office, seed)


@pytest.mark.both_databases
def test_either_database_forgets_in_between(office: Office) -> None:
    forget_in_between(office, seed=5)


def forget_in_between(office: Office, seed: int) -> None:
    chance = random.Random(seed)
    chore = retention(office, RetentionOptions(keep_history_days=1, keep_runs_days=chance.choice([1, 2, None])))
    for name in ("a", "b"):
        create(office, name, chance)
    for _ in range(40):
        do_something(office, chance.choice("ab"), chance)
        if chance.random() < 0.4:
            chore.step()
        office.clock.move(chance.choice([1, 400, 4_000, 20_000]))
    assert list(verify(office.resources, ADMIN)) == []
    assert count(office, checkpoints) > 0


def create(office: Office, schedule_id: str, chance: random.Random) -> None:
    office.create(
        schedule_id,
        spec={"cron_expressions": [chance.choice(SPECS)], "jitter_seconds": chance.choice([0, 200])},
        overlap_policy=chance.choice(OVERLAPS),
        catchup_policy=chance.choice(["fire_once", "skip", "fire_all"]),
    )


def do_something(office: Office, schedule_id: str, chance: random.Random) -> None:
    resources, now = office.resources, office.clock.now()
    match chance.choice("tttttteepprrbmdn"):
        case "t":
            office.tick(chance.choice([1, 600, 2_000]))
        case "e":
            schedule_service.update(
                resources, ADMIN, schedule_id, {"spec": {"cron_expressions": [chance.choice(SPECS)]}}
            )
        case "n":  # the spec stays, and so does what is undecided
            schedule_service.update(resources, ADMIN, schedule_id, {"note": str(chance.random())})
        case "p":
            lifecycle.pause(resources, ADMIN, schedule_id)
        case "r":
            lifecycle.resume(resources, ADMIN, schedule_id)
        case "b":
            backfills.backfill(resources, ADMIN, schedule_id, start=now - 2 * HOUR, end=now)
        case "m":
            triggers.trigger(resources, ADMIN, schedule_id, even_if_paused=True)
        case "d":
            if chance.random() < 0.3:
                lifecycle.delete(resources, ADMIN, schedule_id)
                create(office, schedule_id, chance)
    for run in office.runs(schedule_id):
        if run.state is RunState.READY and chance.random() < 0.5:
            office.end(run, chance.choice([RunState.SUCCEEDED, RunState.FAILED]))


@pytest.mark.both_databases
def test_the_audit_goes_by_its_own_setting_and_leaves_a_checkpoint(office: Office) -> None:
    database = office.resources.database
    database.write(
        lambda connection: audit_chain.append(connection, "default", [AuditAction("x")] * 3, now=office.clock.now())
    )
    office.clock.move(2 * 86_400)
    whole_pass(retention(office))
    (before,) = check(database)
    assert [step.audit for step in whole_pass(retention(office, RetentionOptions(keep_audit_days=1)))] == [3]
    (after,) = check(database, namespace="default", kept=before.head)
    assert (before.entries, after.entries, after.head, after.broken) == (3, 0, before.head, None)
