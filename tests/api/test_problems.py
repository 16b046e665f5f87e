"""How refusals look, whatever goes wrong: problem documents, and never a word about our insides."""

from __future__ import annotations

import io
import json
import time
from typing import Any

import httpx
import pytest

from horarium.errors import HorariumError, InvalidSpec
from horarium.features.schedules import lists
from horarium.platform.database.errors import (
    CommitUnknown,
    DataError,
    SchemaMissing,
    StoreUnavailable,
    Transient,
    UniqueConflict,
)
from horarium.platform.database.installation import CannotUnseal, KeyReplaced
from horarium.platform.http.responses import status_of
from horarium.platform.wire import encode
from horarium.testing import TestService, service

pytestmark = pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)

MEMBERS = {"type", "title", "status", "detail", "message", "reason"}


@pytest.mark.parametrize(
    ("method", "path", "status", "reason"),
    [
        ("GET", "/api/nothing", 404, "not_found"),
        ("GET", "/api/schedules/", 404, "not_found"),
        ("DELETE", "/api/schedules", 405, "method_not_allowed"),
        ("GET", "/api/schedules/ghost", 404, "schedule_not_found"),
        ("GET", "/api/schedules/ghost/history?after_sequence=x", 422, "invalid_after_sequence"),
        ("GET", "/api/schedules/ghost/history?after_sequence=-1", 422, "invalid_after_sequence"),
    ],
)
def test_every_refusal_is_a_problem(http: httpx.Client, method: str, path: str, status: int, reason: str) -> None:
    answer = http.request(method, path)
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json().keys() >= MEMBERS
    assert (answer.status_code, answer.json()["status"], answer.json()["reason"]) == (status, status, reason)


@pytest.mark.parametrize(
    ("body", "kind", "status", "reason"),
    [
        (b"{", "application/json", 400, "malformed_json"),
        (b'{"a": NaN}', "application/json", 400, "malformed_json"),
        (b"\xff\xfe", "application/json", 400, "malformed_json"),
        (b"[" * 100_000, "application/json", 400, "malformed_json"),
        (b"a=b", "application/x-www-form-urlencoded", 415, "unsupported_media_type"),
        (b'"text"', "application/json", 422, "validation_failed"),
        (b"", "application/json", 422, "validation_failed"),
        (b'{"schedule_id": "\\ud800"}', "application/json", 400, "malformed_json"),
        (b'{"note": "' + b"x" * 3_000_000 + b'"}', "application/json", 413, "payload_too_large"),
    ],
    ids=["half", "nan", "bytes", "deep", "form", "text", "empty", "surrogate", "large"],
)
def test_a_hostile_body_is_refused_quickly(
    http: httpx.Client, body: bytes, kind: str, status: int, reason: str
) -> None:
    begun = time.process_time()
    answer = http.post("/api/schedules", content=body, headers={"Content-Type": kind})
    assert (answer.status_code, answer.json()["reason"]) == (status, reason)
    assert time.process_time() - begun < 5


def test_a_body_that_hides_its_length_is_counted(http: httpx.Client) -> None:
    """No Content-Length: the limit holds while the body comes in."""
    pieces = (b"x" * 100_000 for _ in range(40))
    request = http.build_request("POST", "/api/schedules", content=pieces)
    assert "content-length" not in request.headers
    assert http.send(request).status_code == 413


def test_an_unexpected_error_shows_nothing_of_our_insides(monkeypatch: pytest.MonkeyPatch, dialect: str) -> None:
    def fail(*_args: Any, **_named: Any) -> None:
        raise ZeroDivisionError("secret insides")

    monkeypatch.setattr(lists, "describe", fail)
    log = io.StringIO()
    with service(log_to=log) as horarium:
        answer = horarium.http().get("/api/schedules/x", headers={"X-Request-Id": "r-42"})
    assert (answer.status_code, answer.json()["reason"]) == (500, "internal_error")
    assert "secret" not in answer.text
    assert "r-42" in answer.json()["message"]
    assert "secret insides" in log.getvalue()


DRIVER = 'connection to server at "10.1.2.3", port 5432 failed; process 4711 waits'


@pytest.mark.parametrize(
    "error",
    [
        StoreUnavailable("the database is away", driver=DRIVER),
        Transient("try again", driver=DRIVER),
        CommitUnknown(DRIVER),
    ],
    ids=lambda error: type(error).__name__,
)
def test_what_a_driver_says_of_machines_and_processes_is_not_passed_on(
    error: HorariumError, http: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_args: Any, **_named: Any) -> None:
        raise error

    monkeypatch.setattr(lists, "describe", fail)
    answer = http.get("/api/schedules/x")
    assert answer.status_code == status_of(error)
    assert answer.json()["reason"] == error.reason
    assert "10.1.2.3" not in answer.text
    assert "4711" not in answer.text
    assert DRIVER in error.message


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_a_probe_does_not_tell_where_the_database_is(
    path: str, horarium: TestService, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_args: Any, **_named: Any) -> None:
        raise StoreUnavailable("the database does not answer", driver=DRIVER)

    for way in ("read", "glance"):
        monkeypatch.setattr(type(horarium.resources.database), way, fail)
    answer = horarium.http(token=None).get(path)
    assert answer.status_code == 503
    assert "10.1.2.3" not in answer.text
    assert "4711" not in answer.text


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (InvalidSpec("no"), 422),
        (DataError("no"), 422),
        (UniqueConflict("x"), 409),
        (CommitUnknown("who knows"), 409),
        (StoreUnavailable("down"), 503),
        (SchemaMissing("none"), 503),
        (KeyReplaced("restart"), 503),
        (CannotUnseal("set it again"), 409),
        (HorariumError("?"), 500),
    ],
    ids=lambda value: type(value).__name__,
)
def test_each_error_has_its_status(error: HorariumError, status: int, dialect: str) -> None:
    assert status_of(error) == status


def test_the_request_id_comes_back(http: httpx.Client) -> None:
    assert http.get("/livez", headers={"X-Request-Id": "mine"}).headers["x-request-id"] == "mine"
    made = http.get("/livez", headers={"X-Request-Id": "not one\tword"}).headers["x-request-id"]
    assert len(made) == 26


@pytest.mark.parametrize("value", [2**70, "\ud800", {"deep": [2**70]}], ids=["large", "surrogate", "nested"])
def test_whatever_json_can_hold_is_answered(value: Any, dialect: str) -> None:
    assert json.loads(encode({"value": value})) == {"value": value}


@pytest.mark.parametrize(
    ("method", "path", "detail"),
    [
        ("GET", "/api/nowhere", "The path '/api/nowhere' does not exist; /openapi.json lists all paths"),
        ("PUT", "/api/overview", "The path '/api/overview' does not allow PUT; use GET"),
        (
            "GET",
            "/api/schedules?include_deleted=perhaps",
            "Invalid request: include_deleted: must be a valid boolean, not 'perhaps'",
        ),
        ("GET", "/api/events?after=x", "Invalid request: after: must be a cursor such as 714-20 or 714-20-1.9f3c07ab"),
    ],
)
def test_a_problem_names_the_value_and_the_way_out(http: httpx.Client, method: str, path: str, detail: str) -> None:
    assert http.request(method, path).json()["detail"] == detail
