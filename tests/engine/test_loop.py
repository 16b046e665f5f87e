"""A loop steps until there is nothing to do, sleeps until there may be, and never dies of an error."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from engine.builders import START
from structlog.testing import capture_logs
from world import FakeClock

from horarium.engine import loop as module
from horarium.engine.loop import Loop, Pulse, live, sleep_until_woken
from horarium.platform.database.errors import CommitUnknown, StoreUnavailable, Transient

Step = Callable[[], Awaitable[float]]


async def run(step: Step, *, until: Callable[[], bool], pulse: Pulse, wake: asyncio.Event | None = None) -> None:
    stop = asyncio.Event()
    living = asyncio.create_task(live(Loop("test", step), stop, wake or asyncio.Event(), FakeClock(), pulse))
    async with asyncio.timeout(120):
        while not until():
            await asyncio.sleep(0.001)
        stop.set()
        await living


def test_zero_asks_for_the_next_step_at_once() -> None:
    steps: list[int] = []

    async def step() -> float:
        steps.append(1)
        await asyncio.sleep(0)
        return 0 if len(steps) < 100 else 60

    asyncio.run(run(step, until=lambda: len(steps) == 100, pulse=Pulse()))
    assert len(steps) == 100


def test_a_wake_up_ends_the_sleep() -> None:
    steps: list[int] = []
    wake = asyncio.Event()

    async def step() -> float:
        steps.append(1)
        asyncio.get_running_loop().call_later(0.01, wake.set)
        return 60

    asyncio.run(run(step, until=lambda: len(steps) == 3, pulse=Pulse(), wake=wake))
    assert len(steps) == 3


def test_a_wake_up_during_a_step_is_not_lost() -> None:
    steps: list[int] = []
    wake = asyncio.Event()

    async def step() -> float:
        steps.append(1)
        if len(steps) == 1:
            wake.set()
        return 60

    asyncio.run(run(step, until=lambda: len(steps) == 2, pulse=Pulse(), wake=wake))
    assert len(steps) == 2


def test_a_step_that_raises_backs_off_and_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_FIRST_BACKOFF_SECONDS", 0.01)
    monkeypatch.setattr(module, "_LONGEST_BACKOFF_SECONDS", 0.03)
    slept: list[float] = []
    sleep = sleep_until_woken

    async def remember(*events: asyncio.Event, seconds: float) -> None:
        slept.append(seconds)
        await sleep(*events, seconds=seconds)

    monkeypatch.setattr(module, "sleep_until_woken", remember)
    steps, pulse = [0], Pulse()

    async def step() -> float:
        steps[0] += 1
        if steps[0] <= 4 or steps[0] == 6:
            raise RuntimeError(f"number {steps[0]}")
        await asyncio.sleep(0)
        return 0 if steps[0] < 7 else 60

    asyncio.run(run(step, until=lambda: steps[0] == 7, pulse=pulse))
    # It grows up to its limit, and a completed step makes it short again.
    assert slept[:5] == [0.01, 0.02, 0.03, 0.03, 0.01]
    assert (pulse.failures, pulse.errors) == ({"test": 5}, {})


OUTAGES = {
    "no connection": StoreUnavailable("no connection became free", busy=True),
    "lost": Transient("the connection to the database was lost", outcome_known=False),
    "unknown": CommitUnknown("lost"),
    "no files": OSError(24, "Too many open files"),
    "no memory": MemoryError(),
}


@pytest.mark.parametrize("error", OUTAGES.values(), ids=OUTAGES)
def test_a_loop_works_again_within_two_seconds_of_the_end_of_an_outage(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    slept = outage(monkeypatch, [error] * 200)
    assert (slept[:3], max(slept)) == ([0.5, 1.0, 1.5], 1.5)


def test_an_outage_after_a_bug_is_not_waited_out_as_long_as_the_bug(monkeypatch: pytest.MonkeyPatch) -> None:
    slept = outage(monkeypatch, [RuntimeError("bug")] * 10 + [StoreUnavailable("away")] * 2)
    assert slept[9:12] == [30.0, 1.5, 1.5]


def outage(monkeypatch: pytest.MonkeyPatch, errors: list[Exception]) -> list[float]:
    """How long a loop sleeps after each error; nobody waits for it."""
    slept: list[float] = []

    async def remember(*_: asyncio.Event, seconds: float) -> None:
        slept.append(seconds)
        await asyncio.sleep(0)

    monkeypatch.setattr(module, "sleep_until_woken", remember)
    left, done = list(errors), list[int]()

    async def step() -> float:
        if left:
            raise left.pop(0)
        done.append(1)
        return 60

    asyncio.run(run(step, until=lambda: bool(done), pulse=Pulse()))
    return slept[: len(errors)]


def test_a_fault_is_logged_when_it_begins_changes_and_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    lost = [StoreUnavailable("the connection was lost", driver=f"port {port}") for port in range(100)]
    with capture_logs() as told:
        outage(monkeypatch, [*lost, RuntimeError("bug"), *lost])
    assert [(each["event"], each["log_level"]) for each in told] == [
        ("loop_step_failed", "error"),
        ("loop_step_failed", "error"),
        ("loop_step_recovered", "info"),
    ]
    assert (told[0]["error"], told[1]["error"], told[2]["failures"]) == ("the connection was lost: port 0", "bug", 201)


def test_errors_of_which_each_is_different_do_not_fill_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    with capture_logs() as told:
        outage(monkeypatch, [RuntimeError(str(number)) for number in range(100)])
    assert len(told) == 11


def test_a_step_completed_before_the_clock_was_set_back_is_not_ahead_of_it() -> None:
    pulse = Pulse(completed={"ticker": START + 10, "janitor": START - 10})
    pulse.set_back(START)
    assert pulse.completed == {"ticker": START, "janitor": START - 10}


def test_the_pulse_moves_with_completed_steps_only() -> None:
    pulse = Pulse()

    async def fail() -> float:
        raise RuntimeError("boom")

    asyncio.run(run(fail, until=lambda: bool(pulse.failures), pulse=pulse))
    assert (pulse.completed, pulse.errors) == ({}, {"test": "RuntimeError: boom"})

    async def step() -> float:
        return 60

    asyncio.run(run(step, until=lambda: bool(pulse.completed), pulse=pulse))
    assert (pulse.completed, pulse.errors) == ({"test": START}, {})


def test_a_stuck_step_has_no_pulse() -> None:
    async def main() -> Pulse:
        pulse, stop = Pulse(), asyncio.Event()

        async def stuck() -> float:
            await asyncio.sleep(60)
            return 0

        living = asyncio.create_task(live(Loop("test", stuck), stop, asyncio.Event(), FakeClock(), pulse))
        await asyncio.sleep(0.05)
        living.cancel()
        return pulse

    assert asyncio.run(main()).completed == {}


def test_a_stop_ends_a_sleep_and_a_back_off_at_once() -> None:
    async def main(step: Step) -> None:
        stop = asyncio.Event()
        living = asyncio.create_task(live(Loop("test", step), stop, asyncio.Event(), FakeClock(), Pulse()))
        await asyncio.sleep(0.01)
        stop.set()
        async with asyncio.timeout(0.2):
            await living

    async def sleepy() -> float:
        return 60

    async def failing() -> float:
        raise RuntimeError("boom")

    for step in (sleepy, failing):
        asyncio.run(main(step))
