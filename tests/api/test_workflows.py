"""Workflows through the door: versions, owners, who needs them, the schedules of their triggers, and a direct start."""

from __future__ import annotations

import threading
from typing import Any

import httpx
import pytest
import sqlalchemy as sa

from horarium.platform.database.tables import secrets, workflows
from horarium.testing import Finished, TestService

ONE = pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
CALL = {"kind": "http", "url": "https://example.com/hook"}
NIGHTLY: dict[str, Any] = {
    "key": "nightly",
    "schedule": {"cron_expressions": ["0 2 * * *"], "timezone": "Europe/Istanbul"},
}
HOURLY = {"key": "hourly", "schedule": {"cron_expressions": ["0 * * * *"]}}


def brief(*nodes: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"name": "Daily brief", "nodes": list(nodes) or [{"id": "fetch", "action": CALL}], **more}


def part(name: str, **action: Any) -> dict[str, Any]:
    return {"id": name, "action": {"kind": "workflow", "workflow_id": name, **action}}


def put(http: httpx.Client, workflow_id: str, document: dict[str, Any], **headers: str) -> httpx.Response:
    return http.put(f"/api/workflows/{workflow_id}", json=document, headers=headers)


def written(answer: httpx.Response) -> tuple[int, int, str]:
    body = answer.json()
    assert answer.is_success, body
    return answer.status_code, body["version"], body["outcome"]


def templates(answer: httpx.Response) -> dict[str, str]:
    assert answer.is_success, answer.text
    return {each["schedule_id"]: each["outcome"] for each in answer.json()["schedules"]}


def door(horarium: TestService, name: str, role: str = "owner") -> httpx.Client:
    issued = horarium.http().post("/api/tokens", json={"name": name, "role": role}).json()
    return horarium.http(token=issued["secret"])


# ── versions ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.both_databases
def test_each_change_is_a_version_and_an_equal_document_makes_none(http: httpx.Client) -> None:
    two = brief({"id": "fetch", "action": CALL}, {"id": "send", "needs": ["fetch"], "action": CALL})
    alike = {**two, "edges": [{"from": "fetch", "to": "send"}]}
    alike["nodes"] = [{"id": "fetch", "action": {"url": CALL["url"]}}, {"node_id": "send", "action": CALL}]
    assert written(put(http, "brief", brief())) == (201, 1, "created")
    assert written(put(http, "brief", two)) == (200, 2, "updated")
    assert written(put(http, "brief", alike)) == (200, 2, "unchanged")
    newest = http.get("/api/workflows/brief")
    assert newest.headers["etag"] == '"2"'
    assert newest.json()["graph"] == {"order": ["fetch", "send"], "starts": ["fetch"], "ends": ["send"]}
    assert newest.json() == http.get("/api/workflows/brief", params={"version": "latest"}).json()
    first = http.get("/api/workflows/brief", params={"version": 1}).json()
    assert (first["version"], [node["id"] for node in first["document"]["nodes"]]) == (1, ["fetch"])
    page = http.get("/api/workflows/brief/versions", params={"page_size": 1}).json()
    rest = http.get("/api/workflows/brief/versions", params={"next_page_token": page["next_page_token"]}).json()
    assert [each["version"] for each in (*page["versions"], *rest["versions"])] == [2, 1]
    assert rest["next_page_token"] is None


@ONE
def test_a_version_that_somebody_has_not_seen_is_not_overwritten(http: httpx.Client) -> None:
    assert put(http, "brief", brief(), **{"If-Match": '"1"'}).status_code == 412
    put(http, "brief", brief())
    assert written(put(http, "brief", brief(name="Other"), **{"If-Match": '"1"'})) == (200, 2, "updated")
    late = put(http, "brief", brief(name="Third"), **{"If-Match": '"1"'})
    assert (late.status_code, late.json()["version"]) == (412, 2)


def test_versions_that_are_put_at_once_are_all_kept(horarium: TestService) -> None:
    """Whoever comes second begins again, and is counted after the first."""
    http, answers, doors = horarium.http(), [], [horarium.http() for _ in range(4)]

    def one(number: int) -> None:
        answers.append(put(doors[number], "brief", brief(description=f"number {number}")))

    threads = [threading.Thread(target=one, args=(number,)) for number in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sorted(answer.json()["version"] for answer in answers) == [1, 2, 3, 4]
    kept = [http.get("/api/workflows/brief", params={"version": version}).json() for version in (1, 2, 3, 4)]
    assert {each["document"]["description"] for each in kept} == {f"number {number}" for number in range(4)}


@ONE
def test_workflows_are_listed_by_id_and_found_by_owner_and_text(horarium: TestService) -> None:
    http, ada = horarium.http(), door(horarium, "ada")
    for name in ("c", "a", "b"):
        put(http, name, brief(name=f"Number {name}%"))
    put(ada, "hers", brief(name="Hers"))

    def ids(**params: Any) -> list[str]:
        return [row["workflow_id"] for row in http.get("/api/workflows", params=params).json()["workflows"]]

    assert ids() == ["a", "b", "c", "hers"]
    assert (ids(owner="ada"), ids(text="NUMBER A"), ids(text="%"), ids(text="er")) == (
        ["hers"],
        ["a"],
        ["a", "b", "c"],
        ["a", "b", "c", "hers"],
    )
    first = http.get("/api/workflows", params={"page_size": 3}).json()
    assert (first["next_page_token"], ids(next_page_token=first["next_page_token"])) == ("c", ["hers"])


@ONE
def test_what_is_not_there_is_said_so(http: httpx.Client) -> None:
    put(http, "brief", brief())
    for path in ("ghost", "ghost/versions", "brief?version=9"):
        answer = http.get(f"/api/workflows/{path}")
        assert (answer.status_code, answer.json()["reason"]) == (404, "workflow_not_found"), path
    assert http.delete("/api/workflows/ghost").status_code == 404
    assert http.post("/api/workflows/ghost/runs", json={}).status_code == 404
    for version in ("0", "-1", "two", "99999999999"):
        assert http.get("/api/workflows/brief", params={"version": version}).status_code == 422, version
    assert put(http, "a b", brief()).json()["errors"].keys() == {"workflow_id"}
    elsewhere = brief({"id": "a", "action": {}}, workflow_id="other")
    assert put(http, "brief", elsewhere).json()["errors"].keys() == {"workflow_id", "nodes.0.action"}
    assert put(http, "brief", brief(workflow_id="other")).json()["errors"].keys() == {"workflow_id"}


@ONE
def test_all_that_is_wrong_is_told_at_once_and_validate_tells_the_same(http: httpx.Client) -> None:
    wrong = brief(
        {"id": "a", "action": {"kind": "sorcery"}},
        {"id": "b", "action": CALL, "needs": ["a", "b"], "input": {"x": {"$from": "/results/c"}}},
        {"id": "c", "action": CALL, "needs": ["b"]},
        triggers=[
            {"schedule": {"cron_expressions": ["99 * * * *"], "timezone": "Nowhere/At_All"}},
            {"key": "own", "schedule": {"cron_expressions": ["0 * * * *"], "action": {"url": "x"}}},
        ],
    )
    refused, checked = put(http, "brief", wrong), http.post("/api/workflows/validate", json=wrong)
    assert refused.status_code == checked.status_code == 422
    assert refused.json()["errors"] == checked.json()["errors"]
    assert set(refused.json()["errors"]) == {
        *("nodes.0.action.kind", "nodes.1.needs", "nodes.1.input.x"),
        *("triggers.0.schedule.cron_expressions.0", "triggers.0.schedule.timezone", "triggers.1.schedule.action"),
    }
    on_cycle = {"x": {"$from": "/results/b"}}  # each comes before the other
    apart = {"x": {"$from": "/results/b"}, "y": [{"$from": "/results/c"}]}
    round_ = brief(
        {"id": "a", "action": CALL, "needs": ["b"], "input": on_cycle},
        {"id": "b", "action": CALL, "needs": ["a"]},
        {"id": "c", "action": CALL, "needs": ["b"], "input": on_cycle},
        {"id": "d", "action": CALL, "input": apart},
    )
    for answer in (put(http, "brief", round_), http.post("/api/workflows/validate", json=round_)):
        assert set(answer.json()["errors"]) == {"edges", "nodes.3.input.x", "nodes.3.input.y.0"}
    circle = brief({"id": "a", "action": CALL, "needs": ["b"]}, {"id": "b", "action": CALL, "needs": ["a"]})
    answer = put(http, "brief", circle).json()
    assert (answer["reason"], list(answer["errors"])) == ("cycle_detected", ["edges"])
    assert http.get("/api/workflows").json()["workflows"] == []


@ONE
def test_validate_answers_with_the_document_as_it_would_be_kept(http: httpx.Client) -> None:
    sent = brief(
        {"id": "a", "action": {"url": CALL["url"], "headers": {"Authorization": "Bearer s3cret"}}},
        {"id": "b", "action": CALL, "input": {"key": {"$secret": "not-yet"}}},
        edges=[{"from": "a", "to": "b"}],
    )
    answer = http.post("/api/workflows/validate", json=sent)
    assert answer.status_code == 200, answer.text
    body = answer.json()
    assert [(node["id"], node.get("needs")) for node in body["document"]["nodes"]] == [("a", None), ("b", ["a"])]
    assert body["graph"] == {"order": ["a", "b"], "starts": ["a"], "ends": ["b"]}
    assert "s3cret" not in answer.text
    assert body["warnings"] == ["nodes.1.action: the secret 'not-yet' is not set; the step fails to launch without it"]
    assert http.get("/api/workflows").json()["workflows"] == []


# ── owners, secrets, parts ───────────────────────────────────────────────────────────────────────────


@ONE
def test_only_its_owner_or_an_admin_changes_deletes_schedules_and_starts_a_workflow(horarium: TestService) -> None:
    admin, ada, eve = horarium.http(), door(horarium, "ada"), door(horarium, "eve")
    assert written(put(ada, "brief", brief())) == (201, 1, "created")
    assert put(eve, "brief", brief(name="Mine")).status_code == 403
    assert eve.delete("/api/workflows/brief").status_code == 403
    assert eve.post("/api/workflows/brief/runs", json={}).status_code == 403
    assert put(eve, "gift", brief(owner="ada")).status_code == 403
    schedule = {"schedule_id": "s", "cron_expressions": ["0 * * * *"], "workflow_id": "brief"}
    assert eve.post("/api/schedules", json=schedule).status_code == 403
    assert ada.post("/api/schedules", json=schedule).status_code == 201
    assert put(door(horarium, "viewer", "viewer"), "x", brief()).status_code == 403
    assert written(put(admin, "brief", brief(description="by an admin"))) == (200, 2, "updated")
    assert admin.get("/api/workflows/brief").json()["owner"] == "ada"
    assert written(put(ada, "brief", brief(description="still hers", owner="ada"))) == (200, 3, "updated")


@ONE
def test_a_workflow_that_changes_hands_takes_its_schedules_along_and_leaves_others_behind(
    horarium: TestService,
) -> None:
    admin, ada, eve = horarium.http(), door(horarium, "ada"), door(horarium, "eve")
    put(ada, "brief", brief(triggers=[HOURLY]))
    schedule = {"schedule_id": "hers", "cron_expressions": ["30 * * * *"], "workflow_id": "brief"}
    assert ada.post("/api/schedules", json=schedule).status_code == 201
    assert templates(put(admin, "brief", brief(triggers=[HOURLY], owner="eve"))) == {"workflow:brief:hourly": "updated"}
    assert put(ada, "brief", brief()).status_code == 403
    assert admin.get("/api/schedules/workflow:brief:hourly").json()["owner"] == "eve"
    horarium.advance(hours=1)
    told = {each: horarium.history(each)[-1] for each in ("hers", "workflow:brief:hourly")}
    assert told["hers"].payload["reason"] == "not_the_owner"
    assert str(told["workflow:brief:hourly"].event_type) == "ScheduleTriggered"
    # A pause that somebody ends is no way round it: the next occurrence is asked again.
    assert (
        ada.post("/api/schedules/hers/pause").status_code == ada.post("/api/schedules/hers/resume").status_code == 200
    )
    horarium.advance(hours=1)
    assert horarium.history("hers")[-1].payload["reason"] == "not_the_owner"
    assert eve.delete("/api/schedules/hers").status_code == 403


@ONE
def test_a_schedule_on_a_workflow_with_a_cycle_is_neither_written_nor_resumed_nor_fired(horarium: TestService) -> None:
    """Nothing puts such a row: an older program, or a hand in the database, may have."""
    http = horarium.http()
    schedule = {"schedule_id": "s", "cron_expressions": ["0 * * * *"], "workflow_id": "looped"}
    for name in ("s", "paused"):
        assert http.post("/api/schedules", json={**schedule, "schedule_id": name}).status_code == 201
    http.post("/api/schedules/paused/pause")
    row = {"namespace": "default", "workflow_id": "looped", "version": 1, "document": "{}", "created_at": 0}
    horarium.parts.database.write(lambda c: c.execute(sa.insert(workflows).values(**row, cycle='["a","b"]')))
    horarium.advance(hours=1)
    assert horarium.history("s")[-1].payload["reason"] == "cycle_detected"
    for answer in (
        http.post("/api/schedules", json={**schedule, "schedule_id": "new"}),
        http.post("/api/schedules/paused/resume"),
        http.patch("/api/schedules/paused", json={"paused": False}),
        http.post("/api/workflows/looped/runs", json={}),
    ):
        assert (answer.status_code, answer.json()["reason"]) == (422, "cycle_detected"), answer.text
        assert list(answer.json()["errors"]) == ["action"]
    assert http.get("/api/workflows/looped").json()["graph"] is None


@ONE
def test_the_credentials_of_nodes_become_secrets_and_end_with_the_workflow(horarium: TestService) -> None:
    http = horarium.http()

    def document(value: str) -> dict[str, Any]:
        return brief({"id": "a", "action": {**CALL, "headers": {"Authorization": value, "X-Trace": "1"}}})

    def kept() -> list[str]:
        return [each["name"] for each in http.get("/api/secrets").json()["secrets"]]

    assert written(put(http, "brief", document("Bearer s3cret"))) == (201, 1, "created")
    [name] = kept()
    headers = http.get("/api/workflows/brief").json()["document"]["nodes"][0]["action"]["headers"]
    assert headers == {"Authorization": {"$secret": name}, "X-Trace": "1"}
    assert written(put(http, "brief", document("Bearer s3cret"))) == (200, 1, "unchanged")
    assert written(put(http, "brief", document("Bearer another"))) == (200, 1, "updated")
    in_use = http.delete(f"/api/secrets/{name}")
    assert (in_use.status_code, in_use.json()["workflows"]) == (409, ["brief"])
    for column in (workflows.c.document, secrets.c.sealed):
        assert "s3cret" not in horarium.parts.database.read(
            lambda c, each=column: str(c.execute(sa.select(each)).all())
        )
    assert http.delete("/api/workflows/brief").status_code == 200
    assert kept() == []


@ONE
def test_workflows_that_are_parts_of_each_other_are_refused(http: httpx.Client) -> None:
    put(http, "c", brief())
    assert written(put(http, "b", brief(part("c")))) == (201, 1, "created")
    assert written(put(http, "a", brief(part("b")))) == (201, 1, "created")
    for name, used in (("c", "a"), ("c", "c"), ("b", "a")):
        answer = put(http, name, brief(part(used))).json()
        assert (answer["reason"], list(answer["errors"])) == ("cycle_detected", ["nodes.0.action"]), name
    missing = put(http, "d", brief(part("c", version=7))).json()
    assert missing["errors"] == {"nodes.0.action.version": ["version 7 of 'c' not found"]}
    # A name that nobody has stored may be a task's, or a worker's.
    assert written(put(http, "d", brief(part("nobody"), part("c", version=1)))) == (201, 1, "created")


@ONE
def test_what_a_workflow_names_must_be_there_and_all_that_is_not_is_told_at_once(http: httpx.Client) -> None:
    put(http, "part", brief())
    lost = {"assignee_type": "agent", "assignee_id": "writer"}
    calendars = {"key": "k", "schedule": {"cron_expressions": ["0 * * * *"], "calendars": ["no-such"]}}
    asked = brief({"id": "a", "action": CALL, **lost}, part("part", version=7), triggers=[calendars])
    found = {"nodes.0.assignee_id": ["agent 'writer' not found"]}
    found["nodes.1.action.version"] = ["version 7 of 'part' not found"]
    assert put(http, "brief", asked).json()["errors"] == found
    found["triggers.0.schedule.calendars.0"] = ["calendar 'no-such' not found"]
    assert http.post("/api/workflows/validate", json=asked).json()["errors"] == found
    made = http.post("/api/agents", json={"id": "writer", "name": "Writer", "url": "https://agents.example.com/"})
    assert made.status_code == 201, made.text
    assert written(put(http, "brief", brief({"id": "a", "action": CALL, **lost}))) == (201, 1, "created")
    # Whom a version has had may go, and the workflow can still be changed.
    assert http.delete("/api/agents/writer", params={"force": True}).is_success
    assert written(put(http, "brief", brief({"id": "a", "action": CALL, **lost}, name="Second"))) == (200, 2, "updated")


@ONE
def test_a_schedule_on_a_version_that_is_not_there_yet_is_warned_about(http: httpx.Client) -> None:
    put(http, "brief", brief())
    schedule = {"schedule_id": "s", "cron_expressions": ["0 * * * *"], "workflow_id": "brief", "version": 2}
    said = http.post("/api/schedules", json=schedule).json()["warnings"]
    assert said == ["action.version: version 2 of 'brief' not found; runs end in state launch_failed until it exists"]
    put(http, "brief", brief(name="Second"))
    assert "warnings" not in http.post("/api/schedules", json={**schedule, "schedule_id": "t"}).json()
    unknown = http.post("/api/schedules", json={**schedule, "schedule_id": "u", "workflow_id": "nobody", "version": 9})
    assert unknown.status_code == 201  # a task or a worker may know it


# ── who needs one ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.both_databases
def test_a_workflow_that_somebody_needs_is_not_deleted(http: httpx.Client, horarium: TestService) -> None:
    put(http, "part", brief(triggers=[NIGHTLY]))
    put(http, "whole", brief(part("part")))
    schedule = {"schedule_id": "s", "cron_expressions": ["0 * * * *"], "workflow_id": "part"}
    http.post("/api/schedules", json=schedule)
    # A worker's type of the same name is another thing.
    pull = {"kind": "pull", "workflow_type": "part", "queue": "q"}
    http.post("/api/schedules", json={"schedule_id": "pull", "cron_expressions": ["0 * * * *"], "action": pull})
    run = http.post("/api/workflows/part/runs", json={}).json()["run_id"]
    above = http.post("/api/workflows/whole/runs", json={}).json()["run_id"]
    refused = http.delete("/api/workflows/part").json()
    assert (refused["reason"], refused["schedules"], refused["workflows"]) == ("workflow_in_use", ["s"], ["whole"])
    assert refused["open_runs"] == 2
    http.delete("/api/schedules/s")
    assert put(http, "whole", brief()).status_code == 200
    http.post(f"/api/runs/{run}/terminate")
    again = http.delete("/api/workflows/part").json()
    assert (again["reason"], again["schedules"], again["workflows"], again["open_runs"]) == (
        *("workflow_in_use", [], []),
        1,  # the older version that it runs will come to it
    )
    http.post(f"/api/runs/{above}/terminate")
    gone = http.delete("/api/workflows/part")
    assert templates(gone) == {"workflow:part:nightly": "deleted"}
    assert http.get("/api/schedules/workflow:part:nightly").status_code == 404
    assert http.get("/api/schedules/pull").json()["status"] == "active"
    assert written(put(http, "part", brief())) == (201, 1, "created")


@pytest.mark.parametrize("pinned", [{}, {"version": 1}])
def test_a_workflow_is_needed_as_long_as_a_run_comes_to_it_through_an_older_version_of_another(
    http: httpx.Client, horarium: TestService, pinned: dict[str, int]
) -> None:
    put(http, "inner", brief())
    put(http, "middle", brief(part("inner", **pinned)))
    put(http, "outer", brief(part("middle", **pinned)))
    run = http.post("/api/workflows/outer/runs", json={}).json()["run_id"]
    put(http, "middle", brief())
    for _ in range(2):  # before its steps are born, and while the innermost is at work
        refused = http.delete("/api/workflows/inner").json()
        assert (refused["reason"], refused["workflows"], refused["open_runs"]) == ("workflow_in_use", [], 1)
        horarium.settle()
    http.post(f"/api/runs/{run}/terminate")
    other = http.post("/api/workflows/outer/runs", json={}).json()["run_id"]
    answer = http.delete("/api/workflows/inner")
    assert answer.status_code == (409 if pinned else 200)  # the new run takes the newest that is in between
    http.post(f"/api/runs/{other}/terminate")


# ── triggers ─────────────────────────────────────────────────────────────────────────────────────────


def test_triggers_become_schedules_that_follow_their_workflow(http: httpx.Client, horarium: TestService) -> None:
    first = put(http, "brief", brief(triggers=[NIGHTLY, HOURLY]))
    assert templates(first) == {"workflow:brief:nightly": "created", "workflow:brief:hourly": "created"}
    made = http.get("/api/schedules/workflow:brief:nightly").json()
    assert (made["source"], made["spec"]["timezone"]) == ("template", "Europe/Istanbul")
    assert made["action"] == {"kind": "workflow", "workflow_id": "brief", "version": "latest"}
    listed = http.get("/api/schedules", params={"workflow_id": "brief"}).json()["schedules"]
    assert {each["schedule_id"] for each in listed} == {"workflow:brief:nightly", "workflow:brief:hourly"}
    http.post("/api/schedules/workflow:brief:nightly/pause", json={"reason": "a holiday"})
    changed = {**NIGHTLY, "schedule": {**NIGHTLY["schedule"], "timezone": "UTC"}}
    again = put(http, "brief", brief(triggers=[changed, {"type": "webhook", "path": "/in"}]))
    assert templates(again) == {"workflow:brief:nightly": "updated", "workflow:brief:hourly": "deleted"}
    kept = http.get("/api/schedules/workflow:brief:nightly").json()
    assert (kept["status"], kept["pause_reason"], kept["spec"]["timezone"]) == ("paused", "a holiday", "UTC")
    assert templates(put(http, "brief", again_document(http))) == {"workflow:brief:nightly": "unchanged"}
    assert horarium.verify() == []


def again_document(http: httpx.Client) -> dict[str, Any]:
    """What was answered can be put again."""
    document: dict[str, Any] = http.get("/api/workflows/brief").json()["document"]
    return document


@ONE
def test_a_trigger_that_cannot_be_kept_keeps_nothing_of_the_put(http: httpx.Client) -> None:
    bad = {"key": "bad", "schedule": {"cron_expressions": ["0 * * * *"], "calendars": ["no-such"]}}
    answer = put(http, "brief", brief(triggers=[{"type": "webhook"}, NIGHTLY, bad]))
    assert (answer.status_code, list(answer.json()["errors"])) == (422, ["triggers.2.schedule.calendars.0"])
    assert http.get("/api/workflows/brief").status_code == 404
    assert http.get("/api/schedules").json()["schedules"] == []
    by_hand = {"schedule_id": "workflow:brief:nightly", "cron_expressions": ["0 * * * *"], "workflow_type": "x"}
    http.post("/api/schedules", json=by_hand)
    taken = put(http, "brief", brief(triggers=[NIGHTLY]))
    assert (taken.status_code, "was created manually" in taken.json()["message"]) == (409, True)
    assert http.get("/api/workflows/brief").status_code == 404


@ONE
def test_nobody_s_bundle_takes_the_templates_of_a_workflow(http: httpx.Client) -> None:
    put(http, "brief", brief(triggers=[NIGHTLY]))
    stolen = http.post("/api/apply", json={"bundle": "workflow:brief", "schedules": [], "prune": True})
    assert (stolen.status_code, stolen.json()["reason"]) == (409, "owned_by_another_bundle")
    taken = {"schedule_id": "workflow:brief:nightly", "cron_expressions": ["0 * * * *"], "workflow_type": "x"}
    for adopt in (False, True):
        assert http.post("/api/apply", json={"bundle": "mine", "schedules": [taken], "adopt": adopt}).status_code == 409
    assert templates(put(http, "brief", brief(triggers=[NIGHTLY]))) == {"workflow:brief:nightly": "unchanged"}


# ── starting without a schedule ──────────────────────────────────────────────────────────────────────


@pytest.mark.both_databases
def test_a_workflow_is_started_once_for_each_key_at_the_version_it_names(http: httpx.Client) -> None:
    put(http, "brief", brief())
    put(http, "brief", brief(name="Second"))
    asked = {"inputs": {"day": 1}, "labels": {"team": "news"}}
    first = http.post("/api/workflows/brief/runs", json=asked, headers={"Idempotency-Key": "k"})
    again = http.post("/api/workflows/brief/runs", json=asked, headers={"Idempotency-Key": "k"})
    assert (first.status_code, first.json()["outcome"], first.json()["version"]) == (201, "started", 2)
    assert again.json()["run_id"] == first.json()["run_id"]
    run = http.get(f"/api/runs/{first.json()['run_id']}").json()
    assert (run["workflow"], run["labels"]) == (
        {"workflow_id": "brief", "version": 2, "name": "Second"}, {"team": "news"},
    )  # fmt: skip
    assert (run["inputs"], run["origin"], run["schedule_id"]) == ({"day": 1}, "api", None)
    old = http.post("/api/workflows/brief/runs", json={"version": 1})
    assert old.json()["version"] == 1
    assert http.post("/api/workflows/brief/runs", json={"version": "latest"}).json()["version"] == 2
    missing = http.post("/api/workflows/brief/runs", json={"version": 3})
    assert (missing.status_code, missing.json()["reason"]) == (404, "workflow_not_found")
    launched = http.post("/api/run-launcher/start", json={"workflow_id": "brief", "idempotency_key": "k2"}).json()
    known = http.post("/api/workflows/brief/runs", json={}, headers={"Idempotency-Key": "k2"})
    assert (known.status_code, known.json()["outcome"], known.json()["version"]) == (200, "already_started", 2)
    assert known.json()["run_id"] == launched["run_id"]
    other = {"workflow_id": "other", "idempotency_key": "k"}
    assert http.post("/api/run-launcher/start", json=other).json()["reason"] == "idempotency_key_reused"
    for body, path in (
        ({"version": "two"}, "version"),
        ({"labels": {"a": 5}}, "labels"),
        ({"colour": 1}, "colour"),
        ({"inputs": 5}, "inputs"),
        ({"inputs": {"key": {"$secret": "x"}}}, "inputs.key"),
        ({"assignee": {"type": "agent", "id": "nobody"}}, "assignee_id"),
    ):
        refused = http.post("/api/workflows/brief/runs", json=body)
        assert (refused.status_code, list(refused.json()["errors"])) == (422, [path]), refused.text


@ONE
@pytest.mark.parametrize("answer", [Finished(result={"rows": 3})], ids=["finished"])
def test_a_workflow_that_is_put_runs_from_its_trigger_to_its_end(http: httpx.Client, horarium: TestService) -> None:
    send = {"id": "send", "needs": ["fetch"], "action": CALL, "input": {"rows": {"$from": "/results/fetch/rows"}}}
    put(http, "brief", brief({"id": "fetch", "action": CALL}, send, triggers=[HOURLY]))
    horarium.advance(hours=1)
    [row] = http.get("/api/runs", params={"workflow_id": "brief"}).json()["runs"]
    run = http.get(f"/api/runs/{row['run_id']}").json()
    assert (run["state"], run["workflow"]["version"]) == ("succeeded", 1)
    assert [(step["node_id"], step["state"]) for step in run["steps"]] == [
        ("fetch", "succeeded"),
        ("send", "succeeded"),
    ]
    assert run["schedule_id"] == "workflow:brief:hourly"
