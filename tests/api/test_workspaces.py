"""The schedules of a workspace through its own paths: shapes, refusals, and who may do what."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import sqlalchemy as sa

from horarium.features.tenants import service as tenant_service
from horarium.platform.database.tables import schedules
from horarium.testing import Finished, TestService

BODY = {"name": "Audit", "cron_expr": "0 9 * * *", "prompt": "Look\r\nclosely."}
FIELDS = {
    *("id", "workspace_id", "name", "cron_expr", "timezone", "prompt", "enabled", "last_run_at", "next_run_at"),
    *("run_count", "last_status", "last_error", "source", "created_at", "updated_at", "consecutive_empty_runs"),
}
one_database = pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
finishes = pytest.mark.parametrize("answer", [Finished()], ids=["finished"])


@pytest.fixture(autouse=True)
def agents(http: httpx.Client) -> None:
    """`lead` has two children; `loner` is a root as `lead` is."""
    for agent, parent in {"lead": None, "writer": "lead", "critic": "lead", "loner": None}.items():
        url = f"https://agents.example.com/{agent}"
        made = http.post("/api/agents", json={"id": agent, "name": agent.title(), "url": url, "parent_id": parent})
        assert made.status_code == 201, made.text


def of_agent(horarium: TestService, agent: str) -> httpx.Client:
    issued = horarium.http().post(f"/api/agents/{agent}/tokens", json={"name": agent})
    return horarium.http(token=issued.json()["secret"])


def make(http: httpx.Client, workspace: str = "writer", **fields: Any) -> str:
    answer = http.post(f"/workspaces/{workspace}/schedules", json={**BODY, **fields})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def listed(http: httpx.Client, workspace: str = "writer") -> list[dict[str, Any]]:
    answer = http.get(f"/workspaces/{workspace}/schedules")
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()
    return found


def refused(answer: httpx.Response, status: int) -> str:
    """What it says; a refusal is a problem document that says it twice."""
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json"), answer.text
    body = answer.json()
    assert body["message"]
    assert body["status"] == status
    return str(body["error"])


def test_what_was_created_is_listed_oldest_first_and_is_an_ordinary_schedule(http: httpx.Client) -> None:
    made = http.post("/workspaces/writer/schedules", json={**BODY, "timezone": "America/New_York", "colour": "red"})
    assert made.status_code == 201
    assert made.json() == {
        "id": made.json()["id"],
        "status": "created",
        "next_run_at": "2026-03-01T14:00:00Z",
    }
    make(http, name="", enabled=False)
    make(http, name="")
    first, second, third = listed(http)
    assert set(first) == FIELDS
    assert (first["id"], first["workspace_id"], first["timezone"]) == (made.json()["id"], "writer", "America/New_York")
    assert (first["prompt"], first["source"], first["run_count"]) == ("Look\nclosely.", "runtime", 0)
    assert (first["last_run_at"], first["last_status"], first["last_error"]) == (None, "", "")
    assert (second["enabled"], second["timezone"], third["enabled"]) == (False, "UTC", True)
    assert second["next_run_at"] == "2026-03-01T09:00:00Z"
    native = http.get(f"/api/schedules/{first['id']}").json()
    assert (native["action"]["kind"], native["assignee_id"], native["source"]) == ("prompt", "writer", "runtime")
    assert listed(http, "critic") == []


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"cron_expr": None}, "cron_expr and prompt are required"),
    ({"prompt": ""}, "cron_expr and prompt are required"),
    ({"prompt": "\r"}, "cron_expr and prompt are required"),
    ({"prompt": 7}, "cron_expr and prompt are required"),
    ({"timezone": "Mars/Olympus"}, "invalid timezone: Mars/Olympus"),
    ({"timezone": "Local"}, "invalid timezone: Local"),
    ({"cron_expr": "61 * * * *"}, "invalid request body: cron_expr: "),
    ({"cron_expr": "0 0 30 2 *"}, "invalid request body: cron_expr: "),
    ({"cron_expr": "TZ=Asia/Tokyo 0 9 * * *"}, "invalid request body: cron_expr: "),
    ({"name": 5}, "invalid request body: name must be a string"),
    ({"enabled": "yes"}, "invalid request body: enabled must be true or false"),
    ({"name": "a\0b"}, "invalid request body: name: "),
]


@one_database
def test_what_is_wrong_is_said_in_one_sentence(http: httpx.Client) -> None:
    for change, error in WRONG:
        told = refused(http.post("/workspaces/writer/schedules", json={**BODY, **change}), 400)
        assert told.startswith(error), (change, told)
    assert refused(http.post("/workspaces/writer/schedules", content=b"{"), 400) == "invalid JSON"
    assert listed(http) == []


@one_database
def test_six_fields_and_an_empty_zone_will_do(http: httpx.Client) -> None:
    made = http.post("/workspaces/writer/schedules", json={**BODY, "cron_expr": "30 0 9 * * *", "timezone": ""})
    assert made.json()["next_run_at"] == "2026-03-01T09:00:30Z"
    assert listed(http)[0]["timezone"] == "UTC"


@pytest.mark.both_databases
def test_names_are_unique_in_a_workspace_also_when_one_is_renamed(http: httpx.Client) -> None:
    make(http)
    other = make(http, name="Other")
    make(http, "critic")
    assert "Audit" in refused(http.post("/workspaces/writer/schedules", json=BODY), 409)
    path = f"/workspaces/writer/schedules/{other}"
    assert "Audit" in refused(http.patch(path, json={"name": "Audit"}), 409)
    assert http.patch(path, json={"name": "Other", "prompt": "x"}).json() == {"status": "updated"}
    assert [each["name"] for each in listed(http)] == ["Audit", "Other"]


@one_database
def test_a_patch_changes_what_it_gives_and_null_gives_nothing(http: httpx.Client, horarium: TestService) -> None:
    path = f"/workspaces/writer/schedules/{make(http)}"
    before = listed(http)[0]
    horarium.clock.advance(60)
    for body in ({}, {"name": None, "cron_expr": None, "timezone": None, "prompt": None, "enabled": None}):
        assert http.patch(path, json=body).json() == {"status": "updated"}
        assert listed(http) == [before]
    assert http.patch(path, json={"cron_expr": "0 8 * * *"}).status_code == 200
    assert listed(http)[0]["next_run_at"] == "2026-03-01T08:00:00Z"
    assert http.patch(path, json={"timezone": "Asia/Tokyo", "prompt": "a\r\nb"}).status_code == 200
    after = listed(http)[0]
    assert (after["next_run_at"], after["timezone"], after["prompt"]) == ("2026-03-01T23:00:00Z", "Asia/Tokyo", "a\nb")
    assert refused(http.patch(path, json={"prompt": ""}), 400).startswith("invalid request body: prompt")
    assert refused(http.patch(path, json={"timezone": "Local"}), 400) == "invalid timezone: Local"
    assert refused(http.patch(path, json={"cron_expr": "0 0 30 2 *"}), 400).startswith(
        "invalid request body: cron_expr"
    )
    assert refused(http.patch(path, content=b"{"), 400) == "invalid JSON"
    assert refused(http.patch(path, json=[]), 400).startswith("invalid JSON")
    assert listed(http) == [after]


@one_database
@finishes
def test_enabling_again_never_fires_the_past(http: httpx.Client, horarium: TestService) -> None:
    path = f"/workspaces/writer/schedules/{make(http)}"
    http.patch(path, json={"enabled": False})
    horarium.advance(days=3)
    assert http.patch(path, json={"enabled": True}).status_code == 200
    horarium.settle()
    assert horarium.runs() == []
    assert (listed(http)[0]["next_run_at"], listed(http)[0]["run_count"]) == ("2026-03-04T09:00:00Z", 0)


@finishes
def test_run_runs_and_history_tells_of_it(http: httpx.Client, horarium: TestService) -> None:
    prompt = "é" * 150
    schedule_id = make(http, prompt=prompt)
    path = f"/workspaces/writer/schedules/{schedule_id}"
    fired = http.post(f"{path}/run")
    assert (fired.status_code, fired.json()) == (200, {"status": "fired", "workspace_id": "writer", "prompt": prompt})
    horarium.settle()
    assert [request.action.target["prompt"] for request in horarium.launcher.deliveries] == [prompt]
    found = listed(http)[0]
    assert (found["run_count"], found["last_status"], found["last_error"]) == (1, "success", "")
    assert (found["last_run_at"], found["next_run_at"]) == ("2026-03-01T00:00:00Z", "2026-03-01T09:00:00Z")
    assert http.get(f"{path}/history").json() == [
        {
            "timestamp": "2026-03-01T00:00:00Z",
            "duration_ms": 0,
            "status": "success",
            "error_detail": "",
            "request": {
                "schedule_id": schedule_id,
                "schedule_name": "Audit",
                "cron_expr": "0 9 * * *",
                "prompt": "é" * 100 + "...",
            },
        }
    ]
    horarium.advance(days=22)
    told = http.get(f"{path}/history").json()
    assert (len(told), told[0]["timestamp"]) == (20, "2026-03-22T09:00:00Z")


def test_a_run_that_goes_on_stands_against_another_and_the_skip_is_told(
    http: httpx.Client, horarium: TestService
) -> None:
    schedule_id = make(http, cron_expr="0 * * * *")
    path = f"/workspaces/writer/schedules/{schedule_id}"
    horarium.advance(hours=1, minutes=1)
    assert "overlap" in refused(http.post(f"{path}/run"), 409)
    horarium.advance(minutes=3)
    horarium.fail(horarium.runs(schedule_id)[-1], "it \x1b[31mbroke", error_class="its own")
    found = listed(http)[0]
    assert (found["run_count"], found["last_status"]) == (2, "error")
    assert "broke" in found["last_error"]
    skip, run = http.get(f"{path}/history").json()
    assert (run["status"], run["duration_ms"], run["error_detail"]) == ("error", 240_000, found["last_error"])
    assert (skip["status"], skip["duration_ms"], skip["request"]["skipped"]) == ("skipped", None, True)
    assert "prompt" not in skip["request"]
    http.patch(path, json={"enabled": False})
    horarium.clock.advance(60)
    assert "disabled" in refused(http.post(f"{path}/run"), 409)
    assert listed(http)[0]["last_status"] == "skipped"


@one_database
def test_a_deleted_one_is_gone(http: httpx.Client) -> None:
    path = f"/workspaces/writer/schedules/{make(http)}"
    assert http.delete(path).json() == {"status": "deleted"}
    assert listed(http) == []
    for asked in (http.delete(path), http.patch(path, json={}), http.post(f"{path}/run"), http.get(f"{path}/history")):
        assert refused(asked, 404) == "schedule not found"


@one_database
def test_another_workspace_s_schedule_is_not_found_and_an_unknown_workspace_neither(http: httpx.Client) -> None:
    schedule_id = make(http)
    assert refused(http.get(f"/workspaces/critic/schedules/{schedule_id}/history"), 404) == "schedule not found"
    assert refused(http.delete(f"/workspaces/critic/schedules/{schedule_id}"), 404) == "schedule not found"
    assert refused(http.get("/workspaces/nobody/schedules"), 404) == "workspace not found"
    assert refused(http.post("/workspaces/nobody/schedules", json=BODY), 404) == "workspace not found"
    assert refused(http.get("/workspaces/nobody/schedules/health"), 404) == "workspace not found"
    assert refused(http.get("/workspaces/writer"), 404)
    http.post("/api/namespaces", json={"namespace": "b"})
    there = {"X-Namespace": "b"}
    http.post("/api/agents", json={"id": "writer"}, headers=there)
    assert http.get("/workspaces/writer/schedules", headers=there).json() == []
    foreign = http.delete(f"/workspaces/writer/schedules/{schedule_id}", headers=there)
    assert refused(foreign, 404) == "schedule not found"


@one_database
def test_a_key_makes_one_schedule_of_two_requests(http: httpx.Client) -> None:
    keyed = {"Idempotency-Key": "k"}
    first = http.post("/workspaces/writer/schedules", json=BODY, headers=keyed)
    again = http.post("/workspaces/writer/schedules", json=BODY, headers=keyed)
    assert (again.status_code, again.json()) == (201, first.json())
    assert len(listed(http)) == 1
    other = http.post("/workspaces/writer/schedules", json={**BODY, "name": "b"}, headers=keyed)
    assert refused(other, 422)
    path = f"/workspaces/writer/schedules/{first.json()['id']}"
    assert refused(http.patch(path, json={"name": "c"}, headers={"If-Match": '"7"'}), 412)


@one_database
def test_more_than_fit_are_had_by_the_link(http: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("horarium.compat.workspaces.service.MOST_LISTED", 2)
    ids = [make(http, name=f"n{number}") for number in range(5)]
    seen, path = [], "/workspaces/writer/schedules"
    for _ in range(3):
        answer = http.get(path)
        seen += [each["id"] for each in answer.json()]
        path = answer.links.get("next", {}).get("url", "")
    assert (seen, path) == (ids, "")
    assert refused(http.get("/workspaces/writer/schedules?after=ghost"), 404) == "schedule not found"


# ── agents ───────────────────────────────────────────────────────────────────────────────────────────


def test_an_agent_looks_after_its_own_workspace_whoever_wrote_it(http: httpx.Client, horarium: TestService) -> None:
    writer, theirs = of_agent(horarium, "writer"), make(http)
    own = make(writer, name="Mine")
    assert [each["id"] for each in listed(writer)] == [theirs, own]
    for schedule_id in (theirs, own):
        path = f"/workspaces/writer/schedules/{schedule_id}"
        assert writer.post(f"{path}/run").json()["status"] == "fired"
        assert writer.patch(path, json={"enabled": False}).status_code == 200
        assert len(writer.get(f"{path}/history").json()) == 1
        assert writer.delete(path).status_code == 200
    asked = [
        writer.get("/workspaces/critic/schedules"),
        writer.post("/workspaces/critic/schedules", json=BODY),
        writer.get(f"/workspaces/critic/schedules/{make(http, 'critic')}/history"),
    ]
    assert [refused(answer, 403).partition(":")[0] for answer in asked] == ["access denied"] * 3
    assert writer.post("/api/schedules", json={"cron_expr": "0 * * * *", "prompt": "x"}).status_code == 403
    created = http.get(f"/api/schedules/{own}/history").json()["events"][0]
    assert created["payload"]["command_context"]["principal"] == "writer"


@pytest.fixture
def statements() -> Iterator[list[str]]:
    """Those of every database in this process."""
    seen: list[str] = []

    def add(_connection: Any, _cursor: Any, statement: str, *_more: Any) -> None:
        seen.append(statement)

    sa.event.listen(sa.Engine, "before_cursor_execute", add)
    yield seen
    sa.event.remove(sa.Engine, "before_cursor_execute", add)


def test_an_agent_cannot_tell_an_unknown_workspace_from_a_foreign_one(
    http: httpx.Client, horarium: TestService, statements: list[str]
) -> None:
    """Status, body and headers are the same, and so are the statements that the answer costs."""
    theirs, writer = make(http, "loner"), of_agent(horarium, "writer")
    named = {"X-Workspace-ID": "writer", "X-Request-ID": "same"}

    def answers(workspace: str, body: Any, method: str, rest: str, **headers: str) -> tuple[Any, ...]:
        path = f"/workspaces/{workspace}/schedules{rest}"
        writer.request(method, path, headers={**named, **headers}, json=body)  # whatever is remembered, is now
        statements.clear()
        answer = writer.request(method, path, headers={**named, **headers}, json=body)
        kept = {name: value for name, value in answer.headers.items() if name != "date"}
        return answer.status_code, answer.text, kept, list(statements)

    one = f"/{theirs}"
    for method, rest, body in [
        ("GET", "", None),
        ("GET", f"?after={theirs}", None),
        ("POST", "", BODY),
        ("POST", "", {}),
        ("PATCH", one, {"prompt": "y"}),
        ("PATCH", one, {"name": "taken"}),
        ("DELETE", one, None),
        ("POST", f"{one}/run", None),
        ("GET", f"{one}/history", None),
        ("GET", "/health", None),
    ]:
        foreign, unknown = (answers(workspace, body, method, rest) for workspace in ("loner", "nobody"))
        assert foreign == unknown, (method, rest)
        assert foreign[0] in (400, 403), (method, rest)
        assert foreign[-1], "the answer costs statements, and they were seen"
    keyed = (answers(workspace, BODY, "POST", "", **{"Idempotency-Key": "k"}) for workspace in ("loner", "nobody"))
    assert len({str(each) for each in keyed}) == 1


ROLES = {
    "owner": [200, 201, 200, 200, 200],
    "operator": [200, 403, 403, 200, 200],
    "viewer": [200, 403, 403, 403, 200],
}


@one_database
def test_the_other_roles_do_here_what_they_do_elsewhere(http: httpx.Client, horarium: TestService) -> None:
    path = "/workspaces/writer/schedules"
    for role, statuses in ROLES.items():
        made = http.post("/api/tokens", json={"name": role, "role": role}).json()["secret"]
        one = horarium.http(token=made)
        schedule_id = make(one if role == "owner" else http, name=f"of {role}")
        asked = [
            one.get(path),
            one.post(path, json={**BODY, "name": f"by {role}"}),
            one.patch(f"{path}/{schedule_id}", json={"prompt": "y"}),
            one.post(f"{path}/{schedule_id}/run"),
            one.get(f"{path}/health"),
        ]
        assert [answer.status_code for answer in asked] == statuses, role


@one_database
def test_health_shows_peers_neither_prompts_nor_times(http: httpx.Client, horarium: TestService) -> None:
    make(http)
    path, writer = "/workspaces/writer/schedules/health", of_agent(horarium, "writer")
    [shown] = writer.get(path, headers={"X-Workspace-ID": "writer"}).json()
    assert set(shown) == {
        *("id", "name", "enabled", "last_run_at", "next_run_at", "run_count", "last_status", "last_error"),
    }
    for unnamed in (writer, of_agent(horarium, "lead"), of_agent(horarium, "loner")):
        assert refused(unnamed.get(path), 401) == "X-Workspace-ID header required"
    for forged in ("system:scheduler", "critic", "webhook:x", "WRITER"):
        assert refused(writer.get(path, headers={"X-Workspace-ID": forged}), 403) == "access denied"
    assert http.get(path).json() == [shown]
    peers = {
        agent: of_agent(horarium, agent).get(path, headers={"X-Workspace-ID": agent}) for agent in ("lead", "critic")
    }
    assert {agent: answer.json() for agent, answer in peers.items()} == {"lead": [shown], "critic": [shown]}
    stranger = of_agent(horarium, "loner").get(path, headers={"X-Workspace-ID": "loner"})
    assert refused(stranger, 403) == "access denied"


# ── whose schedules an agent's token may write ───────────────────────────────────────────────────────


def tried(agent: httpx.Client, schedule_id: str) -> list[int]:
    """Changed, paused, enabled, run and deleted by the agent's own token."""
    path = f"/workspaces/writer/schedules/{schedule_id}"
    return [
        agent.patch(path, json={"prompt": "other"}).status_code,
        agent.patch(path, json={"enabled": False}).status_code,
        agent.patch(path, json={"enabled": True}).status_code,
        agent.post(f"{path}/run").status_code,
        agent.delete(path).status_code,
    ]


PEOPLE: dict[str, Any] = {
    "cron_expr": "0 * * * *",
    "assignee_type": "agent",
    "assignee_id": "writer",
    "action": {"kind": "prompt", "prompt": "x"},
    "approval_policy": {"requires_approval": False},
}


def by_people(http: httpx.Client, door: str) -> str:
    document = {**PEOPLE, "schedule_id": "theirs"}
    if door == "bundle":
        assert http.post("/api/apply", json={"bundle": "b", "schedules": [document]}).status_code == 200
    else:
        assert http.post("/api/schedules", json=document).status_code == 201
    return "theirs"


@pytest.mark.parametrize(
    ("setting", "door", "answers"),
    [
        (None, "api", [403, 403, 403, 200, 403]),
        ("own", "bundle", [403, 403, 403, 200, 403]),
        ("all", "api", [200, 200, 200, 200, 200]),
        ("none", "api", [403, 403, 403, 200, 403]),
        (None, "workspace", [200, 200, 200, 200, 200]),
        (None, "agent", [200, 200, 200, 200, 200]),
        ("none", "workspace", [403, 403, 403, 200, 403]),
    ],
)
def test_the_token_of_an_agent_writes_what_its_setting_allows(
    http: httpx.Client, horarium: TestService, setting: str | None, door: str, answers: list[int]
) -> None:
    agent = of_agent(horarium, "writer")
    written = {"workspace": lambda: make(http), "agent": lambda: make(agent)}.get(door, lambda: by_people(http, door))()
    if setting is not None:
        body = {"url": "https://agents.example.com/writer", "schedules": setting}
        assert http.put("/api/agents/writer", json=body).json()["schedules"] == setting
    assert tried(agent, written) == answers
    made = agent.post("/workspaces/writer/schedules", json={**BODY, "name": "More"})
    assert made.status_code == (403 if setting == "none" else 201)


def test_the_refusal_names_the_setting_and_people_are_not_bound_by_it(
    http: httpx.Client, horarium: TestService
) -> None:
    written, agent = by_people(http, "api"), of_agent(horarium, "writer")
    answer = agent.delete(f"/workspaces/writer/schedules/{written}")
    assert "set schedules: all on the agent" in refused(answer, 403)
    assert http.delete(f"/workspaces/writer/schedules/{written}").status_code == 200


def test_a_person_with_the_name_of_the_agent_is_a_person(http: httpx.Client, horarium: TestService) -> None:
    issued = tenant_service.issue_token(horarium.resources, horarium.caller, name="w", role="owner", subject="writer")
    written, agent = by_people(horarium.http(token=issued.secret), "api"), of_agent(horarium, "writer")
    assert http.get(f"/api/schedules/{written}").json()["owner"] == "writer"
    path = f"/workspaces/writer/schedules/{written}"
    assert [agent.patch(path, json={"prompt": "y"}).status_code, agent.delete(path).status_code] == [403, 403]


@pytest.mark.both_databases
def test_one_without_a_record_of_its_surface_is_not_the_agents(http: httpx.Client, horarium: TestService) -> None:
    agent = of_agent(horarium, "writer")
    own, theirs = make(agent, name="Own"), by_people(http, "api")
    lost = sa.update(schedules).values(written_by=None)
    horarium.resources.database.write(lambda connection: connection.execute(lost))
    path = "/workspaces/writer/schedules"
    answers = [agent.patch(f"{path}/{each}", json={"prompt": "y"}).status_code for each in (own, theirs)]
    assert answers == [403, 403]


def test_a_run_that_awaits_approval_was_not_fired(http: httpx.Client) -> None:
    document = {**PEOPLE, "schedule_id": "asks", "approval_policy": {"requires_approval": True}}
    assert http.post("/api/schedules", json=document).status_code == 201
    answer = http.post("/workspaces/writer/schedules/asks/run")
    assert (answer.status_code, answer.json()["status"]) == (200, "awaiting_approval")
