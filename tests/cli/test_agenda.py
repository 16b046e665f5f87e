"""What runs tomorrow, across schedules, on a terminal."""

from __future__ import annotations

import json
import shlex

from cli.served import Server


def test_tomorrow_is_told_with_reasons(server: Server) -> None:
    server.service.create(schedule_id="nightly", cron_expr="0 2 * * *", workflow_type="w")
    server.service.create(schedule_id="resting", cron_expr="0 3 * * *", workflow_type="w", paused=True)
    day = int(server.told("agenda", "-o", "jsonl").split('"at": "')[1][8:10]) + 1
    window = ("--from", f"2026-03-{day:02}T00:00:00Z", "--to", f"2026-03-{day + 1:02}T00:00:00Z")
    lines = [line.split() for line in server.told("agenda", *window).splitlines()]
    assert lines[1:] == [
        [f"2026-03-{day:02}T02:00:00Z", "nightly", "dispatch", "-", "predicted,", "unknown", "-"],
        [f"2026-03-{day:02}T03:00:00Z", "resting", "skip", "status_not_triggerable", "predicted,", "certain", "-"],
    ]
    lanes = ("--schedule", "nightly", "--schedule", "nobody", "--status", "active", "--text", "NIGHT")
    assert [line.split() for line in server.told("agenda", *window, *lanes).splitlines()[1:]] == lines[1:2]
    assert server.ask("agenda", *window, "--label", "team=data").out == ""
    assert server.ask("agenda", *window, "--reason", "missed").out == ""
    assert server.ask("agenda", *window, "--reason", "weather").code == 2
    cut = server.ask("agenda", *window, "--limit", "1")
    assert (len(cut.out.splitlines()), "more occurrences" in cut.err) == (2, True)
    assert server.ask("agenda", "--from", "2030-01-02T00:00:00Z", "--to", "2030-01-01T00:00:00Z").code == 2


def test_an_overview_says_what_there_is_and_how_to_list_it(server: Server) -> None:
    server.service.create(schedule_id="nightly", cron_expr="0 2 * * *", workflow_type="w")
    server.service.create(schedule_id="resting", cron_expr="0 3 * * *", workflow_type="w", paused=True)
    server.told("schedule", "trigger", "nightly")
    rows = [line.split("  ") for line in server.told("overview").splitlines()[1:]]
    told = {words[0]: ([each.strip() for each in words[1:] if each.strip()]) for words in rows}
    assert told["active schedules"] == ["1", "schedule list --status active"]
    assert told["paused schedules"] == ["1", "schedule list --status paused"]
    assert told["failing schedules"] == ["0", "schedule list --health failing"]
    # What stands there can be typed.
    commands = [shlex.split(words[-1]) for words in told.values()]
    assert {server.ask(*command).code for command in commands} == {0}
    assert json.loads(server.told("overview", "-o", "json"))["schedules"]["paused"] == 1
