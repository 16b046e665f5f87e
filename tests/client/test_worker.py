"""Workers against a real service: what is claimed is done, kept alive, and reported, by either kind of worker."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from client.any_worker import AnyWorker, outcome, until, waits

from horarium.client.job import Blocked, Job
from horarium.features.runs.rows import page_of_namespace
from horarium.testing import TestService


@pytest.fixture(params=["sync", "async"])
def hands(request: pytest.FixtureRequest, horarium: TestService) -> AnyWorker:
    return AnyWorker(request.param, horarium)


async def coroutine(day: str) -> dict[str, str]:
    await asyncio.sleep(0)
    return {"day": day}


def function(day: str) -> dict[str, str]:
    return {"day": day}


@pytest.mark.parametrize("handler", [function, coroutine], ids=["function", "coroutine"])
@pytest.mark.parametrize("inputs", [["mon"], {"day": "mon"}], ids=["list", "object"])
def test_a_waiting_run_is_done_and_its_result_reported(
    hands: AnyWorker, horarium: TestService, handler: Any, inputs: Any
) -> None:
    waits(horarium, inputs)
    assert hands.drain({"sweep": handler}) == 1
    assert outcome(horarium) == ("succeeded", {"day": "mon"}, None, None)
    assert hands.drain({"sweep": handler}) == 0


def test_a_handler_may_know_its_run_and_say_what_it_cost(hands: AnyWorker, horarium: TestService) -> None:
    seen: list[tuple[Job, bool]] = []

    def handler(day: str, context: Job) -> None:
        seen.append((context, context.cancelled()))
        context.cost, context.tokens, context.tool_calls = 0.5, 7, 2

    waits(horarium, ["mon"])
    hands.drain({"sweep": handler})
    run = horarium.runs()[-1]
    [(job, was_cancelled)] = seen
    assert (job.schedule_id, job.attempt, job.namespace, was_cancelled) == ("s0", 0, "default", False)
    assert (job.run_id, job.input, job.workflow_type) == (run.run_id, ["mon"], "sweep")
    assert job.key
    assert (job.nominal, job.due) == (run.nominal, run.due)
    assert (run.cost, run.tokens, run.tool_calls) == (0.5, 7, 2)


class Limited(Exception):
    error_class = "rate_limit"


def raising(error: BaseException) -> Callable[[], None]:
    def handler() -> None:
        raise error

    return handler


@pytest.mark.parametrize(
    ("error", "told", "error_class"),
    [
        (ValueError("no broom"), "ValueError: no broom", "provider_error"),
        (TimeoutError("slow"), "slow", "timeout"),
        (Limited("wait"), "wait", "rate_limit"),
        (SystemExit(3), "SystemExit(3)", "provider_error"),
        (StopIteration(), "StopIteration()", "provider_error"),
    ],
    ids=["error", "timeout", "own-class", "exit", "stop-iteration"],
)
def test_an_exception_is_a_failure_with_its_class(
    hands: AnyWorker, horarium: TestService, error: BaseException, told: str, error_class: str
) -> None:
    waits(horarium, retry_policy={"max_retries": 0})
    hands.drain({"sweep": raising(error)})
    state, _, text, kind = outcome(horarium)
    assert (state, kind) == ("failed", error_class)
    assert text is not None
    assert told in text


@pytest.mark.parametrize(
    ("handler", "told"),
    [
        (lambda: object(), "cannot be written as JSON"),
        (lambda: float("nan"), "cannot be written as JSON"),
        (lambda day: day, "does not match the signature of the handler"),
    ],
    ids=["object", "nan", "arguments"],
)
def test_a_broken_contract_is_a_failure(hands: AnyWorker, horarium: TestService, handler: Any, told: str) -> None:
    waits(horarium, retry_policy={"max_retries": 0})
    hands.drain({"sweep": handler})
    state, _, text, kind = outcome(horarium)
    assert (state, kind) == ("failed", "contract_violated")
    assert told in str(text)


def test_a_result_that_the_server_refuses_is_a_failure(hands: AnyWorker, horarium: TestService) -> None:
    nested: Any = []
    for _ in range(200):
        nested = [nested]
    waits(horarium, retry_policy={"max_retries": 0})
    hands.drain({"sweep": lambda: nested})
    assert outcome(horarium)[0] == "failed"
    assert outcome(horarium)[3] == "contract_violated"


def test_a_type_without_a_handler_waits_for_a_worker_that_knows_it(hands: AnyWorker, horarium: TestService) -> None:
    for workflow in ("polish", "sweep", "polish"):
        waits(horarium, workflow=workflow)
    assert hands.drain({"sweep": lambda: "swept", "dust": function}) == 1
    assert sorted(run.state.value for run in horarium.runs()) == ["queued", "queued", "succeeded"]
    assert hands.drain({}) == 0
    assert hands.drain({"polish": lambda: "shines"}) == 2
    assert {run.state.value for run in horarium.runs()} == {"succeeded"}


def test_a_worker_may_know_more_types_than_a_claim_names(hands: AnyWorker, horarium: TestService) -> None:
    for number in (0, 249):
        waits(horarium, workflow=f"w{number}")
    assert hands.drain({f"w{number}": lambda: None for number in range(250)}) == 2


def test_a_handler_without_a_name_takes_everything_and_fails_what_it_does_not_know(
    hands: AnyWorker, horarium: TestService
) -> None:
    waits(horarium, workflow="polish")
    hands.drain({"": function})
    assert outcome(horarium)[::3] == ("failed", "no_handler")


def test_a_gate_makes_the_run_wait_for_approval(hands: AnyWorker, horarium: TestService) -> None:
    waits(horarium)
    hands.drain({"sweep": raising(Blocked("publish"))})
    assert outcome(horarium)[0] == "awaiting_approval"


def test_every_queue_is_served(hands: AnyWorker, horarium: TestService) -> None:
    for queue in ("a", "b", "a"):
        waits(horarium, queue=queue)
    assert hands.drain({"sweep": lambda: None}, queues=("a", "b")) == 3
    assert {run.state.value for run in horarium.runs()} == {"succeeded"}


def test_no_more_runs_are_in_hand_than_agreed(hands: AnyWorker, horarium: TestService) -> None:
    lock, now, most = threading.Lock(), 0, 0

    def handler() -> None:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        time.sleep(0.02)
        with lock:
            now -= 1

    for _ in range(6):
        waits(horarium)
    assert hands.drain({"sweep": handler}, concurrency=2) == 6
    assert most == 2


# ── while it works ───────────────────────────────────────────────────────────────────────────────────


def lease_of_newest(horarium: TestService) -> int | None:
    page = horarium.resources.database.read(lambda connection: page_of_namespace(connection, "default", limit=1))
    return page.rows[0].lease_until


def test_a_long_handler_keeps_its_lease(hands: AnyWorker, horarium: TestService) -> None:
    waits(horarium)
    leases: list[Any] = []

    def handler() -> None:
        for _ in range(2):
            horarium.clock.advance(20)  # longer than the half of a lease; without a beat it would be over
            before = lease_of_newest(horarium)
            until(lambda: lease_of_newest(horarium) != before)  # noqa: B023 - called at once
            leases.append(lease_of_newest(horarium))

    hands.drain({"sweep": handler})
    assert len(leases) == 2
    assert outcome(horarium)[0] == "succeeded"


def stop_the_run(horarium: TestService) -> None:
    with AnyWorker("sync", horarium).client() as client:
        [run] = client.list_runs(state="running")
        assert client.cancel_run(run.run_id).outcome == "cancel_requested"


def test_a_coroutine_that_should_stop_is_cancelled(hands: AnyWorker, horarium: TestService) -> None:
    async def handler() -> None:
        await asyncio.to_thread(stop_the_run, horarium)
        await asyncio.sleep(10)

    waits(horarium)
    hands.drain({"sweep": handler})
    assert outcome(horarium)[0] == "cancelled"


def test_a_function_that_should_stop_is_told(hands: AnyWorker, horarium: TestService) -> None:
    def handler(context: Job) -> None:
        stop_the_run(horarium)
        until(context.cancelled)
        raise RuntimeError("stopped half way")

    waits(horarium)
    hands.drain({"sweep": handler})
    assert outcome(horarium)[0] == "cancelled"


def test_a_function_that_returns_when_told_was_cancelled_and_its_result_is_kept(
    hands: AnyWorker, horarium: TestService
) -> None:
    def handler(context: Job) -> str:
        stop_the_run(horarium)
        until(context.cancelled)
        return "half of it"

    waits(horarium)
    hands.drain({"sweep": handler})
    assert outcome(horarium)[:2] == ("cancelled", "half of it")


def test_a_coroutine_that_returns_when_told_was_cancelled(hands: AnyWorker, horarium: TestService) -> None:
    async def handler(context: Job) -> str:
        with suppress(asyncio.CancelledError):
            await asyncio.to_thread(stop_the_run, horarium)
            await asyncio.sleep(60)
        assert context.cancelled()
        return "half of it"

    waits(horarium)
    hands.drain({"sweep": handler})
    assert outcome(horarium)[:2] == ("cancelled", "half of it")


def test_a_run_that_was_lost_is_not_reported(hands: AnyWorker, horarium: TestService) -> None:
    def handler(context: Job) -> str:
        with AnyWorker("sync", horarium).client() as client:
            client.terminate_run(context.run_id)
        until(context.cancelled)
        return "too late"

    waits(horarium)
    hands.drain({"sweep": handler})
    assert outcome(horarium)[:2] == ("terminated", None)
    with AnyWorker("sync", horarium).client() as client:
        names = [event.event_type for event in client.iter_run_events(client.list_runs().items[0].run_id)]
    assert "run.late_report" not in names
