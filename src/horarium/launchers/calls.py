"""Calls of Python functions and their results: in the event loop, in a thread, or in a process of their own.

Anything that the function does — raise, exit, return something odd — becomes `Returned` or `Raised`.

A thread is reused once its call has ended, and a call that never ends blocks no other (`platform/threads.py`): a
thread cannot be killed, so a pool with a fixed number of them would lose a place for each stuck call, and the
interpreter its exit. Each call gets its own process, since killing one worker of a pool breaks the calls of the
others too.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import multiprocessing
import threading
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any, NamedTuple, TypeAlias

from horarium.core.document.json_values import Json
from horarium.core.lifecycle.outcome import Finished
from horarium.core.policy.approval import RetryCause
from horarium.core.policy.limits import millionths
from horarium.core.policy.queue import MAX_LONG, PolicyError, whole_or_none
from horarium.launchers.payload import MAX_ERROR_CHARACTERS, NotJson, clean_text, keep
from horarium.platform.job import Job, keep_output
from horarium.platform.run_log import MAX_LINE, Sink, Stream
from horarium.platform.threads import ReusedThreads

_TRACEBACK_FRAMES = 10
# Characters of one message from a child.
_MAX_PIECE = 65_536


class NoThread(Exception):
    """The system gives no more threads; nothing was started."""


@dataclass(frozen=True, slots=True)
class TaskUsage:
    """Usage reported by the function; None = not reported."""

    cost: float | None = None
    tokens: int | None = None
    tool_calls: int | None = None


_UNTOLD = TaskUsage()


@dataclass(frozen=True, slots=True)
class Returned:
    finished: Finished


@dataclass(frozen=True, slots=True)
class Raised:
    error: str
    error_class: str
    used: TaskUsage = _UNTOLD


Called: TypeAlias = Returned | Raised
_NOTHING = Returned(Finished())


class FunctionCall(NamedTuple):
    """`job` is among the arguments where the function asks for it, and else None. `log` keeps what it prints."""

    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    job: Job | None = None
    log: Sink | None = None


def returned(value: Any, job: Job | None = None) -> Called:
    """A task may say what it used in its job, or return a Finished; any other value is the result itself."""
    if value is None and job is None:
        return _NOTHING
    if inspect.isawaitable(value):
        if inspect.iscoroutine(value):
            value.close()
        return Raised("the task returned an awaitable; declare it with `async def`", RetryCause.CONTRACT_VIOLATED)
    finished = value if isinstance(value, Finished) else Finished(value)
    try:
        result: Json = keep(finished.result)
    except NotJson as wrong:
        return Raised(f"the result of the task {wrong}", RetryCause.CONTRACT_VIOLATED)
    said = TaskUsage(finished.cost, finished.tokens, finished.tool_calls)
    try:
        used = _used(said, job)
    except PolicyError as wrong:
        return Raised(
            f"the usage reported by the task cannot be stored: {wrong.field} {wrong.text}", RetryCause.CONTRACT_VIOLATED
        )
    return Returned(Finished(result, used.cost, used.tokens, used.tool_calls))


def _used(said: TaskUsage, job: Job | None) -> TaskUsage:
    """Combine usage; the result takes precedence over the job. Raises PolicyError for an invalid amount or number."""
    if job is not None:
        said = TaskUsage(
            job.cost if said.cost is None else said.cost,
            job.tokens if said.tokens is None else said.tokens,
            job.tool_calls if said.tool_calls is None else said.tool_calls,
        )
    if said.cost is not None:
        millionths(said.cost, "cost")
    whole_or_none("tokens", said.tokens, most=MAX_LONG)
    whole_or_none("tool_calls", said.tool_calls, most=MAX_LONG)
    return said


def raised(error: BaseException, job: Job | None = None) -> Raised:
    """An exception may name its class itself, in `error_class`: a word outside the policy's list is never retried."""
    own = getattr(error, "error_class", None)
    if isinstance(own, str) and own:
        error_class = clean_text(own, 100)
    elif isinstance(error, TimeoutError):
        error_class = RetryCause.TIMEOUT.value
    else:
        error_class = RetryCause.PROVIDER_ERROR.value
    # The first frame is this module's own.
    inner = error.__traceback__.tb_next if error.__traceback__ is not None else None
    lines = traceback.format_exception(type(error), error, inner, limit=-_TRACEBACK_FRAMES)
    try:
        used = _used(_UNTOLD, job)
    except PolicyError:  # the failure itself matters more
        used = _UNTOLD
    return Raised(clean_text("".join(lines).strip(), MAX_ERROR_CHARACTERS, tail=True), error_class, used)


async def call_async(call: FunctionCall) -> Called:
    """In a task of its own, whose context is this call's alone."""
    keep_output(call.log)
    try:
        value = await call.function(*call.args, **call.kwargs)
    except BaseException as error:  # a task's SystemExit would end the service; after a cancel nothing follows here
        return raised(error, call.job)
    return returned(value, call.job)


def call_sync(call: FunctionCall) -> Called:
    """In a context of its own, as that of `start_thread`."""
    keep_output(call.log)
    try:
        value = call.function(*call.args, **call.kwargs)
    except BaseException as error:  # as above: nothing that a task raises may leave its thread
        return raised(error, call.job)
    return returned(value, call.job)


def start_thread(threads: ReusedThreads, function: Callable[[], Called], name: str) -> asyncio.Future[Called]:
    """The call in a thread, with the context variables of whoever starts it. Raises NoThread."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[Called] = loop.create_future()
    context = contextvars.copy_context()

    def work() -> None:
        threading.current_thread().name = name
        value = context.run(function)
        # The loop may have closed in the meantime: then nobody waits any more.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(_deliver, answer, value)

    try:
        threads.start(work)
    except RuntimeError as wrong:
        raise NoThread(f"no thread is available for the call: {wrong}") from None
    return answer


def _deliver(answer: asyncio.Future[Called], value: Called) -> None:
    if not answer.done():
        answer.set_result(value)


class ChildProcess:
    """One call in one spawned process. `run` blocks and belongs in a thread; `kill` may come at any time.

    What the function prints there comes to `log` line by line, so it is here also when the process is killed.
    """

    def __init__(self, call: FunctionCall, log: Sink | None = None) -> None:
        spawn = multiprocessing.get_context("spawn")  # fork would copy the locks of our threads, held or not
        self._here, self._there = spawn.Pipe(duplex=False)
        self._process = spawn.Process(target=_child, args=(self._there, call, log is not None), daemon=True)
        self._log = log
        self._killed = False

    def run(self) -> Called:
        try:
            self._process.start()
        except Exception as error:  # pickle raises what it likes for what it cannot name
            why = clean_text(str(error), 500)
            return Raised(f"the call cannot be sent to a process: {why}", RetryCause.CONTRACT_VIOLATED)
        finally:
            # While our end is open, the pipe of a child that has died never ends.
            self._there.close()
        if self._killed:
            self._process.kill()
        return self._receive()

    def _receive(self) -> Called:
        try:
            value: Called | OutputPiece = self._here.recv()
            while isinstance(value, OutputPiece):
                if self._log is not None:
                    self._log.write(value.stream, value.text)
                value = self._here.recv()
        except EOFError:
            self._process.join()
            return Raised(f"the process ended with exit code {self._process.exitcode}", RetryCause.PROVIDER_ERROR)
        finally:
            self._here.close()
        self._process.join()
        return value

    def kill(self) -> None:
        """The flag comes first: a kill that finds no process yet is carried out by `run` after the start."""
        self._killed = True
        if self._process.pid is not None:
            self._process.kill()


class OutputPiece(NamedTuple):
    stream: Stream
    text: str


class _ChildOutput:
    """Output of a child process, sent when a line has ended: a message for each piece would double their number."""

    def __init__(self, there: Connection) -> None:
        self._there = there
        self._lock = threading.Lock()
        self._rest: dict[Stream, str] = {}

    def write(self, stream: Stream, data: str) -> None:
        with self._lock:
            self._rest[stream] = self._rest.get(stream, "") + data
            if data.endswith("\n") or len(self._rest[stream]) >= MAX_LINE:
                self._send(stream)

    def end(self) -> None:
        with self._lock:
            for stream in list(self._rest):
                self._send(stream)

    def _send(self, stream: Stream) -> None:
        text = self._rest.pop(stream)
        for first in range(0, len(text), _MAX_PIECE):
            self._there.send(OutputPiece(stream, text[first : first + _MAX_PIECE]))


def _child(there: Connection, call: FunctionCall, keeps: bool) -> None:
    told = _ChildOutput(there)
    called = call_sync(call._replace(log=told if keeps else None))
    told.end()
    there.send(called)
    there.close()
