"""Bulk selection from a terminal: a count, a question, and what became of each."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable

import pytest
from cli.served import Server
from engine.builders import multiply

from horarium.platform.ids import parse_id


@pytest.fixture
def team(server: Server) -> Server:
    for number in range(3):
        server.service.create(
            schedule_id=f"s{number}", cron_expr="0 2 * * *", workflow_type="w", labels={"team": "data"}
        )
    server.service.create(schedule_id="other", cron_expr="0 2 * * *", workflow_type="w")
    return server


def statuses(server: Server) -> dict[str, str]:
    rows = map(json.loads, server.told("schedule", "list", "-o", "jsonl").splitlines())
    return {row["schedule_id"]: row["status"] for row in rows}


def test_without_a_terminal_nothing_happens_unless_somebody_says_yes(team: Server) -> None:
    refused = team.ask("schedule", "pause", "--label", "team=data")
    assert (refused.code, refused.out) == (2, "")
    assert "Pause 3 schedules?" in refused.err
    assert set(statuses(team).values()) == {"active"}
    done = team.ask("schedule", "pause", "--label", "team=data", "--yes", "--reason", "the warehouse moves")
    assert (done.code, done.err) == (0, "pause: 3 of 3 done\n")
    assert statuses(team) == {"s0": "paused", "s1": "paused", "s2": "paused", "other": "active"}
    skipped = team.ask("schedule", "trigger", "--all", "--yes", "-o", "json")
    assert (skipped.code, skipped.err) == (1, "trigger: 1 of 4 done\n")
    assert team.ask("run", "cancel", "--all", "--yes").err == "cancel: 1 of 1 done\n"
    assert team.ask("schedule", "resume", "--label", "team=nobody").err == "no matching schedules\n"


def test_labels_of_one_and_of_many(team: Server) -> None:
    assert team.told("schedule", "label", "other", "--set", "team=web").startswith("other: updated labels")
    done = team.ask("schedule", "label", "--label", "team=data", "--set", "tier=gold", "--unset", "team", "--yes")
    assert (done.code, done.err) == (0, "label: 3 of 3 done\n")
    rows = map(json.loads, team.told("schedule", "list", "-o", "jsonl").splitlines())
    assert {row["schedule_id"]: row["labels"] for row in rows} == {
        **{f"s{number}": {"tier": "gold"} for number in range(3)},
        "other": {"team": "web"},
    }


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Call it with the line that is typed next."""

    def types(line: str) -> None:
        monkeypatch.setattr(sys, "stdin", io.StringIO(f"{line}\n"))
        monkeypatch.setattr(sys.stdin, "isatty", lambda: True)

    return types


def test_a_change_that_deletes_nothing_is_confirmed_with_y(team: Server, terminal: Callable[[str], None]) -> None:
    for line, status in (("n", "active"), ("y", "paused")):
        terminal(line)
        assert team.ask("schedule", "pause", "--all").code == (0 if status == "paused" else 1)
        assert set(statuses(team).values()) == {status}


def test_deleting_several_schedules_needs_their_number(team: Server, terminal: Callable[[str], None]) -> None:
    for line in ("y", "3", ""):
        terminal(line)
        refused = team.ask("schedule", "delete", "--all")
        assert (refused.code, "Delete 4 schedules? Enter 4 to confirm" in refused.err) == (1, True), line
        assert len(statuses(team)) == 4
    terminal("4")
    assert team.ask("schedule", "delete", "--all").code == 0
    assert statuses(team) == {}


def test_deleting_one_schedule_is_confirmed_with_y(team: Server, terminal: Callable[[str], None]) -> None:
    team.told("schedule", "label", "other", "--set", "team=web")
    terminal("y")
    assert team.ask("schedule", "delete", "--label", "team=web").code == 0
    assert set(statuses(team)) == {"s0", "s1", "s2"}


def test_purging_an_agent_or_deleting_a_namespace_needs_the_number_of_schedules(
    team: Server, terminal: Callable[[str], None]
) -> None:
    team.told("agent", "put", "writer", "--url", "https://writer.example")
    for number in range(2):
        team.told("schedule", "create", f"w{number}", "--every", "PT1H", "--prompt", "go", "--assignee", "agent:writer")
    terminal("y")
    refused = team.ask("agent", "delete", "writer", "--purge")
    assert (refused.code, "Delete agent writer with 2 schedules? Enter 2" in refused.err) == (1, True), refused.err
    terminal("2")
    assert team.ask("agent", "delete", "writer", "--purge").code == 0
    assert set(statuses(team)) == {"s0", "s1", "s2", "other"}
    team.told("namespace", "create", "staging")
    for number in range(2):
        create = ("schedule", "create", f"s{number}", "--every", "PT1H", "--workflow-type", "w")
        team.told("--namespace", "staging", *create)
    terminal("1")
    assert team.ask("namespace", "delete", "staging", "--force").code == 1
    terminal("2")
    assert team.ask("namespace", "delete", "staging", "--force").code == 0


@pytest.mark.parametrize(
    "words",
    [
        ["schedule", "pause"],
        ["schedule", "label", "--all"],
        ["schedule", "label", "--all", "--set", "team"],
        ["schedule", "label", "--set", "team=data"],
        ["schedule", "pause", "s0", "--all"],
        ["schedule", "pause", "--all", "--label", "team=data"],
        ["schedule", "delete", "--label", "team"],
        ["schedule", "delete", "--all", "--if-version", "1"],
        ["schedule", "trigger", "--all", "--key", "k"],
        ["run", "cancel"],
    ],
    ids=" ".join,
)
def test_what_names_nobody_or_two_things_is_refused(team: Server, words: list[str]) -> None:
    answer = team.ask(*words)
    assert (answer.code, answer.out) == (2, "")
    assert set(statuses(team).values()) == {"active"}


def test_a_storm_is_told_with_its_number_and_wants_a_word(server: Server) -> None:
    create = ("schedule", "create", "s", "--every", "PT1H", "--workflow-type", "w", "--overlap-policy", "buffer_all")
    server.told(*create)
    http = server.service.http()
    held = [http.post("/api/schedules/s/trigger").json() for _ in range(2)][1]
    multiply(server.service.resources.database, parse_id(held["run_id"], "run_id"), 1_000)
    server.told("schedule", "pause", "s")
    server.told("schedule", "update", "s", "--overlap-policy", "allow_all")
    for words in (["s"], ["--all", "--yes"]):
        refused = server.ask("schedule", "resume", *words)
        assert (refused.code, "Start 1001 runs at once?" in refused.err) == (2, True), refused.err
    assert "resumed" in server.told("schedule", "resume", "s", "--confirm")
