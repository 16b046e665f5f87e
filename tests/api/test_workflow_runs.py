"""What is shown of a workflow's run: its steps, its policies, its use, the question about it, and the events of all."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
import sqlalchemy as sa
from run_rows import add_approval, add_event, add_step

from horarium.ids import id_text, parse_id
from horarium.instant import SECOND
from horarium.store.tables import runs
from horarium.testing import TestService


@pytest.fixture
def root(horarium: TestService) -> bytes:
    """A run that has two steps, made by hand: one that waits for a yes and one that was not needed."""
    horarium.create(
        schedule_id="brief",
        cron_expressions=["0 * * * *"],
        action={"workflow_id": "daily", "input": {"day": 1}},
        retry_policy={"max_retries": 4},
        limits={"cost": 0.5},
    )
    horarium.advance(hours=1)
    run_id = parse_id(horarium.runs()[0].run_id, "run_id")
    version = {"workflow_version": 3, "cost": 250_000, "tokens": 7}
    horarium.resources.database.write(
        lambda c: c.execute(sa.update(runs).where(runs.c.run_id == run_id).values(**version))
    )
    return run_id


def steps(horarium: TestService, root: bytes) -> dict[str, bytes]:
    database, row = horarium.resources.database, horarium.runs()[0]
    common: dict[str, Any] = {"origin": "scheduled", "kind": "http", "of_workflow": "daily", "of_version": 3}
    common |= {"nominal": horarium.now, "due": horarium.now, "created_at": horarium.now, "revision": row.revision}
    team = {"assignee_type": "team", "assignee": "desk", "member": "ann"}
    held = {"state": "awaiting_approval", "needs_approval": True}
    asks = add_step(database, root, "ask", **common, **held, **team)
    add_approval(database, asks, gates='["publish"]', requested_at=horarium.now, expires_at=horarium.now + SECOND)
    skipped = add_step(database, root, "alert", **common, state="skipped", cause="condition_false")
    return {"ask": asks, "alert": skipped}


def test_a_workflow_s_run_shows_its_steps_and_each_is_a_run(
    http: httpx.Client, horarium: TestService, root: bytes
) -> None:
    made = steps(horarium, root)
    run = http.get(f"/api/runs/{id_text(root)}").json()
    assert run["workflow"] == {"workflow_id": "daily", "version": 3}
    assert (run["usage"]["cost"], run["usage"]["tokens"], run["usage"]["tool_calls"]) == (0.25, 7, 0)
    ask, alert = run["steps"]
    assert {name: ask[name] for name in ("node_id", "state", "result", "assignee")} == {
        "node_id": "ask",
        "state": "awaiting_approval",
        "result": None,
        "assignee": {"type": "team", "id": "desk", "member": "ann"},
    }
    assert (ask["approval"]["status"], ask["approval"]["gates"]) == ("pending", ["publish"])
    assert (alert["state"], alert["cause"], alert["approval"]) == ("skipped", "condition_false", None)
    step = http.get(f"/api/runs/{ask['run_id']}").json()
    assert (step["parent_run_id"], step["root_run_id"], step["node_id"]) == (id_text(root), id_text(root), "ask")
    assert step["workflow_instance_id"] == f"run:{id_text(made['ask'])}"
    assert "steps" not in step


def test_the_policies_of_a_run_say_whose_word_they_are(http: httpx.Client, root: bytes) -> None:
    policies = http.get(f"/api/runs/{id_text(root)}").json()["policies"]
    assert (policies["retry_policy"]["max_retries"], policies["limits"]["cost"]) == (4, 0.5)
    assert policies["approval_policy"]["requires_approval"] is False
    told = {name: policies["origins"][name] for name in ("retry_policy", "failure_policy", "limits.cost")}
    assert told == {"retry_policy": "schedule", "failure_policy": "default", "limits.cost": "schedule"}


def test_lists_show_roots_and_steps_where_they_are_asked_for(
    http: httpx.Client, horarium: TestService, root: bytes
) -> None:
    made = steps(horarium, root)
    text = id_text(root)
    roots, both = [text], sorted(map(id_text, made.values()))

    def listed(path: str = "/api/runs", **asked: str) -> list[str]:
        rows = http.get(path, params=asked).json()["runs"]
        assert all("steps" not in row and "usage" in row for row in rows)
        return sorted(row["run_id"] for row in rows)

    assert listed() == listed("/api/schedules/brief/runs") == listed(workflow_id="daily") == roots
    assert listed("/api/schedules/brief/runs", workflow_id="other") == listed(assignee="desk") == []
    assert listed(include="steps") == sorted([*roots, *both])
    assert listed(parent_run_id=text) == listed(root_run_id=text) == both
    assert listed(assignee="ann", include="steps") == [id_text(made["ask"])]
    assert listed("/api/schedules/brief/runs", include="skips") == roots
    assert http.get("/api/runs", params={"parent_run_id": "x"}).status_code == 422
    assert http.get("/api/runs", params={"include": "all"}).status_code == 422


def test_the_stream_of_a_workflow_s_run_tells_of_its_steps(
    http: httpx.Client, horarium: TestService, root: bytes
) -> None:
    made, database = steps(horarium, root), horarium.resources.database
    add_event(database, made["ask"], 1, horarium.now + 1, "node.queued")
    add_event(database, made["alert"], 1, horarium.now + 2, "node.skipped")
    path = f"/api/runs/{id_text(root)}/events"
    whole = http.get(path).json()
    assert whole["next_page_token"] is None
    events = whole["events"]
    assert [event["event_type"] for event in events[:2]] == ["ScheduleTriggered", "run.created"]
    assert [(event["event_type"], event["node_id"]) for event in events[-2:]] == [
        ("node.queued", "ask"), ("node.skipped", "alert"),
    ]  # fmt: skip
    assert {event["run_id"] for event in events} == {id_text(each) for each in (root, *made.values())}
    paged, token = [], None
    while True:
        page = http.get(path, params={"limit": 1, **({"next_page_token": token} if token else {})}).json()
        paged += page["events"]
        token = page["next_page_token"]
        if token is None:
            break
    assert paged == events
    own = http.get(path, params={"own": True}).json()["events"]
    assert own == [event for event in events if event["run_id"] == id_text(root)]
    first = own[0]["sequence"]
    assert http.get(path, params={"after_sequence": first}).json()["events"] == own[1:]
    [queued] = http.get(f"/api/runs/{id_text(made['ask'])}/events").json()["events"]
    assert queued == events[-2]


@pytest.mark.parametrize("token", ["x", "1", "1.2", "1.x.3", f"1.{'0' * 26}.", "9" * 30, "1.2.3.4"])
def test_a_token_that_no_page_has_given_is_refused(http: httpx.Client, root: bytes, token: str) -> None:
    answer = http.get(f"/api/runs/{id_text(root)}/events", params={"next_page_token": token})
    assert (answer.status_code, list(answer.json()["errors"])) == (422, ["next_page_token"])
