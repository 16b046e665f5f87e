"""Idempotency keys: the same request twice is one request, also when both come at once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from typing import Any

import httpx
import pytest

from horarium.features.schedules import service as schedule_service
from horarium.platform.database import Database, idempotency
from horarium.platform.http import routing as responses
from horarium.testing import TestService

NIGHTLY: dict[str, Any] = {"cron_expressions": ["0 2 * * *"], "workflow_type": "report"}


def post(http: httpx.Client, path: str, body: object, key: str = "k1", **headers: str) -> httpx.Response:
    return http.post(path, json=body, headers={"Idempotency-Key": key, **headers})


def count(http: httpx.Client) -> int:
    return len(http.get("/api/schedules").json()["schedules"])


def test_a_repeated_create_without_an_id_makes_one_schedule(http: httpx.Client) -> None:
    first = post(http, "/api/schedules", NIGHTLY)
    again = post(http, "/api/schedules", NIGHTLY)
    assert (again.status_code, again.json(), again.headers["etag"]) == (201, first.json(), first.headers["etag"])
    assert "idempotency-replayed" not in first.headers
    assert again.headers["idempotency-replayed"] == "true"
    assert count(http) == 1


def test_the_order_of_fields_does_not_make_another_request(http: httpx.Client) -> None:
    first = post(http, "/api/schedules", NIGHTLY)
    assert post(http, "/api/schedules", dict(reversed(NIGHTLY.items()))).json() == first.json()


@pytest.mark.parametrize(
    ("path", "body", "headers"),
    [
        ("/api/schedules", {**NIGHTLY, "note": "other"}, {}),
        ("/api/schedules/upsert", NIGHTLY, {}),
    ],
    ids=["another body", "another path"],
)
def test_a_key_belongs_to_one_request(http: httpx.Client, path: str, body: object, headers: dict[str, str]) -> None:
    post(http, "/api/schedules", NIGHTLY)
    answer = post(http, path, body, **headers)
    assert (answer.status_code, answer.json()["reason"]) == (422, "idempotency_key_reused")
    assert count(http) == 1


@pytest.mark.parametrize("key", ["", "x" * 256, "tab\tinside"], ids=["empty", "long", "tab"])
def test_a_key_that_is_none_is_refused(http: httpx.Client, key: str) -> None:
    answer = post(http, "/api/schedules", NIGHTLY, key)
    assert (answer.status_code, list(answer.json()["errors"])) == (422, ["idempotency_key"])


def test_a_request_that_was_refused_may_be_tried_again(http: httpx.Client) -> None:
    body = {**NIGHTLY, "calendars": ["ours"]}
    assert post(http, "/api/schedules", body).status_code == 422
    http.post("/api/calendars", json={"name": "ours", "kind": "skip_dates"})
    assert post(http, "/api/schedules", body).status_code == 201


def test_a_refusal_inside_leaves_nothing_behind(http: httpx.Client) -> None:
    """The unique id is taken: the savepoint is undone, the answer is the usual one."""
    http.post("/api/schedules", json={**NIGHTLY, "schedule_id": "s"})
    answer = post(http, "/api/schedules", {**NIGHTLY, "schedule_id": "s"})
    assert (answer.status_code, answer.json()["reason"]) == (409, "schedule_already_exists")
    assert post(http, "/api/schedules", {**NIGHTLY, "schedule_id": "other"}).status_code == 201


def test_a_key_belongs_to_its_principal(http: httpx.Client, horarium: TestService) -> None:
    """Nobody reads what was answered to somebody else."""
    issued = http.post("/api/tokens", json={"name": "second", "role": "admin"}).json()["secret"]
    first = post(http, "/api/schedules", NIGHTLY).json()
    other = post(horarium.http(token=issued), "/api/schedules", NIGHTLY).json()
    assert first["schedule_id"] != other["schedule_id"]


def test_a_skipped_trigger_is_the_same_trigger_too(http: httpx.Client, horarium: TestService) -> None:
    horarium.create({**NIGHTLY, "schedule_id": "s", "paused": True})
    first = post(http, "/api/schedules/s/trigger", {}).json()
    again = post(http, "/api/schedules/s/trigger", {}).json()
    assert (first["outcome"], again) == ("skipped", {**first, "repeated": True})
    assert len(horarium.history("s")) == 3  # created, paused, one skip


def test_a_dry_run_writes_nothing_but_its_answer(http: httpx.Client, horarium: TestService) -> None:
    horarium.create({**NIGHTLY, "schedule_id": "s"})
    window = {"start_time": "2026-02-20T00:00:00Z", "end_time": "2026-02-25T00:00:00Z", "dry_run": True}
    first = post(http, "/api/schedules/s/backfill", window).json()
    assert (first["outcome"], first["fires_attempted"], horarium.runs("s")) == ("backfill_planned", 5, [])
    assert post(http, "/api/schedules/s/backfill", window).json() == first


def test_what_was_told_to_the_metrics_is_told_once(http: httpx.Client, horarium: TestService) -> None:
    horarium.create({**NIGHTLY, "schedule_id": "s"})
    for _ in range(2):
        post(http, "/api/schedules/s/trigger", {})
    assert 'horarium_runs_emitted_total{origin="manual"} 1.0' in http.get("/metrics").text


def test_the_engine_hears_of_a_trigger_that_carried_a_key(http: httpx.Client, horarium: TestService) -> None:
    horarium.create({**NIGHTLY, "schedule_id": "s"})
    heard = threading.Event()
    listener = horarium.resources.database.listen(["horarium_ready"], lambda _channel: heard.set())
    try:
        post(http, "/api/schedules/s/trigger", {})
        assert heard.wait(60)
    finally:
        listener.close()


@pytest.mark.both_databases
def test_many_at_once_make_one_schedule(horarium: TestService) -> None:
    """Each gets the one answer, or hears that it is being made."""

    def ask(_number: int) -> httpx.Response:
        return post(horarium.http(), "/api/schedules", NIGHTLY)

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(ask, range(16)))
    good = {answer.json()["schedule_id"] for answer in answers if answer.status_code == 201}
    rest = {(answer.status_code, answer.json()["reason"]) for answer in answers if answer.status_code != 201}
    assert len(good) == 1
    assert rest <= {(409, "request_in_progress")}
    assert count(horarium.http()) == 1


@pytest.mark.parametrize("dialect", ["postgresql"], indirect=True)
def test_a_request_that_is_being_answered_is_not_answered_twice(
    http: httpx.Client, open_another: Callable[[], Database]
) -> None:
    other, begun, done = open_another(), threading.Event(), threading.Event()

    def hold(connection: Any) -> None:
        assert idempotency.claim(connection, "default", "admin\nk1")
        begun.set()
        assert done.wait(60)

    holding = threading.Thread(target=other.write, args=(hold,))
    holding.start()
    assert begun.wait(60)
    answer = post(http, "/api/schedules", NIGHTLY)
    done.set()
    holding.join()
    assert (answer.status_code, answer.json()["reason"]) == (409, "request_in_progress")
    assert answer.headers["retry-after"] == "1"
    assert post(http, "/api/schedules", NIGHTLY).status_code == 201


@pytest.mark.both_databases
def test_a_crash_after_the_effect_leaves_neither_effect_nor_key(
    http: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(*_args: Any, **_named: Any) -> None:
        raise ZeroDivisionError

    with monkeypatch.context() as patch:
        patch.setattr(idempotency, "remember", crash)
        assert post(http, "/api/schedules", NIGHTLY).status_code == 500
    assert count(http) == 0
    assert post(http, "/api/schedules", NIGHTLY).status_code == 201


@pytest.mark.both_databases
def test_of_two_writers_one_wins(horarium: TestService) -> None:
    horarium.create({**NIGHTLY, "schedule_id": "s"})

    def write(note: str) -> int:
        headers = {"If-Match": '"1"', "Idempotency-Key": note}
        return horarium.http().patch("/api/schedules/s", json={"note": note}, headers=headers).status_code

    with ThreadPoolExecutor(4) as pool:
        assert sorted(pool.map(write, "abcd")) == [200, 412, 412, 412]


def test_a_stored_answer_is_given_to_nobody_who_may_no_longer_ask(http: httpx.Client, horarium: TestService) -> None:
    issued = http.post("/api/tokens", json={"name": "x", "role": "owner", "subject": "x"}).json()
    mine = horarium.http(token=issued["secret"])
    assert post(mine, "/api/schedules", NIGHTLY).status_code == 201
    http.delete(f"/api/tokens/{issued['token_id']}")
    assert post(mine, "/api/schedules", NIGHTLY).status_code == 401
    weaker = http.post("/api/tokens", json={"name": "x", "role": "viewer", "subject": "x"}).json()["secret"]
    assert post(horarium.http(token=weaker), "/api/schedules", NIGHTLY).status_code == 403


def test_the_operations_are_the_usual_ones(horarium: TestService) -> None:
    """What is made with a key is made as without one: the same events, and an audit that finds nothing."""
    post(horarium.http(), "/api/schedules", {**NIGHTLY, "schedule_id": "s"})
    schedule_service.create(horarium.resources, horarium.caller, {**NIGHTLY, "schedule_id": "t"})
    horarium.advance(days=1)
    assert [event.event_type for event in horarium.history("s")] == [e.event_type for e in horarium.history("t")]
    assert horarium.verify() == []


def test_a_large_response_is_stored_without_its_lists(http: httpx.Client, horarium: TestService) -> None:
    """The repetition has the counts and the hash of what was answered first, and does nothing."""
    horarium.create({**NIGHTLY, "schedule_id": "s"})
    window = {"start_time": "2025-01-01T00:00:00Z", "end_time": "2026-02-28T00:00:00Z", "overlap_policy": "allow_all"}
    first = post(http, "/api/schedules/s/backfill", window)
    again = post(http, "/api/schedules/s/backfill", window)
    assert len(first.content) > responses.MOST_STORED_BYTES > len(again.content)
    assert (again.status_code, again.headers[responses.REPLAYED]) == (first.status_code, "true")
    assert again.headers[responses.COMPACT] == sha256(first.content).hexdigest()
    assert again.json() == {**first.json(), "results": []}
    assert responses.COMPACT not in first.headers


def test_stored_responses_count_as_bytes(http: httpx.Client, horarium: TestService) -> None:
    """Where none are left a request with a key is refused as a whole; one that deletes is not."""
    horarium.create({**NIGHTLY, "schedule_id": "s"})
    http.patch("/api/namespaces/default", json={"quotas": {"bytes_stored": 100}}).raise_for_status()
    refused = post(http, "/api/schedules/s/pause", {})
    assert (refused.status_code, refused.json()["reason"]) == (422, "quota_exceeded")
    assert http.get("/api/schedules/s").json()["status"] == "active"
    assert http.post("/api/schedules/s/pause", json={}).status_code == 200, "without a key nothing is stored"
    assert http.delete("/api/schedules/s", headers={"Idempotency-Key": "k"}).status_code == 200
