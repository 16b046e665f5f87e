"""The audit through its door: what leaves an entry, who reads it, and what an attacker can do about it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from api.worlds import CALENDAR, GATED, SCHEDULE, WORKFLOW, World, world

from horarium.features.audit import service as audit_service
from horarium.platform.http.audited import MOST_ALIKE, Audited
from horarium.platform.http.routing import OPERATIONS
from horarium.platform.wire import Permission
from horarium.testing import TestService

# What is told elsewhere: by the history of the schedule, or by the events of the run.
IN_HISTORY = {
    ("POST", "/api/schedules/{schedule_id}/pause"),
    ("POST", "/api/schedules/{schedule_id}/resume"),
    ("POST", "/api/schedules/{schedule_id}/trigger"),
    ("POST", "/api/schedules/{schedule_id}/backfill"),
    ("PUT", "/api/schedules/{schedule_id}/calendars"),
    ("DELETE", "/api/schedules/{schedule_id}/calendars"),
    ("PUT", "/api/schedules/{schedule_id}/condition"),
    ("DELETE", "/api/schedules/{schedule_id}/condition"),
    ("PUT", "/api/schedules/{schedule_id}/rotation"),
    ("DELETE", "/api/schedules/{schedule_id}/rotation"),
    ("POST", "/schedules/pause"),
    ("POST", "/api/runs/{run_id}/cancel"),
    ("POST", "/api/runs/{run_id}/terminate"),
    ("POST", "/api/runs/{run_id}/report"),
    ("POST", "/api/runs/reports"),
    ("POST", "/api/runs/{run_id}/rerun"),
    ("POST", "/api/run-launcher/start"),
    ("POST", "/run-launcher/start"),
    ("POST", "/api/workflows/{workflow_id}/runs"),
    ("POST", "/api/approvals/{approval_id}/decision"),
    ("POST", "/api/approvals/decisions"),
    ("POST", "/api/runs/{run_id}/approve"),
    ("POST", "/api/runs/{run_id}/reject"),
    ("POST", "/workspaces/{workspace_id}/schedules"),
    ("PATCH", "/workspaces/{workspace_id}/schedules/{workspace_schedule_id}"),
    ("POST", "/workspaces/{workspace_id}/schedules/{workspace_schedule_id}/run"),
}
# Work, which happens too often and changes nothing of anybody's; a message that says nothing about anybody; and what
# only looks.
NO_ACT = {
    ("POST", "/api/agents/{agent_id}/check"),
    ("POST", "/api/conditions/test"),
    ("POST", "/api/queues/{queue}/claim"),
    ("POST", "/api/runs/{run_id}/heartbeat"),
    ("POST", "/api/runs/{run_id}/pushes"),
    ("POST", "/api/runs/{run_id}/logs"),
    ("POST", "/api/schedules/draft"),
    ("POST", "/api/session"),
    ("DELETE", "/api/session"),
    ("POST", "/api/session/link"),
    ("POST", "/api/subscriptions/{subscription_id}/test"),
    ("POST", "/api/workflows/validate"),
}
WRITES = {route: operation for route, operation in OPERATIONS.items() if route[0] != "GET"}
ACTS = sorted(route for route, operation in WRITES.items() if operation.audited is not Audited.NEVER)


@pytest.fixture
def here(database_url: str) -> Iterator[World]:
    with world(database_url) as found:
        yield found


def entries(http: httpx.Client, **query: Any) -> list[dict[str, Any]]:
    answer = http.get("/api/audit", params={"order": "oldest", "page_size": 200, **query})
    assert answer.status_code == 200, answer.text
    return list(answer.json()["entries"])


def flush(horarium: TestService) -> None:
    """What a minute later a thread does."""
    horarium.parts.api.state.refusals.flush(all_of_it=True)


def test_no_write_is_forgotten() -> None:
    """Another route is an act of an admin, or its name stands above with a reason."""
    assert {route for route, operation in WRITES.items() if operation.audited is Audited.NEVER} == IN_HISTORY | NO_ACT
    of_admins = {route for route, operation in WRITES.items() if operation.needs is Permission.ADMINISTER}
    assert of_admins <= set(ACTS)


# Where the example of a route would act on what is there already, on nothing, or only try.
INSTEAD: dict[tuple[str, str], dict[str, Any]] = {
    ("POST", "/api/agents"): {"id": "another"},
    ("POST", "/api/apply"): {"dry_run": False},
    ("POST", "/api/approvals/standing"): {"schedule_id": GATED},
    ("POST", "/api/assignments"): {"assignment_id": "another"},
    ("POST", "/api/teams"): {"team_id": "another"},
    ("POST", "/api/calendars"): {"name": "another"},
    ("POST", "/api/calendars/{name}/clone"): {"name": "a-clone"},
    ("POST", "/api/namespaces"): {"namespace": "another"},
    ("POST", "/api/schedules"): {"schedule_id": "another"},
    ("POST", "/api/schedules/bulk"): {"filter": {"ids": [SCHEDULE]}},
    ("POST", "/api/subscriptions"): {"name": "another"},
    ("POST", "/schedules/upsert"): {"schedule_id": "upserted"},
}
NAMES = {
    ("DELETE", "/schedules/{schedule_id}"): {"schedule_id": "upserted"},
    ("DELETE", "/api/agents/{agent_id}"): {"agent_id": "another"},  # whom no team and no assignment names
}


def _last(route: tuple[str, str]) -> tuple[bool, tuple[str, str]]:
    """What deletes comes last, or there would be nothing left to act on."""
    return route[0] == "DELETE", route


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
def test_every_act_leaves_an_entry(here: World) -> None:
    http = here.horarium.http()
    silent = {}
    for number, route in enumerate(sorted(ACTS, key=_last)):
        operation, request_id = OPERATIONS[route], f"request-{number}"
        owner = {"owner": f"somebody-{number}"} if operation.audited is Audited.NAMING_OWNER else {}
        body = {**(operation.example.body or {}), **INSTEAD.get(route, {}), **owner}
        names = {**here.names, "namespace": "tenant", **NAMES.get(route, {})}
        sent: dict[str, Any] = {"json": body} if body else {}
        answer = http.request(route[0], route[1].format(**names), headers={"X-Request-ID": request_id}, **sent)
        told = [each for each in entries(http) if each["request_id"] == request_id]
        if answer.status_code >= 300 or [each["act"] for each in told] != [operation.name]:
            silent[route] = (answer.status_code, answer.text[:200], told)
    assert silent == {}
    ours = [each for each in entries(http) if (each["request_id"] or "").startswith("request-")]
    assert {(each["principal"], bool(each["address"])) for each in ours} == {("admin", True)}


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
def test_an_entry_names_what_was_made_and_never_a_secret(here: World) -> None:
    http = here.horarium.http()
    issued = http.post("/api/tokens", json={"name": "ci", "role": "viewer"}).json()
    told = {**(OPERATIONS["POST", "/api/subscriptions"].example.body or {}), "name": "n", "secret": "s3cret-s3cret-s3"}
    told["url"] = "https://user:passw0rd@hooks.example.com/path?key=passw0rd"
    http.post("/api/subscriptions", json=told)
    *_, last = entries(http, act="issue_token")
    assert last["detail"] == {"name": "ci", "role": "viewer", "token_id": issued["token_id"]}
    http.post("/api/agents", json={"id": "scout", "url": "https://agents.example/?key=passw0rd", "token": "s3cret"})
    http.put("/api/teams/desk", json={"team_id": "desk", "members": ["scout"]})
    work = {"workflow_id": WORKFLOW, "assignee_type": "team", "assignee_id": "desk"}
    http.post("/api/assignments", json={"assignment_id": "brief-by-desk", **work})
    assert [each["detail"] for each in entries(http)[-3:]] == [
        {"id": "scout", "host": "agents.example"},
        {"team_id": "desk"},
        {"assignment_id": "brief-by-desk", **work},
    ]
    whole = http.get("/api/audit").text
    assert not [secret for secret in ("passw0rd", "s3cret", issued["secret"]) if secret in whole]


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
def test_what_is_refused_tried_out_or_repeated_leaves_no_second_entry(here: World) -> None:
    http = here.horarium.http()
    before = len(entries(http))
    http.post("/api/namespaces", json={"namespace": "tenant"})
    http.delete("/api/namespaces/tenant", params={"dry_run": True})
    http.post("/api/schedules/bulk", json={"action": "pause", "all": True, "dry_run": True})
    http.put(f"/api/schedules/{SCHEDULE}", json={"note": "no owner is named"})
    # Whoever writes into a body that it is only tried out does not get a token unseen.
    answer = http.post("/api/tokens", params={"dry_run": True}, json={"name": "x", "role": "admin", "dry_run": True})
    assert answer.status_code == 422
    http.request("DELETE", "/api/tokens/unknown", params={"dry_run": True}, json={"dry_run": True})
    assert len(entries(http)) == before
    for _ in range(2):
        answer = http.delete(f"/api/schedules/{SCHEDULE}", headers={"Idempotency-Key": "once"})
        assert answer.status_code == 200
    assert [each["act"] for each in entries(http)[before:]] == ["delete_schedule"]


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
def test_a_schedule_is_not_given_away_unseen_and_what_it_sends_is_not_told(here: World) -> None:
    """However the field is spelled: what counts is who owns it then."""
    http = here.horarium.http()
    action = {"kind": "http", "url": "https://example.com/", "headers": {"Authorization": "Bearer s3cret"}}
    for name, owner in (("one", {"Owner": "bob"}), ("two", {"userId": "bob"}), ("three", {})):
        body = {"schedule_id": name, "spec": {"cron_expressions": ["0 2 * * *"]}, "action": action, **owner}
        assert http.post("/api/schedules", json=body).status_code == 201
    assert http.patch("/api/schedules/three", json={"userId": "bob"}).status_code == 200
    assert http.patch("/api/schedules/three", json={"Owner": "bob", "note": "x"}).status_code == 200
    assert http.patch("/api/schedules/three", json={"owner": "bob", "note": "y"}).status_code == 200
    told = [each for each in entries(http) if each["act"] in ("create_schedule", "patch_schedule")]
    assert [each["detail"]["schedule_id"] for each in told] == ["one", "three", "three"]
    assert [each["detail"]["owner"] for each in told] == ["bob", "admin", "bob"]
    assert [each["detail"]["revision"] for each in told] == [1, 2, 3]
    assert "s3cret" not in http.get("/api/audit").text


def test_a_tenant_reads_its_own_audit_and_nobody_else_s(here: World) -> None:
    horarium = here.horarium
    theirs = horarium.http(token=here.token("admin", "other"))
    theirs.post("/api/tokens", json={"name": "mine", "role": "viewer"})
    assert [each["detail"]["name"] for each in entries(theirs)] == ["mine"]
    for namespace in ("default", "tenant", "ghost"):
        assert theirs.get("/api/audit", params={"namespace": namespace}).status_code == 404
        assert theirs.get("/api/audit", headers={"X-Namespace": namespace}).status_code == 404
    for role in ("owner", "operator", "viewer", "agent"):
        assert horarium.http(token=here.token(role, "other")).get("/api/audit").status_code == 403
    house = horarium.http(token=here.token("admin"))
    assert [each["detail"]["name"] for each in entries(house, namespace="other")] == ["mine"]
    assert house.get("/api/audit", params={"namespace": "ghost"}).status_code == 404


@pytest.mark.both_databases
def test_who_gets_a_name_that_another_had_does_not_see_what_that_one_did(here: World) -> None:
    house = here.horarium.http()
    before = here.horarium.http(token=here.token("admin", "other"))
    before.post("/api/tokens", json={"name": "theirs", "role": "viewer"})
    here.horarium.advance(seconds=90)
    assert here.horarium.http(token=here.token("viewer", "other")).get("/api/tokens").status_code == 403
    assert house.delete("/api/namespaces/other", params={"force": True}).json()["outcome"] == "deleted"
    assert [each["detail"]["name"] for each in entries(house, namespace="other")] == ["theirs"]
    house.post("/api/namespaces", json={"namespace": "other"})
    flush(here.horarium)  # who was refused before is none of the new one's business either
    after = here.horarium.http(token=here.token("admin", "other"))
    assert entries(after) == []
    after.post("/api/tokens", json={"name": "mine", "role": "viewer"})
    page = after.get("/api/audit").json()
    assert [each["detail"]["name"] for each in page["entries"]] == ["mine"]
    assert page["begin"]["sequence"] == 1
    assert len(entries(house, namespace="other")) == 2


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
def test_a_flood_of_failed_logins_is_one_entry_with_its_count(here: World) -> None:
    stranger = here.horarium.http(token="hor_guessed")
    before = len(entries(here.horarium.http()))
    codes = {
        stranger.get("/api/schedules", headers={"X-Namespace": f"n{n}"}).status_code for n in range(3 * MOST_ALIKE)
    }
    assert codes <= {401, 429}
    assert len(entries(here.horarium.http())) == before
    flush(here.horarium)
    (told,) = entries(here.horarium.http())[before:]
    assert (told["act"], told["principal"], told["namespace"]) == ("login_failed", None, "default")
    assert told["detail"]["count"] > 0
    assert told["address"]


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
def test_a_refused_permission_is_told_to_the_admins_of_the_namespace(here: World) -> None:
    viewer = here.horarium.http(token=here.token("viewer", "other"))
    for _ in range(3):
        assert viewer.post("/api/tokens", json={"name": "x", "role": "admin"}).status_code == 403
    flush(here.horarium)
    (told,) = entries(here.horarium.http(token=here.token("admin", "other")))
    assert (told["act"], told["principal"]) == ("permission_refused", "viewer@other")
    assert told["detail"] == {"count": 3, "operation": "issue_token", "reason": "forbidden"}


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
def test_the_audit_is_read_in_pages_and_by_what_was_done_by_whom_and_when(here: World) -> None:
    horarium = here.horarium
    ann = horarium.http(token=here.token("admin"))
    for number in range(3):
        horarium.advance(hours=1)
        ann.post("/api/tokens", json={"name": f"t{number}", "role": "viewer"})
    by_ann: dict[str, Any] = {"principal": "admin@default", "page_size": 2}
    first = ann.get("/api/audit", params=by_ann).json()
    rest = ann.get("/api/audit", params={**by_ann, "next_page_token": first["next_page_token"]}).json()
    assert [each["detail"]["name"] for each in (*first["entries"], *rest["entries"])] == ["t2", "t1", "t0"]
    assert rest["next_page_token"] is None
    times = {"since": "2026-03-01T02:00:00Z", "until": "2026-03-01T03:00:00Z"}
    assert [each["detail"]["name"] for each in entries(ann, **times)] == ["t1"]
    assert entries(ann, act="nothing") == []
    wrong: dict[str, Any] = {
        "page_size": 201,
        "next_page_token": "x",
        "since": "soon",
        "order": "random",
        "act": "a" * 257,
    }
    answers = {name: ann.get("/api/audit", params={name: value}).status_code for name, value in wrong.items()}
    assert answers == dict.fromkeys(wrong, 422)
    assert [checked.broken for checked in audit_service.check(horarium.resources.database)] == [None]


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
def test_only_programs_of_ours_say_through_which_door_they_came(here: World) -> None:
    """And it opens nothing: the role is asked as ever."""
    http, viewer = here.horarium.http(), here.horarium.http(token=here.token("viewer"))
    known = {"cli": "cli", "ui": "ui", "client": "client", "CLI": "api", "engine": "api", "service": "api"}
    for said in known:
        headers = {"X-Horarium-Source": said}
        assert http.put(f"/api/calendars/{CALENDAR}", json={"dates": []}, headers=headers).status_code == 200
        assert viewer.post("/api/tokens", json={"name": "x", "role": "admin"}, headers=headers).status_code == 403
    assert [each["source"] for each in entries(http, act="update_calendar")] == [*known.values()]
    http.post(f"/api/schedules/{SCHEDULE}/pause", headers={"X-Horarium-Source": "cli"})
    events = http.get(f"/api/schedules/{SCHEDULE}/history").json()["events"]
    assert events[-1]["payload"]["command_context"]["source"] == "cli"
