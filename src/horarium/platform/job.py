"""Context of a run for the function that executes it: the job, captured output, and the header of a Celery message.

Captured output and log records go to the log of the run. A context variable holds that log, so that threads and
coroutines of different runs are separate. Threads that a function starts have none.
"""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import asdict, dataclass, field, fields
from datetime import datetime
from typing import Any

from horarium.platform.run_log import Sink, Stream

# ── Captured output ───────────────────────────────────────────────────────────────────────────────────


_current: ContextVar[Sink | None] = ContextVar("horarium_run_log", default=None)
_format = logging.Formatter("%(levelname)s %(name)s: %(message)s")
_call_handlers = logging.Logger.callHandlers
_lock = threading.Lock()
_users = 0


def keep_output(sink: Sink | None) -> None:
    """Copy the output of this thread or coroutine to `sink` from now on."""
    _current.set(sink)
    if sink is not None and not _is_watching():
        with _lock:
            _watch()


def current() -> Sink | None:
    return _current.get()


def begin_capture() -> None:
    """Start copying; streams and loggers are watched until the last user calls `end`."""
    global _users
    with _lock:
        _users += 1
        _watch()


def end_capture() -> None:
    global _users
    with _lock:
        _users = max(0, _users - 1)
        if _users == 0:
            _unwatch()


def _is_watching() -> bool:
    """Return whether streams and loggers are watched; other code, such as tests, may replace them."""
    return type(sys.stdout) is _Copied and type(sys.stderr) is _Copied and logging.Logger.callHandlers is _call_and_copy


def _watch() -> None:
    for stream in (Stream.STDOUT, Stream.STDERR):
        found = getattr(sys, stream)
        if found is not None and type(found) is not _Copied:
            setattr(sys, stream, _Copied(found, stream))
    # Not a handler: with one, `basicConfig` does nothing and warnings without a handler are no longer printed. What
    # handlers write is not copied again.
    if logging.Logger.callHandlers is _call_handlers:
        logging.Logger.callHandlers = _call_and_copy  # type: ignore[method-assign]  # the only place that all pass


def _unwatch() -> None:
    for stream in (Stream.STDOUT, Stream.STDERR):
        found = getattr(sys, stream)
        if type(found) is _Copied:
            setattr(sys, stream, found.copied)
    if logging.Logger.callHandlers is _call_and_copy:
        logging.Logger.callHandlers = _call_handlers  # type: ignore[method-assign]  # as it was


class _Copied:
    """A stream that copies its output to the log of the current run."""

    def __init__(self, stream: Any, name: Stream) -> None:
        self.copied = stream
        self._name = name

    def write(self, text: Any) -> Any:
        sink = _current.get()
        if sink is not None and isinstance(text, str):
            sink.write(self._name, text)
        return self.copied.write(text)

    def writelines(self, lines: Any) -> None:
        for each in lines:
            self.write(each)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.copied, name)


def _call_and_copy(self: logging.Logger, record: logging.LogRecord) -> None:
    sink = _current.get()
    if sink is None:
        _call_handlers(self, record)
        return
    try:
        told = _format.format(record)
    except Exception as wrong:  # wrong arguments: handlers report them as well
        told = f"{record.levelname} {record.name}: {record.msg!r} cannot be formatted: {wrong}"
    sink.write(Stream.LOG, f"{told}\n")
    token = _current.set(None)
    try:
        _call_handlers(self, record)
    finally:
        _current.reset(token)


# ── Jobs ──────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(slots=True, eq=False, kw_only=True)
class Job:
    """One attempt of a run. A long function checks `cancelled()` regularly and returns if it is true.

    `nominal` is the scheduled time of the occurrence, `due` its start time with jitter, `deadline` the end of this
    attempt. `attempt` is the number of failed attempts, 0 at first. `key` is the idempotency key of the attempt: it is
    the same for each delivery.

    The function may set `cost`, `tokens` and `tool_calls`, which are stored with the run.
    """

    run_id: str
    namespace: str
    schedule_id: str | None
    key: str
    nominal: datetime
    due: datetime
    deadline: datetime
    attempt: int = 0
    input: Any = None
    origin: str = ""
    instance_id: str | None = None
    workflow_type: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    memo: Mapping[str, Any] = field(default_factory=dict)
    report_url: str | None = None
    report_token: str | None = field(default=None, repr=False)
    """URL and token with which another system reports the outcome of the run; the token is for this attempt."""
    user_id: str | None = None
    """The user of the run: the creator of its schedule, or the user that an admin set."""
    search_attributes: Mapping[str, Any] = field(default_factory=dict)
    workflow: Mapping[str, Any] | None = None
    """`workflow_id` and `version` of the stored workflow of the run or step."""
    node_id: str | None = None
    parent_run_id: str | None = None
    root_run_id: str | None = None
    """The node of a workflow step, the run that contains it, and the outermost run."""
    assignee: Mapping[str, str] | None = None
    """The assignee: `type` and `id`, and for a team the selected `member`."""
    approval_mode: str | None = None
    gates: Sequence[str] = ()
    """The gates that require approval: a function that reaches one stops and reports that it is blocked."""
    approved_gates: Sequence[str] = ()
    """The gates that are approved for this run."""
    limits: Mapping[str, Any] = field(default_factory=dict)
    """The limits of the run: `runtime_seconds`, `cost`, `tokens`, `tool_calls`, as far as set."""
    allow_tools: Sequence[str] | None = None
    """The allowed tools; None = any."""
    global_model_id: str | None = None
    cost: float | None = None
    tokens: int | None = None
    tool_calls: int | None = None
    _stopped: bool = field(default=False, repr=False)
    _log: Sink | None = field(default=None, repr=False)

    @property
    def inputs(self) -> Any:
        """Return `input`."""
        return self.input

    def cancelled(self) -> bool:
        """Return whether the run should stop: it is being cancelled, or its lease is lost."""
        return self._stopped

    def log(self, text: str) -> None:
        """Append to the log of the run; also works in threads that the function has started."""
        sink = self._log or current()
        if sink is not None:
            sink.write(Stream.LOG, f"{text}\n")

    def __getstate__(self) -> dict[str, Any]:
        """Pickle the values without the log, which a child process sends separately."""
        return {each.name: getattr(self, each.name) for each in fields(self) if each.name != "_log"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in {**state, "_log": None}.items():
            setattr(self, name, value)

    def stop(self) -> None:
        """Ask the function to stop; callable from any thread."""
        self._stopped = True


# ── Headers of Celery messages ────────────────────────────────────────────────────────────────────────


HEADER = "horarium"
"""The name of the header; its value is an object with the fields of `RunHeader`."""


@dataclass(frozen=True, slots=True)
class RunHeader:
    """The fields of the header; `nominal` is RFC 3339. Without `report_url` the worker cannot report."""

    run_id: str
    namespace: str
    attempt: int
    nominal: str
    schedule_id: str | None = None
    report_url: str | None = None
    report_token: str | None = None

    def to_header(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if value is not None}


_NAMES = frozenset(each.name for each in fields(RunHeader))
_TEXTS = _NAMES - {"attempt"}


def read_header(headers: object) -> RunHeader | None:
    """Read the header of a message; None for messages from other senders and invalid headers."""
    given = headers.get(HEADER) if isinstance(headers, Mapping) else None
    if not isinstance(given, Mapping):
        return None
    known = {name: given[name] for name in _NAMES if given.get(name) is not None}
    if not isinstance(known.get("attempt"), int) or not all(isinstance(known.get(name, ""), str) for name in _TEXTS):
        return None
    try:
        return RunHeader(**known)
    except TypeError:  # a required field is missing
        return None
