"""The flags of a schedule: one for every field, and what each of them says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from cli.served import Server

from horarium.core.document.places import PLACES
from horarium.features.schedules.definition_flags import NOT_FLAGS, SHORT, all_flags
from horarium.platform.cli.remote import renamed


def test_every_field_has_a_flag_or_a_reason() -> None:
    places = [flag.place for flag in all_flags()]
    assert sorted([*places, *NOT_FLAGS]) == sorted(PLACES)


def test_no_two_flags_have_a_name_in_common() -> None:
    names = [name for flag in all_flags() for name in (flag.name, *flag.also)] + [short.name for short in SHORT]
    assert len(names) == len(set(names))


def test_a_flag_says_what_its_field_says() -> None:
    told = {flag.name: (flag.parameter.default.help, PLACES[flag.place].field.says) for flag in all_flags()}
    assert [name for name, (said, meant) in told.items() if meant not in said] == []


def test_policies_timeouts_and_secrets_need_no_file(server: Server) -> None:
    server.told(
        "schedule", "create", "calls", "--every", "PT1H", "--url", "https://example.org/hook", "--secret", "hooks",
        "--timeout-seconds", "30", "--max-retries", "3", "--retry-backoff-ms", "500", "--retry-max-backoff-ms", "9000",
        "--retry-on", "timeout", "--retry-on", "provider_error", "--retry-timeout-ms", "2000", "--requires-approval",
        "--approval-expires-after-seconds", "60", "--failure-mode", "halt", "--limit-cost", "2.5",
        "--limit-runtime-seconds", "90", "--catchup-policy", "spread", "--catchup-spread-seconds", "10",
        "--cancel-grace-seconds", "5", "--concurrency-key", "k", "--concurrency-limit", "2", "--memo", '{"a": 1}',
    )  # fmt: skip
    told = json.loads(server.told("export", "-o", "json"))["schedules"][0]
    assert (told["action"]["secret"], told["action"]["timeout_seconds"]) == ("hooks", 30)
    assert told["retry_policy"] == {
        "max_retries": 3, "backoff_ms": 500, "max_backoff_ms": 9_000, "timeout_ms": 2_000,
        "retry_on": ["timeout", "provider_error"],
    }  # fmt: skip
    assert told["approval_policy"] == {"requires_approval": True, "expires_after_seconds": 60}
    assert (told["failure_policy"], told["limits"]) == ({"mode": "halt"}, {"runtime_seconds": 90, "cost": 2.5})
    assert (told["memo"], told["concurrency_limit"], told["catchup_spread_seconds"]) == ({"a": 1}, 2, 10)
    server.told("schedule", "update", "calls", "--max-retries", "1", "--no-requires-approval")
    changed = json.loads(server.told("export", "-o", "json"))["schedules"][0]
    assert (changed["retry_policy"]["max_retries"], changed["retry_policy"]["backoff_ms"]) == (1, 500)
    assert changed["approval_policy"] == {"requires_approval": False, "expires_after_seconds": 60}


def test_short_flags_say_two_fields_or_a_longer_name(server: Server) -> None:
    server.told(
        "schedule", "create", "short", "--every", "PT1H", "--workflow-type", "w", "--on-failure", "fallback:editor",
        "--gate", "publish", "--gate", "spend", "--approval-mode", "sensitive_actions", "--approval-expires", "3600",
        "--backoff", "250", "--max-cost", "2", "--max-tokens", "900", "--approver", "role:admin", "--allow-requester",
        "--approvals-required", "2", "--while-waiting", "supersede",
    )  # fmt: skip
    told = json.loads(server.told("export", "-o", "json"))["schedules"][0]
    assert told["failure_policy"] == {"mode": "fallback", "fallback_assignee_id": "editor"}
    assert told["approval_policy"] == {
        "mode": "sensitive_actions", "gates": ["publish", "spend"], "expires_after_seconds": 3_600,
        "approvers": ["role:admin"], "approvals_required": 2, "allow_requester": True, "while_waiting": "supersede",
    }  # fmt: skip
    server.told("schedule", "update", "short", "--approval-expires", "never")
    changed = json.loads(server.told("export", "-o", "json"))["schedules"][0]["approval_policy"]
    assert changed["expires_after_seconds"] is None
    assert (told["retry_policy"]["backoff_ms"], told["limits"]) == (250, {"cost": 2, "tokens": 900})


@pytest.mark.parametrize(
    "flags",
    [
        ["--max-retries", "-1"],
        ["--retry-on", "nothing"],
        ["--failure-mode", "nothing"],
        ["--workflow-version", "newest"],
        ["--limit-cost", "nan"],
        ["--cron", "0 25 * * *"],
        ["--every", "30x"],
        ["--every", "PT1H+5x"],
        ["--file", "missing.json"],
        ["--at", "2026-03-01T00:00:00.5Z"],
        ["--end-at", "2026-03-01", "--start-at", "2026-03-02"],
        ["--assignee", "writer"],
        ["--assignee", "robot:writer"],
        ["--on-failure", "fallback"],
        ["--on-failure", "halt:writer"],
        ["--on-failure", "nothing"],
        ["--approval-expires-after-seconds", "soon"],
    ],
    ids=lambda words: " ".join(words[:2]),
)
def test_a_flag_that_is_wrong_is_named_in_one_line(empty_server: Server, flags: list[str]) -> None:
    answer = empty_server.ask("schedule", "create", "x", "--every", "PT1H", "--workflow-id", "w", *flags)
    [line] = [each for each in answer.err.splitlines() if not each.startswith("--")]  # which times were understood
    assert (answer.code, answer.out) == (2, "")
    assert line.startswith(f"error: {flags[0]}: ")


def test_a_window_that_is_wrong_is_named_by_its_flags(empty_server: Server) -> None:
    window = ("--from", "2026-02-08T00:00:00Z", "--to", "2026-02-01T00:00:00Z")
    answer = empty_server.ask("schedule", "backfill", "x", *window)
    assert (answer.code, answer.err) == (2, "error: --to: must be after --from\n")
    assert empty_server.ask("agenda", *window).err == answer.err


@pytest.mark.parametrize(
    "words",
    [
        ["run", "list", "--state", "nonsense"],
        ["run", "list", "--origin", "nonsense"],
        ["run", "list", "--page-token", "nonsense"],
        ["schedule", "list", "--status", "nonsense"],
        ["schedule", "list", "--query", "non = = sense"],
        ["calendar", "create", "--date", "nonsense", "days"],
        ["calendar", "create", "--rule", "nonsense", "days"],
        ["calendar", "create", "--tz", "nonsense", "days"],
        ["calendar", "show", "--year", "1", "weekends"],
        ["subscription", "create", "--kind", "nonsense", "told", "--url", "https://example.com"],
        ["subscription", "create", "--url", "nonsense", "told", "--kind", "run_finished"],
        ["subscription", "create", "--state", "x", "told", "--kind", "run_finished", "--url", "https://example.com"],
        ["schedule", "pause", "--reason", "x" * 5_000, "nothing"],
    ],
    ids=lambda words: " ".join(words[:3]),
)
def test_a_wrong_word_of_other_commands_is_named_by_its_flag(empty_server: Server, words: list[str]) -> None:
    answer = empty_server.ask(*words)
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.startswith(f"error: {words[2]}: ")


def test_what_a_file_says_is_named_by_its_field(empty_server: Server, tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text('{"spec": {"cron_expressions": ["0 25 * * *"]}, "action": {"workflow_id": "w"}}')
    answer = empty_server.ask("schedule", "create", "x", "--file", str(tmp_path / "x.json"), "--note", "n")
    assert answer.err.startswith("error: spec.cron_expressions.0: ")


@pytest.mark.parametrize(
    ("errors", "told"),
    [
        ({"spec.at.0": ["a"], "spec.at.12": ["b"]}, "--at: a; --at: b"),
        ({"spec.attic": ["a"]}, "spec.attic: a"),
        (
            {"end_time": ["must be after start_time, not my_start_time"]},
            "end_time: must be after --from, not my_start_time",
        ),
        ({"spec.intervals.0.every": ["a"], "spec.intervals.1.offset": ["b"]}, "--every: a; --every: b"),
        ({"spec.intervals.0.each": ["a"]}, "spec.intervals.0.each: a"),
        ({"end": ["must be after `from`, not from"]}, "end: must be after --since, not from"),
        ({"note": "no list"}, ""),
        ({}, ""),
    ],
)
def test_how_fields_become_flags(errors: Any, told: str) -> None:
    flags = {"spec.at": "--at", "spec.intervals": "--every", "start_time": "--from", "from": "--since"}
    assert renamed(errors, flags) == told


def test_a_header_may_name_a_secret_and_a_plain_credential_is_not_shown_again(server: Server) -> None:
    told = server.ask(
        *("schedule", "create", "calls", "--every", "PT1H", "--url", "https://example.org/hook"),
        *("--header", 'X-Key={"$secret": "mine"}', "--header", "Cookie=id=canary-0001", "--header", "X-Team={red}"),
    )
    assert told.code == 0
    assert "the secret 'mine' is not set" in told.err
    exported = server.told("export", "-o", "json")
    assert json.loads(exported)["schedules"][0]["action"]["headers"] == {
        "X-Key": {"$secret": "mine"},
        "Cookie": {"$secret": "schedule.calls.cookie"},
        "X-Team": "{red}",
    }
    assert "canary" not in exported + told.out + told.err
    Path("bundle.json").write_text(exported)
    server.told("namespace", "create", "elsewhere")
    again = server.ask("apply", "-f", "bundle.json", "--namespace", "elsewhere")
    assert again.code == 0, again.err
    assert "the secret 'schedule.calls.cookie' is not set" in again.err
