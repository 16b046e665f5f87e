"""How runs are published: to a broker in memory, and to brokers that hang up, hang or lie."""

from __future__ import annotations

import asyncio
import json
from base64 import b64decode
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, TypeVar

import pytest
from launchers.brokers import MEMORY, fake_redis, received
from launchers.far_ends import KEY, FixedClock, request_for

from horarium.audience import parse_audience
from horarium.core.lifecycle.outcome import Accepted, Finished, Outcome, Refused, StillRunning, Unknown, Unreachable
from horarium.launchers.celery import publisher
from horarium.launchers.celery.broker import BrokerConnection, make_app
from horarium.launchers.celery.launcher import Broker, CeleryLauncher
from horarium.launchers.launcher import LaunchRequest

T = TypeVar("T")
TASK = {"task": "t"}
PATIENCE = 60.0


def with_launcher(
    brokers: dict[str, Broker], work: Callable[[CeleryLauncher], Awaitable[T]], *, rest_seconds: float = 0.02
) -> T:
    async def main() -> T:
        launcher = CeleryLauncher(brokers, FixedClock(), rest_seconds=rest_seconds, answer_seconds=PATIENCE)
        try:
            return await work(launcher)
        finally:
            await launcher.close()

    return asyncio.run(main())


def launched(url: str, *requests: LaunchRequest) -> list[Outcome]:
    async def work(launcher: CeleryLauncher) -> list[Outcome]:
        return await asyncio.gather(*(launcher.launch(each) for each in requests))

    return with_launcher({"default": Broker(url)}, work)


def request(number: int = 0, **changes: Any) -> LaunchRequest:
    return request_for("celery", TASK, key=f"key-{number}", **changes)


def to(connection: str | None, request: LaunchRequest) -> LaunchRequest:
    return replace(request, action=replace(request.action, connection=connection))


def test_a_run_is_published_under_its_key_and_waits_for_a_worker() -> None:
    (outcome,) = launched(MEMORY, request_for("celery", {"task": "t.x", "kwargs": {"a": 1}}, queue="own", priority=7))
    assert outcome == Accepted(KEY, queued=True)
    (message,) = received("own")
    assert (message["headers"]["id"], message["headers"]["task"]) == (KEY, "t.x")
    assert message["body"][:2] == [[], {"a": 1}]
    assert message["properties"]["priority"] == 7


def test_a_crowd_is_published_whole_and_in_order() -> None:
    with fake_redis() as redis:
        outcomes = launched(redis.url, *(request(n) for n in range(250)))
    assert outcomes == [Accepted(f"key-{n}", queued=True) for n in range(250)]
    assert redis.pushed == 250


def test_what_the_environment_says_to_celery_is_not_for_our_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("BROKER_URL", "BROKER_WRITE_URL", "RESULT_BACKEND"):
        monkeypatch.setenv(f"CELERY_{name}", "redis://127.0.0.1:1/0")

    async def work(launcher: CeleryLauncher) -> tuple[Outcome, Any]:
        return await launcher.launch(request(queue="mine")), await launcher.poll(request(), "unheard")

    found = with_launcher({"default": Broker(MEMORY, "cache+memory://")}, work)
    assert found == (Accepted("key-0", queued=True), StillRunning())
    assert len(received("mine")) == 1


OF_NOBODY = {
    "unknown": ("nowhere", "default"),
    "of another tenant": ("theirs", "default"),
    "not the default's": (None, "third"),
}


@pytest.mark.parametrize(("name", "namespace"), OF_NOBODY.values(), ids=OF_NOBODY)
def test_a_connection_that_is_not_for_the_namespace_is_not_there(name: str | None, namespace: str) -> None:
    brokers = {"default": Broker(MEMORY), "theirs": Broker(MEMORY, audience=parse_audience(["other"]))}
    asked = to(name, request(namespace=namespace))
    outcome = with_launcher(brokers, lambda launcher: launcher.launch(asked))
    assert isinstance(outcome, Refused)
    own = "default" if namespace == "default" else "none"
    assert outcome.error == f"the connection {name or 'default'!r} is not configured; configured: {own}"


# ── brokers in trouble ───────────────────────────────────────────────────────────────────────────────


def test_a_broker_that_is_away_is_unreachable_and_nothing_was_sent() -> None:
    (outcome,) = launched("redis://127.0.0.1:1/0", request())
    assert isinstance(outcome, Unreachable)
    assert not outcome.sent
    assert outcome.error.startswith("the broker of the connection 'default' is unreachable: ")


def test_a_broker_that_comes_back_gets_what_waits_for_it() -> None:
    with fake_redis(away=True) as redis:

        async def work(launcher: CeleryLauncher) -> Outcome:
            waiting = asyncio.ensure_future(launcher.launch(request()))
            while not redis.commands:
                await asyncio.sleep(0.01)
            redis.away = False
            return await waiting

        outcome = with_launcher({"default": Broker(redis.url)}, work, rest_seconds=0.5)
    assert outcome == Accepted("key-0", queued=True)
    assert redis.pushed == 1


def test_a_broker_that_hangs_up_on_a_message_may_have_it() -> None:
    with fake_redis(push=None) as redis:
        outcomes = launched(redis.url, *(request(n) for n in range(5)))
    assert all(isinstance(each, Unknown) for each in outcomes)
    assert redis.pushed <= 5, "what may have arrived was sent again"
    assert "hunter22" not in str(outcomes)


def test_a_broker_that_says_no_to_a_run_that_may_be_sent_once_has_not_got_it() -> None:
    with fake_redis(push=b"-OOM command not allowed\r\n") as redis:
        outcomes = launched(redis.url, *(request(n, once=True) for n in range(3)))
    assert [(type(each), getattr(each, "sent", None)) for each in outcomes] == [(Unreachable, True)] * 3


def test_what_a_broker_refuses_of_a_crowd_is_no_concern_of_the_others() -> None:
    """Its own books are keys like any queue, and a tenant may name one."""
    with fake_redis(odd=b"unacked") as redis:
        queues = ["own", "unacked", "own"]
        outcomes = launched(redis.url, *(request(n, queue=queue, priority=9) for n, queue in enumerate(queues)))
    assert [outcomes[0], outcomes[2]] == [Accepted("key-0", queued=True), Accepted("key-2", queued=True)]
    assert isinstance(outcomes[1], Unreachable)
    assert (redis.pushed, "LPUSH" in outcomes[1].error) == (3, False)


def test_a_broker_that_never_answers_is_in_nobody_elses_way() -> None:
    async def work(launcher: CeleryLauncher) -> Outcome:
        slow = asyncio.ensure_future(launcher.launch(request(1)))
        quick = await launcher.launch(to("quick", request(2, queue="beside")))
        assert not slow.done()
        assert quick == Accepted("key-2", queued=True)
        gone.close()
        return await slow

    with ExitStack() as gone:
        redis = gone.enter_context(fake_redis(silent=True))
        slow = with_launcher({"default": Broker(redis.url), "quick": Broker(MEMORY)}, work)
    assert isinstance(slow, Unreachable)
    assert len(received("beside")) == 1


def test_a_broker_that_never_answers_is_given_up() -> None:
    async def main(url: str) -> Outcome:
        launcher = CeleryLauncher({"default": Broker(url)}, FixedClock(), rest_seconds=0.02, answer_seconds=0.2)
        try:
            return await launcher.launch(request())
        finally:
            await launcher.close()

    with fake_redis(silent=True) as redis:
        assert isinstance(asyncio.run(main(redis.url)), Unreachable)


def test_what_is_cancelled_before_it_was_sent_is_as_if_nobody_had_touched_it() -> None:
    cancelled = asyncio.Event()

    async def work(launcher: CeleryLauncher) -> Outcome:
        waiting = asyncio.ensure_future(launcher.launch(request(cancelled=cancelled)))
        await asyncio.sleep(0)
        cancelled.set()
        outcome = await waiting
        gone.close()
        return outcome

    with ExitStack() as gone:
        redis = gone.enter_context(fake_redis(silent=True))
        outcome = with_launcher({"default": Broker(redis.url)}, work)
    assert isinstance(outcome, Unreachable)
    assert (outcome.sent, redis.pushed) == (False, 0)


def test_a_launcher_that_is_closed_answers_whoever_waits() -> None:
    async def main() -> Outcome:
        launcher = CeleryLauncher({"default": Broker("redis://127.0.0.1:1/0")}, FixedClock(), rest_seconds=30.0)
        waiting = asyncio.ensure_future(launcher.launch(request()))
        await asyncio.sleep(0)
        await launcher.close()
        return await waiting

    assert isinstance(asyncio.run(main()), Unreachable)


# ── afterwards ───────────────────────────────────────────────────────────────────────────────────────


def test_a_stop_calls_back_and_an_end_by_force_ends_what_has_begun() -> None:
    async def work(launcher: CeleryLauncher) -> bool:
        await launcher.cancel(request(), "one")
        return await launcher.end_tasks("celery:default/mail", ["two"])

    with fake_redis() as redis:
        assert with_launcher({"default": Broker(redis.url)}, work)
    bodies = [b64decode(json.loads(each[2])["body"]) for each in redis.commands if each[0] == b"PUBLISH"]
    said = [json.loads(each) for each in bodies]
    assert [(each["method"], each["arguments"]) for each in said] == [
        ("revoke", {"task_id": ["one"], "terminate": False, "signal": "SIGTERM"}),
        ("revoke", {"task_id": ["two"], "terminate": True, "signal": "SIGTERM"}),
    ]


def test_a_connection_that_is_gone_has_nothing_more_to_tell() -> None:
    assert with_launcher({"default": Broker(MEMORY)}, lambda launcher: launcher.end_tasks("celery:gone/", ["x"]))


def test_a_result_is_looked_up_where_a_backend_is_configured() -> None:
    async def work(launcher: CeleryLauncher) -> Any:
        launcher._apps["default"].backend.store_result("ref", {"n": 1}, "SUCCESS")
        return [await launcher.poll(request(), each) for each in ("ref", "unheard", None)]

    found = with_launcher({"default": Broker(MEMORY, "cache+memory://")}, work)
    assert found == [Finished({"n": 1}), StillRunning(), StillRunning()]


def test_a_backend_that_cannot_be_reached_is_left_alone_for_a_while_and_never_shown() -> None:
    async def work(launcher: CeleryLauncher) -> tuple[str, Any]:
        with pytest.raises(ConnectionError) as wrong:
            await launcher.poll(request(), "ref")
        return str(wrong.value), await launcher.poll(request(), "ref")

    away = Broker(MEMORY, "redis://bob:hunter22@127.0.0.1:1/0")
    text, again = with_launcher({"default": away}, work)
    assert "hunter22" not in text
    assert again == StillRunning()


UNREADABLE = {
    "no json": b"pickled",
    "no object": b"[1]",
    "no exception": b'{"status": "FAILURE", "result": {"exc_type": "system", "exc_module": "os", "exc_message": "ls"}}',
}


@pytest.mark.parametrize("kept", UNREADABLE.values(), ids=UNREADABLE)
def test_a_result_that_cannot_be_read_keeps_nobody_from_the_others(kept: bytes) -> None:
    async def work(launcher: CeleryLauncher) -> Any:
        backend = launcher._apps["default"].backend
        backend.store_result("beside", 1, "SUCCESS")
        backend.set(backend.get_key_for_task("bad"), kept)
        with pytest.raises(ConnectionError):
            await launcher.poll(request(), "bad")
        return await launcher.poll(request(), "beside")

    assert with_launcher({"default": Broker(MEMORY, "cache+memory://")}, work) == Finished(1)


# ── a queue of RabbitMQ ──────────────────────────────────────────────────────────────────────────────


class Missing(Exception):
    """What a broker says of a queue that is not there."""


class Rabbit:
    """A connection that knows some queues, and keeps what was declared."""

    channel_errors = (Missing,)
    recoverable_connection_errors = (OSError,)

    def __init__(self, *known: str) -> None:
        self.known = set(known)
        self.declared: list[tuple[str, bool]] = []

    def channel(self) -> Any:
        return self

    def close(self) -> None:
        return

    def collect(self, socket_timeout: float) -> None:
        return

    def prepare_queue_arguments(self, *_: Any, **__: Any) -> dict[str, Any]:
        return {}

    def queue_declare(self, queue: str, passive: bool, **_: Any) -> Any:
        self.declared.append((queue, passive))
        if passive and queue not in self.known:
            raise Missing
        return (queue, 0, 0)


def test_a_queue_that_is_there_is_used_as_it_is_and_another_is_made_once() -> None:
    rabbit = Rabbit("with-priorities")
    link = BrokerConnection(make_app("amqp://h"), rabbit, None, "amqp")  # type: ignore[arg-type]  # no more of it is needed
    for name in ("with-priorities", "new", "new", "with-priorities"):
        link._have_queue(name)
    assert rabbit.declared == [("with-priorities", True), ("new", True), ("new", False)]


class Gone(Rabbit):
    """A connection that has broken since it was made; nobody knows before it is used."""

    def channel(self) -> Any:
        raise BrokenPipeError("Broken pipe")


def test_a_connection_that_broke_unnoticed_is_no_fault_of_the_message(monkeypatch: pytest.MonkeyPatch) -> None:
    single: Any = SimpleNamespace(supports_batch_publish=False)
    gone: Any = Gone()
    monkeypatch.setattr(publisher, "connect", lambda app, _broker: BrokerConnection(app, gone, single, "amqp"))
    (outcome,) = launched("amqp://bob:hunter22@h", request())
    assert outcome == Unreachable("the connection to the broker was lost: BrokenPipeError: Broken pipe")
