"""The dispatcher hands out what is ready and writes down each answer, once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import sqlalchemy as sa
from engine.builders import ACTION, World
from structlog.testing import capture_logs
from world import FakeClock

from horarium.core.document.states import delivery_key
from horarium.core.lifecycle.outcome import (
    Accepted,
    Busy,
    Finished,
    Outcome,
    Refused,
    RunCancelled,
    RunFailed,
    RunTimedOut,
    Unknown,
    Unreachable,
)
from horarium.engine import dispatcher as module
from horarium.engine.capacity import Limits
from horarium.engine.claimer import Claimer, DispatcherOptions, InFlight
from horarium.engine.dispatcher import Dispatcher, LaunchAnswer
from horarium.engine.loop import Pulse
from horarium.features.runs.definition_rows import Definitions
from horarium.features.runs.transition_rows import record_events
from horarium.instant import HOUR, SECOND
from horarium.launchers.launcher import LaunchRequest
from horarium.launchers.recording import RecordingLauncher, Step
from horarium.launchers.registry import Registry
from horarium.platform.database import Connection, Database
from horarium.platform.database.errors import DataError, StoreUnavailable
from horarium.platform.database.tables import runs, schedule_revisions
from horarium.serve.preparers import preparers_with

ONCE: dict[str, Any] = {"action": ACTION | {"delivery": "at_most_once"}}


class Forgetful(RecordingLauncher):
    """A target that does not know a key again."""

    honours_key = False

    async def launch(self, request: LaunchRequest) -> Outcome:
        self._answers.clear()
        return await super().launch(request)


def world_with(
    database: Database, *script: Step, count: int = 1, options: DispatcherOptions | None = None, **fields: Any
) -> World:
    """A world with ready runs, and a launcher that answers as written."""
    clock = FakeClock()
    world = World(database, clock, launcher=Forgetful(clock, kind="http", script=script), dispatcher=options)
    for number in range(count):
        world.add(f"s{number}", **fields)
    world.clock.move(60)
    world.tick()
    return world


def claim(world: World) -> list[InFlight]:
    return list(asyncio.run(world.dispatcher.claim()).taken)


# ── one round ────────────────────────────────────────────────────────────────────────────────────────

ANSWERS: dict[str, tuple[Outcome, str]] = {
    "finished": (Finished({"n": 1}), "succeeded"),
    "accepted": (Accepted("ref"), "running"),
    "queued": (Accepted("ref", queued=True), "queued"),
    "refused": (Refused("no"), "launch_failed"),
    "busy": (Busy(5.0), "ready"),
    "unreachable": (Unreachable("gone"), "ready"),
    "unknown": (Unknown("gone"), "ready"),
    "failed": (RunFailed("boom"), "ready"),
    "failed for good": (RunFailed("boom", "own_word"), "failed"),
    "timed out": (RunTimedOut("late"), "timed_out"),
    "cancelled": (RunCancelled("asked"), "cancelled"),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_each_answer_leads_to_its_state(database: Database, name: str) -> None:
    outcome, state = ANSWERS[name]
    world = world_with(database, outcome)
    assert world.dispatch() == 1
    (run,) = world.runs()
    assert (run.state, run.lease_owner, run.lease_until) == (state, None, None)
    assert len(world.launcher.deliveries) == 1
    world.account()


@pytest.mark.both_databases
def test_a_request_tells_what_and_when_and_for_how_long(database: Database) -> None:
    action = ACTION | {"input": {"a": 1}, "timeout_seconds": 90}
    world = world_with(database, action=action, labels={"team": "blue"}, memo={"m": 1})
    world.dispatch()
    (request,) = world.launcher.deliveries
    (run,) = world.runs()
    assert (request.schedule_id, request.namespace, request.origin) == ("s0", "default", "scheduled")
    assert (request.nominal, request.due, request.attempt, request.trigger_number) == (run.nominal, run.due, 0, 1)
    assert (request.inputs, request.labels, request.memo) == ({"a": 1}, {"team": "blue"}, {"m": 1})
    assert request.deadline == world.clock.now() + 90 * SECOND
    assert request.instance_id == f"schedule:s0:{run.nominal // SECOND}"


def test_a_rotated_input_goes_with_its_run(database: Database) -> None:
    world = world_with(database, inputs_rotation=[{"n": 0}, {"n": 1}])
    world.dispatch()
    world.pass_time(120, step=60)
    assert [request.inputs for request in world.launcher.deliveries] == [{"n": 0}, {"n": 1}, {"n": 0}]


@pytest.mark.both_databases
def test_a_redelivery_repeats_the_key_and_a_retry_has_its_own(database: Database) -> None:
    world = world_with(database, Unknown("?"), Unreachable("?"), RunFailed("boom"), Unknown("?"), Finished())
    for _ in range(5):
        world.clock.move(60)
        assert world.dispatch() == 1
    keys = [request.key for request in world.launcher.deliveries]
    first = keys[0]
    assert keys == [first, first, first, delivery_key(first, 1), delivery_key(first, 1)]
    assert world.states() == ["succeeded"]
    assert world.events(world.runs()[0].run_id) == [
        "run.redelivered", "run.redelivered", "run.retried", "run.redelivered", "run.completed",
    ]  # fmt: skip
    world.account()


def test_at_most_once_delivers_at_most_once(database: Database) -> None:
    world = world_with(database, Unknown("?"), **ONCE)
    world.dispatch()
    world.clock.move(3_600)
    assert world.dispatch() == 0
    assert (world.states(), len(world.launcher.deliveries)) == (["unknown"], 1)


def test_deliveries_back_off_and_end(database: Database) -> None:
    world = world_with(database, *[Unreachable("gone")] * 10)
    waits = []
    for _ in range(5):
        now = world.clock.now()
        assert world.dispatch() == 1
        (run,) = world.runs()
        if run.state == "ready":
            waits.append((run.ready_at - now) / SECOND)
            world.clock.set(run.ready_at - 1)
            assert world.dispatch() == 0
            world.clock.set(run.ready_at)
    assert world.states() == ["launch_failed"]
    assert waits == sorted(waits)
    assert all(0.25 * 2**n <= wait <= 0.5 * 2**n for n, wait in enumerate(waits))
    assert world.position(world.runs()[0].schedule_uid).last_dispatch_status == "dispatch_failed"


def test_a_busy_target_is_waited_for_and_then_skipped(database: Database) -> None:
    world = world_with(database, *[Busy()] * 100)
    until = world.clock.now() + 130 * SECOND
    while world.clock.now() < until:
        world.dispatch()
        world.clock.move(1)
    (run,) = world.runs()
    assert (run.state, run.cause) == ("skipped", "target_busy")
    assert len(world.launcher.deliveries) == 13
    world.account()


def test_the_time_of_an_attempt_begins_with_its_launch(database: Database) -> None:
    """However long it waited for its turn, or for a target that had no room."""
    world = world_with(database, Busy(100.0), action=ACTION | {"timeout_seconds": 90})
    world.clock.move(1_000)
    world.dispatch()
    assert world.runs()[0].deadline is None
    world.clock.move(100)
    (taken,) = claim(world)
    assert taken.work.deadline == world.clock.now() + 90 * SECOND


# ── poison among answers ─────────────────────────────────────────────────────────────────────────────

POISONS: dict[str, Outcome] = {
    "circular": Finished([]),
    "cost": Finished(None, float("nan")),
    "negative": Finished(None, -1.0),
    "tokens": Finished(None, None, 2**80),
    "reference": Accepted("half \ud800"),
    "wait": Busy(float("nan")),
}
circle: list[Any] = []
circle.append(circle)
POISONS["circular"] = Finished(circle)


@pytest.mark.both_databases
@pytest.mark.parametrize("kind", POISONS)
def test_an_answer_that_cannot_be_kept_spoils_no_other(database: Database, kind: str) -> None:
    world = world_with(database, count=5)
    outcomes = iter([Finished(), Finished(), POISONS[kind], Finished(), Finished()])
    taken = claim(world)
    asyncio.run(world.dispatcher.settle([LaunchAnswer(each, next(outcomes)) for each in taken]))
    assert sorted(world.states()) == ["failed"] + ["succeeded"] * 4
    (failed,) = [run for run in world.runs() if run.state == "failed"]
    assert (failed.run_id, failed.error_class) == (taken[2].work.run_id, "unstorable_answer")
    world.account()


@pytest.mark.both_databases
@pytest.mark.parametrize("result", [2**80, "half \ud800", {"nul": "\x00"}, [1.5] * 1_000], ids=["big", "s", "nul", "l"])
def test_unusual_results_are_kept(database: Database, result: Any) -> None:
    world = world_with(database, Finished(result))
    world.dispatch()
    assert world.states() == ["succeeded"]


@pytest.mark.both_databases
def test_an_error_with_a_nul_is_kept(database: Database) -> None:
    world = world_with(database, Refused("a\x00b\ud800" + "x" * 10_000))
    world.dispatch()
    assert world.runs()[0].error.startswith("a�b?xxx")


@pytest.mark.parametrize(
    "spoil",
    [
        sa.update(schedule_revisions).values(document="{"),
        sa.delete(schedule_revisions),
        sa.update(runs).values(inputs="{"),
        sa.update(runs).values(origin="nobody"),
    ],
    ids=["document", "revision", "inputs", "origin"],
)
def test_a_run_that_no_request_can_be_made_of_is_refused(database: Database, spoil: sa.Executable) -> None:
    world = world_with(database)
    world.write(lambda c: c.execute(spoil))
    assert world.dispatch() == 1
    assert (world.states(), world.launcher.deliveries) == (["launch_failed"], [])


def test_an_action_without_a_launcher_is_refused(database: Database) -> None:
    world = world_with(database, action={"kind": "prompt", "prompt": "hello"})
    world.dispatch()
    assert world.states() == ["launch_failed"]


# ── fences ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.both_databases
def test_an_answer_after_somebody_else_took_over_changes_nothing(database: Database) -> None:
    world = world_with(database)
    (late,) = claim(world)
    world.clock.move(31)
    assert world.tidy().lost_leases == 1
    world.clock.move(5)
    (second,) = claim(world)
    assert second.work.lease_epoch == late.work.lease_epoch + 1
    asyncio.run(world.dispatcher.settle([LaunchAnswer(late, Refused("I was asleep"))]))
    assert world.states() == ["launching"]
    asyncio.run(world.dispatcher.settle([LaunchAnswer(second, Finished())]))
    assert world.states() == ["succeeded"]
    world.account()


@pytest.mark.both_databases
def test_a_known_end_still_counts_while_nobody_else_has_begun(database: Database) -> None:
    """The lease ran out while the database was away; the answer spares a second delivery."""
    world = world_with(database)
    (late,) = claim(world)
    world.clock.move(31)
    world.tidy()
    asyncio.run(world.dispatcher.settle([LaunchAnswer(late, Finished({"n": 1}))]))
    assert world.states() == ["succeeded"]
    world.account()


class Teller:
    def __init__(self) -> None:
        self.heard: list[str] = []

    def settled(self, recorded: Any, now: int) -> None:
        self.heard += [type(each.change).__name__ for each in recorded]


@pytest.mark.both_databases
def test_only_answers_that_counted_are_told(database: Database) -> None:
    world, teller = world_with(database), Teller()
    dispatcher = Dispatcher(database, world.clock, world.registry, "x", observer=teller, preparers=preparers_with())
    (taken,) = asyncio.run(dispatcher.claim()).taken
    asyncio.run(dispatcher.settle([LaunchAnswer(taken, Finished())]))
    asyncio.run(dispatcher.settle([LaunchAnswer(taken, Finished())]))
    assert teller.heard == ["End"]


# ── limits ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.both_databases
def test_no_more_is_claimed_than_there_is_room_for(database: Database) -> None:
    world = world_with(database, count=5, options=DispatcherOptions(Limits(process=3)))
    assert len(claim(world)) == 3


@pytest.mark.both_databases
def test_a_kind_gets_no_more_places_than_its_own(database: Database) -> None:
    world = world_with(database, count=5, options=DispatcherOptions(Limits(kinds={"http": 2, "command": 9})))
    world.add("other", action={"kind": "command", "command": "true"})
    world.clock.move(60)
    world.ticker.step()
    assert sorted(each.work.kind for each in claim(world)) == ["command", "http", "http"]
    left = [run for run in world.runs() if run.state == "ready"]
    assert {(run.launches, run.lease_epoch, run.lease_until, run.deadline) for run in left} == {(0, 0, None, None)}


# ── the loop ─────────────────────────────────────────────────────────────────────────────────────────


async def live(dispatcher: Dispatcher, during: Callable[[asyncio.Event], Awaitable[None]], grace: float = 5.0) -> None:
    stop, wake = asyncio.Event(), asyncio.Event()
    running = asyncio.create_task(dispatcher.run(stop, wake, grace, Pulse()))
    try:
        async with asyncio.timeout(120):  # against hanging for ever, on however busy a machine
            await during(stop)
            stop.set()
            await running
    finally:
        running.cancel()


async def until(happened: Callable[[], bool]) -> None:
    while not happened():
        await asyncio.sleep(0.02)


class Gate:
    """A target that answers when it is told to, or stops when it is asked to."""

    def __init__(self, *, stubborn: bool = False) -> None:
        self.open = asyncio.Event()
        self.requests: list[LaunchRequest] = []
        self._stubborn = stubborn

    async def __call__(self, request: LaunchRequest) -> Outcome:
        self.requests.append(request)
        if self._stubborn:
            await asyncio.shield(self.open.wait())
        else:
            await self.open.wait()
        return Finished()


def gated(database: Database, gate: Gate, **given: Any) -> World:
    options = DispatcherOptions(lease_seconds=1)
    world = world_with(database, options=options, **given)
    world.launcher._otherwise = gate
    return world


@pytest.mark.both_databases
def test_the_loop_hands_out_and_settles(database: Database) -> None:
    world = world_with(database, count=50, options=DispatcherOptions(Limits(process=7)))

    async def during(_stop: asyncio.Event) -> None:
        await until(lambda: set(world.states()) == {"succeeded"})

    asyncio.run(live(world.dispatcher, during))
    assert len(world.launcher.deliveries) == 50
    assert world.dispatcher.in_flight == 0
    world.account()


@pytest.mark.both_databases
def test_a_lease_is_renewed_while_the_launch_lasts(database: Database) -> None:
    gate = Gate()
    world = gated(database, gate)

    async def during(_stop: asyncio.Event) -> None:
        await until(lambda: bool(gate.requests))
        world.clock.move(10)
        await until(lambda: world.runs()[0].lease_until == world.clock.now() + SECOND)
        assert world.tidy().lost_leases == 0
        gate.open.set()
        await until(lambda: world.states() == ["succeeded"])

    asyncio.run(live(world.dispatcher, during))


@pytest.mark.parametrize(
    ("change", "state"),
    [({"stop_requested_at": 1}, "cancelled"), ({"lease_epoch": 9, "lease_owner": "other"}, "launching")],
    ids=["asked to stop", "taken over"],
)
def test_a_launch_is_stopped_when_nobody_wants_it_from_us(database: Database, change: Any, state: str) -> None:
    gate = Gate()
    world = gated(database, gate)

    async def during(_stop: asyncio.Event) -> None:
        await until(lambda: bool(gate.requests))
        world.write(lambda c: c.execute(sa.update(runs).values(**change)))
        await until(lambda: gate.requests[0].cancelled is not None and gate.requests[0].cancelled.is_set())
        await until(lambda: world.dispatcher.in_flight == 0)

    asyncio.run(live(world.dispatcher, during))
    assert world.states() == [state]


def test_at_a_stop_what_is_in_hand_may_finish(database: Database) -> None:
    gate = Gate()
    world = gated(database, gate)

    async def during(stop: asyncio.Event) -> None:
        await until(lambda: bool(gate.requests))
        stop.set()
        await asyncio.sleep(0.1)
        gate.open.set()

    asyncio.run(live(world.dispatcher, during))
    assert world.states() == ["succeeded"]


@pytest.mark.parametrize("stubborn", [False, True], ids=["stops", "does not stop"])
@pytest.mark.parametrize(("fields", "state"), [({}, "ready"), (ONCE, "unknown")], ids=["at least once", "at most once"])
def test_at_a_stop_what_does_not_finish_is_given_back(
    database: Database, stubborn: bool, fields: Any, state: str
) -> None:
    """Nobody asked for its cancellation, so a deploy must not cancel it."""
    gate = Gate(stubborn=stubborn)
    world = gated(database, gate, **fields)

    async def during(_stop: asyncio.Event) -> None:
        await until(lambda: bool(gate.requests))

    asyncio.run(live(world.dispatcher, during, grace=0.1))
    (run,) = world.runs()
    assert (run.state, run.lease_owner, run.lease_until) == (state, None, None)
    if state == "ready":
        assert (run.launches, run.attempt, run.ready_at) == (0, 0, world.clock.now())
    world.account()


@pytest.mark.both_databases
def test_at_a_stop_what_was_not_begun_goes_back_untouched(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    world = world_with(database, **ONCE)
    entered = asyncio.Event()

    async def never(_self: Dispatcher, _held: Any) -> Outcome:
        entered.set()
        await asyncio.sleep(60)
        raise AssertionError

    monkeypatch.setattr(Dispatcher, "_deliver", never)

    async def during(_stop: asyncio.Event) -> None:
        await entered.wait()

    asyncio.run(live(world.dispatcher, during, grace=0.05))
    (run,) = world.runs()
    assert (run.state, run.launches) == ("ready", 0)


@pytest.mark.both_databases
@pytest.mark.parametrize("fields", [{}, ONCE], ids=["at least once", "at most once"])
def test_a_run_that_our_database_does_not_let_us_read_goes_back_and_no_launch_is_counted(
    database: Database, monkeypatch: pytest.MonkeyPatch, fields: Any
) -> None:
    world = world_with(database, count=3, **fields)
    load, failures = Claimer._read, list[int]()

    def unavailable(self: Claimer, connection: Connection, works: Any) -> Any:
        if len(failures) < 20:
            failures.append(1)
            raise StoreUnavailable("no connection to the database became free", busy=True)
        return load(self, connection, works)

    monkeypatch.setattr(Claimer, "_read", unavailable)
    for _ in range(20):
        world.dispatch()
    assert {(run.state, run.launches, run.attempt, run.deadline) for run in world.runs()} == {("ready", 0, 0, None)}
    assert world.launcher.deliveries == []
    world.dispatch()
    assert world.states() == ["succeeded"] * 3
    world.account()


def test_a_run_that_cannot_be_read_through_its_own_fault_uses_up_its_launches(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = world_with(database)

    def broken(*_: Any) -> None:
        raise DataError("the database refuses a value")

    monkeypatch.setattr(Claimer, "_read", broken)
    for _ in range(50):
        world.dispatch()
        world.clock.move(60)
    assert world.states() == ["launch_failed"]


@pytest.mark.both_databases
def test_a_run_that_goes_back_is_not_claimed_again_at_once(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault that hits this read alone must not make a busy loop of claims."""
    world = world_with(database)
    reads = list[int]()

    def unavailable(*_: Any) -> None:
        reads.append(1)
        raise StoreUnavailable("the database does not allow us that")

    monkeypatch.setattr(Claimer, "_read", unavailable)

    async def during(_stop: asyncio.Event) -> None:
        await until(lambda: bool(reads))
        await asyncio.sleep(0.5)

    with capture_logs() as told:
        asyncio.run(live(world.dispatcher, during))
    assert len(reads) == 1
    assert [each["event"] for each in told if each["log_level"] == "error"] == ["runs_read_failed"]
    (run,) = world.runs()
    assert (run.state, run.launches) == ("ready", 0)


def test_answers_outlive_an_absence_of_the_database(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    world = world_with(database, count=3)
    failures: list[int] = []

    def fail_first(*args: Any, **given: Any) -> Any:
        if len(failures) < 3:
            failures.append(1)
            raise StoreUnavailable("restarting")
        return record_events(*args, **given)

    monkeypatch.setattr(module, "record_events", fail_first)

    async def during(_stop: asyncio.Event) -> None:
        await until(lambda: set(world.states()) == {"succeeded"})

    asyncio.run(live(world.dispatcher, during))
    assert len(world.launcher.deliveries) == 3
    assert len(failures) == 3


@pytest.mark.parametrize("fields", [{}, ONCE], ids=["at least once", "at most once"])
def test_a_run_whose_definition_cannot_be_read_in_time_was_not_sent(
    database: Database, monkeypatch: pytest.MonkeyPatch, fields: Any
) -> None:
    """It is ours already: that nothing was sent is known, and it is tried again."""
    world = world_with(database, **fields)

    def away(*_args: object) -> Any:
        raise StoreUnavailable("restarting")

    with monkeypatch.context() as patch:
        patch.setattr(Definitions, "load", away)
        world.dispatch()
    assert (world.states(), world.launcher.deliveries) == (["ready"], [])
    world.clock.move(60)
    world.dispatch()
    assert world.states() == ["succeeded"]


def test_work_that_is_done_here_is_running_meanwhile(database: Database) -> None:
    clock = FakeClock()
    seen: list[str] = []
    world = World(database, clock)

    def look(_request: LaunchRequest) -> Outcome:
        seen.extend(world.states())
        return Finished()

    launcher = RecordingLauncher(clock, kind="command", otherwise=look)
    launcher.works_here = True
    dispatcher = Dispatcher(database, clock, Registry([launcher]), "test", preparers=preparers_with())
    world.add(action={"kind": "command", "command": "true"})
    world.clock.move(60)
    world.tick()
    asyncio.run(dispatcher.step())
    assert (seen, world.states()) == (["running"], ["succeeded"])
    assert world.runs()[0].started_at == clock.now()


def test_nothing_ready_is_nothing_done(database: Database) -> None:
    world = World(database)
    assert world.dispatch() == 0
    asyncio.run(world.dispatcher.settle([]))
    asyncio.run(world.dispatcher.renew())
    world.add()
    world.clock.move(HOUR / SECOND)
    assert world.dispatch() == 0
