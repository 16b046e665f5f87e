"""Verify: silent about a healthy ledger, whatever was done, and loud about one that was tampered with."""

from __future__ import annotations

import random
from typing import Any

import pytest
import sqlalchemy as sa
from operations.desks import ADMIN, NOON, Office, without_gaps
from sqlalchemy import Connection

from horarium.core.document.states import RunState
from horarium.features.cluster.verification import Double, Finding, Gap, Missing, OrphanRun, Stray, verify
from horarium.features.forecast import service as forecast_service
from horarium.features.schedules import backfills, lifecycle, lists, triggers
from horarium.features.schedules import service as schedule_service
from horarium.features.schedules.decision_rows import park
from horarium.instant import MINUTE
from horarium.platform.database.tables import checkpoints, history, positions, runs


def _verify(office: Office) -> list[Finding]:
    return list(verify(office.resources, ADMIN))


def _busy(office: Office, minutes: int = 6, **parts: Any) -> bytes:
    written = office.create(overlap_policy="allow_all", **parts)
    for _ in range(minutes):
        office.tick(60)
    return written.schedule_uid


def _sql(office: Office, statement: Any) -> None:
    def work(connection: Connection) -> None:
        connection.execute(statement)

    office.resources.database.write(work)


def test_a_healthy_history_has_no_findings(office: Office) -> None:
    _busy(office)
    seen: list[int] = []
    assert list(verify(office.resources, ADMIN, progress=seen.append)) == []
    assert seen == [1]


@pytest.mark.both_databases
def test_a_deleted_decision_is_missed_twice_over(office: Office) -> None:
    uid = _busy(office)
    _sql(office, sa.delete(history).where(history.c.schedule_uid == uid, history.c.sequence.in_([3, 4])))
    found = _verify(office)
    assert Gap(uid, "nightly", 3, 4) in found
    assert Missing(uid, "nightly", NOON + 2 * MINUTE, NOON + 3 * MINUTE, 2) in found
    assert sum(isinstance(each, OrphanRun) for each in found) == 2
    assert len(found) == 4


def test_a_deleted_end_of_history_is_found(office: Office) -> None:
    uid = _busy(office)
    _sql(office, sa.delete(history).where(history.c.schedule_uid == uid, history.c.sequence == 7))
    found = _verify(office)
    assert Gap(uid, "nightly", 7, 7) in found
    assert Missing(uid, "nightly", NOON + 6 * MINUTE, NOON + 6 * MINUTE, 1) in found


@pytest.mark.both_databases
def test_a_decision_that_vanished_without_a_gap_is_found(office: Office) -> None:
    uid = _busy(office)
    _sql(office, sa.delete(history).where(history.c.schedule_uid == uid, history.c.sequence == 4))
    for number in (5, 6, 7):
        _sql(
            office,
            sa.update(history)
            .where(history.c.schedule_uid == uid, history.c.sequence == number)
            .values(sequence=number - 1),
        )
    _sql(office, sa.update(positions).where(positions.c.schedule_uid == uid).values(next_sequence=7))
    found = _verify(office)
    assert not any(isinstance(each, Gap) for each in found)
    assert Missing(uid, "nightly", NOON + 3 * MINUTE, NOON + 3 * MINUTE, 1) in found


def test_a_doubled_decision_is_found(office: Office) -> None:
    uid = _busy(office)
    again = sa.update(history).where(history.c.schedule_uid == uid, history.c.sequence == 5)
    _sql(office, again.values(nominal=NOON + 2 * MINUTE, nominal_last=NOON + 2 * MINUTE))
    assert Double(uid, "nightly", NOON + 2 * MINUTE, 5) in _verify(office)


@pytest.mark.both_databases
def test_a_decision_about_no_occurrence_is_found(office: Office) -> None:
    uid = _busy(office)
    odd = NOON + 6 * MINUTE + 1
    last = sa.update(history).where(history.c.schedule_uid == uid, history.c.sequence == 7)
    _sql(office, last.values(nominal=odd, nominal_last=odd))
    assert Stray(uid, "nightly", odd, 7) in _verify(office)


@pytest.mark.both_databases
def test_a_miscounted_range_is_found(office: Office) -> None:
    uid = office.create(catchup_policy="skip").schedule_uid
    office.clock.move(600)
    lifecycle.pause(office.resources, ADMIN, "nightly")
    assert _verify(office) == []
    row = office.events()[1]
    short = '{"first": "x", "last": "x", "count": 4, "reason": "superseded"}'
    _sql(office, sa.update(history).where(history.c.feed_id == row.feed_id).values(payload=short))
    assert _verify(office) == [Missing(uid, "nightly", NOON + MINUTE, NOON + 10 * MINUTE, 6)]


@pytest.mark.parametrize("policy", ["fire_once", "fire_all", "spread"])
def test_a_backlog_that_was_refused_in_ranges_is_accounted_for_and_explained(office: Office, policy: str) -> None:
    most: dict[str, Any] = {} if policy == "fire_once" else {"max_catchup": 1_000}
    office.create(
        spec={"cron_expressions": ["*/5 * * * * *", "*/7 * * * * *"], "timezone": "America/New_York"},
        catchup_policy=policy,
        calendars=["weekdays"],
        pre_dispatch_condition={"/x": {"eq": 1}},
        **most,
    )
    office.clock.move(9 * 86_400)  # from a Sunday over a weekend to a Tuesday
    office.world.tick()
    assert _verify(office) == []
    ranges = [event for event in office.events() if event.event_type == "ScheduleMissed"]
    told = [event.payload["reason"] for event in ranges]
    assert told == ["calendar", "condition_failed"] * 2 if policy == "fire_once" else told[0] == "catchup_cap"
    inside = ranges[-1].nominal_last
    assert inside is not None
    explained = forecast_service.explain(office.resources, ADMIN, "nightly", inside)
    assert explained.recorded is not None
    assert explained.recorded.payload["reason"] == explained.reason == "condition_failed"
    skipped = lists.describe(office.resources, ADMIN, "nightly").row.skipped_count
    single = sum(event.event_type == "ScheduleTriggerSkipped" for event in office.events())
    counted = sum(event.payload["count"] for event in ranges if event.payload["reason"] != "catchup_cap")
    assert skipped == single + counted


@pytest.mark.both_databases
def test_a_run_that_history_does_not_know_is_found(office: Office) -> None:
    uid = _busy(office, 1)
    _sql(office, sa.update(history).where(history.c.schedule_uid == uid).values(run_id=None))
    (orphan,) = _verify(office)
    assert isinstance(orphan, OrphanRun)


@pytest.mark.both_databases
def test_a_checkpoint_is_where_the_check_begins(office: Office) -> None:
    uid = _busy(office)
    _sql(office, sa.delete(history).where(history.c.schedule_uid == uid, history.c.sequence <= 4))
    mark = {"schedule_uid": uid, "sequence": 5, "decided_until": NOON + 3 * MINUTE, "made_at": office.clock.now() + 1}
    _sql(office, sa.insert(checkpoints).values(**mark))
    assert _verify(office) == []
    _sql(office, sa.delete(history).where(history.c.schedule_uid == uid, history.c.sequence == 6))
    assert Gap(uid, "nightly", 6, 6) in _verify(office)


@pytest.mark.parametrize("end", ["max_runs", "delete", "pause", "broken"])
def test_every_end_of_the_clock_is_accounted_for(office: Office, end: str) -> None:
    parts: dict[str, Any] = {"max_runs": 2} if end == "max_runs" else {}
    uid = office.create(
        overlap_policy="allow_all", spec={"cron_expressions": ["* * * * *"], "jitter_seconds": 50}, **parts
    )
    office.tick(150)
    office.clock.move(95)
    if end == "max_runs":
        office.tick(300)
    elif end == "delete":
        lifecycle.delete(office.resources, ADMIN, "nightly")
    elif end == "pause":
        lifecycle.pause(office.resources, ADMIN, "nightly")
    else:
        now = office.clock.now()
        office.resources.database.write(lambda c: park(c, uid.schedule_uid, error="x", error_class="X", now=now))
        office.clock.move(95)
        lifecycle.resume(office.resources, ADMIN, "nightly")
        office.tick(200)
    assert _verify(office) == []
    assert without_gaps(office.events())


SPECS = ["* * * * *", "*/2 * * * *", "30 * * * * *", "1-59/7 * * * *"]
CATCHUPS = ["fire_once", "skip", "fire_all", "spread"]
OVERLAPS = ["skip", "buffer_one", "buffer_all", "allow_all", "cancel_other", "terminate_other"]


@pytest.mark.both_databases
@pytest.mark.parametrize("seed", range(6))
def test_whatever_is_done_the_ledger_stays_whole(office: Office, seed: int) -> None:
    chance = random.Random(seed)
    _create(office, chance)
    for _ in range(30):
        _do_something(office, chance)
    assert _verify(office) == []
    assert without_gaps(office.events())
    counted = office.resources.database.read(lambda c: c.execute(sa.select(positions.c.active, positions.c.held)).all())
    for (active, held), uid in zip(counted, _uids(office), strict=True):
        states = _open_states(office, uid)
        assert (active, held) == (len(states) - states.count("held"), states.count("held"))


def _create(office: Office, chance: random.Random) -> None:
    office.create(
        spec={"cron_expressions": [chance.choice(SPECS)], "jitter_seconds": chance.choice([0, 0, 20])},
        overlap_policy=chance.choice(OVERLAPS),
        catchup_policy=chance.choice(CATCHUPS),
    )


def _do_something(office: Office, chance: random.Random) -> None:
    resources = office.resources
    if office.kinds()[-1] == "Deleted":
        _create(office, chance)
    match chance.choice("tttttteeprrdbmooo" if chance.random() > 0.02 else "d"):
        case "t":
            office.tick(chance.choice([1, 30, 60, 61, 200]))
        case "o":  # an outage
            office.clock.move(chance.choice([100, 1_000, 5_000]))
            office.world.tick()
        case "e":
            spec = {"cron_expressions": [chance.choice(SPECS)]}
            schedule_service.update(
                resources, ADMIN, "nightly", {"spec": spec, "overlap_policy": chance.choice(OVERLAPS)}
            )
        case "p":
            lifecycle.pause(resources, ADMIN, "nightly")
        case "r":
            lifecycle.resume(resources, ADMIN, "nightly")
        case "d":
            if chance.random() < 0.3:
                lifecycle.delete(resources, ADMIN, "nightly")
        case "b":
            start = office.clock.now() - chance.choice([300, 2_000]) * 1_000_000
            backfills.backfill(resources, ADMIN, "nightly", start=start, end=office.clock.now())
        case "m":
            triggers.trigger(resources, ADMIN, "nightly", even_if_paused=chance.random() < 0.5)
    for run in office.runs():
        if run.state is RunState.READY and chance.random() < 0.5:
            office.end(run, chance.choice([RunState.SUCCEEDED, RunState.FAILED]))
    office.clock.move(chance.random() * 90)


def _uids(office: Office) -> list[bytes]:
    return office.resources.database.read(lambda c: list(c.execute(sa.select(positions.c.schedule_uid)).scalars()))


def _open_states(office: Office, uid: bytes) -> list[str]:
    open_ = [state.value for state in RunState if state.value in ("held", "ready", "awaiting_approval", "running")]
    wanted = sa.select(runs.c.state).where(runs.c.schedule_uid == uid, runs.c.state.in_(open_))
    return office.resources.database.read(lambda c: list(c.execute(wanted).scalars()))
