"""`horarium agent`, `team` and `assignment`: keeping who works, and under which policies."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli.served import Server

BRIEF = {"nodes": [{"id": "write", "action": {"kind": "pull", "queue": "q", "workflow_type": "write"}}]}


def test_agents_teams_and_assignments_are_kept_shown_and_deleted(server: Server) -> None:
    Path("token").write_text("hunter2\n")
    writer = ("--name", "Writer", "--capacity", "2", "--token-file", "token", "--max-daily-runs", "5")
    assert server.told("agent", "put", "writer", *writer) == "writer: created; version 1\n"
    assert (
        server.told("agent", "put", "writer", *writer[:4], "--max-daily-runs", "5") == "writer: unchanged; version 1\n"
    )
    Path("editor.yaml").write_text("policies: {approval_policy: {requires_approval: true}}\n")
    server.told("agent", "put", "editor", "--file", "editor.yaml", "--parent", "writer")
    listed = server.told("agent", "list")
    assert [line.split()[0] for line in listed.splitlines()] == ["Agent", "editor", "writer"]
    shown = server.told("agent", "show", "writer")
    assert "hunter2" not in shown + server.told("agent", "show", "writer", "-o", "json")
    assert json.loads(server.told("agent", "show", "writer", "-o", "json"))["has_token"] is True
    assert "max_daily_runs" in shown

    members = ("--member", "writer", "--member", "editor", "--strategy", "round_robin")
    assert server.told("team", "put", "desk", *members) == "desk: created; version 1\n"
    assert "round_robin" in server.told("team", "list")
    assert "writer" in server.told("team", "show", "desk")

    server.service.client().put_workflow("brief", BRIEF)
    rules = ("--gate", "publish", "--retry-policy", '{"max_retries": 3}')
    made = server.told("assignment", "put", "b", "--workflow", "brief", "--assignee", "team:desk", *rules)
    assert made == "b: created; version 1\n"
    found = json.loads(server.told("assignment", "show", "b", "-o", "json"))
    assert (found["approval_policy"]["gates"], found["retry_policy"]["max_retries"]) == (["publish"], 3)
    assert "team:desk" in server.told("assignment", "list")

    answer = server.ask("agent", "delete", "writer", "--yes")
    assert (answer.code, answer.out) == (1, "")
    for noun, name in (("assignment", "b"), ("team", "desk"), ("agent", "editor")):
        assert server.ask(noun, "delete", name, "--yes").err == f"{noun} {name} deleted\n"
        assert server.ask(noun, "show", name).code == 5


def test_the_schedules_of_an_agent_that_goes_are_named(server: Server) -> None:
    server.told("agent", "put", "writer")
    server.service.create(
        schedule_id="s", cron_expressions=["@hourly"], workflow_type="w", assignee_type="agent", assignee_id="writer"
    )
    assert server.ask("agent", "delete", "writer", "--yes").err.endswith("schedule s paused\n")


@pytest.mark.parametrize(
    ("words", "flag"),
    [
        (["agent", "put", "x", "--capacity", "0"], "--capacity"),
        (["agent", "put", "x", "--url", "nonsense"], "--url"),
        (["agent", "put", "x", "--max-daily-runs", "-1"], "--max-daily-runs"),
        (["agent", "put", "x", "--token-file", "missing"], "--token-file"),
        (["team", "put", "x", "--member", "nobody"], "--member"),
        (["team", "put", "x", "--member", "a", "--strategy", "dice"], "--strategy"),
        (["assignment", "put", "x", "--workflow", "w", "--assignee", "writer"], "--assignee"),
        (["assignment", "put", "x", "--workflow", "w", "--assignee", "agent:none"], "--workflow"),
        (["assignment", "put", "x", "--workflow", "w", "--retry-policy", "["], "--retry-policy"),
    ],
    ids=lambda value: " ".join(value[:4]) if isinstance(value, list) else "",
)  # fmt: skip
def test_a_wrong_word_is_named_by_its_flag(empty_server: Server, words: list[str], flag: str) -> None:
    answer = empty_server.ask(*words)
    assert (answer.code, answer.out, answer.err.count("\n")) == (2, "", 1)
    assert answer.err.startswith(f"error: {flag}: ")


def test_nothing_is_deleted_where_nobody_can_be_asked(empty_server: Server) -> None:
    for noun in ("agent", "team", "assignment", "workflow"):
        answer = empty_server.ask(noun, "delete", "x")
        assert (answer.code, "--yes" in answer.err) == (2, True)


def test_a_token_of_an_agent_is_printed_once_and_opens_its_own(server: Server) -> None:
    server.told("agent", "put", "writer")
    answer = server.ask("agent", "token", "writer", "--name", "in the cluster", "--expires-at", "90d")
    assert (answer.code, "role agent" in answer.err) == (0, True)
    own = server.service.http(token=answer.out.strip())
    assert own.get("/api/agents/writer").status_code == 200
    assert server.ask("agent", "token", "nobody").code == 5


def test_agents_stand_below_their_parents(server: Server) -> None:
    for name, parent in (("boss", None), ("editor", "boss"), ("writer", "editor"), ("aide", "boss"), ("lone", None)):
        server.told("agent", "put", name, *(() if parent is None else ("--parent", parent)))
    lines = server.told("agent", "list", "--tree").splitlines()
    assert [line[:10].rstrip() for line in lines] == ["Agent ID", "boss", "  aide", "  editor", "    writer", "lone"]
    assert len(json.loads(server.told("agent", "list", "--tree", "-o", "json"))["agents"]) == 5


def test_a_check_says_what_it_found_and_whether_somebody_answered(server: Server) -> None:
    """Nobody listens at the discard port of this machine."""
    server.told("agent", "put", "writer", "--url", "http://127.0.0.1:9/", "--allowed-host", "other.example.com")
    answer = server.ask("agent", "check", "writer")
    assert (answer.code, answer.out.splitlines()[:2]) == (1, ["id         writer", "reachable  no"])
    assert "card error" in server.told("agent", "show", "writer")
    server.told("agent", "put", "lost")
    assert server.ask("agent", "check", "lost").code == 2


def test_a_put_that_would_reset_fields_names_them_and_changes_nothing(server: Server) -> None:
    Path("token").write_text("hunter2\n")
    server.service.client().put_workflow("brief", BRIEF)
    wishes = {
        "agent": (["writer", "--name", "Writer", "--capacity", "2", "--token-file", "token"], ["--name", "Ada"]),
        "team": (["desk", "--member", "writer", "--max-daily-runs", "4"], ["--member", "writer"]),
        "assignment": (
            ["b", "--workflow", "brief", "--assignee", "agent:writer", "--gate", "publish"],
            ["--workflow", "brief", "--assignee", "agent:writer"],
        ),
    }
    lost = {"agent": "capacity: 2", "team": "policies.budget.max_daily_runs: 4", "assignment": "approval_policy.gates"}
    for noun, (given, less) in wishes.items():
        name = given[0]
        server.told(noun, "put", *given)
        assert server.told(noun, "put", *given) == f"{name}: unchanged; version 1\n"
        answer = server.ask(noun, "put", name, *less)
        assert (answer.code, answer.out) == (2, "")
        first, last = answer.err.splitlines()
        assert first.startswith(lost[noun])
        assert f"horarium {noun} update" in last
        assert "--replace" in last
        assert json.loads(server.told(noun, "show", name, "-o", "json"))["version"] == 1
        assert server.told(noun, "put", name, *less, "--replace") == f"{name}: updated; version 2\n"
    shown = json.loads(server.told("agent", "show", "writer", "-o", "json"))
    assert (shown["capacity"], shown["has_token"]) == (1, True)


def test_update_changes_single_fields_and_clears_those_that_are_named(server: Server) -> None:
    server.service.client().put_workflow("brief", BRIEF)
    rules = ("--max-daily-runs", "5", "--requires-approval", "--native-scheduler")
    server.told("agent", "put", "writer", "--name", "Writer", *rules)
    assert server.told("agent", "update", "writer", "--capacity", "3") == "writer: updated; version 2\n"
    cleared = ("--clear", "name", "--no-native-scheduler", "--spending-limit", "2.5")
    server.told("agent", "update", "writer", *cleared)
    shown = json.loads(server.told("agent", "show", "writer", "-o", "json"))
    assert (shown["name"], shown["capacity"], shown["native_scheduler"]) == ("", 3, False)
    assert shown["policies"] == {
        "approval_policy": {"requires_approval": True},
        "budget": {"max_daily_runs": 5, "spending_limit_credits": 2.5},
    }
    server.told("team", "put", "desk", "--member", "writer", "--name", "Desk")
    server.told("team", "update", "desk", "--strategy", "round_robin", "--max-daily-runs", "2")
    server.told("assignment", "put", "b", "--workflow", "brief", "--assignee", "team:desk", "--gate", "publish")
    server.told("assignment", "update", "b", "--assignee", "agent:writer")
    team, given = (json.loads(server.told(*words, "-o", "json")) for words in (
        ("team", "show", "desk"), ("assignment", "show", "b")))  # fmt: skip
    assert (team["name"], team["members"], team["strategy"]) == ("Desk", ["writer"], "round_robin")
    assert (given["assignee_type"], given["approval_policy"]["gates"]) == ("agent", ["publish"])

    for words, code in (
        (("agent", "update", "writer"), 2),
        (("agent", "update", "writer", "--clear", "nonsense"), 2),
        (("agent", "update", "writer", "--capacity", "0"), 2),
        (("agent", "update", "nobody", "--capacity", "2"), 5),
        (("agent", "update", "writer", "--capacity", "4", "--if-version", "1"), 1),
    ):
        assert server.ask(*words).code == code, words
