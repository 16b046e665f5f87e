"""What the command line of Durable Workflow needs, asked for by hand: its preflight, its bodies, its statuses."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from contract.conftest import TOKEN
from contract.documents import nightly

CREATE = {**nightly(), "jitter_seconds": None, "max_runs": None, "note": None, "paused": False}
MARCH = {"start_time": "2026-03-01T00:00:00Z", "end_time": "2026-03-02T00:00:00Z"}


def made(http: httpx.Client, **changes: Any) -> None:
    answer = http.post("/api/schedules", json={**CREATE, **changes})
    assert answer.status_code == 201, answer.text


# ── the preflight ────────────────────────────────────────────────────────────────────────────────────


def test_the_preflight_finds_the_contract(http: httpx.Client) -> None:
    plane = http.get("/api/cluster/info").json()["control_plane"]
    assert plane["version"] == "2"
    contract = plane["request_contract"]
    assert (contract["schema"], contract["version"]) == ("durable-workflow.v2.control-plane-request.contract", 1)
    assert isinstance(contract["operations"], dict)


def test_the_preflight_promises_no_external_payloads_and_limits_no_client(http: httpx.Client) -> None:
    told = http.get("/api/cluster/info").json()
    assert "client_compatibility" not in told
    assert "worker_protocol" not in told
    assert not isinstance(told.get("namespace"), dict)


def test_the_preflight_needs_neither_the_version_header_nor_a_namespace(http: httpx.Client) -> None:
    headers = {"Authorization": f"Bearer {TOKEN}", "X-Namespace": "nowhere"}
    assert httpx.get(f"{http.base_url}/api/cluster/info", headers=headers).status_code == 200
    assert httpx.get(f"{http.base_url}/api/cluster/info").status_code == 401


@pytest.mark.parametrize("version", ["1", "3", "", "2.1"])
def test_another_control_plane_is_not_spoken(http: httpx.Client, version: str) -> None:
    answer = http.get("/api/schedules", headers={"X-Durable-Workflow-Control-Plane-Version": version})
    assert (answer.status_code, answer.json()["reason"]) == (400, "unsupported_control_plane_version")
    asked = {"X-Durable-Workflow-Control-Plane-Version": version}
    assert http.get("/api/cluster/info", headers=asked).json()["control_plane"]["version"] == "2"


def test_who_names_no_control_plane_speaks_to_us(http: httpx.Client) -> None:
    assert httpx.get(f"{http.base_url}/api/schedules", headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 200


# ── bodies ───────────────────────────────────────────────────────────────────────────────────────────


def test_explicit_nulls_say_nothing(http: httpx.Client) -> None:
    body = {**CREATE, "schedule_id": None}
    schedule_id = http.post("/api/schedules", json=body).json()["schedule_id"]
    told = http.get(f"/api/schedules/{schedule_id}").json()
    assert (told["note"], told["max_runs"], told["jitter_seconds"], told["paused"]) == (None, None, 0, False)


@pytest.mark.parametrize("plain", [["x", 1], {"region": "eu"}, [], [{"a": [None]}]], ids=str)
def test_input_in_plain_json_is_kept_as_it_is(http: httpx.Client, plain: Any) -> None:
    made(http, action={"workflow_type": "w", "input": plain})
    assert http.get("/api/schedules/nightly").json()["action"]["input"] == plain


def test_a_partial_action_is_merged(http: httpx.Client) -> None:
    made(http, action={"workflow_type": "w", "task_queue": "q", "input": ["x"]})
    assert http.put("/api/schedules/nightly", json={"action": {"task_queue": "other"}}).status_code == 200
    action = http.get("/api/schedules/nightly").json()["action"]
    assert (action["workflow_type"], action["task_queue"], action["input"]) == ("w", "other", ["x"])


def test_a_spec_without_zone_drops_the_zone(http: httpx.Client) -> None:
    made(http)
    http.put("/api/schedules/nightly", json={"spec": {"intervals": [{"every": "PT1H"}]}})
    assert http.get("/api/schedules/nightly").json()["spec"] == {"intervals": [{"every": "PT1H"}]}


@pytest.mark.parametrize("verb", ["pause", "resume", "trigger"])
def test_an_empty_array_is_an_empty_body(http: httpx.Client, verb: str) -> None:
    made(http)
    assert http.post(f"/api/schedules/nightly/{verb}", json=[]).status_code == 200


@pytest.mark.parametrize(
    ("method", "path", "body", "outcome"),
    [
        ("POST", "/pause", {"note": "audit"}, "paused"),
        ("POST", "/resume", [], "unchanged"),
        ("PUT", "", {"note": "x"}, "updated"),
        ("POST", "/trigger", [], "triggered"),
        ("POST", "/backfill", MARCH, "backfill_started"),
        ("DELETE", "", None, "deleted"),
    ],
    ids=lambda value: str(value)[:12],
)  # fmt: skip
def test_every_answer_names_schedule_namespace_and_outcome(
    http: httpx.Client, namespace: str, method: str, path: str, body: Any, outcome: str
) -> None:
    made(http)
    answer = http.request(method, f"/api/schedules/nightly{path}", json=body)
    told = answer.json()
    assert answer.status_code == 200
    assert (told["schedule_id"], told["namespace"], told["outcome"]) == ("nightly", namespace, outcome)


def test_lists_and_events_name_their_namespace(http: httpx.Client, namespace: str) -> None:
    made(http)
    told = http.get("/api/schedules").json()
    assert (told["namespace"], told["schedule_count"], told["next_page_token"]) == (namespace, 1, None)
    [row] = told["schedules"]
    shown = {"schedule_id", "workflow_type", "status", "next_fire", "last_fire", "paused", "namespace", "fires_count"}
    assert shown <= row.keys()
    assert (row["workflow_type"], row["next_fire"], row["last_fire"]) == ("report", row["next_fire_at"], None)
    [event] = http.get("/api/schedules/nightly/history").json()["events"]
    assert (event["namespace"], event["sequence"]) == (namespace, 1)


def test_describing_has_the_nested_state_and_info(http: httpx.Client) -> None:
    made(http, note="every night", overlap_policy="buffer_all", max_runs=9)
    for _ in range(3):
        http.post("/api/schedules/nightly/trigger", json={})
    http.post("/api/schedules/nightly/pause", json={"note": "audit"})
    http.post("/api/schedules/nightly/trigger", json={})
    told = http.get("/api/schedules/nightly").json()
    assert told["state"] == {"status": "paused", "paused": True, "note": "audit"}
    info = told["info"]
    assert {"next_fire", "last_fire", "fires_count", "failures_count"} <= info.keys()
    assert (info["skipped_trigger_count"], info["last_skip_reason"]) == (1, "status_not_triggerable")
    assert info["last_skipped_at"] is not None
    assert [sorted(each) for each in info["buffered_actions"]] == [["buffered_at", "occurrence_time"]] * 2
    assert [each["outcome"] for each in info["recent_actions"]] == ["held", "held", "queued"]
    assert told["latest_workflow_instance_id"] in [each["workflow_id"] for each in info["recent_actions"]]
    assert told["remaining_actions"] == 6


# ── statuses ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("method", "path", "status", "reason"),
    [
        ("GET", "/api/schedules/ghost", 404, "schedule_not_found"),
        ("GET", "/api/nothing", 404, "not_found"),
        ("GET", "/api/schedules/ghost/nothing", 404, "not_found"),
        ("PATCH", "/api/schedules", 405, "method_not_allowed"),
        ("GET", "/api/schedules?colour=red", 422, "unsupported_schedule_list_filter"),
        ("GET", "/api/schedules?page_size=x", 422, "validation_failed"),
        ("GET", "/api/schedules/nightly/history?after_sequence=-1", 422, "invalid_after_sequence"),
        ("GET", "/api/schedules/nightly/history?after_sequence=x", 422, "invalid_after_sequence"),
    ],
)
def test_a_refusal_has_a_status_a_reason_and_a_message(
    http: httpx.Client, method: str, path: str, status: int, reason: str
) -> None:
    made(http)
    answer = http.request(method, path)
    assert (answer.status_code, answer.json()["reason"]) == (status, reason)
    assert answer.json()["message"]
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize(("limit", "count"), [("0", 4), ("-5", 4), ("x", 4), ("", 4), ("2", 2), ("9" * 30, 4)])
def test_an_unreadable_limit_of_a_history_is_the_usual_one(http: httpx.Client, limit: str, count: int) -> None:
    made(http, paused=True)
    for verb in ("resume", "pause"):
        http.post(f"/api/schedules/nightly/{verb}")
    assert len(http.get("/api/schedules/nightly/history", params={"limit": limit}).json()["events"]) == count


def test_the_parameter_namespace_is_ignored(http: httpx.Client) -> None:
    made(http)
    assert http.get("/api/schedules?namespace=other").json()["schedule_count"] == 1


def test_an_id_that_is_taken_is_named(http: httpx.Client) -> None:
    made(http)
    answer = http.post("/api/schedules", json=CREATE)
    assert (answer.status_code, answer.json()["schedule_id"]) == (409, "nightly")


@pytest.mark.parametrize(
    ("content", "kind", "status", "reason"),
    [
        (b"{", "application/json", 400, "malformed_json"),
        (b"\xff", "application/json", 400, "malformed_json"),
        (b'{"a": NaN}', "application/json", 400, "malformed_json"),
        (b"a=b", "application/x-www-form-urlencoded", 415, "unsupported_media_type"),
        (b"7", "application/json", 422, "validation_failed"),
        (b"[1]", "application/json", 422, "validation_failed"),
        (b" " * 2_200_000, "application/json", 413, "payload_too_large"),
        (b"[" * 100_000, "application/json", 400, "malformed_json"),
    ],
    ids=["cut", "no text", "NaN", "form", "number", "array", "large", "deep"],
)
def test_a_body_that_cannot_be_read_is_refused(
    http: httpx.Client, content: bytes, kind: str, status: int, reason: str
) -> None:
    answer = http.post("/api/schedules", content=content, headers={"Content-Type": kind})
    assert (answer.status_code, answer.json()["reason"]) == (status, reason)


@pytest.mark.parametrize("path", ["/api/schedules/", "/api/schedules/nightly/", "/api/schedules/nightly/pause/"])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_nothing_is_ever_redirected(http: httpx.Client, path: str, method: str) -> None:
    assert http.request(method, path).status_code in (404, 405)


@pytest.mark.parametrize("path", ["/api/schedules", "/api/schedules/ghost", "/api/cluster/info", "/api/nothing"])
def test_every_answer_says_which_control_plane_it_speaks(http: httpx.Client, path: str) -> None:
    assert http.get(path).headers["X-Durable-Workflow-Control-Plane-Version"] == "2"
    assert httpx.get(f"{http.base_url}{path}").headers["X-Durable-Workflow-Control-Plane-Version"] == "2"


STRANGE: list[Any] = [
    {"note": "😀 \u202e 𝔘"},
    {"memo": {"big": 2**63 - 1, "small": -(2**63), "tiny": 5e-324}},
    {"memo": {"a" * 10_000: "b" * 100_000}},
    {"search_attributes": {"'; --": "\\", "ü": ["\u2028"]}},
    {"labels": {"%": "_"}},
    {"memo": {"deep": [[[[[[[[[[]]]]]]]]]]}},
    {"action": {"workflow_type": "x" * 200, "input": {"codec": "other", "blob": 7}}},
]


@pytest.mark.parametrize("strange", STRANGE, ids=lambda value: next(iter(value)))
def test_whatever_is_written_can_be_read_back(http: httpx.Client, strange: dict[str, Any]) -> None:
    """An answer that fails after the commit would make the client write again."""
    made(http, **strange)
    for path in ("/api/schedules/nightly", "/api/schedules", "/api/schedules/nightly/history"):
        assert http.get(path).status_code == 200
    [(name, value)] = strange.items()
    told = http.get("/api/schedules/nightly").json()[name]
    assert told == value if name != "action" else told.items() >= value.items()
    assert http.post("/api/schedules/nightly/trigger", json={}).status_code == 200
