"""`horarium workflow`: putting, drawing and starting workflows."""

from __future__ import annotations

import json
from pathlib import Path

from cli.served import Server

BRIEF = """
name: Daily brief
nodes:
  - {id: fetch, action: {kind: pull, queue: work, workflow_type: fetch}}
  - {id: write, needs: [fetch], action: {kind: pull, queue: work, workflow_type: write}}
  - {id: send, needs: [write], gates: [external_message], action: {kind: pull, queue: work, workflow_type: send}}
triggers:
  - {key: nightly, schedule: {cron_expressions: ["0 2 * * *"]}}
"""
WRONG = """
nodes:
  - {id: a, needs: [b], action: {kind: pull, queue: work, workflow_type: x}}
  - {id: a, action: {kind: nonsense}}
edges:
  - {from: a, to: nowhere}
"""


def finish_open(server: Server, result: object) -> None:
    """Whoever is open is done; what follows is begun."""
    server.service.settle()
    for run in server.service.client().list_runs(include="steps", state=["queued", "running"]):
        if run.parent_run_id is not None:
            server.service.finish(run, result)
    server.service.settle()


def test_a_workflow_is_put_drawn_listed_and_deleted(server: Server) -> None:
    Path("brief.yaml").write_text(BRIEF)
    put = server.told("workflow", "put", "brief", "brief.yaml")
    assert put == "brief: created; version 1\nworkflow:brief:nightly: created\n"
    assert server.told("workflow", "put", "brief", "brief.yaml").startswith("brief: unchanged; version 1\n")
    Path("brief.yaml").write_text(BRIEF.replace("Daily", "Every day's").split("triggers")[0])
    put = server.told("workflow", "put", "brief", "brief.yaml")
    assert put == "brief: updated; version 2\nworkflow:brief:nightly: deleted\n"

    shown = server.told("workflow", "show", "brief", "--version", "1")
    assert "│ gates: external_message │" in shown
    assert shown.count("▼") == 2
    assert json.loads(server.told("workflow", "show", "brief", "-o", "json"))["version"] == 2
    assert [line.split()[:2] for line in server.told("workflow", "list").splitlines()[1:]] == [["brief", "2"]]
    assert len(server.told("workflow", "versions", "brief").splitlines()) == 3
    assert server.ask("workflow", "show", "brief", "--version", "7").code == 5
    assert server.ask("workflow", "delete", "brief", "--yes").err == "workflow brief deleted\n"
    assert server.ask("workflow", "show", "brief").code == 5


def test_everything_that_is_wrong_is_said_at_once(empty_server: Server) -> None:
    Path("wrong.yaml").write_text(WRONG)
    answer = empty_server.ask("workflow", "validate", "wrong.yaml")
    assert (answer.code, answer.out) == (2, "")
    assert len(answer.err.splitlines()) > 2
    assert all(line.startswith(("nodes", "edges")) for line in answer.err.splitlines()[:-1])
    Path("right.yaml").write_text(BRIEF)
    assert "│ fetch" in empty_server.told("workflow", "validate", "right.yaml")
    assert empty_server.ask("workflow", "show", "brief").code == 5
    Path("other.yaml").write_text("workflow_id: other\n" + BRIEF)
    assert empty_server.ask("workflow", "put", "brief", "other.yaml").code == 2


def test_a_run_is_drawn_with_the_state_of_each_step(server: Server) -> None:
    Path("brief.yaml").write_text(BRIEF)
    server.told("workflow", "put", "brief", "brief.yaml")
    started = json.loads(server.told("workflow", "run", "brief", "--input", '{"a": 1}', "--label", "t=x", "-o", "json"))
    assert started["outcome"] == "started"
    server.service.settle()
    finish_open(server, {"rows": 7})
    shown = server.told("run", "show", started["run_id"])
    assert "│ ✓ fetch   │" in shown
    assert "▶ write" in shown
    assert "not started" in shown
    [step] = [line.split() for line in shown.splitlines() if line.startswith("fetch")]
    assert step[1] == "succeeded"
    finish_open(server, {"text": "seven"})
    finish_open(server, None)
    assert "✓ send" in server.told("run", "show", started["run_id"])
    assert len(server.told("run", "list", "--workflow", "brief").splitlines()) == 2
    assert len(server.told("run", "list", "--steps").splitlines()) == 5
    assert "node.completed" in server.told("run", "events", started["run_id"])
    assert "node.completed" not in server.told("run", "events", started["run_id"], "--own")
    assert server.ask("workflow", "run", "nothing").code == 5
    for wrong in (["--input", "["], ["--assignee", "writer"], ["--timeout", "1s"], ["--label", "x"]):
        answer = server.ask("workflow", "run", "brief", *wrong)
        assert (answer.code, answer.out, answer.err.count("\n")) == (2, "", 1)
