"""What a bundle does to workflows and to those who work, over HTTP. One database is enough, as for its other rules."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import httpx
import pytest
from api.bundling import HOURLY, apply, changes, ids, refused

from horarium.testing import TestService

STEP: dict[str, Any] = {"id": "fetch", "action": {"kind": "http", "url": "https://example.com/rows"}}
BRIEF: dict[str, Any] = {"workflow_id": "brief", "name": "Daily brief", "nodes": [STEP]}
NIGHTLY = {"key": "nightly", "schedule": {"cron_expressions": ["0 2 * * *"], "timezone": "Europe/Istanbul"}}


@pytest.fixture
def service_url(sqlite_template: Path, tmp_path: Path) -> str:
    return f"sqlite:///{shutil.copy(sqlite_template, tmp_path / 'horarium.db')}"


def calling(name: str, *others: str) -> dict[str, Any]:
    nodes = [{"id": each, "action": {"kind": "workflow", "workflow_id": each}} for each in others]
    return {"workflow_id": name, "nodes": nodes or [STEP]}


def test_a_workflow_is_made_changed_and_pruned_with_its_schedules(http: httpx.Client) -> None:
    bundle: dict[str, Any] = {"bundle": "news", "workflows": [{**BRIEF, "triggers": [NIGHTLY]}]}
    [planned] = apply(http, **bundle, dry_run=True)["changes"]
    assert (planned["name"], planned["change"], planned["fires_added"]) == ("brief", "create", 7)
    assert http.get("/api/workflows/brief").status_code == 404
    assert changes(http, **bundle) == {"brief": "create"}
    assert ids(http) == ["workflow:brief:nightly"]
    assert changes(http, **bundle) == {"brief": "unchanged"}
    shown = http.get("/api/workflows/brief").json()
    assert (shown["version"], shown["bundle"]) == (1, "news")
    [told] = apply(http, bundle="news", workflows=[{**BRIEF, "name": "Brief"}])["changes"]
    assert (told["change"], told["kind"], told["fires_removed"]) == ("update", "workflow", 7)
    assert {"path": "name", "old": "Daily brief", "new": "Brief"} in told["diff"]
    assert {"path": "schedules.workflow:brief:nightly", "old": None, "new": "deleted"} in told["diff"]
    assert (http.get("/api/workflows/brief").json()["version"], ids(http)) == (2, [])
    assert changes(http, bundle="news", prune=True) == {"brief": "delete"}
    assert http.get("/api/workflows/brief").status_code == 404


def test_what_names_another_may_stand_before_it(http: httpx.Client) -> None:
    schedule = {**HOURLY, "action": {"kind": "workflow", "workflow_id": "outer", "version": "latest"}}
    del schedule["workflow_type"]
    bundle = {"bundle": "b", "workflows": [calling("outer", "inner"), calling("inner")], "schedules": [schedule]}
    assert changes(http, **bundle) == {"outer": "create", "inner": "create", "hourly": "create"}
    assert set(changes(http, **bundle).values()) == {"unchanged"}
    told = refused(http, bundle="b", workflows=bundle["workflows"][:1], schedules=[schedule], prune=True)
    assert (told["status"], told["reason"]) == (409, "workflow_in_use")
    assert set(changes(http, bundle="b", prune=True).values()) == {"delete"}


def test_all_that_is_wrong_with_workflows_is_told_under_their_places(http: httpx.Client) -> None:
    bad = {**BRIEF, "workflow_id": "bad", "nodes": [{**STEP, "needs": ["nobody"]}]}
    told = refused(http, workflows=[BRIEF, bad, {**bad, "workflow_id": "worse"}])
    assert told["status"] == 422
    assert {path.partition(".nodes.0")[0] for path in told["errors"]} == {"workflows.1", "workflows.2"}
    circle = refused(http, workflows=[calling("a", "b"), calling("b", "a")])
    assert (circle["status"], circle["reason"]) == (422, "cycle_detected")
    assert http.get("/api/workflows").json()["workflows"] == []


def test_whose_a_workflow_is(http: httpx.Client, horarium: TestService) -> None:
    http.put("/api/workflows/brief", json={"nodes": [STEP]})
    bundle = {"bundle": "news", "workflows": [BRIEF]}
    assert changes(http, **bundle) == {"brief": "keep"}
    assert changes(http, **bundle, adopt=True) == {"brief": "update"}
    assert refused(http, bundle="other", workflows=[BRIEF])["reason"] == "owned_by_another_bundle"
    issued = http.post("/api/tokens", json={"name": "bob", "role": "owner", "subject": "bob"}).json()
    bob = horarium.http(token=issued["secret"])
    assert refused(bob, bundle="news", workflows=[{**BRIEF, "name": "mine"}])["status"] == 403
    assert refused(bob, bundle="news", prune=True)["status"] == 403
    http.post("/api/namespaces", json={"namespace": "other"})
    theirs = horarium.http(namespace="other")
    assert changes(theirs, **bundle) == {"brief": "create"}
    assert changes(theirs, bundle="news", prune=True) == {"brief": "delete"}
    assert http.get("/api/workflows/brief").status_code == 200


def test_the_schedule_of_a_trigger_is_the_workflows(http: httpx.Client) -> None:
    bundle: dict[str, Any] = {"bundle": "news", "workflows": [{**BRIEF, "triggers": [NIGHTLY]}]}
    taken = {**HOURLY, "schedule_id": "workflow:brief:nightly"}
    told = refused(http, **bundle, schedules=[taken])
    assert (told["reason"], told["schedule_id"]) == ("owned_by_another_bundle", "workflow:brief:nightly")
    assert refused(http, bundle="workflow:brief", schedules=[taken])["reason"] == "owned_by_another_bundle"


def test_a_credential_that_a_bundle_changes_is_shown_by_its_name_only(http: httpx.Client) -> None:
    def with_token(value: str) -> dict[str, Any]:
        action = {**STEP["action"], "headers": {"Authorization": f"Bearer {value}"}}
        return {**BRIEF, "nodes": [{**STEP, "action": action}]}

    assert changes(http, workflows=[with_token("first-secret")]) == {"brief": "create"}
    assert changes(http, workflows=[with_token("first-secret")]) == {"brief": "unchanged"}
    [told] = apply(http, workflows=[with_token("other-secret")])["changes"]
    assert told["change"] == "update"
    assert "secret" not in str([(each["old"], each["new"]) for each in told["diff"]])


# ── those who work ───────────────────────────────────────────────────────────────────────────────────

WRITER: dict[str, Any] = {"id": "writer", "url": "https://agents.example/w", "parent_id": "editor"}
EDITOR: dict[str, Any] = {"id": "editor", "name": "The editor"}
DESK: dict[str, Any] = {"team_id": "desk", "members": ["writer", "editor"]}
GIVEN: dict[str, Any] = {"assignment_id": "given", "workflow_id": "w", "assignee_type": "team", "assignee_id": "desk"}
ALL: dict[str, Any] = {
    "bundle": "news",
    "agents": [WRITER, EDITOR],
    "teams": [DESK],
    "workflows": [{"workflow_id": "w", "nodes": [STEP]}],
    "assignments": [GIVEN],
    "schedules": [{**HOURLY, "workflow_assignment_id": "given"}],
}


def test_agents_teams_and_assignments_come_before_the_schedules_that_need_them(http: httpx.Client) -> None:
    names = ["writer", "editor", "desk", "w", "given", "hourly"]
    assert changes(http, **ALL, dry_run=True) == dict.fromkeys(names, "create")
    assert http.get("/api/agents").json()["agents"] == []
    assert changes(http, **ALL) == dict.fromkeys(names, "create")
    assert changes(http, **ALL) == dict.fromkeys(names, "unchanged")
    assert {http.get(f"/api/{each}").json()["bundle"] for each in ("agents/writer", "teams/desk")} == {"news"}
    [told] = [
        each
        for each in apply(http, **{**ALL, "agents": [WRITER, {**EDITOR, "capacity": 4}]})["changes"]
        if each["change"] == "update"
    ]
    assert (told["kind"], told["name"]) == ("agent", "editor")
    assert told["diff"] == [{"path": "capacity", "old": None, "new": 4}]
    assert changes(http, bundle="news", prune=True) == dict.fromkeys(names, "delete")
    assert http.get("/api/agents").json()["agents"] == []


def test_an_assignment_is_refused_with_a_workflow_of_neither_bundle_nor_namespace(http: httpx.Client) -> None:
    documents = {name: ALL[name] for name in ("agents", "teams", "assignments")}
    for dry_run in (True, False):
        told = refused(http, **documents, dry_run=dry_run)
        assert (told["status"], list(told["errors"])) == (422, ["assignments.0.workflow_id"])
        assert "workflow 'w' not found" in told["message"]
    http.put("/api/workflows/w", json={"nodes": [STEP]})
    assert set(changes(http, **documents).values()) == {"create"}


def test_what_somebody_else_needs_is_not_pruned(http: httpx.Client) -> None:
    apply(http, **ALL)
    http.put("/api/teams/theirs", json={"members": ["writer"]})
    told = refused(http, bundle="news", prune=True)
    assert (told["status"], told["reason"]) == (409, "agent_in_use")
    assert "agent 'writer'" in told["message"]


def test_a_member_that_nobody_knows_is_told_under_its_place(http: httpx.Client) -> None:
    told = refused(http, agents=[WRITER], teams=[DESK, {**DESK, "team_id": "two", "members": []}])
    assert told["status"] == 422
    assert {"agents.0.parent_id", "teams.1.members"} <= told["errors"].keys()
    assert http.get("/api/agents").json()["agents"] == []


def test_a_token_that_a_bundle_changes_is_not_shown(http: httpx.Client) -> None:
    def with_token(value: str) -> dict[str, Any]:
        return {"agents": [{"id": "writer", "url": "https://agents.example/w", "token": value}]}

    assert changes(http, **with_token("first-one")) == {"writer": "create"}
    assert changes(http, **with_token("first-one")) == {"writer": "unchanged"}
    answer = http.post("/api/apply", json=with_token("other-one"))
    [told] = answer.json()["changes"]
    assert (told["change"], [each["path"] for each in told["diff"]]) == ("update", ["token"])
    assert "-one" not in answer.text


def test_agents_that_were_made_by_hand_are_kept_until_they_are_adopted(http: httpx.Client) -> None:
    http.put("/api/agents/editor", json={"name": "by hand"})
    bundle = {"bundle": "news", "agents": [EDITOR]}
    assert changes(http, **bundle, prune=True) == {"editor": "keep"}
    assert changes(http, **bundle, adopt=True) == {"editor": "update"}
    assert refused(http, bundle="other", agents=[EDITOR])["reason"] == "owned_by_another_bundle"
