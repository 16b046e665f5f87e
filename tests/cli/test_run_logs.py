"""`horarium run logs`: the lines on stdout, what is missing on stderr."""

from __future__ import annotations

import json
from typing import Any

import pytest
from cli.served import Server

from horarium.testing import Accepted


@pytest.fixture
def answer() -> Accepted:
    return Accepted(reference="brooms", queued=True)


def claimed(server: Server) -> dict[str, Any]:
    server.told("schedule", "create", "s", "--every", "PT1H", "--workflow-type", "sweep", "--task-queue", "brooms")
    server.told("schedule", "trigger", "s")
    server.service.settle()
    [run] = server.service.http().post("/api/queues/brooms/claim").json()["runs"]
    found: dict[str, Any] = run
    return found


def test_the_lines_of_a_run_are_printed(server: Server) -> None:
    run, http = claimed(server), server.service.http()
    run_id, epoch = run["run_id"], {"lease_epoch": run["lease_epoch"]}
    nothing = server.ask("run", "logs", run_id)
    assert (nothing.code, nothing.out, nothing.err) == (0, "", f"no logs of run {run_id}\n")
    lines = ["one", {"text": "\x1b[2Jtwo", "stream": "stderr"}]
    http.post(f"/api/runs/{run_id}/logs", json={**epoch, "lines": lines, "dropped": 3}).raise_for_status()
    http.post(f"/api/runs/{run_id}/report", json={**epoch, "state": "succeeded"}).raise_for_status()
    for follow in ((), ("--follow",)):
        shown = server.ask("run", "logs", run_id, *follow)
        assert (shown.code, shown.out) == (0, "one\n\\x1b[2Jtwo\n")
        assert shown.err.startswith("… 3 lines dropped")
    assert server.told("run", "logs", run_id, "--after", "4") == "\\x1b[2Jtwo\n"
    assert " 1 stderr \\x1b[2Jtwo\n" in server.told("run", "logs", run_id, "--times")
    rows = [json.loads(row) for row in server.told("run", "logs", run_id, "-o", "jsonl").splitlines()]
    assert [(row["number"], row["text"]) for row in rows] == [(4, "one"), (5, "\x1b[2Jtwo")]
    assert json.loads(server.told("run", "logs", run_id, "-o", "json"))["ended"] is True


def test_a_run_that_is_not_there_is_one_line(empty_server: Server) -> None:
    answer = empty_server.ask("run", "logs", "01JQ8Z6H4M8X2V0T1R3S5W7Y9B", "--follow")
    assert (answer.code, answer.out, answer.err.count("\n")) == (5, "", 1)
