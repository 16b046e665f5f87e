"""What a schedule would be, what it has been, and what its condition sees, at a terminal."""

from __future__ import annotations

import json

from cli.served import Server

from horarium.platform.cli.remote import ExitCode

NIGHTLY = ("schedule", "create", "nightly", "--cron", "30 2 * * *", "--tz", "America/New_York", "--workflow-type", "w")


def test_a_dry_run_shows_what_would_be_and_makes_nothing(server: Server) -> None:
    shown = server.ask(*NIGHTLY, "--dry-run")
    assert shown.code == ExitCode.DONE, shown.err
    assert "at 02:30 every day" in shown.out
    assert "02:30 does not exist" in shown.err
    assert server.ask("schedule", "describe", "nightly").code == ExitCode.NOT_FOUND
    refused = server.ask(*NIGHTLY, "--overlap-policy", "sometimes", "--dry-run")
    assert refused.code == ExitCode.BAD_QUESTION
    assert "--overlap-policy" in refused.err


def test_an_edit_is_shown_before_and_its_revisions_after(server: Server) -> None:
    server.told(*NIGHTLY)
    later = ("schedule", "update", "nightly", "--cron", "30 3 * * *")
    told = json.loads(server.told(*later, "--dry-run", "-o", "json"))
    assert told["changes"]["moved"]
    assert told["document"]["spec"]["timezone"] == "America/New_York"
    assert "fires moved" in server.told(*later, "--dry-run")
    server.told(*later)
    listed = json.loads(server.told("schedule", "revisions", "nightly", "-o", "json"))
    assert [each["revision"] for each in listed["revisions"]] == [2, 1]
    compared = server.told("schedule", "revisions", "nightly", "--compare", "1", "2")
    assert "spec.cron_expressions" in compared
    assert server.ask("schedule", "revisions", "nightly", "--compare", "1", "9").code == ExitCode.BAD_QUESTION


def test_a_condition_is_tried_on_what_the_schedule_sees(server: Server) -> None:
    server.told(*NIGHTLY, "--condition", '{"/last_24h_stats/failed": {"lt": 3}}')
    own = server.ask("schedule", "condition", "test", "nightly")
    assert own.code == ExitCode.DONE, own.err
    assert "is less than 3; the value is 0" in own.out
    other = server.ask("schedule", "condition", "test", "nightly", '{"/prior_run_result": {"neq": null}}')
    assert other.code == ExitCode.NO
