"""Runs as commands of this machine: only those that the operator has configured by name, never through a shell.

The action names a command and cannot define one. Inputs arrive on standard input as JSON, so nothing must be quoted
and nothing can be injected; if the operator allows arguments, an array of texts is also appended to the command
line, each as one argument. Standard output is the result.

The process starts in its own process group, which is ended at the deadline and on cancellation: SIGTERM, then
SIGKILL. Its environment holds `HORARIUM_*`, the variables set by the operator and a few harmless ones; the
environment of the service, with its tokens and passwords, is not passed on.

No keys are stored here: delivery is at least once. Commands find the key in `HORARIUM_RUN_KEY`.
"""

from __future__ import annotations

import asyncio
import errno
import json
import os
import signal
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from subprocess import PIPE
from typing import assert_never

from horarium.audience import USUAL, Audience
from horarium.core.document import reader
from horarium.core.document.checks import MAX_COMMAND_ARGUMENTS
from horarium.core.document.json_values import Json
from horarium.core.lifecycle.outcome import (
    Finished,
    Outcome,
    Refused,
    RunCancelled,
    RunFailed,
    RunTimedOut,
    Unreachable,
)
from horarium.core.policy.approval import RetryCause
from horarium.instant import to_rfc3339
from horarium.launchers.launcher import Launcher, LaunchRequest
from horarium.launchers.payload import (
    MAX_RESULT_BYTES,
    CancelRequested,
    Cleared,
    WorkEnded,
    WorkTimedOut,
    clean_text,
    preflight,
    read,
    run_within,
)
from horarium.platform.clock import Clock
from horarium.platform.run_log import RunLog, Stream

# Processes at once: each is a program of its own.
CONCURRENCY = 10
TERMINATE_GRACE_SECONDS = 5.0
KEPT_STDERR_BYTES = 4_096
_INHERITED = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR")
# Out of processes, memory or file handles: nothing started, and a later try may.
_PASSING = frozenset({errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE})
# How long the pipes of a command that has ended are read while a process it left behind holds them open.
_LINGER_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class CommandSpec:
    """A command that the operator allows under a name, and for whom.

    `timeout_seconds` shortens the run's own deadline.
    """

    argv: tuple[str, ...]
    cwd: str | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    timeout_seconds: float | None = None
    allow_arguments: bool = False
    audience: Audience = USUAL

    def __post_init__(self) -> None:
        # A text is a sequence of texts too: the likeliest mistake here would run its first letter.
        if type(self.argv) is not tuple or not self.argv:
            raise ValueError(
                "argv must be a non-empty tuple of the program and its arguments; commands run without a shell"
            )
        if self.timeout_seconds is not None and not self.timeout_seconds > 0:
            raise ValueError("timeout_seconds must be greater than 0")


class _Conversation(asyncio.SubprocessProtocol):
    """Keeps the beginning of standard output and the end of standard error; the rest goes to the log of the run.

    Not asyncio's `Process`: its `wait` goes on while anybody, such as a child left behind, holds a pipe open.
    """

    def __init__(self, log: RunLog | None) -> None:
        self._log = log
        self.stdout = bytearray()
        self.stderr = bytearray()
        self.cut = False
        self.exited = asyncio.Event()
        self.silent = asyncio.Event()
        self._talking = {1, 2}

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if self._log is not None:
            self._log.write(Stream.STDOUT if fd == 1 else Stream.STDERR, data)
        if fd == 1:
            room = MAX_RESULT_BYTES - len(self.stdout)
            self.stdout += data[:room]
            self.cut = self.cut or len(data) > room
        else:
            self.stderr = (self.stderr + data)[-KEPT_STDERR_BYTES:]

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        self._talking.discard(fd)
        if not self._talking:
            self.silent.set()

    def process_exited(self) -> None:
        self.exited.set()


class CommandLauncher(Launcher):
    declares = reader.COMMAND
    kind = declares.name
    honours_key = False
    concurrency = CONCURRENCY
    can_poll = False
    works_here = True

    def __init__(
        self,
        commands: Mapping[str, CommandSpec],
        clock: Clock,
        *,
        terminate_grace_seconds: float = TERMINATE_GRACE_SECONDS,
    ) -> None:
        """No command runs that is not in `commands`; empty, the launcher is off."""
        self._commands = dict(commands)
        self._clock = clock
        self._grace = terminate_grace_seconds

    def known_names(self) -> Mapping[str, Audience]:
        return {name: spec.audience for name, spec in self._commands.items()}

    async def launch(self, request: LaunchRequest) -> Outcome:
        cleared = preflight(request, self._clock)
        if not isinstance(cleared, Cleared):
            return cleared
        name = request.action.target.get("command")
        spec = self._commands.get(name) if isinstance(name, str) else None
        if spec is None or request.namespace not in spec.audience:
            return Refused(f"the command {clean_text(repr(name), 200)} is not configured")
        argv = _argv(spec, request.inputs)
        if isinstance(argv, Refused):
            return argv
        seconds = min(cleared.seconds_left, spec.timeout_seconds or cleared.seconds_left)
        end = await run_within(
            self._run(argv, spec, request, cleared.inputs),
            seconds=seconds,
            cancelled=request.cancelled,
            # Ending the group takes the grace at most; SIGKILL needs a moment more.
            grace_seconds=self._grace + _LINGER_SECONDS,
        )
        match end:
            case WorkEnded(outcome):
                return outcome
            case WorkTimedOut():
                return RunTimedOut(f"the command {name} did not end within {seconds:g} s and was killed")
            case CancelRequested():
                return RunCancelled(f"the command {name} was cancelled and killed")
            case _:
                assert_never(end)

    async def _run(self, argv: list[str], spec: CommandSpec, request: LaunchRequest, inputs: bytes) -> Outcome:
        try:
            process, talk = await asyncio.get_running_loop().subprocess_exec(
                partial(_Conversation, request.log),
                *argv,
                stdin=PIPE,
                stdout=PIPE,
                stderr=PIPE,
                cwd=spec.cwd,
                env=_environment(spec, request),
                start_new_session=True,
            )
        except OSError as wrong:
            text = f"the command cannot be started: {wrong.strerror or wrong}"
            return Unreachable(text) if wrong.errno in _PASSING else Refused(text)
        except ValueError as wrong:  # NUL or half a surrogate pair in an argument
            return Refused(f"the command cannot be started: {clean_text(str(wrong), 200)}")
        try:
            _feed(process, inputs)
            await talk.exited.wait()
            await _hear_out(process.get_pid(), talk)
        except asyncio.CancelledError:
            await _end_group(process.get_pid(), talk, self._grace)
            raise
        finally:
            process.close()
        return _outcome(process.get_returncode(), talk)


def _argv(spec: CommandSpec, inputs: Json) -> list[str] | Refused:
    if not spec.allow_arguments or not isinstance(inputs, list | tuple):
        return list(spec.argv)
    if len(inputs) > MAX_COMMAND_ARGUMENTS or not all(isinstance(each, str) for each in inputs):
        return Refused(f"the arguments of a command must be at most {MAX_COMMAND_ARGUMENTS} strings")
    return [*spec.argv, *inputs]


def _environment(spec: CommandSpec, request: LaunchRequest) -> dict[str, str]:
    given = {
        "HORARIUM_RUN_ID": request.run_id,
        "HORARIUM_RUN_KEY": request.key,
        "HORARIUM_RUN_ATTEMPT": str(request.attempt),
        "HORARIUM_RUN_NOMINAL": to_rfc3339(request.nominal),
        "HORARIUM_RUN_DUE": to_rfc3339(request.due),
        "HORARIUM_RUN_DEADLINE": to_rfc3339(request.deadline),
        "HORARIUM_RUN_ORIGIN": request.origin,
        "HORARIUM_INSTANCE_ID": request.instance_id,
        "HORARIUM_NAMESPACE": request.namespace,
    }
    if request.schedule_id is not None:
        given["HORARIUM_SCHEDULE_ID"] = request.schedule_id
    if request.user_id is not None:
        given["HORARIUM_USER_ID"] = request.user_id
    given |= _about_steps(request)
    if request.report_url is not None:
        given["HORARIUM_REPORT_URL"] = request.report_url
    if request.report_token is not None:
        given["HORARIUM_REPORT_TOKEN"] = request.report_token
    if request.traceparent is not None:
        given["TRACEPARENT"] = request.traceparent
    return {**{name: os.environ[name] for name in _INHERITED if name in os.environ}, **spec.env, **given}


def _about_steps(request: LaunchRequest) -> dict[str, str]:
    """Variables about workflows, assignees and terms; a list or an object is JSON."""
    terms, who, workflow = request.terms, request.assignee or {}, request.workflow or {}
    said = {
        "WORKFLOW_ID": workflow.get("workflow_id"),
        "WORKFLOW_VERSION": workflow.get("version"),
        "NODE_ID": request.node_id,
        "PARENT_RUN_ID": request.parent_run_id,
        "ROOT_RUN_ID": request.root_run_id,
        "ASSIGNEE_TYPE": who.get("type"),
        "ASSIGNEE_ID": who.get("id"),
        "ASSIGNEE_MEMBER": who.get("member"),
        "APPROVAL_MODE": terms.approval_mode,
        "GATES": _json(list(terms.gates)) if terms.gates else None,
        "APPROVED_GATES": _json(list(terms.approved_gates)) if terms.approved_gates else None,
        "LIMITS": _json(dict(terms.limits)) if terms.limits else None,
        "ALLOW_TOOLS": None if terms.allow_tools is None else _json(list(terms.allow_tools)),
        "GLOBAL_MODEL_ID": terms.global_model_id,
    }
    return {f"HORARIUM_{name}": str(value) for name, value in said.items() if value is not None}


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


def _feed(process: asyncio.SubprocessTransport, inputs: bytes) -> None:
    """Buffered by the transport; a command that does not read its input breaks the pipe, which is no failure."""
    stdin = process.get_pipe_transport(0)
    assert isinstance(stdin, asyncio.WriteTransport)
    stdin.write(inputs)
    stdin.close()


async def _hear_out(group: int, talk: _Conversation) -> None:
    """Read the last output from the pipes, then kill processes that the command left running."""
    try:
        await asyncio.wait_for(talk.silent.wait(), _LINGER_SECONDS)
    except TimeoutError:
        _signal_group(group, signal.SIGKILL)


async def _end_group(group: int, talk: _Conversation, grace_seconds: float) -> None:
    _signal_group(group, signal.SIGTERM)
    with suppress(TimeoutError):
        await asyncio.wait_for(talk.exited.wait(), grace_seconds)
    # Also after a polite end: children of the command may have ignored the first signal.
    _signal_group(group, signal.SIGKILL)
    await talk.exited.wait()


def _signal_group(group: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def _outcome(code: int | None, talk: _Conversation) -> Outcome:
    result = read(bytes(talk.stdout), cut=talk.cut)
    if code == 0:
        return Finished(result)
    how = f"was killed by signal {-code}" if code is not None and code < 0 else f"ended with exit code {code}"
    said = clean_text(talk.stderr.decode("utf-8", "replace").strip(), tail=True)
    return RunFailed(f"the command {how}: {said}".removesuffix(": "), RetryCause.PROVIDER_ERROR, result)
