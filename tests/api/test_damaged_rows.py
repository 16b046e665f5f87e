"""A row that somebody has damaged is marked, and no trouble of the others in a list."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from io import StringIO
from typing import Any

import httpx
import pytest
import sqlalchemy as sa
from api.streams import Listener

from horarium.features.cluster import health
from horarium.features.tenants import service as tenant_service
from horarium.platform.database import processes
from horarium.platform.database.processes import About, Process
from horarium.platform.database.tables import (
    agents,
    approvals,
    assignments,
    calendars,
    history,
    leases,
    namespaces,
    positions,
    run_events,
    run_logs,
    runs,
    schedule_revisions,
    schedules,
    secrets,
    standing_approvals,
    subscriptions,
    teams,
    workflows,
)
from horarium.platform.database.tables import tokens as tokens_table
from horarium.platform.ids import parse_id
from horarium.testing import TestService, service

pytestmark = pytest.mark.both_databases

DAMAGES = {
    "no JSON": '{"spec": ',
    "no object": "[1, 2]",
    "nothing in it": "{}",
    "parts that are none": '{"schedule_id": "b", "namespace": "default", "spec": 7, "action": [], "calendars": 5}',
    "a spec that is none": '{"schedule_id": "b", "spec": {"cron_expressions": 3}, "action": {"kind": "pull"}}',
}


def add(horarium: TestService, *names: str, **given: Any) -> None:
    for name in names:
        horarium.create(schedule_id=name, cron_expressions=["0 2 * * *"], workflow_type="report", **given)


def damage(horarium: TestService, name: str, text: str, revision: int | None = None) -> None:
    mine = [schedule_revisions.c.schedule_uid == uid_of(name)]
    if revision is not None:
        mine.append(schedule_revisions.c.revision == revision)
    done = sa.update(schedule_revisions).where(*mine).values(document=text)
    horarium.resources.database.write(lambda connection: connection.execute(done))


def test_a_definition_that_cannot_be_read_is_marked_and_the_rest_of_the_list_is_there(
    http: httpx.Client, horarium: TestService
) -> None:
    add(horarium, "a", "b", "c", calendars=["weekdays"])
    for name, text in DAMAGES.items():
        damage(horarium, "b", text)
        found = {each["schedule_id"]: each for each in http.get("/api/schedules").json()["schedules"]}
        assert sorted(found) == ["a", "b", "c"], name
        assert found["b"]["broken"].startswith("The definition cannot be read: "), name
        assert (found["b"]["status"], found["b"]["spec"], found["b"]["words"]) == ("active", {}, None)
        assert "broken" not in found["a"]
        assert found["a"]["words"]
        assert http.get("/api/schedules/b").json()["broken"] == found["b"]["broken"]
        obeying = http.get("/api/schedules", params={"calendar": "weekdays", "include": "recent"}).json()["schedules"]
        assert {"a", "c"} <= {each["schedule_id"] for each in obeying}


def test_a_revision_that_cannot_be_read_is_marked_among_the_others(http: httpx.Client, horarium: TestService) -> None:
    add(horarium, "a")
    for cron in ("0 3 * * *", "0 4 * * *"):
        http.patch("/api/schedules/a", json={"spec": {"cron_expressions": [cron]}}).raise_for_status()
    damage(horarium, "a", '{"spec": ', revision=2)
    newest, middle, oldest = http.get("/api/schedules/a/revisions").json()["revisions"]
    assert (middle["revision"], middle["document"], middle["broken"][:21]) == (2, {}, "it is not valid JSON:")
    assert [each["document"]["schedule_id"] for each in (newest, oldest)] == ["a", "a"]
    assert "broken" not in newest
    refused = http.get("/api/schedules/a/revisions/compare", params={"from": 2, "to": 3})
    assert (refused.status_code, list(refused.json()["errors"])) == (422, ["from"])
    assert http.get("/api/schedules/a/revisions/compare", params={"from": 1, "to": 3}).status_code == 200


@pytest.mark.parametrize("column", ["approvers", "requesters", "gates", "proposed"])
def test_a_question_that_cannot_be_read_is_marked_and_decided_by_nobody(
    http: httpx.Client, horarium: TestService, column: str
) -> None:
    add(horarium, "a", "b", approval_policy={"requires_approval": True})
    asking = {name: http.post(f"/api/schedules/{name}/trigger").json()["run_id"] for name in ("a", "b")}
    asked = {each["schedule_id"]: each["approval_id"] for each in http.get("/api/approvals").json()["approvals"]}
    mine = sa.update(approvals).where(approvals.c.approval_id == bytes.fromhex(_hex(horarium, "a")))
    horarium.resources.database.write(lambda connection: connection.execute(mine.values({column: "[oh"})))
    found = {each["schedule_id"]: each for each in http.get("/api/approvals").json()["approvals"]}
    assert found["a"]["broken"].startswith(f"{column}: ")
    assert "broken" not in found["b"]
    issued = tenant_service.issue_token(horarium.resources, horarium.caller, name="bob", role="operator", subject="bob")
    bob = horarium.http(token=issued.secret)
    said = {"decision": "approve"}
    assert bob.post(f"/api/approvals/{asked['a']}/decision", json=said).status_code == 409
    assert bob.post(f"/api/approvals/{asked['b']}/decision", json=said).status_code == 200
    assert http.post(f"/api/runs/{asking['a']}/cancel").status_code == 200


def _hex(horarium: TestService, schedule_id: str) -> str:
    of = sa.select(schedules.c.schedule_uid).where(schedules.c.schedule_id == schedule_id).scalar_subquery()
    asked = sa.select(approvals.c.approval_id).where(approvals.c.schedule_uid == of)
    found: bytes = horarium.resources.database.read(lambda connection: connection.execute(asked).scalar_one())
    return found.hex()


def test_it_is_logged_once_however_often_somebody_looks() -> None:
    log = StringIO()
    with service(log_to=log) as horarium:
        add(horarium, "a", "b")
        damage(horarium, "b", "[]")
        for _ in range(3):
            for path in ("", "/b", "/b/revisions"):
                horarium.http().get(f"/api/schedules{path}").raise_for_status()
    told = [line for line in log.getvalue().splitlines() if "stored_row_unreadable" in line]
    assert [("default/b 1" in line, "it is not a JSON object" in line) for line in told] == [
        (False, True),
        (True, True),
    ]


# ── runs and workflows ───────────────────────────────────────────────────────────────────────────────


def change(horarium: TestService, table: sa.Table, column: str, text: str, *where: sa.ColumnElement[bool]) -> None:
    done = sa.update(table).where(*where).values({column: text})
    horarium.resources.database.write(lambda connection: connection.execute(done))


def kept(horarium: TestService, table: sa.Table, column: str) -> list[str]:
    asked = sa.select(table.c[column])
    return horarium.resources.database.read(lambda connection: list(connection.execute(asked).scalars()))


@pytest.mark.parametrize("column", ["inputs", "result", "requested_by"])
def test_a_run_is_shown_as_far_as_it_can_be_read(http: httpx.Client, horarium: TestService, column: str) -> None:
    add(horarium, "a", "b")
    ids = {name: http.post(f"/api/schedules/{name}/trigger").json()["run_id"] for name in ("a", "b")}
    horarium.settle()
    change(horarium, runs, column, "[oh", runs.c.run_id == parse_id(ids["a"], "run_id"))
    shown = http.get(f"/api/runs/{ids['a']}")
    assert shown.status_code == 200, shown.text
    assert shown.json()["broken"].startswith(f"{column}: it is not ")
    assert (shown.json()["run_id"], shown.json()["inputs"], shown.json()["result"]) == (ids["a"], None, None)
    assert "broken" not in http.get(f"/api/runs/{ids['b']}").json()
    for path in ("/api/runs", "/api/schedules/a", "/api/schedules/a/runs"):
        assert http.get(path).status_code == 200, path
    for path in ("events", "logs"):
        assert http.get(f"/api/runs/{ids['a']}/{path}").status_code == 200, path
    assert "[oh" in kept(horarium, runs, column), "nothing was overwritten"


def test_a_result_that_only_looks_like_a_mark_is_a_result(http: httpx.Client, horarium: TestService) -> None:
    add(horarium, "a")
    run_id = http.post("/api/schedules/a/trigger").json()["run_id"]
    honest = {"damaged": "two boxes"}
    change(horarium, runs, "result", json.dumps(honest))
    shown = http.get(f"/api/runs/{run_id}").json()
    assert (shown["result"], "broken" in shown) == (honest, False)


def test_what_a_run_was_given_is_not_given_to_another_when_it_cannot_be_read(
    http: httpx.Client, horarium: TestService
) -> None:
    add(horarium, "a")
    run_id = http.post("/api/schedules/a/trigger", json={"inputs": {"part": 1}}).json()["run_id"]
    http.post(f"/api/runs/{run_id}/terminate").raise_for_status()
    change(horarium, runs, "inputs", "[oh")
    assert http.post(f"/api/runs/{run_id}/rerun").status_code == 409
    assert http.post(f"/api/runs/{run_id}/rerun", json={"inputs": {"part": 2}}).status_code == 200


def test_a_question_about_inputs_that_cannot_be_read_is_decided_by_nobody(
    http: httpx.Client, horarium: TestService
) -> None:
    add(horarium, "a", approval_policy={"requires_approval": True, "allow_requester": True})
    http.post("/api/schedules/a/trigger", json={"inputs": {"part": 1}}).raise_for_status()
    change(horarium, runs, "inputs", "[oh")
    (asked,) = http.get("/api/approvals").json()["approvals"]
    assert (asked["inputs"], asked["broken"][:8]) == (None, "inputs: ")
    said = http.post(f"/api/approvals/{asked['approval_id']}/decision", json={"decision": "approve"})
    assert said.status_code == 409


def test_events_that_cannot_be_read_say_so_themselves(http: httpx.Client, horarium: TestService) -> None:
    add(horarium, "a")
    run_id = http.post("/api/schedules/a/trigger").json()["run_id"]
    http.post(f"/api/runs/{run_id}/terminate").raise_for_status()
    change(horarium, run_events, "payload", "[oh")
    change(horarium, history, "payload", "7")
    told = http.get(f"/api/runs/{run_id}/events").json()["events"]
    assert any(each["payload"].get("damaged", "").startswith("it is not valid JSON: ") for each in told)
    of_schedule = http.get("/api/schedules/a/history").json()["events"]
    assert {each["payload"].get("damaged") for each in of_schedule} == {"it is not a JSON object"}
    assert http.get("/api/feed").status_code == 200
    assert http.get("/api/schedules/a/revisions").status_code == 200


def test_lines_that_cannot_be_read_are_one_line_that_says_so(http: httpx.Client, horarium: TestService) -> None:
    add(horarium, "a")
    run_id = http.post("/api/schedules/a/trigger").json()["run_id"]
    rows = [(1, '[[1000000,"stdout","first"]]'), (3, "[oh"), (5, "[[1, 2]]"), (6, '[[2000000,"stdout","last"]]')]
    of = {"run_id": parse_id(run_id, "run_id"), "attempt": 0, "bytes": 9}
    values = [{**of, "sequence": number, "lines": text} for number, text in rows]
    horarium.resources.database.write(lambda connection: connection.execute(sa.insert(run_logs), values))
    lines = http.get(f"/api/runs/{run_id}/logs").json()["lines"]
    assert [each["number"] for each in lines] == [1, 3, 5, 6]
    assert [each["text"][:27] for each in lines[1:3]] == ["lines up to 3 cannot be rea", "lines up to 5 cannot be rea"]


def test_a_yes_beforehand_that_cannot_be_read_says_yes_to_nothing(http: httpx.Client, horarium: TestService) -> None:
    add(horarium, "a", approval_policy={"requires_approval": True})
    issued = tenant_service.issue_token(horarium.resources, horarium.caller, name="bob", role="operator", subject="bob")
    bob = horarium.http(token=issued.secret)
    bob.post("/api/approvals/standing", json={"schedule_id": "a", "gates": []}).raise_for_status()
    change(horarium, standing_approvals, "gates", "[oh")
    (shown,) = http.get("/api/approvals/standing").json()["standing"]
    assert (shown["gates"], shown["broken"][:7]) == ([], "gates: ")
    http.post("/api/schedules/a/trigger").raise_for_status()
    assert [each["status"] for each in http.get("/api/approvals").json()["approvals"]] == ["pending"]


def test_a_standing_approval_whose_times_cannot_be_read_approves_nothing_and_breaks_nothing(
    http: httpx.Client, horarium: TestService
) -> None:
    add(horarium, "a", approval_policy={"requires_approval": True})
    http.put("/api/workflows/one", json={"nodes": [NODE]}).raise_for_status()
    issued = tenant_service.issue_token(horarium.resources, horarium.caller, name="bob", role="operator", subject="bob")
    bob = horarium.http(token=issued.secret)
    bob.post("/api/approvals/standing", json={"schedule_id": "a", "gates": []}).raise_for_status()
    damaged = sa.update(standing_approvals).values(created_at=BEYOND, workflow_id="one")
    horarium.resources.database.write(lambda connection: connection.execute(damaged))
    http.post("/api/schedules/a/trigger").raise_for_status()
    horarium.advance(hours=30)
    assert {run.state for run in horarium.runs("a")} <= {"awaiting_approval", "expired", "skipped"}
    assert http.get("/api/schedules/a").json()["status"] == "active"
    changed = http.put("/api/workflows/one", json={"nodes": [{**NODE, "id": "other"}]})
    assert changed.status_code == 200, changed.text
    (kept,) = http.get("/api/approvals/standing").json()["standing"]
    assert kept["unreadable"] is True


def test_a_workflow_that_cannot_be_read_is_shown_as_one(http: httpx.Client, horarium: TestService) -> None:
    node = {"id": "a", "action": {"kind": "pull", "queue": "q", "workflow_type": "x"}}
    for name in ("one", "two"):
        http.put(f"/api/workflows/{name}", json={"nodes": [node]}).raise_for_status()
    run_id = http.post("/api/workflows/one/runs", json={}).json()["run_id"]
    horarium.settle()
    steps = http.get(f"/api/runs/{run_id}").json()["steps"]
    change(horarium, runs, "result", "[oh", runs.c.run_id == parse_id(steps[0]["run_id"], "run_id"))
    for text in ("[oh", "7"):
        change(horarium, workflows, "document", text, workflows.c.workflow_id == "one")
        shown = http.get("/api/workflows/one").json()
        assert (shown["graph"], list(shown["document"])) == (None, ["damaged"])
        assert http.get("/api/workflows/one/versions").status_code == 200
        assert [each["workflow_id"] for each in http.get("/api/workflows").json()["workflows"]] == ["one", "two"]
        (step,) = http.get(f"/api/runs/{run_id}").json()["steps"]
        assert (step["result"], step["broken"][:8]) == (None, "result: ")
    assert http.put("/api/workflows/one", json={"nodes": [node]}).json()["version"] == 2, "a new one mends it"


@pytest.mark.parametrize(("column", "value"), [("state", "melted"), ("started_at", 2**61), ("assignee_type", "melted")])
def test_a_step_that_cannot_be_read_is_unreadable_beside_the_other_steps_of_its_run(
    http: httpx.Client, horarium: TestService, column: str, value: Any
) -> None:
    nodes = [{**NODE, "id": name} for name in ("first", "second")]
    http.put("/api/workflows/two", json={"nodes": nodes}).raise_for_status()
    run_id = http.post("/api/workflows/two/runs", json={}).json()["run_id"]
    horarium.settle()
    first, second = http.get(f"/api/runs/{run_id}").json()["steps"]
    own = runs.c.run_id == parse_id(first["run_id"], "run_id")
    done = sa.update(runs).where(own).values({"assignee": "x", column: value})
    horarium.resources.database.write(lambda connection: connection.execute(done))
    damaged, other = http.get(f"/api/runs/{run_id}").json()["steps"]
    assert (damaged["id"], damaged["unreadable"], other) == (first["run_id"], True, second)
    with horarium.client() as client:
        found = client.get_run(run_id)
    assert [step.run_id for step in found.steps or ()] == [second["run_id"]]
    assert [row.id for row in found.unreadable_rows] == [first["run_id"]]
    single = http.get(f"/api/runs/{first['run_id']}")
    assert (single.status_code, single.json()["reason"], column in single.text) == (500, "unreadable_row", True)


@pytest.mark.parametrize("values", [{"beat_at": 2**61}, {"since": 2**61}, {"info": "[oh"}, {"info": "7"}])
def test_the_row_of_a_process_that_cannot_be_read_makes_no_other_process_unready(
    http: httpx.Client, horarium: TestService, values: dict[str, Any]
) -> None:
    about = About("here", roles=("ticker",))
    told = Process(about, {"ticker": horarium.now}, None, False, 0)
    for name in ("bad", "good"):
        horarium.resources.database.write(lambda c, name=name: processes.beat_process(c, name, told, horarium.now))
    own = sa.update(leases).where(leases.c.name == "process:bad").values(values)
    horarium.resources.database.write(lambda connection: connection.execute(own))
    assert health.read_figures(horarium.resources).ticked_at == horarium.now
    shown = {each.get("name", each.get("id")): each for each in http.get("/api/cluster/processes").json()["processes"]}
    assert (set(shown), shown["bad"].get("unreadable", False)) == ({"bad", "good"}, "info" not in values)
    assert http.get("/admin/liveness").status_code in (200, 503)


def test_a_cycle_that_cannot_be_read_stops_its_workflow_and_no_list(http: httpx.Client, horarium: TestService) -> None:
    http.put("/api/workflows/one", json={"nodes": [NODE]}).raise_for_status()
    add(horarium, "a")
    horarium.create(schedule_id="b", cron_expressions=["0 2 * * *"], action={"kind": "workflow", "workflow_id": "one"})
    for text in ("[oh", "7"):
        change(horarium, workflows, "cycle", text)
        for path in ("/api/schedules", "/api/agenda", "/api/overview", "/api/schedules/b", "/api/workflows"):
            assert http.get(path).status_code == 200, path
    horarium.advance(hours=30)
    assert (len(horarium.runs("a")), horarium.runs("b")) == (2, [])
    assert {each.payload.get("reason") for each in horarium.history("b")[1:]} == {"cycle_detected"}


# ── rows that cannot be read as a whole ──────────────────────────────────────────────────────────────

BEYOND = 2**61
"""An instant that no calendar has."""


@dataclass(frozen=True)
class Damaged:
    """A list, its rows and the name of each; `single` shows one. Damaged are `columns` of `table`, one at a time."""

    path: str
    rows: str
    name: str
    table: sa.Table
    columns: dict[str, Any]
    single: str | None = None


SECRET = "c2VjcmV0IG9mIDE2IGJ5dGVz"
NODE = {"id": "a", "action": {"kind": "pull", "queue": "q", "workflow_type": "x"}}
LISTS = {
    "schedules": Damaged(
        "/api/schedules",
        "schedules",
        "schedule_id",
        schedules,
        {"updated_at": BEYOND},
        "/api/schedules/{id}",
    ),
    "positions of schedules": Damaged(
        "/api/schedules",
        "schedules",
        "schedule_id",
        positions,
        {"status": "melted", "last_fired_at": BEYOND},
        "/api/schedules/{id}",
    ),
    "health": Damaged(
        "/api/health/schedules", "schedules", "schedule_id", positions, {"status": "melted", "last_fired_at": BEYOND}
    ),
    "runs": Damaged(
        "/api/runs",
        "runs",
        "run_id",
        runs,
        {"state": "melted", "origin": "melted", "delivery": "melted", "nominal": BEYOND, "created_at": BEYOND},
        "/api/runs/{id}",
    ),
    "approvals": Damaged(
        "/api/approvals?status=all",
        "approvals",
        "approval_id",
        approvals,
        {"decision": "melted", "requested_at": BEYOND},
        "/api/approvals/{id}",
    ),
    "runs of approvals": Damaged("/api/approvals?status=all", "approvals", "approval_id", runs, {"origin": "melted"}),
    "standing approvals": Damaged(
        "/api/approvals/standing", "standing", "standing_id", standing_approvals, {"created_at": BEYOND}
    ),
    "calendars": Damaged(
        "/api/calendars",
        "calendars",
        "name",
        calendars,
        {"document": "[oh", "updated_at": BEYOND},
        "/api/calendars/{id}",
    ),
    "subscriptions": Damaged(
        "/api/subscriptions",
        "subscriptions",
        "subscription_id",
        subscriptions,
        {"last_delivered_at": BEYOND},
        "/api/subscriptions/{id}",
    ),
    "workflows": Damaged(
        "/api/workflows",
        "workflows",
        "workflow_id",
        workflows,
        {"uses": "[oh", "created_at": BEYOND},
        "/api/workflows/{id}",
    ),
    "agents": Damaged("/api/agents", "agents", "id", agents, {"document": "[oh"}, "/api/agents/{id}"),
    "teams": Damaged("/api/teams", "teams", "team_id", teams, {"document": "[oh"}, "/api/teams/{id}"),
    "assignments": Damaged(
        "/api/assignments", "assignments", "assignment_id", assignments, {"document": "7"}, "/api/assignments/{id}"
    ),
    "tokens": Damaged("/api/tokens", "tokens", "token_id", tokens_table, {"queues": "[oh", "last_used_at": BEYOND}),
    "secrets": Damaged("/api/secrets", "secrets", "name", secrets, {"hosts": "[oh", "updated_at": BEYOND}),
    "namespaces": Damaged("/api/namespaces", "namespaces", "namespace", namespaces, {"created_at": BEYOND}),
    "feed": Damaged("/api/feed", "entries", "id", history, {"event_type": "melted", "recorded_at": BEYOND}),
    "history": Damaged(
        "/api/schedules/a/history", "events", "sequence", history, {"event_type": "melted", "nominal": BEYOND}
    ),
}


def fill(http: httpx.Client, horarium: TestService) -> None:
    """Two rows at least in each list."""
    add(horarium, "free")
    http.post("/api/schedules/free/trigger").raise_for_status()
    add(horarium, "a", "b", approval_policy={"requires_approval": True})
    for name in ("a", "b"):
        http.post(f"/api/schedules/{name}/trigger").raise_for_status()
        http.put(f"/api/workflows/{name}", json={"nodes": [NODE]}).raise_for_status()
        url = "https://example.com/hook"
        http.post("/api/agents", json={"id": name, "name": name, "url": url}).raise_for_status()
        made = {
            "calendars": {"name": name, "kind": "skip_dates", "dates": ["2026-12-25"]},
            "subscriptions": {
                "name": name,
                "kinds": ["run_finished"],
                "url": url,
                "secret": "c2VjcmV0IG9mIDE2IGJ5dGVz",
            },
            "teams": {"team_id": name, "name": name, "members": [name], "lead": name},
            "assignments": {"assignment_id": name, "workflow_id": name, "assignee_type": "agent", "assignee_id": name},
            "tokens": {"name": name, "role": "viewer"},
            "namespaces": {"namespace": name},
            "approvals/standing": {"schedule_id": name, "gates": []},
        }
        for path, body in made.items():
            answer = http.post(f"/api/{path}", json=body)
            assert answer.is_success, (path, answer.text)
        http.put(f"/api/secrets/{name}", json={"value": "hidden"}).raise_for_status()


def first_row(connection: sa.Connection, table: sa.Table, name: str) -> sa.ColumnElement[bool]:
    """Return the row that was written first, for a list that names rows by something else."""
    key = table.c[name] if table is workflows else list(table.primary_key.columns)[-1]
    chosen = {
        (history, "sequence"): history.c.schedule_uid == uid_of("a"),
        (runs, "approval_id"): runs.c.needs_approval,
    }.get((table, name), sa.true())
    found = connection.execute(sa.select(key).where(chosen).order_by(key).limit(1))
    own: sa.ColumnElement[bool] = key == found.scalar_one()
    return own


def uid_of(name: str) -> sa.ScalarSelect[Any]:
    return sa.select(schedules.c.schedule_uid).where(schedules.c.schedule_id == name).scalar_subquery()


def test_a_row_that_cannot_be_read_is_shown_as_unreadable_beside_the_others(
    http: httpx.Client, horarium: TestService
) -> None:
    fill(http, horarium)
    wrong = {}
    for what, each in LISTS.items():
        for column, value in each.columns.items():
            healthy = http.get(each.path).json()[each.rows]
            put_back = break_one(horarium, each, column, value)
            wrong[f"{what}, {column}"] = what_is_wrong(http, each, column, [str(row[each.name]) for row in healthy])
            put_back()
    assert {case: found for case, found in wrong.items() if found is not None} == {}


def what_is_wrong(http: httpx.Client, each: Damaged, column: str, healthy: list[str]) -> object:
    """Return what an answer does not keep of its promise; None = it keeps all."""
    answer = http.get(each.path)
    if answer.status_code != 200:
        return answer.text
    found = answer.json()[each.rows]
    marked = [row for row in found if row.get("unreadable") is True]
    if len(marked) != 1 or [str(row["id"] if row in marked else row[each.name]) for row in found] != healthy:
        return found
    detail = marked[0].pop("detail")
    if set(marked[0]) != {"id", "unreadable"} or not detail.startswith((f"{column}: ", "document: ")):
        return marked, detail
    if each.single is None:
        return None
    single = http.get(each.single.format(id=marked[0]["id"]))
    is_clear = single.status_code == 500 and single.json()["reason"] == "unreadable_row" and column in single.text
    return None if single.status_code == 200 or is_clear else single.text


def break_one(horarium: TestService, each: Damaged, column: str, value: Any) -> Callable[[], None]:
    """Damage one row of a table; the function that is returned mends it."""

    def work(connection: sa.Connection) -> tuple[sa.ColumnElement[bool], Any]:
        where = first_row(connection, each.table, each.name)
        before = connection.execute(sa.select(each.table.c[column]).where(where)).scalar_one()
        connection.execute(sa.update(each.table).where(where).values({column: value}))
        return where, before

    where, before = horarium.resources.database.write(work)
    mended = sa.update(each.table).where(where).values({column: before})

    def put_back() -> None:
        horarium.resources.database.write(lambda connection: connection.execute(mended))

    return put_back


def test_the_client_reads_past_rows_that_cannot_be_read_and_names_them(
    http: httpx.Client, horarium: TestService
) -> None:
    fill(http, horarium)
    put_back = break_one(horarium, LISTS["runs"], "state", "melted")
    with horarium.client() as client:
        page = client.list_runs()
        assert [(run.schedule_id, run.state) for run in page] == [
            ("b", "awaiting_approval"),
            ("a", "awaiting_approval"),
        ]
        (bad,) = page.unreadable_rows
        assert (bad.id, bad.detail) == (http.get("/api/runs").json()["runs"][-1]["id"], "state: 'melted' is not known")
        assert len(list(client.iter_runs(page_size=1))) == 2
        put_back()
        assert client.list_runs().unreadable_rows == ()


def test_the_stream_tells_of_an_entry_that_cannot_be_read_and_goes_on(
    http: httpx.Client, horarium: TestService
) -> None:
    add(horarium, "a", "b")
    break_one(horarium, LISTS["feed"], "event_type", "melted")
    listener = Listener(horarium.parts.api, query="after=0-0")
    listener.listen(lambda heard: len(heard.heard) >= 2)
    first, second = listener.heard[:2]
    assert (first["event"], json.loads(first["data"])["unreadable"]) == ("unreadable", True)
    assert (second["event"], json.loads(second["data"])["schedule_id"]) == ("schedule_created", "b")


TEXT: Any = sa.literal_column("'noon'")
"""SQLite holds it in a column of numbers."""


@pytest.mark.parametrize("dialect", ["sqlite"])
def test_a_text_in_a_column_of_numbers_is_a_row_that_cannot_be_read(
    http: httpx.Client, horarium: TestService, dialect: str
) -> None:
    fill(http, horarium)
    for name, columns in {
        "positions of schedules": ["active", "runs_born", "decided_until", "rotation_index"],
        "runs": ["attempt", "cost"],
        "standing approvals": ["max_uses"],
        "tokens": ["expires_at"],
    }.items():
        each = LISTS[name]
        for column in columns:
            healthy = http.get(each.path).json()[each.rows]
            put_back = break_one(horarium, each, column, TEXT)
            answer = http.get(each.path)
            assert answer.status_code == 200, (name, column, answer.text)
            assert len(answer.json()[each.rows]) == len(healthy)
            for path in ("/api/agenda", "/api/overview", "/api/approvals/standing"):
                window = {"from": "2026-03-01T00:00:00Z", "to": "2026-03-03T00:00:00Z"} if "agenda" in path else {}
                assert http.get(path, params=window).status_code == 200, (name, column, path)
            put_back()


# ── views of a whole namespace ───────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("table", "column", "value"),
    [
        (positions, "status", "of a later version"),
        (positions, "decided_until", 2**62),
        (positions, "paused_until", 2**62),
        (positions, "active", 2**31 - 1),
        (positions, "held", 2**31 - 1),
        (positions, "held", -1),
        (positions, "last_state", "of a later version"),
        (positions, "revision", 2**31 - 1),
        (schedule_revisions, "document", '{"spec": 7}'),
        (history, "event_type", "OfALaterVersion"),
        (history, "payload", "[oh"),
        (runs, "state", "of a later version"),
        (runs, "started_at", 2**62),
    ],
)
def test_a_row_that_cannot_be_read_takes_no_view_of_the_namespace_down(
    http: httpx.Client, horarium: TestService, table: sa.Table, column: str, value: object
) -> None:
    add(horarium, "a", "b")
    horarium.advance(hours=30)
    horarium.settle()
    done = sa.update(table).where(table.c.schedule_uid == uid_of("b")).values({column: value})
    horarium.resources.database.write(lambda connection: connection.execute(done))
    window = {"from": "2026-03-01T00:00:00Z", "to": "2026-03-05T00:00:00Z"}
    for lanes in ({}, {"lanes": "true", "bucket_seconds": "3600"}):
        shown = http.get("/api/agenda", params={**window, **lanes})
        assert shown.status_code == 200, shown.text
        assert "a" in {row["schedule_id"] for row in shown.json()["rows"]}
    for path in ("/api/overview", "/api/runs", "/api/schedules", "/api/feed", "/api/health/schedules"):
        assert http.get(path).status_code == 200, path
    for path in ("", "/health", "/preview", "/history", "/runs", "/revisions"):
        single = http.get(f"/api/schedules/b{path}")
        assert single.status_code < 500 or single.json()["reason"] == "unreadable_row", (path, single.text)
