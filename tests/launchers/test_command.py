"""Commands: only configured ones, no shell, no inheritance of secrets, and the whole group ends."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path
from typing import Any

import pytest
from launchers.far_ends import COMMANDS, KEY, STEP, FixedClock, python_command, request_for

from horarium.core.lifecycle.outcome import Finished, Outcome, Refused, RunCancelled, RunFailed, RunTimedOut
from horarium.launchers.command import CommandLauncher, CommandSpec


def run_command(spec: CommandSpec, **changes: Any) -> Outcome:
    async def run() -> Outcome:
        launcher = CommandLauncher({"it": spec}, FixedClock(), terminate_grace_seconds=0.3)
        return await launcher.launch(request_for("command", {"command": "it"}, **changes))

    return asyncio.run(run())


def shell(script: str, **settings: Any) -> CommandSpec:
    return CommandSpec(("/bin/sh", "-c", script), **settings)


def test_without_configured_commands_the_launcher_is_off() -> None:
    async def run() -> Outcome:
        return await CommandLauncher({}, FixedClock()).launch(request_for("command", {"command": "ls"}))

    assert asyncio.run(run()) == Refused("the command 'ls' is not configured")


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("echo '{\"a\": 1}'", Finished({"a": 1})),
        ("echo hello", Finished("hello\n")),
        ("true", Finished(None)),
        ("printf '\\377'", Finished("\ufffd")),
        ("echo 7", Finished(7)),
    ],
    ids=["json", "text", "nothing", "no utf-8", "number"],
)
def test_standard_output_is_the_result(script: str, expected: Outcome) -> None:
    assert run_command(shell(script)) == expected


def test_a_failure_keeps_exit_code_output_and_the_end_of_standard_error() -> None:
    outcome = run_command(shell("echo '[1]'; head -c 20000 /dev/zero | tr '\\0' x >&2; echo last words >&2; exit 3"))
    assert isinstance(outcome, RunFailed)
    assert outcome.error.startswith("the command ended with exit code 3: ")
    assert outcome.error.endswith("last words")
    assert len(outcome.error) < 5_000
    assert outcome.result == [1]
    assert outcome.error_class == "provider_error"


def test_a_command_that_is_killed_says_by_which_signal() -> None:
    outcome = run_command(shell("kill -9 $$"))
    assert outcome == RunFailed("the command was killed by signal 9", "provider_error", None)


def test_inputs_come_on_standard_input_and_need_not_be_read() -> None:
    assert run_command(shell("cat"), inputs={"a": "$(id)"}) == Finished({"a": "$(id)"})
    assert run_command(shell("true"), inputs="x" * 1_000_000) == Finished(None)


def test_the_environment_tells_the_run_and_hides_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_PASSWORD", "hunter2")
    monkeypatch.setenv("HORARIUM_TOKEN", "root")
    code = "import os, json; print(json.dumps(dict(os.environ)))"
    outcome = run_command(
        python_command(code, env={"MODE": "night", "HORARIUM_RUN_ID": "forged"}), traceparent="00-1-2-01"
    )
    assert isinstance(outcome, Finished)
    seen = outcome.result
    assert "hunter2" not in seen.values()
    assert "HORARIUM_TOKEN" not in seen
    assert seen["MODE"] == "night"
    assert seen["HORARIUM_RUN_ID"] == "run-1"
    assert seen["HORARIUM_RUN_KEY"] == KEY
    assert seen["HORARIUM_RUN_NOMINAL"] == "2026-03-08T07:00:00Z"
    assert seen["HORARIUM_SCHEDULE_ID"] == "nightly"
    assert seen["TRACEPARENT"] == "00-1-2-01"
    assert seen["PATH"] == os.environ["PATH"]


def test_the_environment_tells_a_step_its_place_and_its_terms() -> None:
    code = "import os, json; print(json.dumps({k[9:]: v for k, v in os.environ.items() if k[:9] == 'HORARIUM_'}))"
    outcome = run_command(python_command(code), **STEP)
    assert isinstance(outcome, Finished)
    told = {
        "WORKFLOW_ID": "brief",
        "WORKFLOW_VERSION": "2",
        "NODE_ID": "send",
        "PARENT_RUN_ID": "p",
        "ROOT_RUN_ID": "r",
        "ASSIGNEE_TYPE": "team",
        "ASSIGNEE_ID": "desk",
        "ASSIGNEE_MEMBER": "ann",
        "APPROVAL_MODE": "on_block",
        "GATES": '["publish","spend"]',
        "APPROVED_GATES": '["spend"]',
        "LIMITS": '{"cost":0.5}',
        "ALLOW_TOOLS": '["search"]',
        "GLOBAL_MODEL_ID": "m",
    }
    assert {name: outcome.result[name] for name in told} == told
    plain = run_command(python_command(code))
    assert isinstance(plain, Finished)
    assert not told.keys() & plain.result.keys()


def test_a_run_without_a_schedule_has_no_schedule_id_in_its_environment() -> None:
    assert run_command(shell("printenv HORARIUM_SCHEDULE_ID || echo none"), schedule_id=None) == Finished("none\n")


def test_the_environment_says_where_and_by_what_right_the_attempt_may_report() -> None:
    script = 'echo "$HORARIUM_RUN_ATTEMPT ${HORARIUM_REPORT_URL-none} ${HORARIUM_REPORT_TOKEN-none}"'
    told = {"attempt": 2, "report_url": "https://h.example/r", "report_token": "rt.secret"}
    assert run_command(shell(script), **told) == Finished("2 https://h.example/r rt.secret\n")
    assert run_command(shell(script)) == Finished("0 none none\n")


def test_the_working_directory_is_the_configured_one(tmp_path: Path) -> None:
    assert run_command(shell("pwd", cwd=str(tmp_path))) == Finished(f"{tmp_path}\n")


def test_arguments_are_appended_only_where_they_are_allowed_and_never_parsed() -> None:
    code = "import sys, json; print(json.dumps(sys.argv[1:]))"
    arguments = ["$(id)", "; rm -rf /", "ä b", ""]
    assert run_command(python_command(code, allow_arguments=True), inputs=arguments) == Finished(arguments)
    assert run_command(python_command(code, allow_arguments=True), inputs={"a": 1}) == Finished([])
    assert run_command(python_command(code), inputs=arguments) == Finished([])


@pytest.mark.parametrize("arguments", [["\x00"], ["\ud800"], [1], ["x"] * 1_001, ["x" * 3_000_000]])
def test_arguments_that_cannot_be_given_are_refused(arguments: Any) -> None:
    assert isinstance(run_command(shell("true", allow_arguments=True), inputs=arguments), Refused)


@pytest.mark.parametrize(
    "spec",
    [CommandSpec(("/nonexistent",)), CommandSpec(("/etc/passwd",)), shell("true", cwd="/nonexistent")],
    ids=["missing", "not executable", "no such directory"],
)
def test_a_command_that_cannot_start_is_refused(spec: CommandSpec) -> None:
    outcome = run_command(spec)
    assert isinstance(outcome, Refused)
    assert outcome.error.startswith("the command cannot be started: ")


def test_its_own_timeout_shortens_the_deadline() -> None:
    outcome = run_command(shell("sleep 30", timeout_seconds=0.2), seconds=20)
    assert outcome == RunTimedOut("the command it did not end within 0.2 s and was killed")


def test_a_command_may_tidy_up_when_it_is_asked_to_stop(tmp_path: Path) -> None:
    note = tmp_path / "note"
    spec = shell(f"trap 'echo tidy > {note}; exit 0' TERM; while :; do sleep 0.05; done")
    assert isinstance(run_command(spec, seconds=0.3), RunTimedOut)
    assert note.read_text() == "tidy\n"


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def _pid_in(note: Path) -> int:
    limit = time.monotonic() + 60
    while not (note.exists() and note.read_text().strip()) and time.monotonic() < limit:
        time.sleep(0.01)
    return int(note.read_text())


def test_children_of_the_command_end_with_it_even_when_they_ignore_the_signal(tmp_path: Path) -> None:
    note = tmp_path / "child"
    spec = shell(f"(trap '' TERM; while :; do sleep 0.1; done) & echo $! > {note}; wait")
    assert isinstance(run_command(spec, seconds=0.4), RunTimedOut)
    child = _pid_in(note)
    limit = time.monotonic() + 60
    while _alive(child) and time.monotonic() < limit:
        time.sleep(0.01)
    assert not _alive(child)


def test_a_process_left_behind_with_the_pipe_open_does_not_hold_the_run() -> None:
    """Whoever waited for the end of the pipe would reach the deadline first."""
    assert run_command(shell("sleep 30 & echo done"), seconds=20) == Finished("done\n")


def test_cancel_kills_a_command() -> None:
    async def run() -> Outcome:
        launcher = CommandLauncher(COMMANDS, FixedClock(), terminate_grace_seconds=0.3)
        cancelled = asyncio.Event()
        asyncio.get_running_loop().call_later(0.1, cancelled.set)
        return await launcher.launch(request_for("command", {"command": "slow"}, cancelled=cancelled))

    assert asyncio.run(run()) == RunCancelled("the command slow was cancelled and killed")


@pytest.mark.parametrize("argv", [(), "ls -l", ["ls"]])
def test_argv_is_a_tuple(argv: Any) -> None:
    with pytest.raises(ValueError, match="argv must be a non-empty tuple"):
        CommandSpec(argv)


@pytest.mark.parametrize("seconds", [0, -1, float("nan")])
def test_a_timeout_is_positive(seconds: float) -> None:
    with pytest.raises(ValueError, match="timeout_seconds"):
        CommandSpec(("ls",), timeout_seconds=seconds)
