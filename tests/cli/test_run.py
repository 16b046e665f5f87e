"""`horarium run`: what became of the work, and how to stop it."""

from __future__ import annotations

import json

import pytest
from cli.served import Server

from horarium.core.lifecycle.outcome import Outcome
from horarium.testing import Accepted

NIGHTLY = ("schedule", "create", "nightly", "--every", "PT1H", "--workflow-type", "report")


def triggered(server: Server) -> str:
    run_id: str = json.loads(server.told("schedule", "trigger", "nightly", "-o", "json"))["run_id"]
    return run_id


def states(server: Server, *filters: str) -> list[str]:
    return [json.loads(row)["state"] for row in server.told("run", "list", *filters, "-o", "jsonl").splitlines()]


@pytest.mark.parametrize("verb", ["cancel", "terminate"])
def test_a_run_that_has_not_started_ends_at_once(server: Server, verb: str) -> None:
    server.told(*NIGHTLY)
    run_id = triggered(server)
    assert server.told("run", verb, run_id).startswith(f"{run_id}: ")
    assert states(server) == ["cancelled"]


def test_a_run_that_runs_is_asked_to_stop_or_ended(server: Server) -> None:
    server.told(*NIGHTLY)
    run_id = triggered(server)
    server.service.settle()
    server.told("run", "cancel", run_id)
    assert json.loads(server.told("run", "show", run_id, "-o", "json"))["stop_requested_at"] is not None
    server.told("run", "terminate", run_id)
    assert states(server) == ["terminated"]


def test_a_run_shows_what_it_used_and_what_it_gave(server: Server) -> None:
    server.told(*NIGHTLY)
    run_id = triggered(server)
    server.service.settle()
    said = {"state": "succeeded", "result": {"rows": 42}, "cost": 0.25, "tokens": 1_200, "tool_calls": 3}
    said["report_token"] = server.service.launcher.deliveries[-1].report_token
    server.service.http().post(f"/api/runs/{run_id}/report", json=said).raise_for_status()
    shown = server.told("run", "show", run_id)
    assert 'result         {"rows": 42}' in shown
    assert "cost 0.25, 1200 tokens, 3 tool calls" in shown


def test_a_run_that_caught_up_says_what_it_covers(server: Server) -> None:
    server.told(*NIGHTLY)
    server.service.sleep(hours=5)
    server.service.settle()
    [run] = server.service.runs()
    [run_id] = [json.loads(row)["run_id"] for row in server.told("run", "list", "-o", "jsonl").splitlines()]
    assert run.covers is not None
    assert f"{run.covers.count} occurrences, 2026-03-01T01:00:00Z to" in server.told("run", "show", run_id)


TRACEBACK = """\
Traceback (most recent call last):
  File "jobs.py", line 7, in report
    \tsend(\x1b[31m)
ValueError: no such mailbox"""


def failed(server: Server) -> str:
    fields = {
        "intervals": [{"every": "PT1H"}],
        "workflow_type": "report",
        "retry_policy": {"max_retries": 1, "backoff_ms": 1},
    }
    server.service.create(schedule_id="nightly", **fields)
    run_id = triggered(server)
    server.service.settle()
    server.service.fail(server.service.runs()[0], TRACEBACK, error_class="provider_error")
    server.service.advance(seconds=5)
    return run_id


def test_attempts_are_counted_from_1(server: Server) -> None:
    run_id = failed(server)
    assert json.loads(server.told("run", "show", run_id, "-o", "json"))["attempt"] == 1
    assert "running (attempt 2)" in server.told("run", "show", run_id)
    server.service.finish(server.service.runs()[0])
    assert "succeeded (attempt 2)" in server.told("run", "show", run_id)


def test_a_traceback_has_its_own_lines_and_moves_no_cursor(server: Server) -> None:
    run_id = failed(server)
    server.service.fail(server.service.runs()[0], TRACEBACK, error_class="provider_error")
    lines = server.told("run", "show", run_id).splitlines()
    assert "failed (attempt 2)" in " ".join(lines)
    start = next(number for number, line in enumerate(lines) if line.startswith("error"))
    assert [line[15:] for line in lines[start : start + 5]] == [
        "provider_error",
        "Traceback (most recent call last):",
        '  File "jobs.py", line 7, in report',
        "        send(\\x1b[31m)",
        "ValueError: no such mailbox",
    ]
    for verb in (("run", "events", run_id), ("schedule", "describe", "nightly")):
        shown = server.told(*verb)
        assert "\\n" not in shown
        assert '  File "jobs.py", line 7, in report' in shown


def test_skips_are_shown_among_the_runs_of_a_schedule(server: Server) -> None:
    server.told(*NIGHTLY)
    triggered(server)
    assert server.ask("schedule", "trigger", "nightly").code == 1
    assert states(server, "--schedule", "nightly") == ["ready"]
    assert sorted(states(server, "--schedule", "nightly", "--skips")) == ["ready", "skipped"]


@pytest.mark.parametrize("answer", [Accepted(queued=True)], ids=["queued"])
def test_runs_are_found_by_state_origin_workflow_and_queue(server: Server, answer: Outcome) -> None:
    server.told(*NIGHTLY, "--queue", "slow")
    triggered(server)
    server.service.settle()
    fitting = ["--state", "queued", "--state", "running", "--origin", "manual", "--workflow-type", "report"]
    assert states(server, *fitting, "--queue", "slow") == ["queued"]
    assert states(server, "--queue", "fast") == []
    assert states(server, "--state", "unsuccessful") == []
    assert states(server, "--state", "unsuccessful", "--state", "queued") == ["queued"]
    assert server.ask("run", "list", "--state", "sleeping").code == 2


def test_the_runs_of_a_deleted_schedule_stay(server: Server) -> None:
    server.told(*NIGHTLY)
    triggered(server)
    server.told("schedule", "delete", "nightly")
    assert states(server, "--schedule", "nightly") == ["cancelled"]


def test_a_run_that_is_not_there_is_5(empty_server: Server) -> None:
    for verb in ("show", "events", "cancel", "terminate"):
        answer = empty_server.ask("run", verb, "01JQ8Z6H4M8X2V0T1R3S5W7Y9B")
        assert (answer.code, answer.out, answer.err.count("\n")) == (5, "", 1)


def test_a_run_is_done_once_more(server: Server) -> None:
    server.told(*NIGHTLY)
    run_id = triggered(server)
    early = server.ask("run", "rerun", run_id)
    assert (early.code, "only ended runs" in early.err) == (1, True)
    server.told("run", "cancel", run_id)
    done = json.loads(server.told("run", "rerun", run_id, "--reason", "by mistake", "-o", "json"))
    assert done["rerun_of"] == run_id
    assert done["run_id"] in server.told("run", "show", run_id)
    assert run_id in server.told("run", "show", done["run_id"])
    assert server.ask("run", "rerun", run_id).code == 1, "the schedule is busy"
