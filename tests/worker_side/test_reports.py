"""What is reported of a task, for every signal, and whatever a task returns or raises."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from celery.exceptions import Reject, SoftTimeLimitExceeded, TimeLimitExceeded, WorkerLostError

from horarium.celery import reports
from horarium.celery.reports import MAX_ERROR, MAX_RESULT_BYTES, TaskReport
from horarium.features.runs.reports import parse_report
from horarium.platform.job import RunHeader

HEADER = RunHeader("01M7HTS2B8EA2S4XM8831DYAF7", "default", 0, "2026-03-01T00:00:00Z", report_token="hrt_0.x")


class Silent:
    def __repr__(self) -> str:
        raise RuntimeError("no")


class SilentError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no")


class LateError(SoftTimeLimitExceeded):  # type: ignore[misc]  # Celery has no types
    """A task's own class of being late."""


SAID: list[tuple[str, Callable[[], TaskReport], dict[str, Any], bool]] = [
    ("started", lambda: reports.started(HEADER), {"state": "running"}, False),
    ("done", lambda: reports.succeeded(HEADER, {"rows": 3}), {"state": "succeeded", "result": {"rows": 3}}, True),
    ("nothing", lambda: reports.succeeded(HEADER, None), {"state": "succeeded", "result": None}, True),
    (
        "raised",
        lambda: reports.failed(HEADER, ValueError("no luck")),
        {"state": "failed", "error": "ValueError: no luck", "error_class": "ValueError"},
        True,
    ),
    (
        "raised without a word",
        lambda: reports.failed(HEADER, KeyError()),
        {"state": "failed", "error": "KeyError", "error_class": "KeyError"},
        True,
    ),
    (
        "cannot be shown",
        lambda: reports.failed(HEADER, SilentError()),
        {
            "state": "failed",
            "error": "SilentError: <SilentError without a printable value>",
            "error_class": "SilentError",
        },
        True,
    ),
    (
        "worker lost",
        lambda: reports.failed(HEADER, WorkerLostError("signal 9")),
        {"state": "failed", "error": "WorkerLostError: signal 9", "error_class": "WorkerLostError"},
        True,
    ),
    (
        "rejected by the task",
        lambda: reports.failed(HEADER, Reject("no", requeue=False)),
        {"state": "failed", "error": "Reject: ('no', False)", "error_class": "Reject"},
        True,
    ),
    (
        "soft limit",
        lambda: reports.failed(HEADER, LateError()),
        {"state": "timed_out", "error": "LateError: SoftTimeLimitExceeded()"},
        True,
    ),
    (
        "hard limit",
        lambda: reports.failed(HEADER, TimeLimitExceeded(2)),
        {"state": "timed_out", "error": "TimeLimitExceeded: TimeLimitExceeded(2,)"},
        True,
    ),
    (
        "revoked",
        lambda: reports.revoked(HEADER, expired=False, terminated=False),
        {"state": "cancelled", "error": "the task was revoked"},
        True,
    ),
    (
        "terminated",
        lambda: reports.revoked(HEADER, expired=False, terminated=True),
        {"state": "cancelled", "error": "the task was terminated"},
        True,
    ),
    (
        "expired",
        lambda: reports.revoked(HEADER, expired=True, terminated=False),
        {"state": "timed_out", "error": "the task expired before it began"},
        True,
    ),
    (
        "unknown",
        lambda: reports.unknown(HEADER, "ghost"),
        {
            "state": "failed",
            "error": "NotRegistered: this worker has no task 'ghost'",
            "error_class": "NotRegistered",
        },
        True,
    ),
    (
        "unreadable",
        lambda: reports.rejected(HEADER, ValueError("bad eta")),
        {
            "state": "failed",
            "error": "the worker could not read the message: ValueError: bad eta",
            "error_class": "Rejected",
        },
        True,
    ),
]


@pytest.mark.parametrize(("say", "said", "final"), [row[1:] for row in SAID], ids=[row[0] for row in SAID])
def test_what_is_said(say: Callable[[], TaskReport], said: dict[str, Any], final: bool) -> None:
    report = say()
    assert (report.said, report.final) == (said, final)
    assert list(report.document())[:2] == ["run_id", "report_token"]
    document = {name: value for name, value in report.document().items() if name != "run_id"}
    parse_report(document)  # the service takes it


DEEP: list[Any] = []
for _ in range(50):
    DEEP = [DEEP]
ROUND: list[Any] = []
ROUND.append(ROUND)
RESULTS: list[tuple[str, object, object]] = [
    ("a number", 3, 3),
    ("a tuple", (1, "two", None), [1, "two", None]),
    (
        "dates and ids",
        {"at": datetime(2026, 3, 1, tzinfo=UTC), "id": UUID(int=7), "cost": Decimal("1.50")},
        {"at": "2026-03-01T00:00:00+00:00", "id": str(UUID(int=7)), "cost": "1.50"},
    ),
    ("keys that are numbers", {1: "a"}, {"1": "a"}),
    ("a set", {1}, "{1}"),
    ("bytes", b"\xff", "b'\\xff'"),
    ("one value among others", {"rows": 3, "raw": b"x"}, {"rows": 3, "raw": "b'x'"}),
    ("keys that are no texts", {(1, 2): "a"}, "{(1, 2): 'a'}"),
    ("cannot be shown", Silent(), "<Silent without a printable value>"),
    ("half a pair", "\ud800", "'\\ud800'"),
]


@pytest.mark.parametrize(("value", "expected"), [row[1:] for row in RESULTS], ids=[row[0] for row in RESULTS])
def test_what_a_task_returns(value: object, expected: object) -> None:
    told = reports.result_of(value)
    assert json.loads(json.dumps(told)) == expected


@pytest.mark.parametrize(
    "value",
    [float("nan"), {"a": float("inf")}, DEEP, ROUND, 2**5_000, list(range(20_000)), "x" * 3_000_000, [Silent()] * 9],
    ids=["nan", "infinite", "deep", "round", "large number", "many", "long", "silent"],
)
def test_what_the_service_would_refuse_is_told_as_text(value: object) -> None:
    told = reports.result_of(value)
    parse_report({"state": "succeeded", "result": told})
    assert len(json.dumps(told)) <= MAX_RESULT_BYTES


def test_an_error_is_cut_and_can_be_stored() -> None:
    said = reports.failed(HEADER, ValueError("\x00\ud800" + "x" * 100_000)).said
    assert len(said["error"]) == MAX_ERROR
    assert said["error"].startswith("ValueError: \ufffd?x")
    odd = type("An \x07 odd one" + "y" * 500, (Exception,), {})
    parse_report(reports.failed(HEADER, odd()).said)


def test_a_wrapped_exception_keeps_its_name() -> None:
    """As Celery wraps what cannot be pickled."""
    wrapped = type("UnpickleableExceptionWrapper", (Exception,), {"exc_cls_name": "OperationalError"})("gone")
    assert reports.failed(HEADER, wrapped).said["error_class"] == "OperationalError"
