"""Twenty ways in which a simple cron worker goes wrong, and what happens here instead.

Each scenario is an hour or so of a schedule that is due every minute, through ticker, dispatcher, follower and
janitor. In the end the books are audited: every occurrence has exactly one decision.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa
from engine.builders import ACTION, START, World, account, reasons
from operations.desks import TOKENS
from world import FakeClock

from horarium.core.lifecycle.outcome import Accepted, Finished, Outcome, StillRunning
from horarium.engine.dispatcher import LaunchAnswer
from horarium.engine.ticker import TickerOptions
from horarium.features.cluster.verification import verify
from horarium.features.resources import Resources
from horarium.features.runs.claim_rows import renew
from horarium.features.schedules import lifecycle
from horarium.features.schedules import service as schedule_service
from horarium.instant import HOUR, MINUTE, SECOND, Instant, to_rfc3339
from horarium.launchers.launcher import LaunchRequest
from horarium.launchers.recording import RecordingLauncher
from horarium.platform.caller import internal
from horarium.platform.database import Database
from horarium.platform.database.tables import runs
from horarium.platform.settings import Settings
from horarium.platform.telemetry.telemetry import Telemetry

CALLER = internal("test")
MINUTES = 60


class Lasting(RecordingLauncher):
    """A target whose runs last as long as it is told; it remembers how many there were at once."""

    def __init__(self, clock: FakeClock, seconds: float = 0) -> None:
        super().__init__(clock, kind="http")
        self.seconds = seconds
        self.most_at_once = 0
        self._fake = clock
        self._until: dict[str, Instant] = {}

    async def launch(self, request: LaunchRequest) -> Outcome:
        self.deliveries.append(request)
        if self.seconds == 0:
            return Finished()
        self._until[request.key] = self._fake.now() + round(self.seconds * SECOND)
        self.most_at_once = max(self.most_at_once, len(self._until))
        return Accepted(request.key)

    async def poll(self, request: LaunchRequest, reference: str | None) -> Outcome | StillRunning:
        if reference is None or self._fake.now() < self._until[reference]:
            return StillRunning()
        del self._until[reference]
        return Finished()

    @property
    def started(self) -> list[Instant]:
        return [request.nominal for request in self.deliveries]


class Stage(World):
    def __init__(self, database: Database, *, lasts: float = 0, clock: FakeClock | None = None, **given: Any) -> None:
        clock = clock or FakeClock()
        self.target = Lasting(clock, lasts)
        super().__init__(database, clock, launcher=self.target, **given)
        self.resources = Resources(database, clock, Settings(), Telemetry(clock), TOKENS)

    def put(self, **fields: Any) -> bytes:
        document = {"schedule_id": "s", "cron_expressions": ["* * * * *"], "action": ACTION, **fields}
        return schedule_service.upsert(self.resources, CALLER, document).schedule_uid

    def skips(self, uid: bytes) -> list[str]:
        return [
            reason
            for event in self.history(uid)
            if event.event_type in ("ScheduleTriggerSkipped", "ScheduleMissed")
            for reason in reasons([event])
        ]

    def audit(self, *, paused: bool = False) -> None:
        assert list(verify(self.resources, CALLER)) == []
        if not paused:
            account(self.database)


def minutes(first: int, last: int) -> list[Instant]:
    return [START + number * MINUTE for number in range(first, last + 1)]


def test_a_without_feedback_a_deadline_ends_the_run_and_the_next_one_starts(database: Database) -> None:
    stage = Stage(database, lasts=1e9)
    uid = stage.put(action=ACTION | {"timeout_seconds": 290})
    stage.pass_time(3_600, step=30)
    # Each blocks the five that come due before its deadline has passed.
    assert [row.nominal for row in stage.runs(uid)] == minutes(1, MINUTES)[::6]
    assert set(stage.skips(uid)) == {"overlap_policy_skip"}
    assert set(stage.states(uid)) == {"timed_out"}
    stage.audit()


@pytest.mark.parametrize("last", [10, pytest.param(30, marks=pytest.mark.long)])
def test_b_short_runs_are_never_skipped(database: Database, last: int) -> None:
    """Half an hour of it in a full run."""
    stage = Stage(database, lasts=5)
    uid = stage.put()
    stage.pass_time(last * 60, step=10)
    assert (stage.target.started, stage.skips(uid)) == (minutes(1, last), [])
    stage.audit()


@pytest.mark.both_databases
def test_b2_skip_never_lets_two_run_at_once(database: Database) -> None:
    stage = Stage(database, lasts=150)
    uid = stage.put()
    stage.pass_time(3_600, step=30)
    assert stage.target.most_at_once == 1
    assert len(stage.target.started) + len(stage.skips(uid)) == MINUTES
    assert len(stage.target.started) == 20
    stage.audit()


@pytest.mark.both_databases
@pytest.mark.parametrize("last", [12, pytest.param(20, marks=pytest.mark.long)])
@pytest.mark.parametrize("lasts", [5, 90], ids=["c-shorter than the period", "d-longer than the period"])
def test_c_d_a_queue_runs_everything_in_order_one_by_one(database: Database, lasts: float, last: int) -> None:
    """A longer queue in a full run."""
    stage = Stage(database, lasts=lasts)
    uid = stage.put(overlap_policy="queue", end_at=to_rfc3339(START + last * MINUTE))
    stage.pass_time(last * 60, step=15)
    stage.audit()
    stage.pass_time(last * 60, step=15)
    assert stage.target.started == minutes(1, last)
    assert stage.target.most_at_once == 1
    assert (stage.skips(uid), set(stage.states(uid))) == ([], {"succeeded"})
    assert stage.position(uid).status == "finished"
    stage.audit()


def test_e_without_catch_up_what_is_on_time_still_fires(database: Database) -> None:
    stage = Stage(database)
    uid = stage.put(catchup_policy="none")
    stage.pass_time(1_200, step=7)
    assert stage.target.started == minutes(1, 20)
    assert stage.skips(uid) == []
    stage.audit()


def test_f_a_stall_shorter_than_the_grace_loses_nothing(database: Database) -> None:
    stage = Stage(database)
    uid = stage.put(catchup_policy="none")
    stage.pass_time(290, step=10)
    stage.stay_away(20)
    stage.pass_time(300, step=10)
    assert stage.target.started == minutes(1, 10)
    assert stage.skips(uid) == []
    stage.audit()


@pytest.mark.parametrize("policy", ["none", "fire_immediately"], ids=["g", "g2"])
def test_g_a_restart_just_before_a_tick_loses_nothing(database: Database, policy: str) -> None:
    first = Stage(database)
    first.put(catchup_policy=policy)
    first.pass_time(119, step=7)
    second = Stage(database, clock=first.clock)  # everything in memory is gone
    second.stay_away(2)
    second.pass_time(120, step=10)
    assert first.target.started + second.target.started == minutes(1, 4)
    second.audit()


@pytest.mark.both_databases
@pytest.mark.parametrize(("delivery", "deliveries"), [("at_least_once", 2), ("at_most_once", 1)])
def test_h_a_crash_after_the_start_never_makes_a_second_run(database: Database, delivery: str, deliveries: int) -> None:
    first = Stage(database)
    uid = first.put(action=ACTION | {"delivery": delivery}, at=["2026-03-02T00:01:00Z"], cron_expressions=[])
    first.clock.move(60)
    first.tick()
    (taken,) = asyncio.run(first.dispatcher.claim()).taken
    assert isinstance(taken.request, LaunchRequest)
    asyncio.run(first.target.launch(taken.request))  # started, and the process is gone
    second = Stage(database, clock=first.clock)
    second.pass_time(120, step=10)
    started = [*first.target.deliveries, *second.target.deliveries]
    assert len(started) == deliveries
    assert len({request.key for request in started}) == 1
    assert second.states(uid) == ["succeeded" if delivery == "at_least_once" else "unknown"]
    second.audit()


def test_i_an_unchanged_redeploy_is_no_change(database: Database) -> None:
    stage = Stage(database)
    uid = stage.put()
    for _ in range(12):
        stage.pass_time(25, step=25)
        before = stage.position(uid)
        assert stage.put() == uid  # also just before, at and just after a tick
        assert stage.position(uid) == before
    assert stage.target.started == minutes(1, 5)
    stage.audit()


@pytest.mark.both_databases
def test_i2_a_redeploy_while_something_is_due_loses_nothing(database: Database) -> None:
    stage = Stage(database)
    uid = stage.put()
    stage.tick()
    stage.clock.move(60)
    stage.put()
    stage.pass_time(10, step=10)
    assert len(stage.runs(uid)) == 1
    stage.audit()


def test_j_jitter_is_never_early_and_never_out_of_order(database: Database) -> None:
    stage = Stage(database)
    uid = stage.put(jitter_seconds=45)
    at: list[Instant] = []
    for _ in range(1_200 // 5):
        stage.pass_time(5, step=5)
        at += [stage.clock.now()] * (len(stage.target.deliveries) - len(at))
    nominal = stage.target.started
    assert nominal == sorted(nominal) == minutes(1, len(nominal))
    assert len(nominal) >= 19
    delays = [row.due - row.nominal for row in stage.runs(uid)]
    assert all(0 <= delay <= 45 * SECOND for delay in delays)
    assert len(set(delays)) > 10
    assert all(0 <= late - request.due <= 5 * SECOND for late, request in zip(at, stage.target.deliveries, strict=True))
    stage.audit()


def away(stage: Stage, seconds: float = 30 * 60 + 30) -> None:
    """Run for five minutes, and be down for half an hour."""
    stage.pass_time(300, step=30)
    stage.stay_away(seconds)


def test_k_a_backlog_is_not_skipped_against_itself(database: Database) -> None:
    stage = Stage(database, lasts=5)
    uid = stage.put(overlap_policy="skip", catchup_policy="fire_immediately")
    away(stage)
    stage.pass_time(7 * 60, step=5)
    assert stage.target.most_at_once == 1
    assert minutes(1, 34) == stage.target.started[:34]
    # While the backlog is worked off, what comes due is skipped against it, with a reason.
    assert set(stage.skips(uid)) <= {"overlap_policy_skip"}
    stage.audit()


@pytest.mark.both_databases
def test_l_a_storm_is_capped_and_what_is_beyond_the_cap_is_on_record(database: Database) -> None:
    stage = Stage(database, ticker=TickerOptions(max_catchup_per_tick=4))
    uid = stage.put(overlap_policy="allow", catchup_policy="fire_immediately", max_catchup=10)
    away(stage)
    per_step = [len(tick.decided[0].decisions) for tick in stage.tick() if tick.decided]
    assert max(per_step) <= 1 + 4  # one range of what is beyond the cap, and four runs
    stage.dispatch()
    caught_up = [nominal for nominal in stage.target.started if nominal > START + 5 * MINUTE]
    assert caught_up[-12:] == sorted(caught_up[-12:])
    (missed,) = [json.loads(e.payload) for e in stage.history(uid) if e.event_type == "ScheduleMissed"]
    assert missed["reason"] == "catchup_cap"
    assert missed["count"] + len(caught_up) == 30
    stage.audit()


def test_m_spread_runs_keep_their_true_times(database: Database) -> None:
    stage = Stage(database)
    uid = stage.put(overlap_policy="allow", catchup_policy="spread", catchup_spread_seconds=120)
    away(stage)
    began = stage.clock.now()
    stage.pass_time(130, step=2)
    assert sorted(stage.target.started) == minutes(1, len(stage.target.started))
    # The first at once, the last when the spread ends, the others between.
    starts = sorted(row.ready_at - began for row in stage.runs(uid) if row.covers_count is None)[5:]
    assert min(starts) <= 4 * SECOND
    assert 100 * SECOND <= max(starts) <= 124 * SECOND
    stage.audit()


def test_n_occurrences_before_the_end_are_caught_up_after_it(database: Database) -> None:
    stage = Stage(database)
    uid = stage.put(catchup_policy="fire_immediately", end_at=to_rfc3339(START + 11 * MINUTE))
    stage.pass_time(120, step=30)
    stage.stay_away(HOUR / SECOND)
    stage.pass_time(60, step=2)
    assert stage.target.started == minutes(1, 11)
    assert (stage.position(uid).status, stage.position(uid).next_due) == ("finished", None)
    stage.audit()


def test_o_a_start_on_a_tick_includes_it(database: Database) -> None:
    stage = Stage(database)
    stage.put(start_at=to_rfc3339(START + 3 * MINUTE))
    stage.pass_time(300, step=30)
    assert stage.target.started == minutes(3, 5)
    stage.audit()


def test_p_a_pause_is_no_downtime(database: Database) -> None:
    stage = Stage(database)
    uid = stage.put(catchup_policy="fire_immediately")
    stage.pass_time(300, step=30)
    lifecycle.pause(stage.resources, CALLER, "s")
    stage.pass_time(30 * 60, step=60)
    lifecycle.resume(stage.resources, CALLER, "s")
    stage.pass_time(120, step=30)
    assert stage.target.started == [*minutes(1, 5), *minutes(36, 37)]
    assert len(stage.runs(uid)) == 7
    stage.audit(paused=True)


def test_q_a_pause_ten_seconds_before_the_tick_holds(database: Database) -> None:
    stage = Stage(database)
    uid = stage.put()
    stage.pass_time(110, step=10)
    lifecycle.pause(stage.resources, CALLER, "s")
    stage.pass_time(60, step=10)
    assert len(stage.runs(uid)) == 1
    stage.audit(paused=True)


@pytest.mark.both_databases
def test_r_a_slow_launch_delays_nobody(database: Database) -> None:
    stage = Stage(database)
    uid = stage.put(overlap_policy="allow")
    in_hand: list[tuple[Instant, Any]] = []
    for _ in range(59 * 2):
        stage.clock.move(30)
        stage.tick()
        taken = asyncio.run(stage.dispatcher.claim()).taken
        in_hand += [(stage.clock.now() + 95 * SECOND, each) for each in taken]
        asyncio.run(_renew(stage, [each.work for _, each in in_hand]))
        done = [LaunchAnswer(each, Finished()) for until, each in in_hand if until <= stage.clock.now()]
        in_hand = [(until, each) for until, each in in_hand if until > stage.clock.now()]
        asyncio.run(stage.dispatcher.settle(done))
        stage.tidy()
    assert [row.nominal for row in stage.runs(uid)] == minutes(1, 59)
    assert {row.lease_epoch for row in stage.runs(uid)} <= {1, 2}
    assert stage.states(uid).count("succeeded") >= 57
    assert stage.skips(uid) == []
    stage.audit()


async def _renew(stage: Stage, works: list[Any]) -> None:
    until = stage.clock.now() + 60 * SECOND
    await asyncio.to_thread(stage.write, lambda connection: renew(connection, works, until))


def test_s_every_run_carries_its_own_time(database: Database) -> None:
    stage = Stage(database)
    uid = stage.put(overlap_policy="allow")
    stage.pass_time(300, step=150)
    assert sorted(stage.target.started) == minutes(1, 5)
    assert len({request.key for request in stage.target.deliveries}) == 5
    assert [row.nominal for row in stage.runs(uid)] == minutes(1, 5)
    stage.audit()


@pytest.mark.both_databases
def test_t_no_leader_is_needed_and_no_tick_is_decided_twice(
    database: Database, open_another: Callable[[], Database]
) -> None:
    first = Stage(database)
    others = [Stage(open_another(), clock=first.clock) for _ in range(2)]
    first.put(overlap_policy="allow")
    for number in range(60):
        first.clock.move(30)
        for stage in sorted([first, *others], key=lambda each, n=number: (n * 7 + id(each)) % 3):
            stage.tick()
            stage.dispatch()
    started = sorted(nominal for stage in (first, *others) for nominal in stage.target.started)
    assert started == minutes(1, 30)
    first.audit()


def test_every_letter_has_its_scenario() -> None:
    names = "".join(name.split("_")[1] + name.split("_")[2] for name in globals() if name.startswith("test_"))
    assert all(letter in names for letter in "abcdefghijklmnopqrst")


@pytest.mark.both_databases
def test_an_upsert_storm_while_firing_decides_everything_once(database: Database) -> None:
    stage = Stage(database)
    uid = stage.put(overlap_policy="allow")
    for number in range(40):
        stage.pass_time(20, step=20)
        stage.put(overlap_policy="allow", name=f"deploy {number}")
    assert stage.target.started == minutes(1, 13)
    assert stage.database.read(lambda c: c.execute(sa.select(sa.func.count()).select_from(runs)).scalar_one()) == 13
    assert stage.position(uid).revision == 41
    stage.audit()
