"""What was read can be sent back: a description that nobody edited changes nothing, by PUT as by PATCH."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from horarium.core.document.places import COMPUTED, SHIPPED_NAMES
from horarium.core.document.states import Status
from horarium.features.schedules import rows as schedule_rows
from horarium.features.schedules import write_rows
from horarium.features.schedules.model import ScheduleDetails, ScheduleWithRecent
from horarium.platform.http import examples
from horarium.testing import TestService

# One document after the other is written and read: the same lines, over and over.
pytestmark = pytest.mark.repeats

HOURLY: dict[str, Any] = {"schedule_id": "s", "cron_expressions": ["0 * * * *"], "workflow_type": "w"}
DOCUMENTS: dict[str, dict[str, Any]] = {
    "the example of the API": dict(examples.SCHEDULE),
    "the example of the registrar": dict(examples.UPSERT),
    "plain": HOURLY,
    "a workflow with a version": {**HOURLY, "workflow_id": "w", "version": 3, "workflow_type": None},
    "a call": {
        **HOURLY,
        "workflow_type": None,
        "url": "https://example.org/hook",
        "method": "PUT",
        "headers": {"a": "b"},
    },
    "a task": {**HOURLY, "workflow_type": None, "kind": "python", "task": "t", "input": {"a": 1}},
    "a prompt": {**HOURLY, "workflow_type": None, "prompt": "hello", "assignee_type": "agent", "assignee_id": "a"},
    "intervals and one-offs": {
        "schedule_id": "s",
        "workflow_type": "w",
        "intervals": [{"every": "PT90S", "offset": "PT5S"}],
        "at": ["2026-05-01T00:00:00Z"],
        "start_at": "2026-03-01T00:00:00Z",
        "jitter_ms": 1500,
        "dst_gap": "skip",
    },
    "everything else": {
        **HOURLY,
        "name": "a name",
        "note": "a note",
        "labels": {"team": "night", "tier": 2},
        "memo": {"a": {"b": [1, None]}},
        "search_attributes": {"tenant": 42, "tags": ["x", "y"]},
        "calendars": ["weekends-only"],
        "pre_dispatch_condition": {"/last_24h_stats/failed": {"lt": 3}},
        "inputs_rotation": [{"n": 1}, {"n": 2}],
        "budget": {"spending_limit_credits": 2.5, "max_daily_runs": 7},
        "limits": {"runtime_seconds": 60, "cost": "0.100001", "tokens": 9, "allow_tools": []},
        "overlap_policy": "buffer_all",
        "max_buffered": 3,
        "catchup_policy": "spread",
        "max_catchup": 5,
        "retry_policy": {"max_retries": 2, "backoff_ms": 10},
        "failure_policy": {"mode": "fallback", "fallback_assignee_id": "b"},
        "approval_policy": {"requires_approval": True},
        "pause_on_failure": 4,
        "failing_after": 5,
        "max_runs": 9,
        "priority": -3,
        "concurrency_key": "k",
        "concurrency_limit": 2,
        "task_queue": "slow",
        "timeout_seconds": 5,
        "delivery": "at_most_once",
    },
}


def unedited(http: httpx.Client, schedule_id: str) -> None:
    described = http.get(f"/api/schedules/{schedule_id}")
    [row] = http.get("/api/schedules").json()["schedules"]
    for method in ("PUT", "PATCH"):
        for document in (described.json(), row):
            answer = http.request(method, f"/api/schedules/{schedule_id}", json=document)
            assert (answer.status_code, answer.json()["outcome"]) == (200, "unchanged"), answer.text
            assert answer.headers["etag"] == described.headers["etag"]
            assert "warnings" not in answer.json()
    assert http.get(f"/api/schedules/{schedule_id}").json() == described.json()


@pytest.mark.parametrize("document", DOCUMENTS.values(), ids=DOCUMENTS)
def test_a_description_that_nobody_edited_changes_nothing(
    http: httpx.Client, horarium: TestService, document: dict[str, Any]
) -> None:
    if "assignee_id" in document:
        http.put(f"/api/agents/{document['assignee_id']}", json={}).raise_for_status()
    made = http.post("/api/schedules", json={name: value for name, value in document.items() if value is not None})
    assert made.status_code == 201, made.text
    schedule_id = made.json()["schedule_id"]
    unedited(http, schedule_id)
    horarium.advance(hours=2)
    unedited(http, schedule_id)
    http.post(f"/api/schedules/{schedule_id}/pause", json={"note": "maintenance"})
    unedited(http, schedule_id)


def test_a_finished_one_neither(http: httpx.Client, horarium: TestService) -> None:
    http.post("/api/schedules", json={"schedule_id": "s", "workflow_type": "w", "at": ["2026-03-01T01:00:00Z"]})
    horarium.advance(hours=2)
    assert http.get("/api/schedules/s").json()["status"] == "finished"
    unedited(http, "s")


def test_an_edit_of_what_was_read_is_one_edit(http: httpx.Client) -> None:
    http.post("/api/schedules", json=HOURLY)
    answer = http.put("/api/schedules/s", json={**http.get("/api/schedules/s").json(), "priority": 5}).json()
    assert (answer["outcome"], answer["changed_fields"]) == ("updated", ["priority"])


def test_a_word_that_nobody_knows_is_refused_also_there(http: httpx.Client) -> None:
    http.post("/api/schedules", json=HOURLY)
    answer = http.put("/api/schedules/s", json={**http.get("/api/schedules/s").json(), "colour": "red"})
    assert (answer.status_code, list(answer.json()["errors"])) == (422, ["colour"])


def test_every_name_of_an_answer_is_a_field_or_known_to_be_computed() -> None:
    for shown in (ScheduleDetails, ScheduleWithRecent):
        assert set(shown.__struct_fields__) <= COMPUTED | SHIPPED_NAMES.top.keys() | SHIPPED_NAMES.objects.keys()


QUEUED: dict[str, Any] = {**HOURLY, "task_queue": "q", "jitter_seconds": 5}
EDITS: dict[str, tuple[dict[str, Any], dict[str, Any], list[str]]] = {
    "the name of the work": (HOURLY, {"action": {"workflow_type": "w2"}}, ["action"]),
    "the name of the work, at the top": (HOURLY, {"workflow_type": "w2"}, ["action"]),
    "a stored workflow": (
        {"schedule_id": "s", "cron_expressions": ["0 * * * *"], "workflow_id": "i1"},
        {"action": {"workflow_id": "i2"}},
        ["action"],
    ),
    "another kind": (
        HOURLY,
        {"action": {"kind": "http", "url": "https://example.org", "workflow_type": None}},
        ["action"],
    ),
    "jitter in the spec": (QUEUED, {"spec": {"jitter_seconds": 7}}, ["spec"]),
    "jitter at the top": (QUEUED, {"jitter_seconds": 7}, ["spec"]),
    "jitter where there was none": (HOURLY, {"spec": {"jitter_seconds": 7}}, ["spec"]),
    "the overlap policy": (HOURLY, {"overlap_policy": "buffer_one"}, ["overlap_policy"]),
    "the mode of the queue policy": (HOURLY, {"queue_policy": {"mode": "buffer_one"}}, ["overlap_policy"]),
    "the priority": ({**HOURLY, "priority": 3}, {"priority": 5}, ["priority"]),
    "the queue": (QUEUED, {"action": {"queue": "r"}}, ["action"]),
    "the queue by its other name": (QUEUED, {"action": {"task_queue": "r"}}, ["action"]),
}


# A null says nothing in a PUT, so another kind, which clears a field, is asked for by PATCH alone.
WAYS = [(method, name) for name in EDITS for method in ("PUT", "PATCH") if (method, name) != ("PUT", "another kind")]


@pytest.mark.parametrize(("method", "name"), WAYS, ids=" ".join)
def test_what_an_answer_says_twice_is_edited_at_either_place(http: httpx.Client, method: str, name: str) -> None:
    document, edit, changed = EDITS[name]
    http.post("/api/schedules", json=document)
    read = http.get("/api/schedules/s").json()
    edited = {
        **read,
        **{part: {**read[part], **each} if isinstance(each, dict) else each for part, each in edit.items()},
    }
    answer = http.request(method, "/api/schedules/s", json=edited)
    assert (answer.status_code, answer.json().get("changed_fields")) == (200, changed), answer.text
    after = http.get("/api/schedules/s").json()
    assert {**after["action"], **edit.get("action", {})}.items() >= edit.get("action", {}).items()
    if "workflow_id" in edit.get("action", {}):
        assert after["action"]["workflow_id"] == "i2"
        assert "workflow_type" not in after["action"]
    unedited(http, "s")


def test_both_places_edited_to_two_things_are_refused(http: httpx.Client) -> None:
    http.post("/api/schedules", json=QUEUED)
    read = http.get("/api/schedules/s").json()
    both = {**read, "jitter_seconds": 6, "spec": {**read["spec"], "jitter_seconds": 7}}
    assert http.put("/api/schedules/s", json=both).status_code == 422


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
def test_what_is_broken_is_not_mended_by_sending_it_back(
    http: httpx.Client, horarium: TestService, method: str
) -> None:
    http.post("/api/schedules", json=HOURLY)
    row = horarium.resources.database.read(lambda c: schedule_rows.find(c, "default", "s"))
    assert row is not None
    horarium.resources.database.write(lambda c: write_rows.move_position(c, row.schedule_uid, status=Status.BROKEN))
    unedited(http, "s")
    assert http.get("/api/schedules/s").json()["status"] == "broken"
    http.patch("/api/schedules/s", json={"note": "seen"})
    assert http.get("/api/schedules/s").json()["status"] == "broken"


def test_an_equal_one_off_that_has_fired_is_put_again(http: httpx.Client, horarium: TestService) -> None:
    once = {"schedule_id": "s", "workflow_type": "w", "at": ["2026-03-01T01:00:00Z"]}
    assert http.post("/api/schedules/upsert", json=once).status_code == 201
    horarium.advance(hours=2)
    again = http.post("/api/schedules/upsert", json=once)
    assert (again.status_code, again.json()["outcome"]) == (200, "unchanged")
    assert http.post("/api/schedules/upsert", json={**once, "schedule_id": "t"}).status_code == 422
