"""What the contract of Durable Workflow asks beyond its published client: notes, namespaces, old words and paths."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from horarium.testing import TestService, service

NIGHTLY: dict[str, Any] = {"schedule_id": "s", "cron_expressions": ["0 2 * * *"], "workflow_type": "w"}


@pytest.fixture
def nightly(http: httpx.Client) -> httpx.Client:
    assert http.post("/api/schedules", json={**NIGHTLY, "note": "first"}).status_code == 201
    return http


def described(http: httpx.Client, **params: Any) -> dict[str, Any]:
    found: dict[str, Any] = http.get("/api/schedules/s", params=params).json()
    return found


def noted(http: httpx.Client) -> tuple[str | None, str | None, str | None]:
    [row] = http.get("/api/schedules").json()["schedules"]
    found = described(http)
    return found["note"], found["state"]["note"], row["note"]


# ── the note ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("verb", ["pause", "resume"])
def test_what_is_said_about_a_pause_becomes_the_note(nightly: httpx.Client, verb: str) -> None:
    nightly.post("/api/schedules/s/pause", json={"note": "audit"})
    if verb == "resume":
        assert nightly.post("/api/schedules/s/resume", json={"note": "done"}).json()["outcome"] == "resumed"
    assert noted(nightly) == (("audit" if verb == "pause" else "done"),) * 3


def test_a_pause_that_says_nothing_leaves_the_note(nightly: httpx.Client) -> None:
    nightly.post("/api/schedules/s/pause")
    assert noted(nightly) == ("first",) * 3


def test_a_paused_schedule_can_be_told_another_note(nightly: httpx.Client) -> None:
    nightly.post("/api/schedules/s/pause", json={"note": "audit"})
    again = nightly.post("/api/schedules/s/pause", json={"note": "audit"}).json()
    other = nightly.post("/api/schedules/s/pause", json={"note": "longer audit"}).json()
    assert (again["outcome"], other["outcome"]) == ("unchanged", "paused")
    assert noted(nightly) == ("longer audit",) * 3


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
def test_a_note_alone_makes_no_revision_and_is_in_history(
    nightly: httpx.Client, horarium: TestService, method: str
) -> None:
    answer = nightly.request(method, "/api/schedules/s", json={"note": "second"}).json()
    assert (answer["outcome"], answer["changed_fields"], answer["version"]) == ("updated", ["note"], 2)
    assert (noted(nightly)[0], described(nightly)["revision"]) == ("second", 1)
    assert horarium.history("s")[-1].payload["changed_fields"] == ["note"]
    assert nightly.request(method, "/api/schedules/s", json={"note": "second"}).json()["outcome"] == "unchanged"
    assert horarium.verify() == []


@pytest.mark.parametrize(
    ("how", "body", "left"),
    [
        ("PUT", {"priority": 1}, "first"),
        ("PATCH", {"priority": 1}, "first"),
        ("PATCH", {"priority": 1, "note": None}, None),
        ("PATCH", {"note": None}, None),
        ("PUT", {"priority": 1, "note": "both"}, "both"),
        ("upsert", {**NIGHTLY, "priority": 1}, "first"),
        ("upsert", NIGHTLY, "first"),
        ("upsert", {**NIGHTLY, "note": "deployed"}, "deployed"),
        ("upsert", {**NIGHTLY, "note": None}, None),
    ],
    ids=str,
)
def test_a_write_without_a_note_leaves_it(
    nightly: httpx.Client, how: str, body: dict[str, Any], left: str | None
) -> None:
    if how == "upsert":
        answer = nightly.post("/api/schedules/upsert", json=body)
    else:
        answer = nightly.request(how, "/api/schedules/s", json=body)
    assert answer.status_code == 200, answer.text
    assert noted(nightly) == (left,) * 3


def test_a_schedule_is_found_by_its_present_note(nightly: httpx.Client) -> None:
    def count(note: str) -> int:
        found = nightly.get("/api/schedules", params={"query": f'Note = "{note}"'})
        return len(found.json()["schedules"])

    assert (count("first"), count("audit")) == (1, 0)
    nightly.post("/api/schedules/s/pause", json={"note": "audit"})
    assert (count("first"), count("audit")) == (0, 1)
    nightly.patch("/api/schedules/s", json={"priority": 2})
    assert (count("first"), count("audit")) == (0, 1)


# ── names of other times ─────────────────────────────────────────────────────────────────────────────


def test_a_body_may_repeat_the_namespace_of_the_header_but_not_contradict_it(
    nightly: httpx.Client, horarium: TestService
) -> None:
    named = horarium.http(namespace="default")
    assert nightly.post("/api/namespaces", json={"name": "other"}).status_code == 201
    for verb in ("pause", "resume", "trigger"):
        assert named.post(f"/api/schedules/s/{verb}", json={"namespace": "default"}).status_code == 200
        refused = named.post(f"/api/schedules/s/{verb}", json={"namespace": "other"})
        assert (refused.status_code, list(refused.json()["errors"])) == (422, ["namespace"])
    for method, path in (("POST", "/api/schedules"), ("POST", "/api/schedules/upsert"), ("PATCH", "/api/schedules/s")):
        refused = named.request(method, path, json={**NIGHTLY, "namespace": "other"})
        assert (refused.status_code, list(refused.json()["errors"])) == (422, ["namespace"])


def test_a_namespace_in_the_body_needs_no_header(http: httpx.Client, horarium: TestService) -> None:
    assert http.post("/api/namespaces", json={"name": "billing"}).status_code == 201
    within = horarium.http(namespace="billing")
    issued = within.post("/api/tokens", json={"name": "ci", "role": "owner"}).json()["secret"]
    for number, caller in enumerate((http, horarium.http(token=issued))):
        named = {"namespace": "billing"}
        schedule_id = f"s{number}"
        document = {**NIGHTLY, "schedule_id": schedule_id, **named}
        created = caller.post("/api/schedules", json=document, headers={"Idempotency-Key": schedule_id})
        assert (created.status_code, created.json()["namespace"]) == (201, "billing")
        assert created.headers["X-Namespace"] == "billing"
        path = f"/api/schedules/{schedule_id}"
        assert caller.patch(path, json={"note": "changed", **named}).json()["outcome"] == "updated"
        assert caller.post(f"{path}/pause", json=named).json()["outcome"] == "paused"
        assert within.get(path).json()["note"] == "changed"
    assert http.get("/api/schedules").json()["schedules"] == []


def test_a_namespace_in_the_body_must_exist_and_be_permitted(http: httpx.Client, horarium: TestService) -> None:
    assert http.post("/api/namespaces", json={"name": "billing"}).status_code == 201
    unknown = http.post("/api/schedules", json={**NIGHTLY, "namespace": "nowhere"})
    assert (unknown.status_code, unknown.json()["reason"]) == (404, "namespace_not_found")
    issued = http.post("/api/tokens", json={"name": "ci", "role": "owner"}).json()["secret"]
    refused = horarium.http(token=issued).post("/api/schedules", json={**NIGHTLY, "namespace": "billing"})
    assert (refused.status_code, list(refused.json()["errors"])) == (422, ["namespace"])


def test_the_override_of_the_overlap_policy_has_its_old_name(nightly: httpx.Client) -> None:
    nightly.post("/api/schedules/s/trigger")
    told = nightly.post("/api/schedules/s/trigger", json={"overlapPolicyOverride": "AllowAll"}).json()
    assert told["outcome"] == "triggered"


def test_a_time_without_an_offset_is_read_as_utc(nightly: httpx.Client) -> None:
    body = {"start_time": "2026-02-01T00:00:00", "end_time": "2026-02-03T00:00:00", "dry_run": True}
    told = nightly.post("/api/schedules/s/backfill", json=body).json()
    assert [row["fire_time"] for row in told["results"]] == ["2026-02-01T02:00:00Z", "2026-02-02T02:00:00Z"]


# ── what is gone ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.both_databases
def test_a_schedule_whose_runs_are_used_up_says_so(http: httpx.Client) -> None:
    http.post("/api/schedules", json={**NIGHTLY, "max_runs": 1})
    assert http.post("/api/schedules/s/trigger").json()["outcome"] == "triggered"
    again = http.post("/api/schedules/s/trigger")
    assert (again.status_code, again.json()["outcome"]) == (200, "skipped")
    assert again.json()["reason"] == "remaining_actions_exhausted"
    [row] = http.get("/api/schedules", params={"status": "deleted"}).json()["schedules"]
    assert (row["skipped_trigger_count"], row["last_skip_reason"]) == (1, "remaining_actions_exhausted")
    for answer in (
        http.get("/api/schedules/s"),
        http.delete("/api/schedules/s"),
    ):
        assert (answer.status_code, answer.json()["reason"]) == (404, "schedule_not_found")
        assert "remaining_actions_exhausted" in answer.json()["detail"]


def test_a_deleted_schedule_is_shown_to_who_asks_for_it(nightly: httpx.Client) -> None:
    nightly.delete("/api/schedules/s")
    assert nightly.get("/api/schedules").json()["schedules"] == []
    assert "remaining_actions_exhausted" not in nightly.get("/api/schedules/s").json()["detail"]
    nightly.post("/api/schedules", json={**NIGHTLY, "schedule_id": "t"})
    rows = nightly.get("/api/schedules", params={"include_deleted": True}).json()["schedules"]
    assert {row["schedule_id"]: row["status"] for row in rows} == {"s": "deleted", "t": "active"}
    for params in ({"status": "deleted"}, {"status": "deleted", "include_deleted": "true"}):
        [only] = nightly.get("/api/schedules", params=params).json()["schedules"]
        assert (only["schedule_id"], only["next_fire_at"]) == ("s", None)
    assert described(nightly, include_deleted=True)["status"] == "deleted"


def test_a_deleted_schedule_shows_when_it_was_deleted(nightly: httpx.Client, horarium: TestService) -> None:
    assert described(nightly)["deleted_at"] is None
    horarium.advance(minutes=5)
    nightly.delete("/api/schedules/s")
    events = nightly.get("/api/schedules/s/history").json()["events"]
    [listed] = nightly.get("/waterline/api/v2/schedules", params={"status": "deleted"}).json()["schedules"]
    shown = described(nightly, include_deleted=True)
    assert listed["deleted_at"] == shown["deleted_at"] == events[-1]["payload"]["deleted_at"] is not None


def test_deleted_schedules_cannot_be_filtered_by_attributes(nightly: httpx.Client) -> None:
    for filters in ({"label": "team=a"}, {"query": "tenant = 1"}):
        for field, value in (("status", "deleted"), ("include_deleted", "true")):
            refused = nightly.get("/api/schedules", params={field: value, **filters})
            assert (refused.status_code, refused.json()["field"]) == (422, field)


@pytest.mark.both_databases
def test_pages_go_on_past_a_deleted_schedule(nightly: httpx.Client) -> None:
    for name in ("t", "u"):
        nightly.post("/api/schedules", json={**NIGHTLY, "schedule_id": name})
    nightly.delete("/api/schedules/t")
    seen: list[str] = []
    token: str | None = None
    while True:
        params: dict[str, Any] = {"include_deleted": True, "page_size": 1, "next_page_token": token}
        params = {name: value for name, value in params.items() if value is not None}
        page = nightly.get("/api/schedules", params=params).json()
        seen += [row["schedule_id"] for row in page["schedules"]]
        token = page["next_page_token"]
        if token is None:
            break
    assert sorted(seen) == ["s", "t", "u"]


# ── other doors ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("path", ["", "/s", "/s/history"])
def test_the_monitoring_pages_read_the_same(nightly: httpx.Client, path: str) -> None:
    ours, theirs = (nightly.get(f"{base}/schedules{path}") for base in ("/api", "/waterline/api/v2"))
    assert (theirs.status_code, theirs.json()) == (200, ours.json())


def test_an_operator_may_choose_where_requests_go_that_name_no_namespace(service_url: str) -> None:
    with service(database=service_url, settings={"default_namespace": "house"}) as horarium:
        http = horarium.http(namespace=None)
        assert http.post("/api/schedules", json=NIGHTLY).json()["namespace"] == "house"
        assert horarium.http(namespace="default").get("/api/schedules").json()["schedules"] == []


def test_deleted_schedules_are_not_searched_by_what_they_have_no_more(nightly: httpx.Client) -> None:
    for params in ({"label": "a=b"}, {"query": 'Note = "first"'}):
        answer = nightly.get("/api/schedules", params={"include_deleted": "true", **params})
        assert (answer.status_code, answer.json()["field"]) == (422, "include_deleted")


def test_a_note_that_no_database_can_keep_is_refused(nightly: httpx.Client) -> None:
    answer = nightly.post("/api/schedules/s/pause", json={"note": "a\x00b"})
    assert (answer.status_code, list(answer.json()["errors"])) == (422, ["note"])
    assert nightly.get("/api/schedules", params={"text": "\x00"}).status_code == 422


def test_an_admin_of_all_speaks_for_the_chosen_namespace(service_url: str) -> None:
    with service(database=service_url, settings={"default_namespace": "house"}) as horarium:
        tokens = {
            name: horarium.http(namespace=name).post("/api/tokens", json={"name": name, "role": "admin"}).json()
            for name in ("default", "house")
        }
        for secret in (each["secret"] for each in tokens.values()):
            assert horarium.http(token=secret).get("/api/schedules").json()["namespace"] == "house"
