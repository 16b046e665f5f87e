"""Runs as commands of this machine: only those that the operator has configured by name, never through a shell.

The action names a command; it cannot write one. Inputs arrive on standard input as JSON and never on the
command line, so there is nothing to quote and nothing to inject. Standard output is the result.

The process starts in a group of its own, and the group is ended at the deadline and on cancel: SIGTERM,
then SIGKILL. Its environment holds `HORARIUM_*`, what the operator gave and a few harmless variables;
our own, with its tokens and passwords, is not handed down.

Nothing here remembers a key: delivery is at least once. The key is in `HORARIUM_RUN_KEY` for commands that do.
"""

from __future__ import annotations

import asyncio
import errno
import os
import signal
from asyncio.subprocess import PIPE, Process
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import assert_never

from horarium.clock import Clock
from horarium.instant import to_rfc3339
from horarium.launchers.bounds import CancelAsked, DeadlineReached, Ended, run_within
from horarium.launchers.launcher import (
    DEFAULT_CONCURRENCY,
    Finished,
    Launcher,
    LaunchRequest,
    Outcome,
    Refused,
    RunCancelled,
    RunFailed,
    RunTimedOut,
    Unreachable,
)
from horarium.launchers.payload import MAX_RESULT_BYTES, clean_text, read
from horarium.launchers.preflight import Cleared, preflight
from horarium.policy.retry import RetryCause

TERMINATE_GRACE_SECONDS = 5.0
KEPT_STDERR_BYTES = 4_096
MAX_ARGUMENTS = 100
_INHERITED = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR")
# Out of processes, memory or file handles: nothing started, and a later try may.
_PASSING = frozenset({errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE})
# How long the pipes of a command that has ended are read while a process it left behind holds them open.
_LINGER_SECONDS = 1.0
_CHUNK = 65_536


@dataclass(frozen=True, slots=True)
class CommandSpec:
    """What the operator allows under a name. `timeout_seconds` shortens the run's own deadline."""

    argv: tuple[str, ...]
    cwd: str | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    timeout_seconds: float | None = None
    allow_arguments: bool = False

    def __post_init__(self) -> None:
        # A text is a sequence of texts too: the likeliest mistake here would run its first letter.
        if type(self.argv) is not tuple or not self.argv:
            raise ValueError("argv is the program and its arguments, as a tuple that is not empty; there is no shell")
        if self.timeout_seconds is not None and not self.timeout_seconds > 0:
            raise ValueError("timeout_seconds must be greater than 0")


@dataclass(slots=True)
class _Output:
    """The beginning of standard output and the end of standard error."""

    stdout: bytearray = field(default_factory=bytearray)
    stderr: bytearray = field(default_factory=bytearray)
    cut: bool = False

    async def read_stdout(self, stream: asyncio.StreamReader) -> None:
        """What is beyond the limit is read and dropped: a full pipe would stop the command."""
        while chunk := await stream.read(_CHUNK):
            room = MAX_RESULT_BYTES - len(self.stdout)
            self.stdout += chunk[:room]
            self.cut = self.cut or len(chunk) > room

    async def read_stderr(self, stream: asyncio.StreamReader) -> None:
        while chunk := await stream.read(_CHUNK):
            self.stderr = (self.stderr + chunk)[-KEPT_STDERR_BYTES:]


class CommandLauncher(Launcher):
    kind = "command"
    honours_key = False
    concurrency = DEFAULT_CONCURRENCY
    can_poll = False

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

    async def launch(self, request: LaunchRequest) -> Outcome:
        cleared = preflight(request, self._clock)
        if not isinstance(cleared, Cleared):
            return cleared
        name = request.action.target.get("command")
        spec = self._commands.get(name) if isinstance(name, str) else None
        if spec is None:
            return Refused(f"no command is configured under the name {clean_text(repr(name), 200)}")
        argv = _argv(spec, request.action.target.get("arguments"))
        if isinstance(argv, Refused):
            return argv
        seconds = min(cleared.seconds_left, spec.timeout_seconds or cleared.seconds_left)
        end = await run_within(
            self._run(argv, spec, request, cleared.inputs),
            seconds=seconds,
            cancelled=request.cancelled,
            # Ending the group takes the grace at most; SIGKILL and the pipes need a moment more.
            grace_seconds=self._grace + 3 * _LINGER_SECONDS,
        )
        match end:
            case Ended(outcome):
                return outcome
            case DeadlineReached():
                return RunTimedOut(f"the command {name} did not end within {seconds:g} s and was killed")
            case CancelAsked():
                return RunCancelled(f"the command {name} was cancelled and killed")
            case _:
                assert_never(end)

    async def _run(self, argv: list[str], spec: CommandSpec, request: LaunchRequest, inputs: bytes) -> Outcome:
        try:
            process = await asyncio.create_subprocess_exec(
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
        output = _Output()
        await _converse(process, output, inputs, self._grace)
        return _outcome(process.returncode, output)


def _argv(spec: CommandSpec, arguments: object) -> list[str] | Refused:
    if arguments is None or arguments == [] or arguments == ():
        return list(spec.argv)
    if not spec.allow_arguments:
        return Refused("this command takes no arguments; its configuration does not allow them")
    if not isinstance(arguments, list | tuple) or len(arguments) > MAX_ARGUMENTS:
        return Refused(f"arguments must be an array of at most {MAX_ARGUMENTS} texts")
    if not all(isinstance(each, str) for each in arguments):
        return Refused("arguments must be texts")
    return [*spec.argv, *arguments]


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
    if request.traceparent is not None:
        given["TRACEPARENT"] = request.traceparent
    return {**{name: os.environ[name] for name in _INHERITED if name in os.environ}, **spec.env, **given}


async def _converse(process: Process, output: _Output, inputs: bytes, grace_seconds: float) -> None:
    """Feeds and reads until the command has ended; when it is cut short, the whole group ends first."""
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    talk = [
        asyncio.ensure_future(output.read_stdout(process.stdout)),
        asyncio.ensure_future(output.read_stderr(process.stderr)),
        asyncio.ensure_future(_feed(process.stdin, inputs)),
    ]
    try:
        await process.wait()
    except asyncio.CancelledError:
        await _end_group(process, grace_seconds)
        raise
    finally:
        # The readers go on to the end of the pipes: an unread pipe keeps its transport open.
        _, left = await asyncio.wait(talk, timeout=_LINGER_SECONDS)
        if left:
            _signal_group(process, signal.SIGKILL)
            await asyncio.wait(left, timeout=_LINGER_SECONDS)
        for each in talk:
            each.cancel()
        await asyncio.gather(*talk, return_exceptions=True)


async def _feed(stdin: asyncio.StreamWriter, inputs: bytes) -> None:
    # A command need not read its input; a closed pipe is no failure.
    with suppress(BrokenPipeError, ConnectionResetError):
        stdin.write(inputs)
        await stdin.drain()
    stdin.close()


async def _end_group(process: Process, grace_seconds: float) -> None:
    _signal_group(process, signal.SIGTERM)
    with suppress(TimeoutError):
        await asyncio.wait_for(process.wait(), grace_seconds)
    # Also after a polite end: children of the command may have ignored the first signal.
    _signal_group(process, signal.SIGKILL)
    await process.wait()


def _signal_group(process: Process, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


def _outcome(code: int | None, output: _Output) -> Outcome:
    result = read(bytes(output.stdout), cut=output.cut)
    if code == 0:
        return Finished(result)
    how = f"was killed by signal {-code}" if code is not None and code < 0 else f"ended with exit code {code}"
    said = clean_text(output.stderr.decode("utf-8", "replace").strip(), tail=True)
    return RunFailed(f"the command {how}: {said}".removesuffix(": "), RetryCause.PROVIDER_ERROR, result)
