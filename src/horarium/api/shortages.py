"""Errors by which the system refuses a file or a thread: what is lacking, when it last was, and what to do."""

from __future__ import annotations

import errno
import threading
from typing import Final

from structlog.typing import FilteringBoundLogger

from horarium.clock import Clock

FILES: Final = (
    "The process has no file descriptors left. Raise its limit (ulimit -n, LimitNOFILE= of systemd), or "
    "lower max_connections or pool_size."
)
THREADS: Final = (
    "The process cannot start more threads. Raise its limit (ulimit -u, TasksMax= of systemd, or the pids "
    "limit of the container)."
)
_NO_FILES: Final = frozenset({errno.EMFILE, errno.ENFILE})
_NO_THREAD: Final = "can't start new thread"
_SHOWN_SECONDS: Final = 30.0
_LOG_SECONDS: Final = 60.0
_MOST_CAUSES: Final = 10


def shortage_of(error: BaseException | None) -> str | None:
    """Return what the system lacks, as one sentence and a remedy, or None for any other error."""
    for _ in range(_MOST_CAUSES):
        match error:
            case None:
                return None
            case OSError(errno=number) if number in _NO_FILES:
                return FILES
            case RuntimeError() if _NO_THREAD in str(error):
                return THREADS
        error = error.__cause__ or error.__context__
    return None


class Shortages:
    """The last shortage of this process. The log gets one line a minute, however often it is hit."""

    def __init__(self, clock: Clock, log: FilteringBoundLogger) -> None:
        self._clock = clock
        self._log = log
        self._lock = threading.Lock()
        self._last: tuple[float, str] | None = None
        self._logged_at: float | None = None

    def note(self, error: BaseException | None) -> str | None:
        """Remember the shortage that an error tells of, and return it."""
        found = shortage_of(error)
        if found is None:
            return None
        with self._lock:
            now = self._clock.monotonic()
            self._last = (now, found)
            is_due = self._logged_at is None or now - self._logged_at >= _LOG_SECONDS
            self._logged_at = now if is_due else self._logged_at
        if is_due:
            self._log.error("resources_exhausted", problem=found)
        return found

    def current(self) -> str | None:
        """Return the shortage of the last 30 seconds."""
        with self._lock:
            if self._last is None or self._clock.monotonic() - self._last[0] >= _SHOWN_SECONDS:
                return None
            return self._last[1]
