"""Triggers and backfills over HTTP."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from horarium.testing import TestService


@pytest.fixture(autouse=True)
def hourly(horarium: TestService) -> None:
    horarium.create(schedule_id="hourly", cron_expressions=["0 * * * *"], workflow_type="sweep")


def trigger(http: httpx.Client, body: object = None, **headers: str) -> dict[str, Any]:
    answer = http.post("/api/schedules/hourly/trigger", json=body or {}, headers=headers)
    assert answer.status_code == 200, answer.text
    return answer.json()


def backfill(http: httpx.Client, start: str, end: str, **fields: Any) -> httpx.Response:
    return http.post("/api/schedules/hourly/backfill", json={"start_time": start, "end_time": end, **fields})


def test_a_trigger_starts_a_run_at_once(http: httpx.Client, horarium: TestService) -> None:
    done = trigger(http)
    assert done["outcome"] == "triggered"
    assert done["workflow_id"] == f"schedule:hourly:manual:{done['run_id']}"
    run = http.get(f"/api/runs/{done['run_id']}").json()
    assert (run["origin"], run["state"], run["schedule_id"]) == ("manual", "ready", "hourly")
    assert http.get("/api/schedules/hourly").json()["next_fire_at"] == "2026-03-01T01:00:00Z"


def test_a_trigger_while_a_run_is_active_obeys_the_overlap_policy(http: httpx.Client) -> None:
    trigger(http)
    assert trigger(http)["reason"] == "overlap_policy_skip"
    assert trigger(http, {"overlap_policy": "BufferOne"}) | {"workflow_id": "", "run_id": ""} == {
        "schedule_id": "hourly",
        "outcome": "buffered",
        "buffer_depth": 1,
        "state": "held",
        "namespace": "default",
        "workflow_id": "",
        "run_id": "",
    }
    assert trigger(http, {"overlap_policy": "buffer_one"})["outcome"] == "buffer_full"
    assert trigger(http, {"overlap_policy": "allow_all"})["outcome"] == "triggered"


@pytest.mark.parametrize("how", ["header", "body"])
def test_a_repeated_key_is_the_same_trigger(http: httpx.Client, how: str) -> None:
    body, headers = ({}, {"Idempotency-Key": "k1"}) if how == "header" else ({"idempotency_key": "k1"}, {})
    first = trigger(http, body, **headers)
    again = trigger(http, body, **headers)
    assert (again["run_id"], again["outcome"], again["repeated"]) == (first["run_id"], "triggered", True)


def test_a_paused_schedule_is_triggered_only_on_purpose(http: httpx.Client) -> None:
    http.post("/api/schedules/hourly/pause")
    assert trigger(http) == {
        "schedule_id": "hourly",
        "outcome": "skipped",
        "reason": "status_not_triggerable",
        "namespace": "default",
    } | {key: value for key, value in trigger(http).items() if key == "detail"}
    assert trigger(http, {"even_if_paused": True})["outcome"] == "triggered"


def test_a_trigger_takes_inputs_of_its_own(http: httpx.Client) -> None:
    run_id = trigger(http, {"inputs": {"city": "İzmir"}})["run_id"]
    assert http.get(f"/api/runs/{run_id}").json()["inputs"] == {"city": "İzmir"}


def test_an_empty_list_is_an_empty_body(http: httpx.Client) -> None:
    assert http.post("/api/schedules/hourly/trigger", content=b"[]").json()["outcome"] == "triggered"


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"overlap_policy": "sometimes"}, "overlap_policy"),
        ({"even_if_paused": "yes"}, "even_if_paused"),
        ({"colour": "red"}, "colour"),
        ({"idempotency_key": "x" * 256}, "idempotency_key"),
        (["x"], "body"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_a_bad_trigger_names_the_field(http: httpx.Client, body: object, field: str) -> None:
    answer = http.post("/api/schedules/hourly/trigger", json=body)
    assert (answer.status_code, list(answer.json()["errors"])) == (422, [field])


def test_a_backfill_runs_what_is_past_and_repeating_it_is_harmless(http: httpx.Client, horarium: TestService) -> None:
    horarium.advance(minutes=30)
    window = ("2026-02-28T20:00:00Z", "2026-02-28T23:00:00Z")
    first = backfill(http, *window, overlap_policy="allow_all").json()
    assert (first["outcome"], first["fires_attempted"]) == ("backfill_started", 3)
    assert first["results"][0]["fire_time"] == "2026-02-28T20:00:00Z"
    assert first["results"][0]["workflow_id"] == "schedule:hourly:backfill:1772308800"
    again = backfill(http, *window, overlap_policy="allow_all").json()
    assert {row["reason"] for row in again["results"]} == {"already_exists"}
    assert len(horarium.runs("hourly")) == 3


def test_a_backfill_under_skip_is_worked_off_beside_the_clock(http: httpx.Client, horarium: TestService) -> None:
    horarium.advance(minutes=30)
    done = backfill(http, "2026-02-28T20:00:00Z", "2026-02-28T23:00:00Z").json()
    assert [row["outcome"] for row in done["results"]] == ["started", "buffered", "buffered"]
    horarium.advance(minutes=30)
    http.post("/api/schedules/hourly/pause")
    states = []
    for _ in range(3):
        [running] = [run for run in horarium.runs("hourly") if run.state == "running"]
        horarium.finish(running)
        horarium.settle()
        states.append([run.state.value for run in horarium.runs("hourly")])
    assert states[-1] == ["succeeded", "succeeded", "succeeded", "held"]
    http.post("/api/schedules/hourly/resume")
    horarium.settle()
    assert horarium.runs("hourly")[-1].state == "running"
    assert horarium.verify() == []


def test_a_dry_run_writes_nothing(http: httpx.Client, horarium: TestService) -> None:
    done = backfill(http, "2026-02-28T20:00:00Z", "2026-02-28T23:00:00Z", dry_run=True).json()
    assert (done["outcome"], done["fires_attempted"], horarium.runs("hourly")) == ("backfill_planned", 3, [])


def test_a_backfill_that_is_too_large_says_how_large(http: httpx.Client) -> None:
    answer = backfill(http, "2025-01-01T00:00:00Z", "2026-01-01T00:00:00Z")
    assert (answer.status_code, answer.json()["reason"]) == (422, "backfill_too_large")
    assert answer.json()["limit"] == 1_000


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "start_time"),
        ({"start_time": "2026-01-01T00:00:00Z"}, "end_time"),
        ({"start_time": "yesterday", "end_time": "2026-01-01T00:00:00Z"}, "start_time"),
        ({"start_time": "2026-01-02T00:00:00Z", "end_time": "2026-01-01T00:00:00Z"}, "end_time"),
        ({"start_time": 5, "end_time": "2026-01-01T00:00:00Z"}, "start_time"),
    ],
    ids=["nothing", "no-end", "no-time", "backwards", "number"],
)
def test_a_bad_window_is_refused(http: httpx.Client, body: object, field: str) -> None:
    answer = http.post("/api/schedules/hourly/backfill", json=body)
    assert answer.status_code == 422
    assert field in answer.json()["errors"]
