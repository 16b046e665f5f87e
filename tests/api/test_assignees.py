"""Agents, teams and assignments through their doors: what is kept, what is refused, what goes with one that goes."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from horarium.features.tenants import service as tenant_service
from horarium.platform.database.statements import to_text
from horarium.platform.database.tables import agents
from horarium.testing import TestService

WRITER = {"id": "writer", "name": "Writer", "url": "https://agents.example.com/writer", "token": "s3cret-t0ken"}


@pytest.fixture
def http(horarium: TestService) -> httpx.Client:
    return horarium.http()


def made(http: httpx.Client, path: str, **document: Any) -> dict[str, Any]:
    answer = http.post(path, json=document)
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


def stored(http: httpx.Client, workflow_id: str) -> None:
    work = {"kind": "pull", "workflow_type": "report", "queue": "reports"}
    answer = http.put(f"/api/workflows/{workflow_id}", json={"nodes": [{"id": "n", "action": work}]})
    assert answer.status_code == 201, answer.text


def refused(answer: httpx.Response) -> tuple[int, str, list[str]]:
    told = answer.json()
    return answer.status_code, told["reason"], sorted(told.get("errors", {}))


def test_an_agent_is_kept_and_its_token_never_shown(horarium: TestService, http: httpx.Client) -> None:
    agent = made(http, "/api/agents", **WRITER, policies={"budget": {"spending_limit_credits": 2.5}})
    assert (agent["has_token"], agent["capacity"], agent["protocol"], agent["outcome"]) == (True, 1, "auto", "created")
    assert (agent["active_runs"], agent["card"], agent["last_seen_at"], agent["children"]) == (0, None, None, [])
    assert refused(http.post("/api/agents", json=WRITER))[:2] == (409, "agent_already_exists")
    texts = [http.get(path).text for path in ("/api/agents", "/api/agents/writer", "/api/audit", "/api/secrets")]
    assert not [text for text in texts if "s3cret" in text]
    without = {name: value for name, value in WRITER.items() if name != "token"}
    again = http.put("/api/agents/writer", json={**without, "policies": agent["policies"]})
    assert (again.status_code, again.json()["outcome"], again.json()["has_token"]) == (200, "unchanged", True)
    changed = http.put("/api/agents/writer", json={**without, "capacity": 3}, headers={"If-Match": '"1"'})
    assert (changed.json()["outcome"], changed.json()["version"], changed.headers["ETag"]) == ("updated", 2, '"2"')
    assert http.put("/api/agents/writer", json=without, headers={"If-Match": '"1"'}).status_code == 412
    # What was meant for one address is not sent to another.
    moved = http.put("/api/agents/writer", json={**without, "url": "https://elsewhere.example.com/"})
    assert moved.json()["has_token"] is False


WRONG = [
    ("/api/agents", {}, "id"),
    ("/api/agents", {"id": "a b"}, "id"),
    ("/api/agents", {"id": "a", "url": "ftp://x.example"}, "url"),
    ("/api/agents", {"id": "a", "url": "https://me:secret@x.example/"}, "url"),
    ("/api/agents", {"id": "a", "capacity": 0}, "capacity"),
    ("/api/agents", {"id": "a", "token": "two words"}, "token"),
    ("/api/agents", {"id": "a", "parent_id": "nobody"}, "parent_id"),
    ("/api/agents", {"id": "a", "parent_id": "a"}, "parent_id"),
    ("/api/agents", {"id": "a", "policies": {"approval_policy": {"mode": "x"}}}, "policies.approval_policy.mode"),
    ("/api/agents", {"id": "a", "policies": {"budget": {"max_daily_runs": -1}}}, "policies.budget.max_daily_runs"),
    ("/api/agents", {"id": "a", "surname": "x"}, "surname"),
    ("/api/teams", {"team_id": "t", "members": []}, "members"),
    ("/api/teams", {"team_id": "t", "members": ["nobody"]}, "members.0"),
    ("/api/teams", {"team_id": "t", "members": ["x"], "lead": "y"}, "lead"),
    ("/api/assignments", {"assignment_id": "g", "workflow_id": "w"}, "assignee_id"),
    ("/api/assignments", {"assignment_id": "g", "workflow_id": "brief", "assignee_id": "nobody"}, "assignee_id"),
    ("/api/assignments", {"assignment_id": "g", "workflow_id": "w", "assignee_id": "there"}, "workflow_id"),
]


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
def test_what_is_wrong_is_named(http: httpx.Client) -> None:
    made(http, "/api/agents", id="there")
    stored(http, "brief")
    for path, document, field in WRONG:
        assert refused(http.post(path, json=document)) == (422, "validation_failed", [field]), (path, document, field)


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
def test_an_assignment_needs_a_workflow_of_its_namespace(horarium: TestService, http: httpx.Client) -> None:
    other = horarium.http(namespace="other")
    assert http.post("/api/namespaces", json={"name": "other"}).status_code == 201
    stored(other, "brief")
    made(http, "/api/agents", id="a")
    given = {"workflow_id": "brief", "assignee_id": "a"}
    assert refused(http.put("/api/assignments/g", json=given)) == (422, "validation_failed", ["workflow_id"])
    stored(http, "brief")
    assert http.put("/api/assignments/g", json=given).status_code == 201
    assert http.delete("/api/assignments/g").status_code == 200
    assert http.delete("/api/workflows/brief").status_code == 200
    again = http.put("/api/assignments/g", json=given)
    assert refused(again) == (422, "validation_failed", ["workflow_id"])
    assert "workflow 'brief' not found" in again.text


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
def test_no_agent_stands_above_itself(http: httpx.Client) -> None:
    for agent, parent in (("a", None), ("b", "a"), ("c", "b")):
        made(http, "/api/agents", id=agent, parent_id=parent)
    assert refused(http.put("/api/agents/a", json={"parent_id": "c"})) == (422, "validation_failed", ["parent_id"])
    assert http.get("/api/agents/a").json()["children"] == ["b"]


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
def test_agents_stand_so_deep_and_no_deeper(http: httpx.Client) -> None:
    answers = [http.put(f"/api/agents/a{n}", json={"parent_id": f"a{n - 1}"} if n else {}) for n in range(33)]
    assert [answer.status_code for answer in answers] == [201] * 32 + [422]


@pytest.mark.both_databases
def test_teams_and_assignments_are_kept(http: httpx.Client) -> None:
    made(http, "/api/agents", **WRITER)
    team = made(http, "/api/teams", team_id="desk", members=["writer"], budget={"max_daily_runs": 3})
    assert (team["strategy"], team["policies"]) == ("lead", {"budget": {"max_daily_runs": 3}})
    stored(http, "brief")
    who = {"workflow_id": "brief", "assignee_type": "team", "assignee_id": "desk"}
    given = made(http, "/api/assignments", assignment_id="g", **who, queue_policy={"mode": "serial", "priority": 3})
    assert given["queue_policy"] == {"mode": "skip", "priority": 3}
    assert http.put("/api/assignments/g", json={**who, "queue_policy": given["queue_policy"]}).json()["version"] == 1
    listed = [http.get(f"/api/{each}").json() for each in ("agents", "teams", "assignments")]
    assert [len(next(iter(page.values()))) for page in listed] == [1, 1, 1]
    assert refused(http.delete("/api/agents/writer"))[:2] == (409, "agent_in_use")
    assert refused(http.delete("/api/teams/desk"))[:2] == (409, "team_in_use")
    for path in ("/api/assignments/g", "/api/teams/desk", "/api/agents/writer"):
        assert http.delete(path).json()["outcome"] == "deleted"
        assert http.get(path).status_code == 404


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
def test_a_list_goes_on_where_it_ended(http: httpx.Client) -> None:
    for name in ("c", "a", "b"):
        made(http, "/api/agents", id=name)
    first = http.get("/api/agents", params={"page_size": 2}).json()
    rest = http.get("/api/agents", params={"next_page_token": first["next_page_token"]}).json()
    assert [[each["id"] for each in page["agents"]] for page in (first, rest)] == [["a", "b"], ["c"]]
    assert "next_page_token" not in rest or rest["next_page_token"] is None


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
def test_an_agent_sees_itself_and_no_other(horarium: TestService, http: httpx.Client) -> None:
    for name in ("writer", "reader"):
        made(http, "/api/agents", id=name)
    issued = tenant_service.issue_token(horarium.resources, horarium.caller, name="w", role="agent", subject="writer")
    own = horarium.http(token=issued.secret)
    assert [own.get(f"/api/agents/{name}").status_code for name in ("writer", "reader", "nobody")] == [200, 404, 404]
    assert [own.get(f"/api/{each}").status_code for each in ("agents", "teams", "assignments")] == [403, 403, 403]


@pytest.mark.both_databases
def test_the_schedules_that_name_an_assignee_are_listed(http: httpx.Client) -> None:
    """Those that only mention its id are looked at and left out."""
    for name in ("desk", "writer"):
        made(http, "/api/agents", id=name)
    made(http, "/api/teams", team_id="desk", members=["writer"])
    given: dict[str, dict[str, Any]] = {
        "of-the-team": {"assignee_type": "team", "assignee_id": "desk"},
        "of-the-agent": {"assignee_type": "agent", "assignee_id": "desk"},
        "of-another": {"assignee_type": "agent", "assignee_id": "writer", "input": {"assignee_id": "desk"}},
        "of-nobody": {"name": "desk"},
    }
    for name, more in given.items():
        document = {"schedule_id": name, "cron_expressions": ["0 2 * * *"], "workflow_type": "w", **more}
        http.post("/api/schedules", json=document).raise_for_status()

    def listed(**wanted: str) -> list[str]:
        answer = http.get("/api/schedules", params=wanted).raise_for_status()
        return sorted(each["schedule_id"] for each in answer.json()["schedules"])

    assert listed(assignee="desk") == ["of-the-agent", "of-the-team"]
    assert listed(assignee="desk", assignee_type="team") == ["of-the-team"]
    assert listed(assignee_type="agent") == ["of-another", "of-the-agent"]
    assert listed(assignee="de%") == []
    answer = http.get("/api/schedules", params={"assignee_type": "robot"})
    message = "must be one of agent, team, not 'robot'"
    assert (answer.status_code, answer.json()["errors"]) == (422, {"assignee_type": [message]})


@pytest.mark.both_databases
def test_a_team_for_which_nobody_else_works_stops_too(horarium: TestService, http: httpx.Client) -> None:
    """Of one under a lead the others do not work, whoever they are."""
    for name in ("ada", "bob"):
        made(http, "/api/agents", id=name)
    teams: dict[str, dict[str, Any]] = {
        "alone": {"members": ["ada"]},
        "under-ada": {"members": ["bob", "ada"], "lead": "ada"},
        "under-bob": {"members": ["bob", "ada"]},
        "in-turn": {"members": ["ada", "bob"], "strategy": "round_robin"},
    }
    prompt = {"kind": "prompt", "prompt": "What is new?"}
    for name, document in teams.items():
        made(http, "/api/teams", team_id=name, **document)
        given = {"assignee_type": "team", "assignee_id": name}
        horarium.create(schedule_id=f"of-{name}", cron_expressions=["0 * * * *"], action=prompt, **given)
    assert http.delete("/api/agents/ada").status_code == 409
    answer = http.delete("/api/agents/ada", params={"force": True}).json()
    assert answer["paused_schedules"] == ["of-alone", "of-under-ada"]


@pytest.mark.both_databases
def test_an_agent_above_very_many_can_be_deleted(horarium: TestService, http: httpx.Client) -> None:
    made(http, "/api/agents", id="head")
    made(http, "/api/agents", id="arm", parent_id="head")
    rows = [_below("arm", f"hand-{number}") for number in range(1_001)]
    horarium.resources.database.write(lambda connection: connection.execute(agents.insert(), rows))
    horarium.create(
        schedule_id="of-hand", cron_expressions=["0 * * * *"], action={"task": "t"}, assignee_id="hand-1000"
    )
    assert http.delete("/api/agents/head").json()["paused_schedules"] == ["of-hand"]


def _below(parent_id: str, agent_id: str) -> dict[str, Any]:
    document = to_text({"id": agent_id, "parent_id": parent_id})
    row = {"namespace": "default", "agent_id": agent_id, "parent_id": parent_id, "document": document}
    return {**row, "version": 1, "created_at": 0, "updated_at": 0}


@pytest.mark.both_databases
@pytest.mark.parametrize("purge", [False, True])
def test_schedules_stop_with_their_agent_and_with_those_above(
    horarium: TestService, http: httpx.Client, purge: bool
) -> None:
    for agent, parent in (("head", None), ("hand", "head"), ("other", None)):
        made(http, "/api/agents", id=agent, parent_id=parent)
        horarium.create(
            schedule_id=f"of-{agent}", cron_expressions=["0 * * * *"], action={"task": "t"}, assignee_id=agent
        )
    stopped = ["of-hand", "of-head"]
    for dry_run, outcome in ((True, "unchanged"), (False, "deleted")):
        answer = http.delete("/api/agents/head", params={"purge": purge, "dry_run": dry_run}).json()
        told = answer["outcome"], answer["paused_schedules"], answer["deleted_schedules"]
        assert told == (outcome, *(([], stopped) if purge else (stopped, [])))
    found = {name: http.get(f"/api/schedules/of-{name}") for name in ("head", "hand", "other")}
    assert [found[name].status_code for name in ("head", "hand")] == ([404, 404] if purge else [200, 200])
    assert found["other"].json()["state"]["paused"] is False
    if not purge:
        assert found["hand"].json()["pause_reason"] == "its agent head was deleted"
        # It stays valid, and may be edited; only somebody new must be there.
        assert http.patch("/api/schedules/of-head", json={"name": "Still here"}).status_code == 200
        assert http.patch("/api/schedules/of-head", json={"assignee_id": "nobody"}).status_code == 422
        # Nobody would do the work, so it does not go on until somebody is there.
        for wish in (
            http.post("/api/schedules/of-head/resume"),
            http.patch("/api/schedules/of-head", json={"paused": False}),
        ):
            assert (wish.status_code, "the agent 'head' was deleted" in wish.json()["message"]) == (409, True)
        assert http.patch("/api/schedules/of-head", json={"assignee_id": "other", "paused": False}).status_code == 200
        assert http.get("/api/schedules/of-head").json()["paused"] is False
    assert http.get("/api/agents/hand").json()["parent_id"] is None


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
def test_who_is_to_take_over_and_is_not_there_is_warned_of(horarium: TestService, http: httpx.Client) -> None:
    policy = {"mode": "fallback", "fallback_assignee_id": "spare"}
    document = {"schedule_id": "s", "cron_expr": "0 * * * *", "workflow_type": "w", "failure_policy": policy}
    [warning] = [each for each in http.post("/api/schedules", json=document).json()["warnings"] if "fallback" in each]
    assert "no agent or team 'spare' exists" in warning
    made(http, "/api/agents", id="spare")
    again = http.patch("/api/schedules/s", json={"failure_policy": policy, "name": "n"}).json()
    assert not [each for each in again.get("warnings", ()) if "fallback" in each]


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
@pytest.mark.parametrize("door", ["create", "upsert", "put", "patch", "apply", "trigger"])
def test_an_assignment_is_refused_with_another_assignee(http: httpx.Client, door: str) -> None:
    for agent in ("a1", "a2"):
        made(http, "/api/agents", id=agent)
    work = {"kind": "pull", "workflow_type": "report", "queue": "reports"}
    nodes = {"nodes": [{"id": "n", "action": work}]}
    assert http.put("/api/workflows/brief", json=nodes).status_code == 201
    made(http, "/api/assignments", assignment_id="g", workflow_id="brief", assignee_type="agent", assignee_id="a1")
    said = {"cron_expressions": ["0 0 1 1 *"], "workflow_assignment_id": "g", "assignee_type": "agent"}
    action = {"kind": "workflow", "workflow_id": "brief"}

    def sent(assignee: str) -> httpx.Response:
        schedule = {**said, "assignee_id": assignee}
        whole = {**schedule, "schedule_id": "s", "action": action}
        match door:
            case "create":
                return http.post("/api/schedules", json=whole)
            case "upsert":
                return http.post("/api/schedules/upsert", json=whole)
            case "put":
                return http.put("/api/schedules/s", json=whole)
            case "patch":
                return http.patch("/api/schedules/s", json={"assignee_type": "agent", "assignee_id": assignee})
            case "apply":
                return http.post("/api/apply", json={"bundle": "b", "schedules": [whole]})
            case _:
                document = {**nodes, "triggers": [{"key": "k", "schedule": schedule}]}
                return http.put("/api/workflows/brief", json=document)

    if door in ("put", "patch"):
        first = {**said, "assignee_id": "a1", "schedule_id": "s", "action": action}
        assert http.post("/api/schedules", json=first).status_code == 201
    other = sent("a2")
    assert other.status_code == 422
    assert "belongs to the agent 'a1'" in other.text
    assert sent("a1").status_code < 300
