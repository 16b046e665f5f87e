"""What a Celery message of a run holds, and what a result backend says of it: pure tables."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from launchers.far_ends import KEY, NOW, request_for

from horarium.core.lifecycle.outcome import (
    Accepted,
    Finished,
    Outcome,
    RunCancelled,
    RunFailed,
    RunTimedOut,
    StillRunning,
)
from horarium.instant import SECOND
from horarium.launchers.celery.broker import (
    BadArguments,
    arguments,
    clipped_priority,
    error_text,
    is_refusal,
    message_of,
    priority_at,
    time_limits,
    transport_options,
)
from horarium.launchers.celery.launcher import outcome_of
from horarium.platform.job import RunHeader, read_header


@pytest.mark.parametrize(
    ("target", "inputs", "wins", "found"),
    [
        ({}, None, False, ([], {})),
        ({}, [1, 2], False, ([1, 2], {})),
        ({}, {"a": 1}, False, ([], {"a": 1})),
        ({"args": [9]}, [1, 2], False, ([9], {})),
        ({"args": [9]}, [1, 2], True, ([1, 2], {})),
        ({"args": [9]}, [], True, ([], {})),
        ({"args": [9]}, {"a": 1}, False, ([9], {"a": 1})),
        ({"kwargs": {"b": 2}}, {"a": 1}, False, ([], {"b": 2})),
        ({"kwargs": {"b": 2}}, {"a": 1}, True, ([], {"a": 1})),
        ({"args": [9], "kwargs": {"b": 2}}, None, True, ([9], {"b": 2})),
    ],
)
def test_an_input_stands_for_the_arguments_that_are_not_given(
    target: dict[str, Any], inputs: Any, wins: bool, found: Any
) -> None:
    assert arguments(target, inputs, wins=wins) == found


def test_an_input_that_is_neither_is_refused() -> None:
    with pytest.raises(BadArguments, match="an array of positional arguments or an object"):
        arguments({}, "text", wins=False)


@pytest.mark.parametrize(
    ("seconds", "limits"), [(0.2, (1, None)), (29.0, (29, None)), (30.0, (30, 20)), (3_599.4, (3_600, 3_590))]
)
def test_a_worker_stops_a_task_when_its_time_is_over_and_warns_it_before(
    seconds: float, limits: tuple[int, int | None]
) -> None:
    assert time_limits(seconds) == limits


@pytest.mark.parametrize(("given", "amqp", "redis"), [(-100, 0, 9), (0, 0, 9), (4, 4, 5), (9, 9, 0), (100, 9, 0)])
def test_a_priority_is_clipped_and_turned_round_where_zero_comes_first(given: int, amqp: int, redis: int) -> None:
    kept = clipped_priority(given)
    assert (priority_at("amqp", kept), priority_at("redis", kept)) == (amqp, redis)


def test_a_message_carries_the_key_the_deadline_and_the_run() -> None:
    request = request_for(
        "celery", {"task": "t.x"}, seconds=60, inputs=["a"], priority=3, report_token="hrt_x", report_url="http://h/r"
    )
    message = message_of(request, "mail", 60.0)
    assert (message.task, message.task_id, message.queue, message.priority) == ("t.x", KEY, "mail", 3)
    assert (message.expires, message.deadline, message.time_limit) == ("2026-03-08T07:01:00Z", NOW + 60 * SECOND, 60)
    assert orjson.loads(message.body)[:2] == [["a"], {}]
    assert read_header(message.headers) == RunHeader(
        "run-1", "default", 0, "2026-03-08T07:00:00Z", "nightly", "http://h/r", "hrt_x"
    )


def test_what_monitors_show_of_the_arguments_is_short_and_never_a_secret() -> None:
    open_one = message_of(request_for("celery", {"task": "t", "args": ["x" * 5_000]}), None, 60.0)
    assert (len(open_one.shown[0]), open_one.shown[1]) == (1_024, "{}")
    hidden = message_of(request_for("celery", {"task": "t", "args": ["s3cret"]}, secrets=("s3cret",)), None, 60.0)
    assert hidden.shown == ("***", "***")
    assert "s3cret" not in repr(hidden)


class TimeLimitExceeded(Exception):
    pass


@pytest.mark.parametrize(
    ("meta", "outcome"),
    [
        ({"status": "PENDING", "result": None}, StillRunning()),
        ({"status": "RECEIVED", "result": None}, StillRunning()),
        ({"status": "STARTED", "result": {"pid": 1}}, Accepted("id")),
        ({"status": "RETRY", "result": ValueError("x")}, Accepted("id")),
        ({"status": "SUCCESS", "result": {"n": 1}}, Finished({"n": 1})),
        ({"status": "SUCCESS", "result": {1}}, Finished("{1}")),
        ({"status": "FAILURE", "result": ValueError("no disk")}, RunFailed("ValueError: no disk", "ValueError")),
        ({"status": "FAILURE", "result": KeyError()}, RunFailed("KeyError", "KeyError")),
        ({"status": "FAILURE", "result": TimeLimitExceeded(3)}, RunTimedOut("TimeLimitExceeded: 3")),
        ({"status": "REVOKED", "result": Exception("terminated")}, RunCancelled("the task was revoked: terminated")),
        (
            {"status": "REVOKED", "result": Exception("expired")},
            RunTimedOut("the task expired before a worker began it"),
        ),
        ({}, StillRunning()),
    ],
    ids=lambda value: str(value.get("status")) if isinstance(value, dict) else "",
)
def test_what_a_result_backend_says(meta: dict[str, Any], outcome: Outcome | StillRunning) -> None:
    assert outcome_of(meta, "id") == outcome


@pytest.mark.parametrize(
    "text",
    [
        "cannot connect to amqp://bob:hunter22@h:1//",
        "bad password hunter22",
        "redis://:hunter22@h is away",
    ],
)
def test_what_a_library_says_never_shows_the_password_of_a_broker(text: str) -> None:
    assert "hunter22" not in error_text(OSError(text), "amqp://bob:hunter22@h:1//", None)


def test_a_broker_that_says_no_has_not_taken_it() -> None:
    class ResponseError(Exception):
        pass

    wrapped = RuntimeError("batch")
    wrapped.__cause__ = ResponseError("OOM")
    assert [is_refusal(each) for each in (ResponseError(), wrapped, OSError())] == [True, True, False]


@pytest.mark.parametrize(
    ("url", "option"),
    [
        ("redis://h", "socket_timeout"),
        ("rediss://h", "socket_timeout"),
        ("redis+socket:///run/r", "socket_timeout"),
        ("amqps://h", "confirm_publish"),
    ],
)
def test_sockets_to_brokers_have_bounds(url: str, option: str) -> None:
    assert transport_options(url)[option]
