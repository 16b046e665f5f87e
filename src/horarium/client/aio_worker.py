"""An async worker for pull queues: claims runs, calls the handler of their workflow type, reports the outcomes.

A heartbeat renews the lease of each run in the background. If this process dies, the lease ends and another worker gets
the run: a handler may be called twice for one run, and should use `context.key` where that matters. `worker.Worker` is
the synchronous variant.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Protocol, TypeVar

from horarium.client.job import NO_HANDLER, Handler, LeasedRun, call_handler, is_async
from horarium.core.policy.approval import RetryCause
from horarium.errors import HorariumError, InvalidDefinition
from horarium.features.runs.calls import RunCalls
from horarium.features.runs.model import ClaimedRun, RunReported
from horarium.platform import job
from horarium.platform.client.call import Call
from horarium.platform.client.errors import (
    ClientError,
    Conflict,
    NotFound,
    RateLimited,
    ServerError,
    ServerUnavailable,
    ValidationFailed,
)
from horarium.platform.client.exchange import Retries
from horarium.platform.ids import id_text, new_id
from horarium.platform.run_log import MAX_LOG_BYTES

F = TypeVar("F", bound=Handler)
T = TypeVar("T")

MAX_CLAIM = 100
MAX_TYPES = 100
POLL_SECONDS = 1.0
HEARTBEAT_SECONDS = 10.0
GRACE_SECONDS = 20.0

_LONGEST_LEASE_SECONDS = 30.0  # that a server gives; where it says nothing, this is meant
_LINES_SECONDS = 1.0
_PASSING = (ServerUnavailable, ServerError, RateLimited)
_PATIENCE = Retries(attempts=20, base_ms=500, max_ms=10_000)
_log = logging.getLogger("horarium.worker")


class Sender(Protocol):
    """An AsyncClient or an equivalent."""

    async def send(self, call: Call[T]) -> T: ...


class AsyncWorker:
    """A worker. Async handlers run in the event loop, others in threads; `concurrency` is the maximum number of active
    runs.

    The last `log_bytes` bytes that a handler prints and logs are stored with its run; 0 stores nothing. A stopping
    worker claims no more runs and waits `grace_seconds` for active ones; the leases of the others end.
    """

    def __init__(
        self,
        client: Sender,
        queues: Sequence[str],
        handlers: Mapping[str, Handler] | None = None,
        *,
        concurrency: int = 10,
        name: str | None = None,
        poll_seconds: float = POLL_SECONDS,
        heartbeat_seconds: float = HEARTBEAT_SECONDS,
        grace_seconds: float = GRACE_SECONDS,
        log_bytes: int = MAX_LOG_BYTES,
    ) -> None:
        if isinstance(queues, str) or not queues:
            raise InvalidDefinition({"queues": ["must contain at least one queue"]})
        if concurrency < 1:
            raise InvalidDefinition({"concurrency": ["must be at least 1"]})
        # Whoever may read a run reads this: no machine and no process is told that nobody chose to tell.
        self.name = name or f"worker-{id_text(new_id())[-8:].lower()}"
        self.handlers: dict[str, Handler] = dict(handlers or {})
        self.concurrency = concurrency
        self._client = client
        self._queues = deque(dict.fromkeys(queues))
        self._poll = poll_seconds
        self._beat = heartbeat_seconds
        self._grace = grace_seconds
        self._log_bytes = log_bytes
        self._stopping = asyncio.Event()
        self._hands: set[asyncio.Task[None]] = set()

    def handler(self, workflow_type: str) -> Callable[[F], F]:
        """Register a function as a handler. Returns the function unchanged."""
        return register_in(self.handlers, workflow_type)

    def stop(self) -> None:
        """Stop the worker. Call this in its event loop."""
        self._stopping.set()

    async def run(self) -> None:
        """Run until `stop`. Raises errors that retries cannot resolve, such as Unauthorized, after active runs have
        ended.
        """
        failures = 0
        if not self.handlers:
            _log.warning("worker has no handlers and claims no runs")
        job.begin_capture()
        try:
            while not self._stopping.is_set():
                try:
                    found = await self._claim()
                    failures = 0
                except _PASSING as wrong:
                    failures += 1
                    _log.warning("claim failed, retrying: %s", wrong)
                    await self._pause(_PATIENCE.wait_seconds(failures, self.name))
                    continue
                if not found:
                    await self._pause(self._poll)
        finally:
            await self._put_down()
            job.end_capture()

    async def drain(self) -> int:
        """Process all waiting runs and the runs that follow from them. Return the number of processed runs."""
        done = 0
        job.begin_capture()
        try:
            while found := await self._claim():
                done += found
                await asyncio.gather(*self._hands)
        finally:
            job.end_capture()
        return done

    # ── claiming ─────────────────────────────────────────────────────────────────────────────────

    async def _claim(self) -> int:
        """Claim runs and return their number; each queue is in turn the first one."""
        found = 0
        self._queues.rotate(-1)
        for queue in tuple(self._queues):
            for types in self._known_types():
                limit = min(await self._free_hands(), MAX_CLAIM)
                if self._stopping.is_set():
                    return found
                call = RunCalls.claim_runs(queue, worker=self.name, limit=limit, workflow_types=types)
                page = await self._client.send(call)
                for run in page:
                    hand = asyncio.create_task(self._work(run), name=f"horarium-run-{run.run_id}")
                    self._hands.add(hand)
                    hand.add_done_callback(self._hands.discard)
                found += len(page)
        return found

    def _known_types(self) -> list[list[str] | None]:
        """As many at a time as a claim may name. What nobody here knows stays where it is, for a worker that does.

        None = any: no name stands for runs without a type, which a handler without a name takes.
        """
        if "" in self.handlers:
            return [None]
        names = list(self.handlers)
        return [names[first : first + MAX_TYPES] for first in range(0, len(names), MAX_TYPES)]

    async def _free_hands(self) -> int:
        while len(self._hands) >= self.concurrency and not self._stopping.is_set():
            stopping = asyncio.create_task(self._stopping.wait())
            await asyncio.wait({stopping, *self._hands}, return_when=asyncio.FIRST_COMPLETED)
            stopping.cancel()
        return self.concurrency - len(self._hands)

    async def _pause(self, seconds: float) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._stopping.wait(), seconds)

    async def _put_down(self) -> None:
        if self._hands:
            await asyncio.wait(set(self._hands), timeout=self._grace)
        left = set(self._hands)
        for hand in left:
            hand.cancel()
        if left:
            _log.warning("%d runs did not finish in time; their leases will expire", len(left))
            await asyncio.wait(left)

    # ── working ──────────────────────────────────────────────────────────────────────────────────

    async def _work(self, run: ClaimedRun) -> None:
        held = LeasedRun.of(run, self._log_bytes)
        handler = self.handlers.get(run.workflow_type or "")
        if handler is None:
            known = ", ".join(sorted(self.handlers)) or "none"
            await self._tell(
                held, held.failed(f"no handler for {run.workflow_type!r}; known types: {known}", NO_HANDLER)
            )
            return
        calling = asyncio.create_task(call_handler(handler, held))
        beating = asyncio.create_task(self._keep(held, calling if is_async(handler) else None))
        ended = asyncio.Event()
        telling = asyncio.create_task(self._keep_telling(held, ended))
        try:
            report = await calling
            ended.set()
            await asyncio.wait({telling})  # lines that are on their way would be sent twice
            await self._tell_lines(held, last=True)
            await self._tell(held, report)
        except asyncio.CancelledError:
            held.job.stop()
            calling.cancel()
            raise
        finally:
            telling.cancel()
            beating.cancel()

    async def _keep(self, held: LeasedRun, calling: asyncio.Task[Call[RunReported]] | None) -> None:
        """Renews the lease until the work is done. A coroutine that should stop is cancelled, a thread only told."""
        # Two beats may be lost before the run is.
        seconds = min(self._beat, (held.run.lease_seconds or _LONGEST_LEASE_SECONDS) / 3)
        while True:
            await asyncio.sleep(seconds)
            try:
                beat = await self._client.send(RunCalls.heartbeat_run(held.run_id, held.run.lease_epoch))
            except (Conflict, NotFound):
                held.lost = True
            except ClientError as wrong:
                _log.warning("heartbeat of run %s failed: %s", held.run_id, wrong)
                continue
            if (held.lost or beat.stop_requested) and not held.job.cancelled():
                held.job.stop()
                if calling is not None:
                    calling.cancel()
            if held.lost:
                return

    async def _keep_telling(self, held: LeasedRun, ended: asyncio.Event) -> None:
        while held.log is not None and not held.lost:
            with suppress(TimeoutError):
                await asyncio.wait_for(ended.wait(), _LINES_SECONDS)
            if ended.is_set():
                return
            await self._tell_lines(held)

    async def _tell_lines(self, held: LeasedRun, *, last: bool = False) -> None:
        """Once: they are worth less than the report, which waits for them. What is not heard goes with the next."""
        batch = None if held.lost else held.waiting_lines(last=last)
        if batch is None or held.log is None:
            return
        try:
            answer = await self._client.send(held.lines_call(batch))
        except HorariumError as wrong:
            _log.warning("log lines of run %s were not stored: %s", held.run_id, wrong)
            if not isinstance(wrong, _PASSING):  # no later try would mend it
                held.log.done(batch)
        else:
            if answer.kept:
                held.log.done(batch)

    async def _tell(self, held: LeasedRun, report: Call[RunReported]) -> None:
        """Until it is heard: what was done must not be done again because the server was away for a moment."""
        for failures in range(1, _PATIENCE.attempts + 1):
            if held.lost:
                _log.warning("lease of run %s is lost; its outcome is discarded", held.run_id)
                return
            try:
                await self._client.send(report)
                return
            except _PASSING as wrong:
                _log.warning("report of run %s failed, retrying: %s", held.run_id, wrong)
                await asyncio.sleep(_PATIENCE.wait_seconds(failures, held.run_id))
            except ValidationFailed as wrong:
                # A result that the server cannot keep would only come again with the next worker.
                _log.error("report of run %s was rejected: %s", held.run_id, wrong)
                held.job.cost = held.job.tokens = held.job.tool_calls = None
                report = held.failed(f"the report was rejected: {wrong}", RetryCause.CONTRACT_VIOLATED)
            except HorariumError as wrong:
                _log.error("report of run %s was rejected: %s", held.run_id, wrong)
                return


def register_in(handlers: dict[str, Handler], workflow_type: str) -> Callable[[F], F]:
    """A type has one handler: a second one would be a silent swap."""

    def register(function: F) -> F:
        if handlers.setdefault(workflow_type, function) is not function:
            raise ValueError(f"{workflow_type!r} already has a handler")
        return function

    return register
