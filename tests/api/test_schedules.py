"""Schedules over HTTP: the answers that the Durable Workflow client reads, and what is refused."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from horarium.testing import TestService

NIGHTLY: dict[str, Any] = {
    "schedule_id": "nightly",
    "spec": {"cron_expressions": ["0 2 * * *"], "timezone": "Europe/Istanbul"},
    "action": {"workflow_type": "report", "task_queue": "reports"},
    "note": "every night",
}


def create(http: httpx.Client, **changes: Any) -> None:
    answer = http.post("/api/schedules", json={**NIGHTLY, **changes})
    assert answer.status_code == 201, answer.text


def test_creating_answers_201_with_the_id(http: httpx.Client) -> None:
    answer = http.post("/api/schedules", json=NIGHTLY)
    assert answer.status_code == 201
    assert answer.headers["etag"] == '"1"'
    assert answer.json() == {
        "schedule_id": "nightly",
        "outcome": "created",
        "namespace": "default",
        "status": "active",
        "next_fire_at": "2026-03-01T23:00:00Z",
        "next_run_at": "2026-03-01T23:00:00Z",
        "next_run_reason": None,
        "version": 1,
        "effective_retries": 1,
    }


def test_an_id_is_made_where_none_is_given(http: httpx.Client) -> None:
    body = {name: value for name, value in NIGHTLY.items() if name != "schedule_id"}
    made = http.post("/api/schedules", json=body).json()["schedule_id"]
    assert http.get(f"/api/schedules/{made}").json()["schedule_id"] == made


def test_explicit_nulls_are_the_same_as_nothing(http: httpx.Client) -> None:
    """The command line of Durable Workflow sends them."""
    create(http, jitter_seconds=None, max_runs=None, note=None, paused=False)
    assert http.get("/api/schedules/nightly").json()["max_runs"] is None


def test_a_second_schedule_of_the_same_id_is_refused(http: httpx.Client) -> None:
    create(http)
    answer = http.post("/api/schedules", json=NIGHTLY)
    assert (answer.status_code, answer.json()["reason"]) == (409, "schedule_already_exists")


def test_describing_has_flat_and_nested_fields(http: httpx.Client) -> None:
    create(http)
    described = http.get("/api/schedules/nightly").json()
    assert described["spec"] == NIGHTLY["spec"]
    assert described["action"]["workflow_type"] == "report"
    assert described["action"]["task_queue"] == "reports"
    assert described["state"] == {"status": "active", "paused": False, "note": "every night"}
    assert described["next_fire_at"] == described["info"]["next_fire"] == "2026-03-01T23:00:00Z"
    assert described["next_fire_times"] == [f"2026-03-0{day}T23:00:00Z" for day in range(1, 6)]
    flat = {
        "status": "active",
        "paused": False,
        "note": "every night",
        "fires_count": 0,
        "failures_count": 0,
        "last_fired_at": None,
        "paused_at": None,
        "jitter_seconds": 0,
        "max_runs": None,
        "overlap_policy": "skip",
    }
    assert {name: described[name] for name in flat} == flat
    assert {"remaining_actions", "latest_workflow_instance_id", "created_at", "updated_at", "memo"} <= described.keys()


def test_describing_tells_what_has_fired(http: httpx.Client, horarium: TestService) -> None:
    create(http, max_runs=5)
    horarium.advance(days=1)
    described = http.get("/api/schedules/nightly").json()
    assert described["fires_count"] == described["info"]["fires_count"] == 1
    assert described["latest_workflow_instance_id"] == "schedule:nightly:1772406000"
    assert described["last_fired_at"] == "2026-03-01T23:00:00Z"
    assert described["remaining_actions"] == 4


@pytest.mark.parametrize("path", ["", "/history", "/runs"])
def test_an_unknown_schedule_is_not_found(http: httpx.Client, path: str) -> None:
    answer = http.get(f"/api/schedules/ghost{path}")
    assert answer.status_code == 404
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["reason"] == "schedule_not_found"
    assert answer.json()["message"] == "schedule 'ghost' not found"


def test_every_bad_field_is_named(http: httpx.Client) -> None:
    body = {
        "spec": {"cron_expressions": ["0 25 * * *"], "timezone": "Mars/Base"},
        "action": {"workflow_type": "x"},
        "nope": 1,
    }
    answer = http.post("/api/schedules", json=body)
    assert (answer.status_code, answer.json()["reason"]) == (422, "validation_failed")
    errors = answer.json()["errors"]
    assert {"spec.cron_expressions.0", "spec.timezone", "nope"} <= errors.keys()
    assert answer.json()["validation_errors"] == errors
    assert "detail" in answer.json()


def test_pausing_and_resuming(http: httpx.Client, horarium: TestService) -> None:
    create(http)
    assert http.post("/api/schedules/nightly/pause", json={"note": "audit"}).json()["outcome"] == "paused"
    assert http.post("/api/schedules/nightly/pause", json={}).json()["outcome"] == "unchanged"
    paused = http.get("/api/schedules/nightly").json()
    assert (paused["paused"], paused["status"], paused["pause_reason"]) == (True, "paused", "audit")
    horarium.advance(days=3)
    assert horarium.runs("nightly") == []
    assert http.post("/api/schedules/nightly/resume", content="[]").json()["outcome"] == "resumed"
    assert http.post("/api/schedules/nightly/resume").json()["outcome"] == "unchanged"
    assert horarium.verify() == []


def test_deleting_hides_the_schedule_and_keeps_its_history(http: httpx.Client) -> None:
    create(http)
    assert http.delete("/api/schedules/nightly").json()["outcome"] == "deleted"
    assert http.get("/api/schedules/nightly").status_code == 404
    assert http.delete("/api/schedules/nightly").status_code == 404
    events = http.get("/api/schedules/nightly/history").json()["events"]
    assert [event["event_type"] for event in events] == ["ScheduleCreated", "ScheduleDeleted"]
    create(http)
    events = http.get("/api/schedules/nightly/history").json()["events"]
    assert [event["event_type"] for event in events] == ["ScheduleCreated"]


def test_putting_replaces_the_given_parts_and_merges_the_action(http: httpx.Client) -> None:
    create(http)
    body = {"spec": {"cron_expressions": ["0 4 * * *"]}, "action": {"input": [1]}, "note": "later"}
    answer = http.put("/api/schedules/nightly", json=body)
    assert (answer.status_code, answer.json()["outcome"]) == (200, "updated")
    described = http.get("/api/schedules/nightly").json()
    assert described["spec"] == {"cron_expressions": ["0 4 * * *"]}
    assert (described["action"]["workflow_type"], described["action"]["input"]) == ("report", [1])


def test_patching_merges_and_null_clears(http: httpx.Client) -> None:
    create(http)
    http.patch("/api/schedules/nightly", json={"note": None, "spec": {"timezone": "UTC"}})
    described = http.get("/api/schedules/nightly").json()
    assert described["note"] is None
    assert described["spec"] == {"cron_expressions": ["0 2 * * *"], "timezone": "UTC"}


def test_an_edit_of_an_old_version_is_refused(http: httpx.Client) -> None:
    create(http)
    http.put("/api/schedules/nightly", json={"note": "mine"}, headers={"If-Match": '"1"'})
    answer = http.put("/api/schedules/nightly", json={"note": "yours"}, headers={"If-Match": '"1"'})
    assert (answer.status_code, answer.json()["reason"], answer.json()["version"]) == (412, "precondition_failed", 2)
    assert http.put("/api/schedules/nightly", json={}, headers={"If-Match": "many"}).status_code == 422


def test_upserting_twice_changes_nothing(http: httpx.Client) -> None:
    first = http.post("/api/schedules/upsert", json=NIGHTLY)
    again = http.post("/api/schedules/upsert", json=NIGHTLY)
    assert (first.status_code, first.json()["outcome"]) == (201, "created")
    assert (again.status_code, again.json()["outcome"]) == (200, "unchanged")


@pytest.mark.both_databases
def test_listing_goes_page_by_page(http: httpx.Client) -> None:
    for number in range(5):
        create(http, schedule_id=f"s{number}", labels={"team": "a" if number % 2 else "b"})
    first = http.get("/api/schedules", params={"page_size": 3}).json()
    rest = http.get("/api/schedules", params={"page_size": 3, "next_page_token": first["next_page_token"]}).json()
    assert (first["schedule_count"], rest["schedule_count"], rest["next_page_token"]) == (3, 2, None)
    ids = [each["schedule_id"] for page in (first, rest) for each in page["schedules"]]
    assert sorted(ids) == [f"s{number}" for number in range(5)]
    labelled = http.get("/api/schedules", params={"label": "team=a"}).json()["schedules"]
    assert sorted(each["schedule_id"] for each in labelled) == ["s1", "s3"]


BAD_FILTERS: list[dict[str, Any]] = [
    {"page_size": 0},
    {"page_size": 201},
    {"page_size": "x"},
    {"status": "gone"},
    {"next_page_token": " "},
    {"label": "x"},
    {"colour": "red"},
]


def test_a_bad_filter_is_refused(http: httpx.Client) -> None:
    for query in BAD_FILTERS:
        answer = http.get("/api/schedules", params=query)
        assert answer.status_code == 422, query
        assert list(answer.json()["errors"]) == list(query) == [answer.json()["field"]], query


def test_a_paused_schedule_shows_when_it_would_fire_next(http: httpx.Client) -> None:
    create(http)
    paused = http.post("/api/schedules/nightly/pause").json()
    [row] = http.get("/api/schedules", params={"status": "paused"}).json()["schedules"]
    assert (row["paused"], row["workflow_type"]) == (True, "report")
    described = http.get("/api/schedules/nightly").json()
    shown = [row["next_fire_at"], described["next_fire_at"], described["info"]["next_fire"], paused["next_fire_at"]]
    assert shown == ["2026-03-01T23:00:00Z"] * 4


def test_a_whole_document_puts_a_null_in_and_takes_a_part_away_at_once(http: httpx.Client) -> None:
    made = {
        "schedule_id": "whole",
        "spec": {"cron_expressions": ["0 2 * * *"], "jitter_seconds": 30, "timezone": "Europe/Istanbul"},
        "action": {"kind": "http", "url": "https://example.com/x", "method": "PUT", "input": {"x": 1}},
        "memo": {"x": 1},
        "labels": {"team": "a"},
        "note": "kept",
    }
    http.post("/api/schedules", json=made).raise_for_status()
    http.post("/api/schedules/whole/pause").raise_for_status()
    path, whole = "/api/schedules/whole", {"whole": True}
    version = http.get(path).headers["ETag"]
    document = http.get(f"{path}/revisions").json()["revisions"][0]["document"]
    assert http.put(path, json=document, params=whole).json()["outcome"] == "unchanged", "it says what is there"
    del document["labels"], document["spec"]["jitter_seconds"], document["action"]["method"]
    document["memo"], document["action"]["input"] = {"x": None}, {"x": None}
    about: dict[str, str | bool] = {"schedule_id": "whole", **whole}
    draft = http.post("/api/schedules/draft", json=document, params=about).json()
    assert draft["valid"], draft["errors"]
    done = http.put(path, json=document, params=whole, headers={"If-Match": version})
    assert sorted(done.json()["changed_fields"]) == ["action", "labels", "memo", "spec"]
    shown = http.get(path).json()
    assert (shown["memo"], shown["labels"], shown["action"]["input"]) == ({"x": None}, {}, {"x": None})
    assert (shown["spec"].get("jitter_seconds"), shown["note"], shown["status"]) == (None, "kept", "paused")
    assert http.put(path, json=document, params=whole, headers={"If-Match": version}).status_code == 412
    http.put(path, json={**document, "note": None}, params=whole).raise_for_status()
    assert not http.get(path).json().get("note")
