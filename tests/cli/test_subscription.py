"""`horarium subscription`: who is told, and what the receiver said."""

from __future__ import annotations

import json

import pytest
from cli.served import Server

# Nobody listens at the discard port of this machine.
NOBODY = "http://127.0.0.1:9/"
CREATE = ("subscription", "create", "failures", "--url", NOBODY, "--kind", "run_finished")


def test_a_subscription_is_made_shown_tried_and_deleted(server: Server) -> None:
    made = server.ask(*CREATE, "--state", "failed", "--label", "team=billing", "--schedule", "nightly")
    secret = made.out.strip()
    assert (made.code, secret.startswith("whsec_"), made.out.count("\n"), secret in made.err) == (0, True, 1, False)
    shown = json.loads(server.told("subscription", "show", "failures", "-o", "json"))
    assert shown["filter"] == {"schedule_id": ["nightly"], "labels": {"team": "billing"}, "states": ["failed"]}
    for arguments in (("list",), ("list", "-o", "json"), ("show", "failures")):
        told = server.told("subscription", *arguments)
        assert ("failures" in told, secret in told) == (True, False)
    tried = server.ask("subscription", "test", "failures")
    assert (tried.code, tried.out.startswith("not delivered: ")) == (1, True)
    assert server.ask("subscription", "dead-letters", "failures").err == "no dead letters\n"
    assert server.told("subscription", "redeliver", "failures") == "0 queued for redelivery\n"
    assert server.ask("subscription", "delete", "failures").err == "subscription failures deleted\n"
    assert server.ask("subscription", "show", "failures").code == 5


def test_the_end_unsuccessful_is_kept_as_the_states_that_it_stands_for(server: Server) -> None:
    server.ask(*CREATE, "--state", "unsuccessful")
    shown = json.loads(server.told("subscription", "show", "failures", "-o", "json"))
    assert shown["filter"] == {"states": ["failed", "launch_failed", "timed_out", "unknown"]}


def test_a_secret_of_ones_own_is_not_printed(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HORARIUM_SUBSCRIPTION_SECRET", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    answer = server.ask(*CREATE)
    assert (answer.code, answer.out, "whsec_" in answer.err) == (0, "", False)


def test_what_is_wrong_is_said_in_one_line(server: Server) -> None:
    answer = server.ask("subscription", "create", "x", "--url", NOBODY, "--kind", "run_finish")
    assert (answer.code, answer.err.count("\n"), "run_finished" in answer.err) == (2, 1, True)
