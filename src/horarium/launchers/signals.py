"""The operator's function for a schedule: `signal_rpc_result` in the context of its condition.

The function may be slow, fail, or never answer. So it is called in its own threads, and never while a row is locked:
a caller that needs an answer requests it, continues with other work, and looks again.

- a schedule waits for its answer no longer than the time limit; then it is decided without one;
- a namespace uses at most a quarter of the threads, so slow answers delay its own schedules only;
- an answer, also a missing one, is valid until it was used once, and for some seconds after it was requested.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import threading
from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from horarium.core.decision.facts import NO_SIGNAL, Signal
from horarium.core.document.json_values import DocumentProblems, check_storable
from horarium.instant import SECOND, Instant
from horarium.launchers.payload import clean_text
from horarium.platform.clock import Clock, SystemClock
from horarium.platform.threads import ReusedThreads

THREADS = 16
MAX_OPEN = 8_000
MAX_QUESTIONS = 20_000
# Of the threads, and of the questions that may be open.
SHARE_OF_A_NAMESPACE = 4
MAX_BYTES = 65_536
_SHOWN = 500

Provider: TypeAlias = Callable[[str, str], Any]
"""Given a namespace and the id of a schedule in it; the answer is JSON. It may be a coroutine function."""

Key: TypeAlias = tuple[str, str]
"""A namespace, and a schedule's id."""


@dataclass(eq=False, slots=True)
class _Question:
    """`asked_at` is the service's time, for how long the answer is good; `late_at` counts real seconds.

    `before` is the answer to the question before it.
    """

    key: Key
    asked_at: Instant
    late_at: float
    answer: Signal | None = None
    used: bool = False
    before: Signal | None = None


class Signals:
    """All state is behind one lock; nobody holds it while the provider is called."""

    def __init__(
        self,
        provider: Provider,
        *,
        timeout_seconds: float = 5.0,
        cache_seconds: float = 10.0,
        clock: Clock | None = None,
    ) -> None:
        self._provider = provider
        self._limit = timeout_seconds
        self._cache = round(cache_seconds * SECOND)
        self._clock = clock or SystemClock()
        self._threads = ReusedThreads("horarium-signal")
        self._changed = threading.Condition()
        self._known: OrderedDict[Key, _Question] = OrderedDict()
        self._open: dict[Key, _Question] = {}
        self._waiting: OrderedDict[str, deque[_Question]] = OrderedDict()
        self._busy: Counter[str] = Counter()
        self._asking: Counter[str] = Counter()

    @property
    def open(self) -> int:
        """Number of unanswered questions."""
        return len(self._open)

    def take(self, namespace: str, schedule_id: str, now: Instant) -> Signal | None:
        """The answer, or None: then it has been asked for, and whoever wants it looks again."""
        with self._changed:
            return self._take((namespace, schedule_id), now)

    def ask(self, namespace: str, schedule_id: str, now: Instant) -> Signal:
        """The answer, for whoever can wait for it; it takes no longer than the time limit."""
        with self._changed:
            while (found := self._take((namespace, schedule_id), now)) is None:
                self._wait()
        return found

    def glance(self, namespace: str, schedule_id: str, now: Instant) -> Signal:
        """Return the newest answer without waiting. Where there is none, ask for one, and return null meanwhile."""
        key = (namespace, schedule_id)
        with self._changed:
            question = self._known.get(key)
            if question is None:
                return self._take(key, now) or NO_SIGNAL
            return question.answer or question.before or NO_SIGNAL

    def wait(self) -> None:
        """Until there is one answer more than now, or the time of a question is over."""
        with self._changed:
            self._wait()

    def close(self) -> None:
        """Close without waiting for questions in progress."""
        self._threads.close()

    def _take(self, key: Key, now: Instant) -> Signal | None:
        question = self._known.get(key)
        if question is not None:
            if not self._is_over(question):
                return None
            # A clock that was set back must not make an answer good for ever.
            if not question.used or abs(now - question.asked_at) < self._cache:
                question.used = True
                return question.answer
        self._expire()
        if len(self._open) >= MAX_OPEN or self._asking[key[0]] >= MAX_OPEN // SHARE_OF_A_NAMESPACE:
            return Signal(error="too many signal requests are in progress")
        before = None if question is None else question.answer
        self._begin(_Question(key, now, self._clock.monotonic() + self._limit, before=before))
        return None

    def _begin(self, question: _Question) -> None:
        key = question.key
        self._known[key] = self._open[key] = question
        self._known.move_to_end(key)
        while len(self._known) > MAX_QUESTIONS:
            self._known.popitem(last=False)
        self._asking[key[0]] += 1
        self._waiting.setdefault(key[0], deque()).append(question)
        self._start()

    def _start(self) -> None:
        """Namespaces take turns; what nobody waits for any more is not asked at all."""
        for namespace in list(self._waiting):
            if self._busy.total() >= THREADS:
                return
            queue = self._waiting[namespace]
            while queue and self._is_over(queue[0]):
                queue.popleft()
            if not queue:
                del self._waiting[namespace]
            elif self._busy[namespace] < max(THREADS // SHARE_OF_A_NAMESPACE, 1):
                self._waiting.move_to_end(namespace)
                self._call(queue.popleft())

    def _call(self, question: _Question) -> None:
        self._busy[question.key[0]] += 1
        try:
            self._threads.start(lambda: self._work(question))
        except RuntimeError as wrong:
            _count_down(self._busy, question.key[0])
            self._settle(question, Signal(error=f"no thread is available for the call: {wrong}"))

    def _work(self, question: _Question) -> None:
        answer = _answered(self._provider, *question.key)
        with self._changed:
            _count_down(self._busy, question.key[0])
            self._settle(question, answer)
            self._start()

    def _settle(self, question: _Question, answer: Signal) -> None:
        """The first answer counts: one that comes too late was decided without."""
        if question.answer is None:
            question.answer = answer
            del self._open[question.key]
            _count_down(self._asking, question.key[0])
            self._changed.notify_all()

    def _is_over(self, question: _Question) -> bool:
        """Tell whether the question is answered, or its time is over."""
        if question.answer is None and self._clock.monotonic() >= question.late_at:
            self._settle(question, Signal(error=f"no answer within {self._limit:g} seconds"))
        return question.answer is not None

    def _expire(self) -> _Question | None:
        """The open question whose time ends first; all have the same time, so that is the oldest."""
        while (oldest := next(iter(self._open.values()), None)) is not None and self._is_over(oldest):
            pass
        return oldest

    def _wait(self) -> None:
        oldest = self._expire()
        if oldest is not None:
            self._changed.wait(min(max(oldest.late_at - self._clock.monotonic(), 0.001), self._limit))


def _count_down(counter: Counter[str], name: str) -> None:
    counter[name] -= 1
    if not counter[name]:
        del counter[name]


def _answered(provider: Provider, namespace: str, schedule_id: str) -> Signal:
    try:
        value = provider(namespace, schedule_id)
        if inspect.isawaitable(value):
            value = asyncio.run(_awaited(value))
        text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    except BaseException as wrong:  # whatever it raises, also SystemExit, is an answer that did not come
        return Signal(error=clean_text(f"{type(wrong).__name__}: {wrong}", _SHOWN))
    if len(text) > MAX_BYTES:
        return Signal(error=f"the answer is longer than {MAX_BYTES} bytes")
    # A copy: whoever keeps the object may change it while others read.
    kept, problems = json.loads(text), DocumentProblems()
    check_storable(kept, problems)
    return Signal(error="the answer cannot be stored as JSON") if problems.any else Signal(kept)


async def _awaited(value: Any) -> Any:
    return await value
