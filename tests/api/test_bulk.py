"""Many schedules, or many runs, at once: one outcome each, in one's own namespace, and never by mistake."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from horarium.features.tenants import service as tenant_service
from horarium.platform.caller import Caller
from horarium.platform.wire import Role
from horarium.testing import TestService

pytestmark = pytest.mark.both_databases

SPEC = {"cron_expressions": ["0 2 * * *"]}


def add(http: httpx.Client, *names: str, **fields: Any) -> None:
    for name in names:
        document = {"schedule_id": name, "spec": SPEC, "action": {"workflow_type": "w"}, **fields}
        assert http.post("/api/schedules", json=document).status_code == 201


def bulk(http: httpx.Client, action: str, /, key: str | None = None, **said: Any) -> dict[str, Any]:
    headers = {} if key is None else {"Idempotency-Key": key}
    answer = http.post("/api/schedules/bulk", json={"action": action, **said}, headers=headers)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def words(answer: dict[str, Any]) -> dict[str, str]:
    return {each.get("schedule_id"): each["outcome"] for each in answer["outcomes"]}


def status_of(http: httpx.Client, name: str) -> str:
    found: str = http.get(f"/api/schedules/{name}").json()["status"]
    return found


def test_those_that_fit_are_changed_and_no_others(http: httpx.Client) -> None:
    add(http, "a", "b", labels={"team": "data"})
    add(http, "c", labels={"team": "web"})
    chosen: dict[str, Any] = {"filter": {"labels": {"team": "data"}}}
    assert words(bulk(http, "pause", **chosen, dry_run=True)) == {"b": "planned", "a": "planned"}
    assert status_of(http, "a") == "active", "a dry run changes nothing"
    said: dict[str, Any] = {"until": "2026-03-02T00:00:00Z", "reason": "the warehouse moves"}
    assert words(bulk(http, "pause", **chosen, **said)) == {"b": "paused", "a": "paused"}
    assert words(bulk(http, "pause", **chosen, **said)) == {"b": "unchanged", "a": "unchanged"}
    shown = http.get("/api/schedules/a").json()
    assert (shown["paused_until"], shown["pause_reason"]) == ("2026-03-02T00:00:00Z", "the warehouse moves")
    assert status_of(http, "c") == "active"
    assert words(bulk(http, "resume", filter={"status": "paused"})) == {"b": "resumed", "a": "resumed"}
    assert words(bulk(http, "delete", filter={"name_contains": "B"})) == {"b": "deleted"}
    assert words(bulk(http, "trigger", all=True)) == {"c": "triggered", "a": "triggered"}


def labels_of(http: httpx.Client, name: str) -> dict[str, str]:
    found: dict[str, str] = http.get(f"/api/schedules/{name}").json()["labels"]
    return found


def test_labels_are_put_on_and_taken_off_and_the_others_stay(http: httpx.Client) -> None:
    add(http, "a", "b", labels={"team": "data", "old": "1"})
    add(http, "c")
    chosen: dict[str, Any] = {"filter": {"labels": {"team": "data"}}, "labels": {"tier": "gold", "old": None}}
    assert words(bulk(http, "label", **chosen, dry_run=True)) == {"b": "planned", "a": "planned"}
    assert labels_of(http, "a") == {"team": "data", "old": "1"}
    assert words(bulk(http, "label", **chosen, reason="a new scheme")) == {"b": "updated", "a": "updated"}
    assert labels_of(http, "a") == labels_of(http, "b") == {"team": "data", "tier": "gold"}
    assert labels_of(http, "c") == {}
    assert words(bulk(http, "label", **chosen)) == {"b": "unchanged", "a": "unchanged"}
    # As any edit: a revision, an event of its history, and lists that find it.
    shown, event = http.get("/api/schedules/a").json(), http.get("/api/schedules/a/history").json()["events"][-1]
    assert (shown["revision"], event["event_type"]) == (2, "ScheduleUpdated")
    assert event["payload"]["changed_fields"] == ["labels"]
    assert event["payload"]["command_context"]["reason"] == "a new scheme"
    assert {each["schedule_id"] for each in http.get("/api/schedules?label=tier%3Dgold").json()["schedules"]} == {
        "a",
        "b",
    }


def test_labels_go_with_their_action_and_by_the_rule_of_definitions(http: httpx.Client, horarium: TestService) -> None:
    add(http, "a")
    for said, field in (
        ({"action": "label", "all": True}, "labels"),
        ({"action": "label", "all": True, "labels": {}}, "labels"),
        ({"action": "pause", "all": True, "labels": {"a": "b"}}, "labels"),
        ({"action": "label", "all": True, "labels": {"a": "x" * 100_000}}, "labels"),
        ({"action": "label", "all": True, "labels": {f"l{n}": "1" for n in range(21)}}, "labels"),
        ({"action": "label", "all": True, "labels": {"a": 1}}, "labels"),
        ({"action": "label", "all": True, "labels": {"": "b"}, "dry_run": True}, "labels"),
        ({"action": "label", "all": True, "labels": {"n" * 129: "b"}}, "labels"),
    ):
        answer = http.post("/api/schedules/bulk", json=said)
        assert (answer.status_code, list(answer.json()["errors"])) == (422, [field]), said
    operator = tenant_service.issue_token(horarium.resources, horarium.caller, name="o", role="operator").secret
    said = {"action": "label", "all": True, "labels": {"a": "b"}}
    assert horarium.http(token=operator).post("/api/schedules/bulk", json=said).status_code == 403


def test_one_that_fails_does_not_undo_the_others(http: httpx.Client, horarium: TestService) -> None:
    add(http, "a", "b")
    done = bulk(http, "trigger", filter={"ids": ["a", "nobody", "b", "a"]})
    assert words(done) == {"b": "triggered", "a": "triggered", "nobody": "failed"}
    assert done["outcomes"][-1]["reason"] == "schedule_not_found"
    again = bulk(http, "trigger", filter={"ids": ["a"]})["outcomes"][0]
    assert (again["outcome"], again["reason"]) == ("skipped", "overlap_policy_skip")
    assert len(horarium.runs()) == 2


def test_a_trigger_with_the_same_key_is_the_same_trigger(http: httpx.Client, horarium: TestService) -> None:
    add(http, "a", "b", overlap_policy="allow_all")
    first = bulk(http, "trigger", "k", all=True)
    assert bulk(http, "trigger", "k", all=True) == first
    bulk(http, "trigger", "other", all=True)
    assert len(horarium.runs()) == 4


def test_a_fleet_comes_in_pages_also_while_it_is_deleted(http: httpx.Client) -> None:
    add(http, *(f"s{number}" for number in range(5)))
    gone: list[str] = []
    token = None
    while not gone or token is not None:
        page = bulk(http, "delete", all=True, limit=2, next_page_token=token)
        assert set(words(page).values()) == {"deleted"}
        gone += words(page)
        token = page["next_page_token"]
    assert sorted(gone) == ["s0", "s1", "s2", "s3", "s4"]


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"action": "pause"}, "filter"),
    ({"action": "pause", "filter": {}}, "filter"),
    ({"action": "pause", "filter": {"labels": {}}}, "filter"),
    ({"action": "pause", "filter": {"ids": []}}, "filter.ids"),
    ({"action": "pause", "filter": {"ids": ["x"] * 101}}, "filter.ids"),
    ({"action": "pause", "filter": {"ids": "nightly"}}, "filter.ids"),
    ({"action": "pause", "filter": {"labels": {"a": 1}}}, "filter.labels"),
    ({"action": "pause", "filter": {"name_contains": " "}}, "filter.name_contains"),
    ({"action": "pause", "filter": {"status": "deleted"}}, "filter.status"),
    ({"action": "pause", "filter": {"colour": "red"}}, "filter.colour"),
    ({"action": "pause", "filter": []}, "filter"),
    ({"action": "pause", "filter": {"ids": ["x"]}, "all": True}, "all"),
    ({"action": "explode", "all": True}, "action"),
    ({"action": "pause", "all": True, "limit": 0}, "limit"),
    ({"action": "pause", "all": True, "until": "2020-01-01T00:00:00Z"}, "until"),
    ({"action": "delete", "all": True, "until": "2027-01-01T00:00:00Z"}, "until"),
    ({"action": "pause", "all": True, "next_page_token": "x"}, "next_page_token"),
]


def test_what_is_not_meant_is_refused(http: httpx.Client) -> None:
    add(http, "a")
    for said, field in REFUSED:
        answer = http.post("/api/schedules/bulk", json=said)
        assert (answer.is_client_error, list(answer.json()["errors"])) == (True, [field]), said
    assert status_of(http, "a") == "active"


def test_everybody_stays_at_home_and_within_the_role(http: httpx.Client, horarium: TestService) -> None:
    add(http, "a")
    run_id = http.post("/api/schedules/a/trigger").json()["run_id"]
    tenant_service.create_namespace(horarium.resources, horarium.caller, "other")
    secrets = {
        namespace: tenant_service.issue_token(
            horarium.resources, Caller("root", Role.ADMIN, namespace), name="ops", role="operator"
        ).secret
        for namespace in ("default", "other")
    }
    stranger = horarium.http(token=secrets["other"])
    assert words(bulk(stranger, "pause", filter={"ids": ["a"]})) == {"a": "failed"}
    assert bulk(stranger, "pause", all=True)["outcomes"] == []
    stop = {"action": "cancel", "filter": {"ids": [run_id]}}
    (seen,) = stranger.post("/api/runs/bulk", json=stop).json()["outcomes"]
    assert (seen["outcome"], seen["reason"]) == ("failed", "run_not_found")
    operator = horarium.http(token=secrets["default"])
    refused = operator.post("/api/schedules/bulk", json={"action": "delete", "all": True, "dry_run": True})
    assert (refused.status_code, status_of(http, "a")) == (403, "active")
    assert words(bulk(operator, "pause", all=True)) == {"a": "paused"}


def test_open_runs_are_cancelled_by_the_labels_of_their_schedules(http: httpx.Client, horarium: TestService) -> None:
    add(http, "a", labels={"team": "data"}, overlap_policy="allow_all")
    add(http, "b")
    first, second, other = (http.post(f"/api/schedules/{name}/trigger").json()["run_id"] for name in "aab")
    assert http.post(f"/api/runs/{first}/cancel").json()["outcome"] == "cancelled"

    def stop(**said: Any) -> list[tuple[str, str]]:
        answer = http.post("/api/runs/bulk", json={"action": "cancel", **said}).json()
        return [(each["run_id"], each["outcome"]) for each in answer["outcomes"]]

    labelled = {"filter": {"labels": {"team": "data"}}}
    assert stop(**labelled, dry_run=True) == [(second, "planned")], "what has ended is not chosen"
    assert stop(**labelled) == [(second, "cancelled")]
    assert stop(**labelled) == []
    assert stop(filter={"ids": [second, "nonsense"]}) == [(second, "unchanged"), ("nonsense", "failed")]
    horarium.settle()
    assert stop(filter={"schedule_ids": ["b"], "states": ["running"]}) == [(other, "cancel_requested")]
    assert http.post("/api/runs/bulk", json={"action": "cancel"}).status_code == 422
    assert http.post("/api/runs/bulk", json={"action": "cancel", "filter": {"states": ["failed"]}}).status_code == 422


def test_runs_by_id_that_take_several_pages_are_told_of_once(http: httpx.Client) -> None:
    add(http, "a", overlap_policy="allow_all")
    ids = [http.post("/api/schedules/a/trigger").json()["run_id"] for _ in range(4)]
    http.post(f"/api/runs/{ids[2]}/cancel")
    body: dict[str, Any] = {"action": "cancel", "filter": {"ids": [*ids, "nonsense"]}, "limit": 2}
    first = http.post("/api/runs/bulk", json=body).json()
    second = http.post("/api/runs/bulk", json={**body, "next_page_token": first["next_page_token"]}).json()
    told = [[(each["run_id"], each["outcome"]) for each in page["outcomes"]] for page in (first, second)]
    assert told == [
        [(ids[0], "cancelled"), (ids[1], "cancelled"), ("nonsense", "failed")],
        [(ids[3], "cancelled"), (ids[2], "unchanged")],
    ]
    assert second["next_page_token"] is None
