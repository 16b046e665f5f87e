"""An application with a name owns its schedules: releases that come and go, in turn and at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import httpx
import pytest

from horarium import Horarium
from horarium.errors import InvalidDefinition, InvalidWorkflow
from horarium.serve.service import put_templates
from horarium.testing import TestService, service

GONE = "the application 'billing' no longer declares this function"


@pytest.fixture
def running(horarium: TestService) -> TestService:
    return horarium


@pytest.fixture
def on_both(database_url: str) -> Iterator[TestService]:
    with service(database=database_url) as opened:
        yield opened


def app(*ids: str, name: str | None = "billing", release: str | None = None, **fields: Any) -> Horarium:
    made = Horarium(name=name, release=release)

    def work() -> None: ...

    for schedule_id in ids:
        made.schedule("0 * * * *", schedule_id=schedule_id, **fields)(work)
    return made


def start(running: TestService, application: Horarium) -> dict[str, tuple[str, str | None, str | None]]:
    """As a process of this release does; then status, reason of the pause, and bundle of all schedules."""
    put_templates(replace(running.parts, application=application))
    rows = running.http().get("/api/schedules").json()["schedules"]
    return {row["schedule_id"]: (row["status"], row["pause_reason"], row["bundle"]) for row in rows}


ACTIVE, PAUSED = ("active", None, "billing"), ("paused", GONE, "billing")


def test_what_a_release_declares_no_more_is_paused_and_never_by_an_older_one(on_both: TestService) -> None:
    running = on_both
    old, new = app("kept", "gone", note="the author's"), app("kept", "added", note="the author's")
    assert start(running, old) == {"kept": ACTIVE, "gone": ACTIVE}
    expected = {"kept": ACTIVE, "gone": PAUSED, "added": ACTIVE}
    for release in (new, old, new, old, old, new):  # two releases that restart in turn
        assert start(running, release) == expected
    http = running.http()
    assert http.get("/api/schedules/gone").json()["note"] == "the author's"
    events = [row["event_type"] for row in http.get("/api/schedules/gone/history").json()["events"]]
    assert events == ["ScheduleCreated", "SchedulePaused"]
    back = app("kept", "added", "gone", note="the author's")
    assert start(running, back) == {"kept": ACTIVE, "gone": ACTIVE, "added": ACTIVE}
    running.advance(hours=2)
    assert (len(running.runs("gone")), running.verify()) == (2, [])


def test_a_quota_that_is_used_up_does_not_keep_the_others_from_starting(running: TestService) -> None:
    http = running.http()
    http.post("/api/namespaces", json={"namespace": "shop"})
    http.patch("/api/namespaces/shop", json={"quotas": {"schedules": 0}})
    both = app("theirs", namespace="shop")
    both.schedule("0 * * * *", schedule_id="ours")(lambda: None)
    assert start(running, both) == {"ours": ACTIVE}
    http.patch("/api/namespaces/shop", json={"quotas": {"schedules": "default", "shortest_gap_seconds": 7_200}})
    start(running, both)
    assert http.get("/api/schedules/theirs", headers={"X-Namespace": "shop"}).status_code == 404
    http.patch("/api/namespaces/shop", json={"quotas": {"shortest_gap_seconds": "default"}})
    start(running, both)
    assert http.get("/api/schedules/theirs", headers={"X-Namespace": "shop"}).status_code == 200


def test_releases_with_names_of_their_own_may_declare_the_same(running: TestService) -> None:
    start(running, app("a", "b", release="1"))
    assert start(running, app("a", release="2"))["b"] == PAUSED
    assert start(running, app("a", "b", release="1"))["b"] == PAUSED
    assert start(running, app("a", "b", release="3"))["b"] == ACTIVE


def test_a_persons_pause_and_resume_win(running: TestService) -> None:
    http, one, two = running.http(), app("a", "b"), app("a")
    start(running, one)
    http.post("/api/schedules/a/pause", json={"note": "mine"})
    start(running, two)
    http.post("/api/schedules/b/resume")
    found = start(running, two)
    assert (found["a"][:2], found["b"]) == (("paused", "mine"), ACTIVE)


def test_an_application_touches_nothing_of_others(running: TestService) -> None:
    http = running.http()
    body = {"cron_expr": "0 * * * *", "workflow_type": "w"}
    http.post("/api/schedules", json={**body, "schedule_id": "hand"})
    http.post("/api/apply", json={"bundle": "crm", "schedules": [{**body, "schedule_id": "theirs"}]})
    start(running, app("unnamed", name=None))
    found = start(running, app("hand", "theirs", "own"))
    assert {name: row[2] for name, row in found.items()} == {
        "hand": None, "theirs": "crm", "unnamed": None, "own": "billing",
    }  # fmt: skip
    assert {row[0] for row in start(running, app(release="empty")).values()} == {"active", "paused"}
    assert {name for name, row in start(running, app(release="empty")).items() if row[0] == "paused"} == {"own"}


def test_a_bundle_and_an_application_do_not_share_a_name(running: TestService) -> None:
    http: httpx.Client = running.http()
    body = {"schedule_id": "x", "cron_expr": "0 * * * *", "workflow_type": "w"}
    start(running, app("own"))
    refused = http.post("/api/apply", json={"bundle": "billing", "prune": True})
    assert (refused.status_code, refused.json()["reason"]) == (409, "owned_by_another_bundle")
    http.post("/api/apply", json={"bundle": "crm", "schedules": [body]})
    with pytest.raises(InvalidDefinition, match="'crm' is the name of an applied bundle"):
        start(running, app("own", name="crm"))


def test_a_name_is_an_id() -> None:
    with pytest.raises(InvalidDefinition, match=r"name: .* is not a valid ID"):
        Horarium(name="two words")
    with pytest.raises(InvalidDefinition, match=r"release: .* is not a valid ID"):
        Horarium(release="two words")


def thief(running: TestService) -> httpx.Client:
    issued = running.http().post("/api/tokens", json={"name": "mallory", "role": "owner"}).json()
    return running.http(token=issued["secret"])


@pytest.mark.parametrize(
    ("name", "owner"), [("billing", "app:billing"), (None, "app")], ids=["named", "without a name"]
)
def test_what_is_declared_in_code_is_changed_by_its_application_or_an_admin(
    running: TestService, name: str | None, owner: str
) -> None:
    start(running, app("a", name=name))
    http, other = running.http(), thief(running)
    assert http.get("/api/schedules/a").json()["owner"] == owner
    command = {"action": {"kind": "http", "url": "https://thief.example"}, "cron_expressions": ["* * * * *"]}
    upserted = {"schedule_id": "a", **command}
    bundle = {"bundle": "stolen", "adopt": True, "schedules": [upserted]}
    bulk = {"action": "delete", "filter": {"ids": ["a"]}}
    assert {
        other.patch("/api/schedules/a", json=command).status_code,
        other.put("/api/schedules/a", json=command).status_code,
        other.post("/api/schedules/upsert", json=upserted).status_code,
        other.put("/api/schedules/a/condition", json={"condition": {"/x": {"eq": 1}}}).status_code,
        other.post("/api/apply", json=bundle).status_code,
        other.delete("/api/schedules/a").status_code,
    } == {403}
    assert other.post("/api/schedules/bulk", json=bulk).json()["outcomes"][0]["outcome"] != "deleted"
    found = http.get("/api/schedules/a").json()
    assert (found["status"], found["action"]["kind"]) == ("active", "python")
    # Who operates still does.
    assert [other.post(f"/api/schedules/a/{verb}").status_code for verb in ("pause", "resume", "trigger")] == [200] * 3
    assert http.patch("/api/schedules/a", json={"note": "by an admin"}).status_code == 200


def test_an_application_takes_what_it_declared_before_it_was_its_own(running: TestService) -> None:
    start(running, app("a", "b"))

    def before(connection: Any) -> None:
        connection.exec_driver_sql("UPDATE schedules SET owner = NULL")
        connection.exec_driver_sql("""UPDATE schedule_revisions SET document = json_remove(document, '$.owner')""")

    running.parts.database.write(before)
    assert running.http().get("/api/schedules/a").json()["owner"] is None
    for _ in range(2):
        start(running, app("a", "b"))
    events = running.http().get("/api/schedules/a/history").json()["events"]
    assert [(each["event_type"], each["payload"].get("changed_fields")) for each in events] == [
        ("ScheduleCreated", None),
        ("ScheduleUpdated", ["owner"]),
    ]
    assert running.http().get("/api/schedules/a").json()["owner"] == "app:billing"


# ── workflows in code ────────────────────────────────────────────────────────────────────────────────

STEP = {"id": "work", "action": {"kind": "python", "task": "work"}}
HOURLY = {"key": "hourly", "schedule": {"cron_expressions": ["0 * * * *"]}}


def flow(*ids: str, name: str | None = "billing", release: str | None = None, **fields: Any) -> Horarium:
    made = Horarium(name=name, release=release)
    for workflow_id in ids:
        made.workflow(workflow_id, nodes=[STEP], triggers=[HOURLY], **fields)
    return made


def stored(running: TestService) -> dict[str, tuple[int, str | None, str | None]]:
    rows = running.http().get("/api/workflows").json()["workflows"]
    return {row["workflow_id"]: (row["version"], row["owner"], row["bundle"]) for row in rows}


def test_a_workflow_in_code_is_put_at_each_start_with_its_schedules(on_both: TestService) -> None:
    running, http = on_both, on_both.http()
    first = start(running, flow("invoice", "remind", release="1"))
    assert {name: row[0] for name, row in first.items()} == {
        "workflow:invoice:hourly": "active",
        "workflow:remind:hourly": "active",
    }
    assert stored(running) == {"invoice": (1, "app:billing", "billing"), "remind": (1, "app:billing", "billing")}
    assert start(running, flow("invoice", "remind", release="1")) == first
    second = start(running, flow("invoice", release="2", description="Changed"))
    assert stored(running)["invoice"][0] == 2
    assert {name: row[:2] for name, row in second.items()} == {
        "workflow:invoice:hourly": ("active", None),
        "workflow:remind:hourly": ("paused", GONE),
    }
    # An older process that starts again changes nothing; the release that has it again lets it go on.
    assert start(running, flow("invoice", "remind", release="1")) == second
    assert stored(running)["invoice"][0] == 2
    http.post("/api/schedules/workflow:invoice:hourly/pause", json={"reason": "by hand"})
    third = start(running, flow("invoice", "remind", release="3"))
    assert {name: row[:2] for name, row in third.items()} == {
        "workflow:invoice:hourly": ("paused", "by hand"),
        "workflow:remind:hourly": ("active", None),
    }
    running.advance(hours=1)
    assert [run.schedule_id for run in running.runs("workflow:remind:hourly")] == ["workflow:remind:hourly"]


def test_a_workflow_of_somebody_else_is_left_alone(running: TestService) -> None:
    http = running.http()
    assert http.put("/api/workflows/invoice", json={"nodes": [STEP]}).status_code == 201
    start(running, flow("invoice"))
    start(running, flow("invoice", name=None))
    assert stored(running) == {"invoice": (1, "admin", None)}
    start(running, flow("other", name=None))
    start(running, flow("other", name=None, description="Changed"))
    assert stored(running)["other"] == (2, "app", None)


def test_a_workflow_is_declared_once_and_must_be_sound(running: TestService) -> None:
    made = flow("invoice")
    with pytest.raises(InvalidDefinition, match="the workflow ID 'invoice' is used twice"):
        made.workflow("invoice", nodes=[STEP])
    with pytest.raises(InvalidDefinition, match="workflow_id"):
        made.workflow("not an id", nodes=[STEP])
    broken = Horarium(name="billing")
    broken.workflow("broken", {"nodes": [{**STEP, "needs": ["work"]}]})
    with pytest.raises(InvalidWorkflow, match=r"nodes\.0\.needs: the node 'work' cannot depend on itself"):
        start(running, broken)
    assert stored(running) == {}
