"""Runs and skips in one list, as other schedulers keep their ledger."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from horarium.testing import TestService


@pytest.fixture(autouse=True)
def busy(horarium: TestService) -> None:
    """Every hour; the first run stays open, so the next ones are skipped until it is finished."""
    horarium.create(
        schedule_id="hourly",
        cron_expressions=["0 * * * *"],
        action={"workflow_type": "sweep", "timeout_seconds": 36_000},
        catchup_policy="skip",
    )
    horarium.advance(hours=3)
    horarium.finish(horarium.runs()[0])
    horarium.advance(hours=1)


def ledger(http: httpx.Client, **params: Any) -> dict[str, Any]:
    answer = http.get("/api/schedules/hourly/runs", params={"include": "skips", **params})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def told(rows: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(row["nominal"][11:13], row["status"]) for row in rows]


@pytest.mark.archived
def test_skips_stand_among_the_runs_newest_first(http: httpx.Client) -> None:
    rows = ledger(http)["runs"]
    assert told(rows) == [("04", "STARTED"), ("03", "SKIPPED"), ("02", "SKIPPED"), ("01", "SUCCESS")]
    said: dict[str, Any] = {
        "run_id": None,
        "schedule_id": "hourly",
        "namespace": "default",
        "origin": "scheduled",
        "state": "skipped",
        "status": "SKIPPED",
        "reason": "overlap_policy_skip",
        "reason_alias": "overlap_in_flight",
        "nominal": "2026-03-01T03:00:00Z",
        "covers": None,
        "created_at": "2026-03-01T03:00:00Z",
        "finished_at": "2026-03-01T03:00:00Z",
        "workflow_instance_id": None,
        "labels": {},
    }
    assert {name: rows[1][name] for name in said} == said


def test_without_asking_there_are_runs_only(http: httpx.Client) -> None:
    assert len(http.get("/api/schedules/hourly/runs").json()["runs"]) == 2


@pytest.mark.both_databases
@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_pages_hold_every_row_once(http: httpx.Client, size: int) -> None:
    rows: list[dict[str, Any]] = []
    token: str | None = None
    for _ in range(10):
        page = ledger(http, page_size=size, **({} if token is None else {"next_page_token": token}))
        assert len(page["runs"]) <= size
        rows, token = [*rows, *page["runs"]], page["next_page_token"]
        if token is None:
            break
    assert [hour for hour, _ in told(rows)] == ["04", "03", "02", "01"]


@pytest.mark.both_databases
@pytest.mark.parametrize(
    ("params", "hours"),
    [
        ({"state": "skipped"}, ["03", "02"]),
        ({"state": "SKIPPED"}, ["03", "02"]),
        ({"state": "succeeded"}, ["01"]),
        ({"state": ["succeeded", "skipped"]}, ["03", "02", "01"]),
        ({"origin": "scheduled"}, ["04", "03", "02", "01"]),
        ({"origin": "manual"}, []),
        ({"origin": "backfill"}, []),
    ],
    ids=str,
)
def test_filters_hold_for_skips_too(http: httpx.Client, params: dict[str, Any], hours: list[str]) -> None:
    assert [hour for hour, _ in told(ledger(http, **params)["runs"])] == hours


@pytest.mark.both_databases
def test_a_trigger_by_hand_that_was_skipped_is_manual(http: httpx.Client) -> None:
    http.post("/api/schedules/hourly/trigger")
    [row] = ledger(http, origin="manual")["runs"]
    assert (row["origin"], row["reason"]) == ("manual", "overlap_policy_skip")


def test_a_row_of_missed_occurrences_is_one_line(http: httpx.Client, horarium: TestService) -> None:
    horarium.sleep(hours=5, minutes=30)
    horarium.settle()
    row = ledger(http)["runs"][0]
    covers = {"first": "2026-03-01T05:00:00Z", "last": "2026-03-01T09:00:00Z", "count": 5}
    assert (row["reason"], row["covers"], row["nominal"]) == ("missed", covers, "2026-03-01T05:00:00Z")


def test_the_list_of_all_runs_can_be_narrowed_to_a_schedule(http: httpx.Client) -> None:
    assert len(http.get("/api/runs", params={"schedule_id": "hourly"}).json()["runs"]) == 2
    both = http.get("/api/runs", params={"schedule_id": "hourly", "include": "skips"}).json()["runs"]
    assert len(both) == 4
    assert http.get("/api/runs", params={"schedule_id": "ghost"}).status_code == 404
    assert len(http.get("/api/runs", params={"workflow": "sweep"}).json()["runs"]) == 2
    assert http.get("/api/runs", params={"workflow": "other"}).json()["runs"] == []


WRONG: list[tuple[str, dict[str, Any], str]] = [
    ("/api/runs", {"include": "skips"}, "include"),
    ("/api/schedules/hourly/runs", {"include": "everything"}, "include"),
    ("/api/schedules/hourly/runs", {"include": "skips", "next_page_token": "x"}, "next_page_token"),
    ("/api/schedules/hourly/runs", {"include": "skips", "next_page_token": "x.5"}, "next_page_token"),
    ("/api/schedules/hourly/runs", {"include": "skips", "next_page_token": "-." + "9" * 19}, "next_page_token"),
    ("/api/schedules/hourly/runs", {"include": "skips", "page_size": 0}, "page_size"),
]


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
def test_what_is_wrong_is_refused(http: httpx.Client) -> None:
    for path, params, field in WRONG:
        answer = http.get(path, params=params)
        assert (answer.status_code, list(answer.json()["errors"])) == (422, [field]), (path, params, field)
