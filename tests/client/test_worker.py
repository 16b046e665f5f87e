"""Workers against a real service: what is claimed is done, kept alive, and reported, by either kind of worker."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
from client.drivers import QUICK, URL

from horarium.client import errors
from horarium.client.aio import AsyncClient
from horarium.client.aio_worker import AsyncWorker
from horarium.client.call import Call
from horarium.client.client import Client
from horarium.client.inprocess import InProcess
from horarium.client.job import Blocked, Job
from horarium.client.worker import Worker
from horarium.errors import InvalidDefinition
from horarium.testing import TestService
from horarium.testing.service import TOKEN

QUEUE = "brooms"
SHORT = {"poll_seconds": 0.01, "heartbeat_seconds": 0.02, "grace_seconds": 2.0}


class Hands:
    """Either kind of worker behind one face."""

    def __init__(self, kind: str, horarium: TestService) -> None:
        self.kind = kind
        self.api = horarium.parts.api

    def drain(self, handlers: dict[str, Any], queues: tuple[str, ...] = (QUEUE,), **options: Any) -> int:
        options = {**SHORT, "name": "w1", **options}
        if self.kind == "sync":
            with self.client() as client:
                return Worker(client, queues, handlers, **options).drain()
        return asyncio.run(self._drain(handlers, queues, options))

    async def _drain(self, handlers: dict[str, Any], queues: tuple[str, ...], options: dict[str, Any]) -> int:
        transport = httpx.ASGITransport(self.api, raise_app_exceptions=False)
        async with AsyncClient(URL, token=TOKEN, transport=transport, retries=QUICK) as client:
            return await AsyncWorker(client, queues, handlers, **options).drain()

    def client(self) -> Client:
        return Client(URL, token=TOKEN, transport=InProcess(self.api), retries=QUICK)


@pytest.fixture(params=["sync", "async"])
def hands(request: pytest.FixtureRequest, horarium: TestService) -> Hands:
    return Hands(request.param, horarium)


def waits(
    horarium: TestService, inputs: Any = None, *, workflow: str = "sweep", queue: str = QUEUE, **fields: Any
) -> None:
    """One run waits in the queue."""
    number = len(horarium.runs())
    action = {"workflow_type": workflow, "task_queue": queue, **({} if inputs is None else {"input": inputs})}
    horarium.create(schedule_id=f"s{number}", spec={"intervals": [{"every": "P1D"}]}, action=action, **fields)
    with Hands("sync", horarium).client() as client:
        client.trigger_schedule(f"s{number}")
    horarium.settle()


def outcome(horarium: TestService) -> tuple[str, Any, str | None, str | None]:
    run = horarium.runs()[-1]
    return run.state.value, run.result, run.error, run.error_class


async def coroutine(day: str) -> dict[str, str]:
    await asyncio.sleep(0)
    return {"day": day}


def function(day: str) -> dict[str, str]:
    return {"day": day}


@pytest.mark.parametrize("handler", [function, coroutine], ids=["function", "coroutine"])
@pytest.mark.parametrize("inputs", [["mon"], {"day": "mon"}], ids=["list", "object"])
def test_a_waiting_run_is_done_and_its_result_reported(
    hands: Hands, horarium: TestService, handler: Any, inputs: Any
) -> None:
    waits(horarium, inputs)
    assert hands.drain({"sweep": handler}) == 1
    assert outcome(horarium) == ("succeeded", {"day": "mon"}, None, None)
    assert hands.drain({"sweep": handler}) == 0


def test_a_handler_may_know_its_run_and_say_what_it_cost(hands: Hands, horarium: TestService) -> None:
    seen: list[Job] = []

    def handler(day: str, context: Job) -> None:
        seen.append(context)
        context.cost, context.tokens, context.tool_calls = 0.5, 7, 2

    waits(horarium, ["mon"])
    hands.drain({"sweep": handler})
    run = horarium.runs()[-1]
    assert (seen[0].run.schedule_id, seen[0].run.attempt, seen[0].cancelled()) == ("s0", 0, False)
    assert seen[0].run.key is not None
    assert (run.cost, run.tokens, run.tool_calls) == (500_000, 7, 2)


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
    hands: Hands, horarium: TestService, error: BaseException, told: str, error_class: str
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
        (lambda day: day, "does not fit the handler"),
    ],
    ids=["object", "nan", "arguments"],
)
def test_a_broken_contract_is_a_failure(hands: Hands, horarium: TestService, handler: Any, told: str) -> None:
    waits(horarium, retry_policy={"max_retries": 0})
    hands.drain({"sweep": handler})
    state, _, text, kind = outcome(horarium)
    assert (state, kind) == ("failed", "contract_violated")
    assert told in str(text)


def test_a_result_that_the_server_refuses_is_a_failure(hands: Hands, horarium: TestService) -> None:
    nested: Any = []
    for _ in range(200):
        nested = [nested]
    waits(horarium, retry_policy={"max_retries": 0})
    hands.drain({"sweep": lambda: nested})
    assert outcome(horarium)[0] == "failed"
    assert outcome(horarium)[3] == "contract_violated"


def test_a_type_without_a_handler_fails_and_says_which_there_are(hands: Hands, horarium: TestService) -> None:
    waits(horarium, workflow="polish")
    hands.drain({"sweep": function})
    assert outcome(horarium)[::3] == ("failed", "no_handler")
    assert "sweep" in str(outcome(horarium)[2])


def test_a_gate_makes_the_run_wait_for_approval(hands: Hands, horarium: TestService) -> None:
    waits(horarium)
    hands.drain({"sweep": raising(Blocked("publish"))})
    assert outcome(horarium)[0] == "awaiting_approval"


def test_every_queue_is_served(hands: Hands, horarium: TestService) -> None:
    for queue in ("a", "b", "a"):
        waits(horarium, queue=queue)
    assert hands.drain({"sweep": lambda: None}, queues=("a", "b")) == 3
    assert {run.state.value for run in horarium.runs()} == {"succeeded"}


def test_no_more_runs_are_in_hand_than_agreed(hands: Hands, horarium: TestService) -> None:
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


def until(happens: Callable[[], bool]) -> None:
    limit = time.monotonic() + 5
    while not happens():
        assert time.monotonic() < limit, "it did not happen in five seconds"
        time.sleep(0.005)


def test_a_long_handler_keeps_its_lease(hands: Hands, horarium: TestService) -> None:
    waits(horarium)
    leases: list[Any] = []

    def handler() -> None:
        for _ in range(2):
            horarium.clock.advance(20)  # longer than the half of a lease; without a beat it would be over
            before = horarium.runs()[-1].lease_until
            until(lambda: horarium.runs()[-1].lease_until != before)  # noqa: B023 - called at once
            leases.append(horarium.runs()[-1].lease_until)

    hands.drain({"sweep": handler})
    assert len(leases) == 2
    assert outcome(horarium)[0] == "succeeded"


def stop_the_run(horarium: TestService) -> None:
    with Hands("sync", horarium).client() as client:
        [run] = client.list_runs(state="running")
        assert client.cancel_run(run.run_id).outcome == "cancel_requested"


def test_a_coroutine_that_should_stop_is_cancelled(hands: Hands, horarium: TestService) -> None:
    async def handler() -> None:
        await asyncio.to_thread(stop_the_run, horarium)
        await asyncio.sleep(10)

    waits(horarium)
    hands.drain({"sweep": handler})
    assert outcome(horarium)[0] == "cancelled"


def test_a_function_that_should_stop_is_told(hands: Hands, horarium: TestService) -> None:
    def handler(context: Job) -> None:
        stop_the_run(horarium)
        until(context.cancelled)
        raise RuntimeError("stopped half way")

    waits(horarium)
    hands.drain({"sweep": handler})
    assert outcome(horarium)[0] == "cancelled"


def test_what_was_finished_in_spite_of_it_has_succeeded(hands: Hands, horarium: TestService) -> None:
    def handler(context: Job) -> str:
        stop_the_run(horarium)
        until(context.cancelled)
        return "done"

    waits(horarium)
    hands.drain({"sweep": handler})
    assert outcome(horarium)[:2] == ("succeeded", "done")


def test_a_run_that_was_lost_is_not_reported(hands: Hands, horarium: TestService) -> None:
    def handler(context: Job) -> str:
        with Hands("sync", horarium).client() as client:
            client.terminate_run(context.run_id)
        until(context.cancelled)
        return "too late"

    waits(horarium)
    hands.drain({"sweep": handler})
    assert outcome(horarium)[:2] == ("terminated", None)
    with Hands("sync", horarium).client() as client:
        names = [event.event_type for event in client.iter_run_events(client.list_runs().items[0].run_id)]
    assert "run.late_report" not in names


# ── starting and stopping ────────────────────────────────────────────────────────────────────────────


@contextmanager
def running(worker: Worker) -> Iterator[threading.Thread]:
    thread = threading.Thread(target=worker.run)
    thread.start()
    try:
        yield thread
    finally:
        worker.stop()
        thread.join(5)
        assert not thread.is_alive()


def test_a_running_worker_takes_what_comes_and_stops_when_told(horarium: TestService) -> None:
    with Hands("sync", horarium).client() as client:
        worker = Worker(client, [QUEUE], **SHORT)

        @worker.handler("sweep")
        def sweep() -> str:
            return "swept"

        with running(worker):
            waits(horarium)
            until(lambda: outcome(horarium)[0] == "succeeded")
            waits(horarium)
            until(lambda: outcome(horarium)[0] == "succeeded")
        assert sweep() == "swept"


def test_what_is_in_hand_is_finished_before_the_worker_stops(horarium: TestService) -> None:
    begun = threading.Event()

    def handler() -> str:
        begun.set()
        time.sleep(0.1)
        return "done"

    waits(horarium)
    with Hands("sync", horarium).client() as client, running(Worker(client, [QUEUE], {"sweep": handler}, **SHORT)):
        assert begun.wait(5)
    assert outcome(horarium)[:2] == ("succeeded", "done")


@pytest.mark.parametrize("kind", ["function", "coroutine"])
def test_what_does_not_end_in_time_is_left_to_its_lease(horarium: TestService, kind: str) -> None:
    begun, forever = threading.Event(), threading.Event()

    def function() -> None:
        begun.set()
        forever.wait(30)

    async def coroutine() -> None:
        begun.set()
        await asyncio.sleep(30)

    waits(horarium)
    handler = function if kind == "function" else coroutine
    options = {**SHORT, "grace_seconds": 0.05}
    with Hands("sync", horarium).client() as client, running(Worker(client, [QUEUE], {"sweep": handler}, **options)):
        assert begun.wait(5)
    assert outcome(horarium)[0] == "running"
    forever.set()


def test_a_worker_that_was_stopped_before_it_ran_returns_at_once(horarium: TestService) -> None:
    waits(horarium)
    with Hands("sync", horarium).client() as client:
        worker = Worker(client, [QUEUE], {"sweep": lambda: None}, **SHORT)
        worker.stop()
        worker.run()
        assert outcome(horarium)[0] == "queued"
        assert worker.drain() == 1  # it may be used again


@pytest.mark.parametrize("which", [signal.SIGTERM, signal.SIGINT], ids=lambda which: which.name)
def test_a_signal_stops_a_worker_of_the_main_thread(horarium: TestService, which: signal.Signals) -> None:
    def handler() -> str:
        os.kill(os.getpid(), which)
        return "done"

    waits(horarium)
    before = signal.getsignal(which)
    with Hands("sync", horarium).client() as client:
        Worker(client, [QUEUE], {"sweep": handler}, **SHORT).run()
    assert outcome(horarium)[:2] == ("succeeded", "done")
    assert signal.getsignal(which) == before


def test_a_type_has_one_handler() -> None:
    with Client() as client:
        worker = Worker(client, [QUEUE])
        worker.handler("sweep")(function)
        worker.handler("sweep")(function)
        with pytest.raises(ValueError, match="sweep"):
            worker.handler("sweep")(coroutine)


@pytest.mark.parametrize(
    "wrong", [{"queues": []}, {"queues": "brooms"}, {"queues": [QUEUE], "concurrency": 0}], ids=str
)
def test_a_worker_that_could_not_work_is_not_made(wrong: dict[str, Any]) -> None:
    with Client() as client, pytest.raises(InvalidDefinition):
        Worker(client, **wrong)


# ── a server that is away ────────────────────────────────────────────────────────────────────────────


class Scripted:
    """Stands for a client: raises what the script says for a path, and otherwise answers for one run."""

    def __init__(self, **script: list[Exception]) -> None:
        self._script = script
        self.sent: list[Call[Any]] = []

    async def send(self, call: Call[Any]) -> Any:
        self.sent.append(call)
        verb = call.template.rpartition("/")[2]
        if self._script.get(verb):
            raise self._script[verb].pop(0)
        first = sum(each.template == call.template for each in self.sent) == 1
        runs = [{"run_id": "r", "workflow_type": "sweep", "lease_epoch": 1, "lease_seconds": 0.03}]
        return call.parse({"runs": runs if first else [], "outcome": "recorded"})

    def verbs(self) -> list[str]:
        return [call.template.rpartition("/")[2] for call in self.sent]


def away() -> errors.ServerUnavailable:
    return errors.ServerUnavailable("away", status=503)


@pytest.fixture
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("horarium.client.aio_worker._PATIENCE", QUICK)


@pytest.mark.usefixtures("no_waiting")
def test_a_report_is_told_until_it_is_heard() -> None:
    server = Scripted(report=[away(), errors.RateLimited("slowly")])
    assert asyncio.run(AsyncWorker(server, [QUEUE], {"sweep": lambda: 7}).drain()) == 1
    reports = [call for call in server.sent if call.template.endswith("/report")]
    assert [call.body["result"] for call in reports] == [7, 7, 7]


@pytest.mark.usefixtures("no_waiting")
def test_a_report_that_is_refused_is_told_once() -> None:
    server = Scripted(report=[errors.LeaseLost("gone")])
    asyncio.run(AsyncWorker(server, [QUEUE], {"sweep": lambda: 7}).drain())
    assert server.verbs().count("report") == 1


@pytest.mark.usefixtures("no_waiting")
def test_a_claim_that_fails_for_the_moment_is_made_again() -> None:
    async def work() -> Scripted:
        server = Scripted(claim=[away(), errors.ServerError("oops")])
        worker = AsyncWorker(server, [QUEUE], poll_seconds=0.01)
        worker.handler("nothing")(function)
        running = asyncio.create_task(worker.run())
        while server.verbs().count("claim") < 4:
            await asyncio.sleep(0.001)
        worker.stop()
        await running
        return server

    assert asyncio.run(work()).verbs()[:3] == ["claim"] * 3


def test_a_worker_that_may_not_work_ends() -> None:
    server = Scripted(claim=[errors.Forbidden("the role viewer may not work")])
    with pytest.raises(errors.Forbidden):
        asyncio.run(AsyncWorker(server, [QUEUE], {"sweep": lambda: None}).run())


def test_a_short_lease_beats_faster_and_a_lost_beat_is_no_end() -> None:
    server = Scripted(heartbeat=[away(), away()])

    async def handler() -> None:
        while server.verbs().count("heartbeat") < 3:
            await asyncio.sleep(0.001)

    asyncio.run(AsyncWorker(server, [QUEUE], {"sweep": handler}).drain())
    assert server.verbs()[-2:] == ["report", "claim"]
