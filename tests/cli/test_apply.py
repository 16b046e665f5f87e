"""`horarium apply` and `horarium export`: a bundle, what it would change, and what it changes."""

from __future__ import annotations

import io
import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from cli.served import Server

from horarium.platform.database.tables import agents, schedule_revisions, schedules, workflows

WRITE = {"id": "write", "action": {"kind": "pull", "workflow_type": "write", "queue": "q"}}
HOURLY: dict[str, Any] = {"schedule_id": "hourly", "cron_expr": "0 * * * *", "workflow_type": "w"}


def apply(server: Server, *arguments: str, **bundle: Any) -> dict[str, str]:
    """What became of each by its name."""
    Path("bundle.json").write_text(json.dumps(bundle))
    rows = server.told("apply", "-f", "bundle.json", "-o", "jsonl", *arguments).splitlines()
    return {row["name"]: row["change"] for row in map(json.loads, rows)}


def test_applying_twice_changes_nothing_the_second_time(server: Server) -> None:
    bundle = {"calendars": [{"name": "c", "kind": "skip_dates", "timezone": "UTC", "dates": ["2026-01-01"]}],
              "schedules": [{**HOURLY, "calendars": ["c"], "labels": {"a": "b"}}]}  # fmt: skip
    assert apply(server, **bundle) == {"c": "create", "hourly": "create"}
    assert apply(server, **bundle) == {"c": "unchanged", "hourly": "unchanged"}
    assert json.loads(server.told("schedule", "describe", "hourly", "-o", "json"))["version"] == 1


def test_those_who_work_are_exported_without_their_tokens(server: Server) -> None:
    policies = {"approval_policy": {"requires_approval": True, "gates": ["publish"]},
                "budget": {"spending_limit_credits": 2.5}}  # fmt: skip
    bundle = {
        "agents": [
            {"id": "writer", "parent_id": "editor", "url": "https://agents.example/w", "token": "tok-1"},
            {"id": "editor", "name": "The editor", "capacity": 3, "policies": policies},
        ],
        "teams": [{"team_id": "desk", "members": ["writer", "editor"], "strategy": "round_robin"}],
        "workflows": [{"workflow_id": "w", "nodes": [WRITE]}],
        "assignments": [{"assignment_id": "a1", "workflow_id": "w", "assignee_type": "team", "assignee_id": "desk",
                         "retry_policy": {"max_retries": 2}}],
        "schedules": [{**HOURLY, "workflow_assignment_id": "a1"}],
    }  # fmt: skip
    made = apply(server, **bundle)
    assert set(made.values()) == {"create"}
    written = server.told("export")
    assert "tok-1" not in written
    exported = json.loads(written)
    assert [each["id"] for each in exported["agents"]] == ["editor", "writer"]
    assert set(apply(server, **exported).values()) == {"unchanged"}
    shown = server.service.http().get("/api/agents/writer").json()
    assert (shown["has_token"], shown["parent_id"]) == (True, "editor"), "a document without a token leaves it"
    server.told("namespace", "create", "desk")
    assert set(apply(server, "--namespace", "desk", **exported).values()) == {"create"}
    assert json.loads(server.told("export", "--namespace", "desk")) == exported


def test_templates_are_exported_applied_and_planned_as_they_are_written(server: Server) -> None:
    action = {"kind": "http", "url": "https://a.example/", "method": "POST", "template": True}
    day = {"day": "{{ nominal | date('%d') }}", "topic": "{{ inputs.topic }}"}
    schedule: dict[str, Any] = {
        "schedule_id": "daily",
        "cron_expr": "0 2 * * *",
        "inputs_rotation": [{"topic": "{{ due }}"}],
    }
    workflow = {"workflow_id": "flow", "nodes": [{"id": "a", "action": action, "input": {"n": "{{ results }}"}}]}
    bundle = {"schedules": [{**schedule, "action": {**action, "input": day}}], "workflows": [workflow]}
    assert apply(server, **bundle) == {"flow": "create", "daily": "create"}
    exported = json.loads(server.told("export"))
    assert [exported["schedules"][0]["action"][name] for name in ("template", "input")] == [True, day]
    assert set(apply(server, **exported).values()) == {"unchanged"}
    exported["schedules"][0]["action"]["template"] = False
    assert apply(server, "--dry-run", **exported)["daily"] == "update"
    exported["schedules"][0]["action"] |= {"template": True, "input": {"day": "{{ nominl }}"}}
    Path("bundle.json").write_text(json.dumps(exported))
    refused = server.ask("apply", "-f", "bundle.json")
    assert (refused.code, "unknown name 'nominl'" in refused.err) == (1, True)


def test_an_export_names_what_the_service_cannot_read(server: Server) -> None:
    node = {"id": "a", "action": {"kind": "http", "url": "https://example.com"}}
    bundle = {
        "agents": [{"id": "a1"}, {"id": "a2"}],
        "workflows": [{"workflow_id": name, "nodes": [node]} for name in ("w1", "w2")],
        "schedules": [{**HOURLY, "schedule_id": name} for name in ("s1", "s2")],
    }
    apply(server, **bundle)
    uid = sa.select(schedules.c.schedule_uid).where(schedules.c.schedule_id == "s2").scalar_subquery()
    for damage in (
        sa.update(agents).where(agents.c.agent_id == "a2").values(document="[oh"),
        sa.update(workflows).where(workflows.c.workflow_id == "w2").values(document="[oh"),
        sa.update(schedule_revisions).where(schedule_revisions.c.schedule_uid == uid).values(document="[oh"),
    ):
        server.service.resources.database.write(partial(sa.Connection.execute, statement=damage))
    done = server.ask("export")
    assert done.code == 1
    exported = json.loads(done.out)
    assert [each["id"] for each in exported["agents"]] == ["a1"]
    assert [each["workflow_id"] for each in exported["workflows"]] == ["w1"]
    assert [each["schedule_id"] for each in exported["schedules"]] == ["s1"]
    for left_out in ("agents: a2", "workflows: w2", "schedules: s2"):
        assert f"not exported: {left_out}" in done.err


def test_workflows_are_exported_with_the_schedules_of_their_triggers_and_no_others(server: Server) -> None:
    nodes = [{"id": "a", "action": {"kind": "http", "url": "https://example.com"}}]
    brief = {"workflow_id": "brief", "nodes": nodes, "triggers": [{"key": "t", "schedule": {"cron_expr": "0 2 * * *"}}]}
    assert apply(server, workflows=[brief], schedules=[HOURLY]) == {"brief": "create", "hourly": "create"}
    bundle = json.loads(server.told("export"))
    assert [each["workflow_id"] for each in bundle["workflows"]] == ["brief"]
    assert [each["schedule_id"] for each in bundle["schedules"]] == ["hourly"]
    assert "owner" not in bundle["workflows"][0]
    assert apply(server, **bundle) == {"brief": "unchanged", "hourly": "unchanged"}
    server.told("namespace", "create", "copy")
    assert set(apply(server, "--namespace", "copy", **bundle).values()) == {"create"}
    assert json.loads(server.told("export", "--namespace", "copy")) == bundle


def test_a_dry_run_writes_nothing(empty_server: Server) -> None:
    assert apply(empty_server, "--dry-run", schedules=[HOURLY]) == {"hourly": "create"}
    assert empty_server.ask("schedule", "describe", "hourly").code == 5


def test_a_namespace_that_is_exported_and_applied_elsewhere_is_the_same(server: Server) -> None:
    """In every state that a schedule can have."""
    server.told("calendar", "create", "ours", "--date", "2026-12-24", "--tz", "Asia/Tokyo")
    server.told(
        *("schedule", "create", "active", "--cron", "0 2 * * *", "--tz", "Asia/Tokyo", "--workflow-type", "w"),
        *("--queue", "q", "--input", '{"x": [1]}', "--label", "k=v", "--overlap-policy", "buffer_all"),
        *("--jitter-seconds", "5", "--calendar", "ours", "--max-runs", "9", "--note", "a note"),
    )
    over = {"at": ["2026-03-01T01:00:00Z"], "workflow_type": "w"}
    states = [
        {**HOURLY, "schedule_id": "paused", "note": "of its author"},
        {**HOURLY, "schedule_id": "broken"},
        {**HOURLY, "schedule_id": "used-up", "max_runs": 1},
        {**over, "schedule_id": "finished"},
        {**over, "schedule_id": "finished-and-paused"},
        {**HOURLY, "schedule_id": "window-is-over", "end_at": "2026-03-01T01:30:00Z"},
        {**HOURLY, "schedule_id": "paused-for-a-while"},
        {**HOURLY, "schedule_id": "deleted"},
    ]
    apply(server, schedules=states)
    for name in ("paused", "finished-and-paused"):
        server.told("schedule", "pause", name, "--reason", "maintenance")
    server.told("schedule", "update", "paused", "--note", "of its author")
    server.told("schedule", "pause", "paused-for-a-while", "--until", "2026-03-01T05:00:00Z")
    server.told("schedule", "delete", "deleted")
    server.service.advance(hours=2)
    server.service.resources.database.write(
        lambda c: c.exec_driver_sql("UPDATE positions SET status = 'broken' WHERE schedule_id = 'broken'")
    )
    bundle = json.loads(server.told("export"))
    written = {document["schedule_id"]: document for document in bundle["schedules"]}
    assert sorted(written) == sorted(["active", *(each["schedule_id"] for each in states[:-1])])
    stated = ("paused", "pause_reason", "exhausted", "note")
    assert {name: written["paused"].get(name) for name in stated} == {
        "paused": True, "pause_reason": "maintenance", "exhausted": None, "note": "of its author",
    }  # fmt: skip
    assert written["used-up"]["exhausted"] is True
    assert written["paused-for-a-while"]["paused_until"] == "2026-03-01T05:00:00Z"
    server.told("namespace", "create", "copy")
    there = ("--namespace", "copy")
    assert set(apply(server, *there, **bundle).values()) == {"create"}
    assert json.loads(server.told("export", *there)) == bundle
    assert set(apply(server, *there, **bundle).values()) == {"unchanged"}
    rows = server.told("schedule", "list", *there, "-o", "jsonl", "--deleted").splitlines()
    assert {row["schedule_id"]: row["status"] for row in map(json.loads, rows)} == {
        "active": "active", "paused": "paused", "broken": "active", "used-up": "deleted", "finished": "finished",
        "finished-and-paused": "paused", "window-is-over": "finished", "paused-for-a-while": "paused",
    }  # fmt: skip
    server.service.advance(hours=2)
    fired = server.told("run", "list", *there, "-o", "jsonl").splitlines()
    assert {json.loads(row)["schedule_id"] for row in fired} == {"broken"}
    assert apply(server, "--namespace", "default", **bundle)["paused-for-a-while"] == "unchanged"
    server.service.advance(hours=2)
    fired = server.told("run", "list", *there, "-o", "jsonl").splitlines()
    assert {json.loads(row)["schedule_id"] for row in fired} == {"broken", "paused-for-a-while"}
    assert server.service.verify() == []


def test_a_pause_is_restored_on_creation_only(server: Server) -> None:
    document = {**HOURLY, "paused": True, "pause_reason": "rest"}
    apply(server, bundle="b", schedules=[document])
    shown = json.loads(server.told("schedule", "describe", "hourly", "-o", "json"))
    assert (shown["status"], shown["pause_reason"]) == ("paused", "rest")
    assert json.loads(server.told("export", "--bundle", "b"))["bundle"] == "b"
    server.told("schedule", "resume", "hourly")
    assert apply(server, bundle="b", schedules=[document]) == {"hourly": "unchanged"}
    assert json.loads(server.told("schedule", "describe", "hourly", "-o", "json"))["status"] == "active"


def test_a_bundle_may_be_yaml(server: Server) -> None:
    bundle = """
    schedules:  # all of them
      - schedule_id: hourly
        cron_expr: 0 * * * *
        start_at: 2026-03-08T07:00:00Z
        workflow_type: w
    """
    Path("bundle.yaml").write_text(bundle)
    asked = ("apply", "-o", "jsonl", "-f")
    assert json.loads(server.told(*asked, "bundle.yaml"))["change"] == "create"
    Path("again.yml").write_text(server.told("export", "-o", "yaml"))
    assert json.loads(server.told(*asked, "again.yml"))["change"] == "unchanged"
    Path("bad.yaml").write_text("schedules: &a [*a]")
    refused = server.ask("apply", "-f", "bad.yaml")
    assert (refused.code, "is not YAML: an alias (*) refers to itself" in refused.err) == (1, True)


def test_several_files_and_folders_are_one_bundle(server: Server) -> None:
    Path("all/below").mkdir(parents=True)
    Path("all/.hidden.json").write_text("no bundle")
    Path("all/notes.txt").write_text("no bundle either")
    Path("all/below/a.yaml").write_text(
        "bundle: billing\nschedules:\n"
        "  - &a {schedule_id: a, cron_expr: 0 * * * *, workflow_type: w}\n"
        "  - {<<: *a, schedule_id: b}\n"
    )
    Path("c.json").write_text(json.dumps({"schedules": [{**HOURLY, "schedule_id": "c"}]}))
    told = json.loads(server.told("apply", "-f", "all", "-f", "c.json", "-o", "json"))
    assert (told["bundle"], [row["name"] for row in told["changes"]]) == ("billing", ["a", "b", "c"])
    for other, why in (
        ({"schedules": [{"schedule_id": "a"}]}, "duplicate schedule_id 'a' in 'all/below/a.yaml' and 'd.json'"),
        ({"bundle": "crm"}, "conflicting bundle names: 'billing' (all/below/a.yaml) and 'crm' (d.json)"),
    ):
        Path("d.json").write_text(json.dumps(other))
        refused = server.ask("apply", "-f", "all", "-f", "d.json")
        assert (refused.code, why in refused.err) == (1, True), refused.err


def test_what_a_user_has_made_is_kept(server: Server) -> None:
    server.told("schedule", "create", "hourly", "--every", "PT2H", "--workflow-type", "theirs")
    assert apply(server, "--prune", "--bundle", "b", schedules=[HOURLY]) == {"hourly": "keep"}
    assert json.loads(server.told("schedule", "describe", "hourly", "-o", "json"))["workflow_type"] == "theirs"
    assert apply(server, "--adopt", "--bundle", "b", schedules=[HOURLY]) == {"hourly": "update"}
    rows = server.told("schedule", "list", "--bundle", "b", "-o", "jsonl").splitlines()
    assert [json.loads(row)["workflow_type"] for row in rows] == ["w"]


def test_nothing_is_deleted_unless_it_is_told_to(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    bundle = {"bundle": "ours", "schedules": [HOURLY]}
    apply(server, bundle="ours", schedules=[HOURLY, {**HOURLY, "schedule_id": "other"}])
    assert apply(server, **bundle) == {"hourly": "unchanged"}
    refused = server.ask("apply", "-f", "bundle.json", "--prune", "--bundle", "another")
    assert refused.code == 1
    monkeypatch.setattr("sys.stdin", Terminal("n\n"))
    asked = server.ask("apply", "-f", "bundle.json", "--prune")
    assert (asked.code, asked.out.strip()) == (1, "")
    assert "delete schedule other\nDelete 1 object? [y/N]:" in asked.err
    assert server.ask("schedule", "describe", "other").code == 0
    monkeypatch.setattr("sys.stdin", Terminal("y\n"))
    server.told("apply", "-f", "bundle.json", "--prune")
    assert server.ask("schedule", "describe", "other").code == 5


def test_pruning_several_objects_needs_their_number(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    apply(server, bundle="ours", schedules=[{**HOURLY, "schedule_id": name} for name in ("a", "b")])
    Path("bundle.json").write_text(json.dumps({"bundle": "ours", "schedules": []}))
    for line, code in (("y", 1), ("2", 0)):
        monkeypatch.setattr("sys.stdin", Terminal(f"{line}\n"))
        asked = server.ask("apply", "-f", "bundle.json", "--prune")
        assert (asked.code, "Delete 2 objects? Enter 2 to confirm" in asked.err) == (code, True), asked.err


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_bundle_without_a_name_prunes_nothing(empty_server: Server) -> None:
    Path("bundle.json").write_text("{}")
    refused = empty_server.ask("apply", "-f", "bundle.json", "--prune")
    assert (refused.code, "owns nothing" in refused.err) == (1, True)


def test_the_exit_code_says_whether_something_changes(server: Server) -> None:
    Path("bundle.json").write_text(json.dumps({"schedules": [HOURLY]}))
    asked = ("apply", "-f", "bundle.json", "--detailed-exitcode")
    assert [server.ask(*asked, "--dry-run").code, server.ask(*asked).code, server.ask(*asked).code] == [2, 2, 0]
    Path("bundle.json").write_text(json.dumps({"schedules": [{**HOURLY, "cron_expr": "x"}]}))
    refused = [server.ask(*asked, "--dry-run"), server.ask(*asked)]
    assert [answer.code for answer in refused] == [1, 1]
    assert all("schedule 'hourly': cron_expr" in answer.err for answer in refused)


def test_a_plan_shows_each_field_that_differs(server: Server) -> None:
    apply(server, schedules=[HOURLY])
    Path("bundle.json").write_text(json.dumps({"schedules": [{**HOURLY, "cron_expr": "0 */2 * * *"}]}))
    shown = server.told("apply", "-f", "bundle.json", "--dry-run")
    assert 'hourly spec.cron_expressions  ["0 * * * *"] → ["0 */2 * * *"]' in shown


def test_a_pause_survives(server: Server) -> None:
    apply(server, schedules=[HOURLY])
    server.told("schedule", "pause", "hourly")
    assert apply(server, schedules=[{**HOURLY, "note": "new"}]) == {"hourly": "update"}
    assert json.loads(server.told("schedule", "describe", "hourly", "-o", "json"))["status"] == "paused"


def test_a_one_off_that_is_over_is_no_error_when_it_is_applied_again(server: Server) -> None:
    once = {"schedule_id": "once", "at": ["2026-03-01T01:00:00Z"], "workflow_type": "w"}
    apply(server, schedules=[once])
    server.service.advance(hours=2)
    assert apply(server, schedules=[once]) == {"once": "unchanged"}


def test_a_built_in_calendar_is_kept(empty_server: Server) -> None:
    wanted = {"name": "weekends-only", "kind": "skip_dates", "timezone": "UTC", "dates": ["2026-01-01"]}
    assert apply(empty_server, calendars=[wanted]) == {"weekends-only": "keep"}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[]", "is not an object"),
        ('{"schedule": []}', "unknown field 'schedule'"),
        ('{"schedules": 1}', "must be an array of objects"),
        ('{"schedules": [1]}', "must be an array of objects"),
        ('{"schedules": [{}]}', "schedules.0: needs a schedule_id"),
        ('{"calendars": [{"name": 1}]}', "calendars.0: needs a name"),
        ('{"schedules": [{"schedule_id": "a"}, {"schedule_id": "a"}]}', "'a' appears twice"),
        (
            '{"schedules": [{"schedule_id": "a", "cron_expr": "61 * * * *", "workflow_type": "w"}]}',
            "schedule 'a': cron",
        ),
    ],
    ids=lambda text: text[:40],
)
def test_a_bad_bundle_is_refused_before_anything_is_written(empty_server: Server, text: str, why: str) -> None:
    Path("bundle.json").write_text(text)
    answer = empty_server.ask("apply", "-f", "bundle.json")
    assert (answer.code, answer.out, answer.err.count("\n")) == (1, "", 1)
    assert why in answer.err


def test_an_empty_bundle_is_talk(empty_server: Server) -> None:
    Path("bundle.json").write_text("{}")
    answer = empty_server.ask("apply", "-f", "bundle.json")
    assert (answer.code, answer.out, answer.err) == (0, "", "the bundle is empty\n0 of 0 changed\n")
