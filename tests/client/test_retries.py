"""What is asked again, how often and when: only what is safe, only what may pass, never without end."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from client.drivers import QUICK, Driver

from horarium.client.client import Client
from horarium.errors import HorariumError
from horarium.platform.client import errors
from horarium.platform.client.call import Call
from horarium.platform.client.exchange import NEVER, Attempts, Done, Retries, RetryAfter

Step = int | type[httpx.TransportError] | httpx.Response


class Flaky:
    """Answers by script, and then as it should; remembers what it was asked."""

    def __init__(self, *script: Step) -> None:
        self._script = list(script)
        self.asked: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(request)
        step = self._script.pop(0) if self._script else 200
        match step:
            case httpx.Response():
                return step
            case int():
                return httpx.Response(step, json={"schedule_id": "s", "message": "flaky"})
            case _:
                raise step("broken", request=request)

    @property
    def keys(self) -> list[str | None]:
        return [request.headers.get("idempotency-key") for request in self.asked]


PASSING: list[Step] = [
    429, 502, 503, 504, httpx.ConnectError, httpx.ConnectTimeout, httpx.ReadTimeout, httpx.ReadError, httpx.WriteError,
    httpx.RemoteProtocolError, httpx.PoolTimeout,
]  # fmt: skip
LASTING: list[Step] = [400, 401, 404, 409, 412, 422, 500, 301]


@pytest.mark.parametrize("step", PASSING, ids=lambda step: getattr(step, "__name__", str(step)))
@pytest.mark.parametrize(
    "ask",
    [
        lambda c: c.describe_schedule("s"),
        lambda c: c.create_schedule(schedule_id="s"),
        lambda c: c.delete_schedule("s"),
    ],
    ids=["GET", "POST", "DELETE"],
)
def test_what_may_pass_is_asked_again(make_driver: Callable[..., Driver], step: Step, ask: Any) -> None:
    server = Flaky(step, step)
    assert make_driver(handler=server).run(ask).schedule_id == "s"
    assert len(server.asked) == 3


@pytest.mark.parametrize("step", LASTING, ids=str)
def test_what_lasts_is_not_asked_again(make_driver: Callable[..., Driver], step: Step) -> None:
    server = Flaky(step)
    with pytest.raises(errors.ClientError) as caught:
        make_driver(handler=server).run(lambda c: c.describe_schedule("s"))
    assert len(server.asked) == 1
    assert caught.value.status == step


@pytest.mark.parametrize("step", PASSING, ids=lambda step: getattr(step, "__name__", str(step)))
@pytest.mark.parametrize(
    "ask",
    [lambda c: c.claim_runs("q"), lambda c: c.heartbeat_run("r", 1), lambda c: c.issue_token("n", "viewer")],
    ids=["claim", "heartbeat", "token"],
)
def test_a_write_without_a_key_is_never_asked_again(make_driver: Callable[..., Driver], step: Step, ask: Any) -> None:
    server = Flaky(step)
    with pytest.raises((errors.ServerUnavailable, errors.RateLimited)):
        make_driver(handler=server).run(ask)
    assert server.keys == [None]


def test_every_attempt_carries_the_same_key_and_every_call_another(make_driver: Callable[..., Driver]) -> None:
    server = Flaky(503, httpx.ReadTimeout)
    driver = make_driver(handler=server)
    driver.run(lambda c: c.trigger_schedule("s"))
    driver.run(lambda c: c.trigger_schedule("s"))
    first, second, third, other = server.keys
    assert first == second == third != other
    assert first is not None
    assert len({request.content for request in server.asked}) == 1


def test_a_key_of_ones_own_is_used(make_driver: Callable[..., Driver]) -> None:
    server = Flaky()
    make_driver(handler=server).run(lambda c: c.trigger_schedule("s", idempotency_key="mine"))
    assert server.keys == ["mine"]
    assert json.loads(server.asked[0].content) == {}


def test_reads_carry_no_key(make_driver: Callable[..., Driver]) -> None:
    server = Flaky()
    make_driver(handler=server).run(lambda c: c.describe_schedule("s"))
    assert server.keys == [None]


@pytest.mark.parametrize(
    ("step", "kind", "reason"),
    [
        (503, errors.ServerUnavailable, "unavailable"),
        (429, errors.RateLimited, "rate_limited"),
        (httpx.ConnectError, errors.ServerUnavailable, "unreachable"),
        (httpx.ReadTimeout, errors.ServerUnavailable, "timed_out"),
    ],
    ids=["503", "429", "connect", "timeout"],
)
def test_in_the_end_it_gives_up(
    make_driver: Callable[..., Driver], step: Step, kind: type[HorariumError], reason: str
) -> None:
    server = Flaky(*[step] * 10)
    with pytest.raises(kind) as caught:
        make_driver(handler=server).run(lambda c: c.describe_schedule("s"))
    assert len(server.asked) == QUICK.attempts
    assert caught.value.reason == reason
    if isinstance(step, type):
        assert isinstance(caught.value, errors.ServerUnavailable)
        assert caught.value.status is None
        assert isinstance(caught.value.__cause__, step)


def test_a_request_that_cannot_be_sent_is_not_tried_again(make_driver: Callable[..., Driver]) -> None:
    server = Flaky(*[httpx.UnsupportedProtocol] * 3)
    with pytest.raises(errors.ServerUnavailable):
        make_driver(handler=server).run(lambda c: c.describe_schedule("s"))
    assert len(server.asked) == 1


@pytest.mark.parametrize("content", [b"<html>", b"[" * 100_000], ids=["page", "deep"])
def test_a_success_that_is_not_json_is_unexpected(make_driver: Callable[..., Driver], content: bytes) -> None:
    server = Flaky(httpx.Response(200, content=content))
    with pytest.raises(errors.UnexpectedAnswer, match="GET /api/schedules/s"):
        make_driver(handler=server).run(lambda c: c.describe_schedule("s"))


def test_a_request_that_is_still_being_answered_is_asked_for_again(make_driver: Callable[..., Driver]) -> None:
    busy = httpx.Response(409, json={"reason": "request_in_progress"}, headers={"retry-after": "0"})
    server = Flaky(busy, busy)
    assert make_driver(handler=server).run(lambda c: c.create_schedule(schedule_id="s")).schedule_id == "s"
    assert len(set(server.keys)) == 1


def test_an_empty_success_is_read_as_nothing_known(make_driver: Callable[..., Driver]) -> None:
    assert make_driver(handler=Flaky(httpx.Response(204))).run(lambda c: c.pause_schedule("s")).outcome == ""


def test_a_proxys_page_is_no_health(make_driver: Callable[..., Driver]) -> None:
    page = httpx.Response(503, content=b"<html>", headers={"content-type": "text/html"})
    assert make_driver(handler=Flaky(page)).run(lambda c: c.readiness()).status == ""
    with pytest.raises(errors.ServerUnavailable):
        make_driver(handler=Flaky(page), retries=NEVER).run(lambda c: c.readiness())


# ── how long ─────────────────────────────────────────────────────────────────────────────────────────


def exchange(call: Call[Any] | None = None, **policy: Any) -> Attempts[Any]:
    return Attempts(call or Client.describe_schedule("s"), Retries(**policy), "http://x", key="k")


def answer(status: int, **headers: str) -> httpx.Response:
    return httpx.Response(status, json={}, headers={name.replace("_", "-"): value for name, value in headers.items()})


def test_waits_grow_within_bounds_and_are_always_the_same() -> None:
    tried = exchange(attempts=10, base_ms=100, max_ms=1_000)
    waits = [tried.failed(httpx.ConnectError("x")).seconds for _ in range(9)]
    bounds = [min(1.0, 0.1 * 2**n) for n in range(9)]
    assert all(bound / 2 <= wait <= bound for wait, bound in zip(waits, bounds, strict=True))
    again = exchange(attempts=10, base_ms=100, max_ms=1_000)
    assert [again.failed(httpx.ConnectError("x")).seconds for _ in range(9)] == waits
    assert len(set(waits)) == 9


@pytest.mark.parametrize("status", [429, 503])
def test_the_server_may_ask_for_more_time(status: int) -> None:
    assert exchange().answered(answer(status, retry_after="7")) == RetryAfter(7.0)


def test_a_wait_is_never_shorter_than_ours() -> None:
    step = exchange(base_ms=20_000, max_ms=20_000).answered(answer(503, retry_after="1"))
    assert isinstance(step, RetryAfter)
    assert step.seconds >= 10


def test_a_server_that_asks_for_too_much_is_not_waited_for() -> None:
    with pytest.raises(errors.RateLimited) as caught:
        exchange().answered(answer(429, retry_after="3600"))
    assert caught.value.retry_after == 3600


def test_an_answer_is_read_by_the_calls_own_reader() -> None:
    assert exchange(Client.metrics()).answered(httpx.Response(200, text="a 1")) == Done("a 1")


@pytest.mark.parametrize(
    "wrong", [{"attempts": 0}, {"base_ms": -1}, {"max_ms": -1}, {"longest_wait_seconds": -1}], ids=str
)
def test_a_policy_that_makes_no_sense_is_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="attempts must be at least 1"):
        Retries(**wrong)
