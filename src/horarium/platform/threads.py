"""Threads that are reused: a call runs in an idle thread, or in a new one, and never waits for another call.

A call that never ends blocks only its own thread. The threads are daemons, so it does not keep the process from
ending either. An idle thread ends after a while. The caller bounds the number of threads that run at a time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import TypeAlias

IDLE_SECONDS = 10.0

Work: TypeAlias = Callable[[], object]
_Inbox: TypeAlias = "SimpleQueue[Work | None]"


class ReusedThreads:
    """`start` may be called from any thread; what it is given must not raise."""

    def __init__(self, name: str, *, idle_seconds: float = IDLE_SECONDS) -> None:
        self._name = name
        self._idle_seconds = idle_seconds
        self._lock = threading.Lock()
        self._idle: list[_Inbox] = []
        self._closed = False

    @property
    def idle(self) -> int:
        return len(self._idle)

    def start(self, work: Work) -> None:
        """Raises RuntimeError when the system gives no more threads; then nothing was started."""
        with self._lock:
            # The one that became idle last: its memory is warm, and the oldest may end.
            inbox = self._idle.pop() if self._idle else None
        if inbox is None:
            inbox = SimpleQueue()
            threading.Thread(target=self._serve, args=(inbox,), name=self._name, daemon=True).start()
        inbox.put(work)

    def close(self) -> None:
        """Idle threads end now, busy ones after their call. Later calls get a thread each."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for inbox in idle:
            inbox.put(None)

    def _serve(self, inbox: _Inbox) -> None:
        work = inbox.get()
        while work is not None:
            work()
            # An idle thread must not keep alive what its last call was about.
            work = None
            with self._lock:
                if self._closed:
                    return
                self._idle.append(inbox)
            work = self._next(inbox)

    def _next(self, inbox: _Inbox) -> Work | None:
        try:
            return inbox.get(timeout=self._idle_seconds)
        except Empty:
            with self._lock:
                if inbox in self._idle:
                    self._idle.remove(inbox)
                    return None
        # Somebody chose this thread in the last moment: what it is to do is about to arrive.
        return inbox.get()
