"""Copy output and log records of a function to the log of its run.

A context variable holds the log of the run, so that threads and coroutines of different runs are separate. Threads that
a function starts have none.
"""

from __future__ import annotations

import logging
import sys
import threading
from contextvars import ContextVar
from typing import Any

from horarium.job.run_log import Sink, Stream

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


def begin() -> None:
    """Start copying; streams and loggers are watched until the last user calls `end`."""
    global _users
    with _lock:
        _users += 1
        _watch()


def end() -> None:
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
