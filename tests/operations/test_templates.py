"""Runs of actions that are templates: rendered once, when a run is created, and the same for every reader."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa
from operations.desks import ADMIN, NOON, VIEWER, Office, document

from horarium import Horarium
from horarium.core.document.states import RunState
from horarium.core.lifecycle.live_run import Unsound
from horarium.core.policy.votes import Decision
from horarium.errors import InvalidDefinition
from horarium.features.approvals import service as approval_service
from horarium.features.approvals import standing
from horarium.features.approvals.model import StandingBody
from horarium.features.approvals.service import ApprovalView, VoteRequest, decide
from horarium.features.cluster.verification import verify
from horarium.features.forecast import service as forecast_service
from horarium.features.runs import service as run_service
from horarium.features.runs.definition_rows import with_template_inputs
from horarium.features.runs.occurrences import rerun
from horarium.features.runs.rows import RunRow
from horarium.features.schedules import service as schedule_service
from horarium.features.schedules.backfills import backfill
from horarium.features.schedules.triggers import trigger
from horarium.instant import MINUTE
from horarium.launchers.payload import encode
from horarium.launchers.requests import event_body
from horarium.platform.database import Connection
from horarium.platform.database.tables import namespace_usage, run_definitions, schedule_revisions
from horarium.platform.errors import RunNotRepeatable, ScheduleBroken
from horarium.platform.ids import id_text
from horarium.testing import Accepted, Finished, Unreachable, service

HTTP: dict[str, Any] = {"kind": "http", "url": "https://a.example/", "template": True}
ASKS: dict[str, Any] = {"requires_approval": True, "allow_requester": True}


def prompt(text: str = "{{ nominal | date('%H:%M') }} {{ inputs.n }}", **parts: Any) -> dict[str, Any]:
    """A schedule of prompts every minute, whose runs need no approval."""
    return {
        "action": {"kind": "prompt", "prompt": text, "template": True, **parts.pop("action", {})},
        "overlap_policy": "allow_all",
        "approval_policy": {"requires_approval": False},
        **parts,
    }


def told(office: Office, run: RunRow) -> tuple[Any, Any]:
    """The prompt that is sent, and the inputs beside it."""
    shown = office.resources.database.read(lambda c: run_service.view(office.resources, c, [run]))[0]
    assert shown.definition is not None
    return shown.definition.action.target.get("prompt"), shown.inputs


def all_told(office: Office) -> list[tuple[Any, Any]]:
    return [told(office, run) for run in office.runs()]


def test_each_run_is_rendered_with_its_own_nominal_time(office: Office) -> None:
    office.create_for("writer", **prompt(action={"input": {"n": 1, "at": "{{ nominal }}"}}, timezone="Asia/Tokyo"))
    office.tick(60)
    office.tick(60)
    assert all_told(office) == [
        ("21:01 1", {"n": 1, "at": "2026-03-15T12:01:00Z"}),
        ("21:02 1", {"n": 1, "at": "2026-03-15T12:02:00Z"}),
    ]


def test_the_texts_of_a_run_do_not_follow_an_edit(office: Office) -> None:
    office.create_for("writer", **prompt("old {{ schedule_name }} {{ run_id }}", name="One"))
    office.tick(60)
    [run] = office.runs()
    before = told(office, run)
    schedule_service.update(office.resources, ADMIN, "nightly", {"name": "Two", "action": {"prompt": "new"}})
    assert told(office, run) == before
    assert str(before[0]).startswith("old One ")


def test_what_was_missed_and_what_was_held_keep_their_nominal_time(office: Office) -> None:
    office.create_for(
        "writer", **prompt(action={"input": {"n": 1}}, overlap_policy="buffer_all", catchup_policy="fire_all")
    )
    office.world.stay_away(180)
    office.world.tick()
    first, *held = office.runs()
    assert {run.state for run in held} == {RunState.HELD}
    office.end(first)
    expected = ["12:01 1", "12:02 1", "12:03 1"]
    assert [text for text, _ in all_told(office)][:3] == expected
    assert office.runs()[1].state is RunState.READY


def test_a_backfill_is_rendered_with_the_times_that_it_fills(office: Office) -> None:
    office.create_for("writer", **prompt("{{ nominal }} after {{ previous_nominal }}"))
    backfill(office.resources, ADMIN, "nightly", start=NOON - 2 * MINUTE, end=NOON)
    assert [text for text, _ in all_told(office)] == [
        "2026-03-15T11:58:00Z after 2026-03-15T11:57:00Z",
        "2026-03-15T11:59:00Z after 2026-03-15T11:58:00Z",
    ]


def test_a_trigger_provides_values_and_what_is_missing_is_named(office: Office) -> None:
    office.create_for(
        "writer", **prompt("{{ inputs.n }} {{ nominal }}", inputs_rotation=[{"n": 1}, {"n": "{{ due }}"}])
    )
    office.clock.move(7)
    trigger(office.resources, ADMIN, "nightly", inputs={"n": "{{ run_id }}", "m": 2})
    trigger(office.resources, ADMIN, "nightly")
    at = "2026-03-15T12:00:07Z"
    assert all_told(office) == [
        (f"{{{{ run_id }}}} {at}", {"n": "{{ run_id }}", "m": 2}),
        (f"{{{{ due }}}} {at}", {"n": "{{ due }}"}),
    ]
    with pytest.raises(InvalidDefinition) as wrong:
        trigger(office.resources, ADMIN, "nightly", inputs={"m": 2})
    assert "inputs.n does not exist" in wrong.value.errors["inputs"][0]
    assert len(office.runs()) == 2


def test_an_input_that_reads_values_is_filled_in_with_those_of_a_trigger(office: Office) -> None:
    action = {"kind": "http", "url": "https://a.example/", "template": True, "input": {"title": "On {{ inputs.n }}"}}
    office.create(action=action, inputs_rotation=[{"n": 1}, {"n": 2}], overlap_policy="allow_all")
    trigger(office.resources, ADMIN, "nightly", inputs={"n": "{{ nominal }}"})
    office.tick(60)
    assert [given for _, given in all_told(office)] == [{"title": "On {{ nominal }}"}, {"title": "On 2"}]
    office.end(office.runs()[0])
    office.end(office.runs()[1])
    first, second = office.runs()
    rerun(office.resources, ADMIN, id_text(first.run_id))
    rerun(office.resources, ADMIN, id_text(second.run_id), inputs={"n": 9})
    again = [given for _, given in all_told(office)][2:]
    assert again == [{"title": "On {{ nominal }}"}, {"title": "On 9"}]


def test_a_rerun_is_rendered_anew_for_the_same_occurrence(office: Office) -> None:
    office.create_for("writer", **prompt("{{ nominal }} {{ run_id }} {{ inputs.n }}", action={"input": {"n": 1}}))
    office.tick(60)
    [first] = office.runs()
    office.end(first)
    office.clock.move(10)
    rerun(office.resources, ADMIN, id_text(first.run_id))
    again = office.runs()[-1]
    assert told(office, again)[0] == f"2026-03-15T12:01:00Z {id_text(again.run_id)} 1"


def asked(office: Office) -> list[ApprovalView]:
    """Oldest first."""
    return list(approval_service.list_approvals(office.resources, ADMIN).approvals)


def test_the_rendered_texts_are_asked_about_hashed_and_shown(office: Office) -> None:
    action = {"input": {"n": 1}}
    office.create_for("writer", **prompt("{{ nominal }} {{ inputs.n }}", action=action, approval_policy=ASKS))
    office.tick(60)
    office.tick(60)
    first, second = asked(office)
    assert first.row.input_hash != second.row.input_hash  # their inputs are equal, their prompts are not
    assert first.inputs == {"n": 1}
    assert first.action == {"kind": "prompt", "prompt": "2026-03-15T12:01:00Z 1"}


def test_a_modified_input_is_not_rendered_again(office: Office) -> None:
    action = {"input": {"n": "{{ nominal }}"}}
    office.create_for("writer", **prompt("{{ inputs.n }}", action=action, approval_policy=ASKS))
    office.tick(60)
    [question] = asked(office)
    said = VoteRequest(Decision.MODIFY, None, {"n": "{{ run_id }}"}, question.row.input_hash)
    decide(office.resources, ADMIN, id_text(question.row.approval_id), said)
    [run] = office.runs()
    assert told(office, run) == ("2026-03-15T12:01:00Z", {"n": "{{ run_id }}"})
    assert (run.state, list(verify(office.resources, ADMIN))) == (RunState.READY, [])
    office.end(run)
    rerun(office.resources, ADMIN, id_text(run.run_id))
    assert told(office, office.runs()[-1]) == ("2026-03-15T12:01:00Z", {"n": "{{ run_id }}"})


def test_a_damaged_text_fails_the_hash_and_a_lost_one_is_never_sent_unrendered(office: Office) -> None:
    office.create_for("writer", **prompt("{{ nominal }}", approval_policy=ASKS))
    office.tick(60)
    [question] = asked(office)
    decide(office.resources, ADMIN, id_text(question.row.approval_id), VoteRequest(Decision.APPROVE))
    assert list(verify(office.resources, ADMIN)) == []
    swap(office, lambda text: text.replace("2026", "2027"))
    assert [getattr(each, "what", None) for each in verify(office.resources, ADMIN)] == [Unsound.UNAPPROVED]
    office.resources.database.write(lambda c: c.execute(sa.delete(run_definitions)))
    [run] = office.runs()
    shown = office.resources.database.read(lambda c: run_service.view(office.resources, c, [run]))[0]
    assert shown.definition is None


@pytest.mark.both_databases
def test_a_rerun_of_a_run_whose_texts_are_damaged_or_lost_needs_inputs(office: Office) -> None:
    action = {"input": {"n": "{{ inputs.n }}"}}
    office.create_for("writer", **prompt("{{ inputs.n }}", action=action, inputs_rotation=[{"n": 1}]))
    trigger(office.resources, ADMIN, "nightly", inputs={"n": 5})
    [run] = office.runs()
    office.end(run)
    for text in ("{", "[]", '"x"', "null"):
        swap(office, lambda _, damaged=text: damaged)
        assert office.resources.database.read(lambda c: with_template_inputs(c, [run.run_id])) == {run.run_id}
        with pytest.raises(RunNotRepeatable, match=r"cannot be read.*; send inputs"):
            rerun(office.resources, ADMIN, id_text(run.run_id))
    office.resources.database.write(lambda c: c.execute(sa.delete(run_definitions)))
    with pytest.raises(RunNotRepeatable, match="do not exist any more; send inputs"):
        rerun(office.resources, ADMIN, id_text(run.run_id))
    rerun(office.resources, ADMIN, id_text(run.run_id), inputs={"n": 6})
    assert told(office, office.runs()[-1])[0] == "6"


def swap(office: Office, change: Callable[[str], str]) -> None:
    def work(connection: Connection) -> None:
        [(run_id, text)] = connection.execute(sa.select(run_definitions)).all()
        mine = sa.update(run_definitions).where(run_definitions.c.run_id == run_id)
        connection.execute(mine.values(document=change(text)))

    office.resources.database.write(work)


def test_a_standing_approval_covers_rendered_runs_and_not_given_values(office: Office) -> None:
    action = {"kind": "http", "url": "https://a.example/", "template": True, "input": {"n": "{{ inputs.n }}"}}
    parts: dict[str, Any] = {"inputs_rotation": [{"n": 1}], "overlap_policy": "allow_all", "approval_policy": ASKS}
    office.create(action=action, **parts)
    standing.create(office.resources, ADMIN, StandingBody(schedule_id="nightly", reason="known"))
    office.tick(60)
    trigger(office.resources, ADMIN, "nightly", inputs={"n": 2})
    assert office.states() == ["ready", "awaiting_approval"]


def stored(office: Office) -> int:
    """The bytes that the namespace is known to store."""
    summed = sa.select(sa.func.sum(namespace_usage.c.bytes))
    return int(office.resources.database.read(lambda c: c.execute(summed).scalar_one()))


@pytest.mark.both_databases
def test_rendered_texts_count_as_stored_bytes_at_once(office: Office) -> None:
    office.create_for("writer", **prompt("x" * 50_000 + "{{ nominal }}"))
    before = stored(office)
    office.tick(60)
    assert 50_000 < stored(office) - before < 60_000
    before = stored(office)
    backfill(office.resources, ADMIN, "nightly", start=NOON - 2 * MINUTE, end=NOON)
    assert 100_000 < stored(office) - before < 110_000


def test_a_preview_shows_the_texts_of_coming_runs(office: Office) -> None:
    office.create_for(
        "writer", **prompt("{{ nominal }} {{ inputs.n }} {{ run_id }}", inputs_rotation=[{"n": 1}, {"n": 2}])
    )
    rows = forecast_service.preview(office.resources, VIEWER, "nightly", rows=2)
    assert [(row.prompt, row.inputs) for row in rows] == [
        ("2026-03-15T12:01:00Z 1 {{ run_id }}", {"n": 1}),
        ("2026-03-15T12:02:00Z 2 {{ run_id }}", {"n": 2}),
    ]


def test_a_schedule_without_a_template_keeps_nothing_for_its_runs(office: Office) -> None:
    office.create_for("writer", **prompt("{{ nominal }}", action={"template": False}))
    office.tick(60)
    kept = office.resources.database.read(lambda c: c.execute(sa.select(run_definitions)).all())
    assert (kept, all_told(office)) == ([], [("{{ nominal }}", None)])


@pytest.mark.both_databases
def test_a_template_that_cannot_be_rendered_parks_its_schedule_alone(office: Office) -> None:
    office.create_for("writer", "good", **prompt("{{ nominal }}"))
    office.create_for("writer", "bad", **prompt("{{ nominal }}"))

    def damage(connection: Connection) -> None:
        bad = schedule_revisions.c.document.contains("bad")
        broken = sa.func.replace(schedule_revisions.c.document, "{{ nominal", "{{ foo")
        connection.execute(sa.update(schedule_revisions).where(bad).values(document=broken))

    office.resources.database.write(damage)
    with pytest.raises(ScheduleBroken, match="unknown name"):
        forecast_service.preview(office.resources, VIEWER, "bad")
    office.tick(60)
    assert [told(office, run)[0] for run in office.runs("good")] == ["2026-03-15T12:01:00Z"]
    assert (office.runs("bad"), office.kinds("bad")[-1]) == ([], "Broken")


# ── what is sent ─────────────────────────────────────────────────────────────────────────────────────


def test_retries_send_the_same_texts() -> None:
    with service(script=[Finished(), Unreachable("down"), Finished()]) as horarium:
        horarium.http(namespace="default").put("/api/agents/writer", json={"url": "https://agent.example/"})
        parts = prompt("{{ nominal }} {{ run_id }}", action={"input": {"at": "{{ created_at }}"}})
        horarium.create({**document(**parts), "assignee_id": "writer"})
        horarium.advance(minutes=3)
        sent = [(each.run_id, each.action.target["prompt"], each.inputs) for each in horarium.launcher.deliveries]
        assert len(sent) > len({run_id for run_id, _, _ in sent})
        for run_id, text, inputs in sent:
            assert (text, inputs) == (f"{inputs['at']} {run_id}", inputs)


def test_http_bodies_and_claims_of_workers_hold_the_rendered_texts() -> None:
    given = {"at": "{{ nominal | date('%A') }} \U0001f389", "before": "{{ previous_nominal }}"}
    expected = {"at": "Thursday \U0001f389", "before": "2026-01-01T00:00:00Z"}
    pulled = {"kind": "pull", "workflow_type": "w", "queue": "q"}
    with service(answer=Accepted(reference="q", queued=True)) as horarium:
        horarium.create(document("web", action={**HTTP, "input": given}))
        horarium.create(document("pulled", action={**pulled, "template": True, "input": given}))
        horarium.advance(minutes=1)
        [sent] = [each for each in horarium.launcher.deliveries if each.schedule_id == "web"]
        assert json.loads(event_body(sent, "urn:test", encode(sent.inputs)))["data"]["inputs"] == expected
        http = horarium.http(namespace="default")
        claimed = http.post("/api/queues/q/claim", json={"worker": "w", "limit": 5}).json()["runs"]
        [run] = [each for each in claimed if each["schedule_id"] == "pulled"]
        assert run["inputs"] == expected
        http.put("/api/schedules/pulled", json=document("pulled", action=pulled)).raise_for_status()
        assert http.get(f"/api/runs/{run['run_id']}").json()["inputs"] == expected


def test_code_and_clients_write_templates() -> None:
    app, given = Horarium(), []

    @app.schedule("0 2 * * *", action={"template": True, "input": ["{{ nominal | date('%d') }}", "{{ schedule_id }}"]})
    def nightly(day: str, name: str) -> None:
        given.append((day, name))

    with service(app=app) as horarium:
        client = horarium.client()
        client.create_schedule(
            schedule_id="daily",
            cron_expressions=["0 3 * * *"],
            kind="celery",
            task="t",
            kwargs={"day": "{{ nominal | date('%d') }}"},
            template=True,
        )
        horarium.advance(hours=4)
        sent = {each.schedule_id: each for each in horarium.launcher.deliveries}
        assert given == [("01", "nightly")]
        assert (sent["daily"].action.target["kwargs"], sent["daily"].own_inputs) == ({"day": "01"}, False)
        [run] = horarium.runs("daily")
        assert client.get_run(run.run_id).rendered == {"kwargs": {"day": "01"}}
        client.update_schedule("nightly", action={"template": False, "input": ["{{ nominal }}"]})
        assert client.describe_schedule("nightly").action.get("template") is None


WORKFLOW: dict[str, Any] = {
    "nodes": [
        {"id": "fetch", "action": {"kind": "http", "url": "https://a.example/", "template": True},
         "input": {"day": "{{ nominal | date('%j') }}", "given": "{{ inputs.x }}", "all": {"$from": "/inputs"}}},
        {"id": "write", "needs": ["fetch"], "assignee_type": "agent", "assignee_id": "writer",
         "action": {"template": True, "prompt": "{{ results.fetch.n }} {{ schedule_id }} {{run_id}}"}},
        {"id": "send", "needs": ["write"], "action": {"kind": "http", "url": "https://a.example/", "template": True},
         "input": {"a": ["{{ results.fetch.none }}"]}},
    ],
}  # fmt: skip


def test_nodes_of_a_workflow_are_rendered_with_results_and_never_twice() -> None:
    with service(answer=Finished({"n": "{{ nominal }}"})) as horarium:
        http = horarium.http(namespace="default")
        http.put("/api/agents/writer", json={"url": "https://agent.example/"})
        http.put("/api/workflows/w", json=WORKFLOW).raise_for_status()
        given = {"x": {"$from": "/results"}, "at": "{{ nominal }}"}
        action = {"workflow_id": "w", "template": True, "input": given}
        horarium.create(document(action=action, approval_policy={"requires_approval": False}))
        horarium.advance(minutes=1)
        [run] = [http.get(f"/api/runs/{each.run_id}").json() for each in horarium.runs("nightly")]
        fetch, write = horarium.launcher.deliveries
        inputs = {"x": {"$from": "/results"}, "at": "2026-01-01T00:01:00Z"}
        assert run["inputs"] == inputs
        assert fetch.inputs == {"day": "001", "given": {"$from": "/results"}, "all": inputs}
        assert write.action.target["prompt"] == f"{{{{ nominal }}}} nightly {run['run_id']}"
        steps = {step["node_id"]: step for step in run["steps"]}
        assert (steps["send"]["state"], steps["send"]["error_class"]) == ("failed", "contract_violated")
        assert "results.fetch.none does not exist" in steps["send"]["error"]
        shown = http.get(f"/api/runs/{steps['write']['run_id']}").json()
        assert shown["rendered"] == {"prompt": write.action.target["prompt"]}


def test_a_workflow_with_an_unknown_name_is_refused() -> None:
    with service() as horarium:
        text = "{{ results.nope }} {{ foo }} {{ results.write.x }} {{ results }} {{ inputs.x }}"
        node = {"id": "write", "action": {"kind": "prompt", "prompt": text, "template": True}, "input": ["{{ y"]}
        http = horarium.http(namespace="default")
        answer = http.put("/api/workflows/w", json={"nodes": [node]})
        errors = answer.json()["errors"]
        whys = ["references 'nope', which is not a node", "unknown name 'foo'", "does not run before 'write'"]
        found = errors["nodes.0.action.prompt"]
        assert [why in text for why, text in zip(whys, found, strict=True)] == [True] * 3
        assert "never closed" in errors["nodes.0.input.0"][0]
        node = {"id": "a", "action": HTTP}
        answer = http.put("/api/workflows/w", json={"nodes": [{**node, "input": ["{{ nominal }}"] * 201}]})
        assert answer.json()["errors"] == {"nodes.0.action.template": ["has more than 200 expressions"]}


def test_a_workflow_that_is_started_directly_has_its_creation_as_nominal_time() -> None:
    encoded = {"codec": "json", "blob": "{{ nominal }}"}
    nodes = [
        {"id": "a", "action": HTTP, "input": ["{{ nominal }}", "{{ created_at }}", "{{ origin }}"]},
        {"id": "b", "action": HTTP, "input": encoded},
        {"id": "c", "action": HTTP, "input": ["{{ previous_nominal }}"]},
        {"id": "d", "action": HTTP, "input": ["{{ schedule_name }}"]},
    ]
    with service() as horarium:
        http = horarium.http(namespace="default")
        http.put("/api/workflows/w", json={"nodes": nodes}).raise_for_status()
        started = http.post("/api/workflows/w/runs", json={"inputs": {"x": "{{ nominal }}"}}).raise_for_status().json()
        horarium.advance(minutes=1)
        run = http.get(f"/api/runs/{started['run_id']}").json()
        assert run["inputs"] == {"x": "{{ nominal }}"}
        steps = {step["node_id"]: step for step in run["steps"]}
        sent = {each.node_id: each.inputs for each in horarium.launcher.deliveries}
        assert sent == {"a": [run["created_at"], run["created_at"], "api"], "b": encoded}
        for name in ("c", "d"):
            assert "available only in runs of a schedule" in steps[name]["error"]
