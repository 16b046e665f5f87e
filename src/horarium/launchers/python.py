"""Runs as Python calls in this process: coroutines in the loop, functions in threads, computations in processes.

No keys are stored here, so a redelivery calls the function again: delivery is at least once.

At the deadline and on cancellation a coroutine is cancelled and a process killed. A thread can only be told, through
`context.cancelled()`; a thread that does not react is abandoned and counted. When a namespace has abandoned half as
many threads as may run, the launcher is busy for it: threads must not accumulate, and no namespace waits for
another's.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from functools import partial
from typing import assert_never

import orjson

from horarium.audience import USUAL, Audience
from horarium.core.document import reader
from horarium.core.lifecycle.outcome import Busy, Outcome, Refused, RunCancelled, RunFailed, RunTimedOut, Unreachable
from horarium.launchers.calls import (
    Called,
    ChildProcess,
    FunctionCall,
    NoThread,
    Raised,
    Returned,
    call_async,
    call_sync,
    start_thread,
)
from horarium.launchers.launcher import Launcher, LaunchRequest
from horarium.launchers.payload import (
    CancelRequested,
    Cleared,
    WorkEnded,
    WorkTimedOut,
    clean_text,
    preflight,
    run_within,
)
from horarium.launchers.tasks import Task, TaskRegistry, job_of
from horarium.platform import job as job_context
from horarium.platform.clock import Clock
from horarium.platform.job import Job
from horarium.platform.threads import ReusedThreads

CONCURRENCY = 32
"""Concurrent calls: most of them wait for I/O, and a waiting thread is cheap."""
GRACE_SECONDS = 1.0
"""How long a call that was asked to stop has before it is left to itself."""


class PythonLauncher(Launcher):
    declares = reader.PYTHON
    kind = declares.name
    honours_key = False
    can_poll = False
    works_here = True

    def __init__(
        self,
        tasks: TaskRegistry,
        clock: Clock,
        *,
        concurrency: int = CONCURRENCY,
        processes: int | None = None,
        grace_seconds: float = GRACE_SECONDS,
        usual: Audience = USUAL,
    ) -> None:
        """`usual` is for whom tasks are that do not say it."""
        self.concurrency: int = concurrency
        self._tasks = tasks
        self._usual = usual
        self._clock = clock
        self._grace = grace_seconds
        self._slots = asyncio.Semaphore(processes or os.cpu_count() or 1)
        self._abandoned: dict[asyncio.Future[Called], str] = {}
        self._children: set[ChildProcess] = set()
        self._threads = ReusedThreads("horarium-task")

    @property
    def abandoned(self) -> int:
        """Number of threads that continue after their run has ended."""
        return len(self._abandoned)

    def known_names(self) -> Mapping[str, Audience]:
        return self._tasks.offered(self._usual)

    async def start(self) -> None:
        job_context.begin_capture()

    async def close(self) -> None:
        job_context.end_capture()
        for child in list(self._children):
            child.kill()
        self._threads.close()

    async def launch(self, request: LaunchRequest) -> Outcome:
        cleared = preflight(request, self._clock)
        if not isinstance(cleared, Cleared):
            return cleared
        task = self._task_of(request)
        if isinstance(task, Refused):
            return task
        # Its own copy of the inputs: a function may change what it is given, the definition must not change.
        inputs = orjson.loads(cleared.inputs)
        job = job_of(request, inputs) if task.wants_context else None
        try:
            args, kwargs = task.bind(inputs, job)
        except TypeError as wrong:
            return Refused(f"the input does not fit the task {task.name}: {clean_text(str(wrong), 500)}")
        if not task.is_async and not task.cpu and self._is_crowded(request.namespace):
            return Busy()
        try:
            return await self._run(
                task, FunctionCall(task.function, args, kwargs, job, request.log), request, cleared.seconds_left
            )
        except NoThread as wrong:
            return Unreachable(str(wrong))

    def _is_crowded(self, namespace: str) -> bool:
        own = sum(each == namespace for each in self._abandoned.values())
        return own >= max(1, self.concurrency // 2)

    def _task_of(self, request: LaunchRequest) -> Task | Refused:
        target = request.action.target
        name = target.get("callable") or target.get("task") or request.action.workflow
        task = self._tasks.find(name, request.namespace, self._usual)
        if task is not None:
            return task
        own = (each for each, audience in self.known_names().items() if request.namespace in audience)
        known = clean_text(", ".join(own), 500) or "none"
        return Refused(f"the task {clean_text(repr(name), 200)} is not registered; registered: {known}")

    async def _run(self, task: Task, call: FunctionCall, request: LaunchRequest, seconds: float) -> Outcome:
        work: asyncio.Future[Called]
        if task.is_async:
            work = asyncio.ensure_future(call_async(call))
            told = partial(_cancel, work, call.job)
        elif task.cpu:
            work = asyncio.ensure_future(self._in_process(call, request.run_id))
            told = partial(_cancel, work, None)
        else:
            work = start_thread(self._threads, partial(call_sync, call), f"horarium-task-{request.run_id}")
            told = partial(self._abandon, work, call.job, request.namespace)
        end = await run_within(work, seconds=seconds, cancelled=request.cancelled, grace_seconds=self._grace, stop=told)
        match end:
            case WorkEnded(called):
                return _outcome(called)
            case WorkTimedOut(abandoned):
                return RunTimedOut(f"the task {task.name} did not end before the deadline{_left(abandoned)}")
            case CancelRequested(abandoned):
                return RunCancelled(f"the task {task.name} was cancelled{_left(abandoned)}")
            case _:
                assert_never(end)

    def _abandon(self, answer: asyncio.Future[Called], job: Job | None, namespace: str) -> None:
        """A thread can be told and not stopped; until it ends by itself it counts."""
        if job is not None:
            job.stop()
        self._abandoned[answer] = namespace
        answer.add_done_callback(lambda done: self._abandoned.pop(done, None))

    async def _in_process(self, call: FunctionCall, run_id: str) -> Called:
        async with self._slots:
            child = ChildProcess(call._replace(log=None), call.log)
            self._children.add(child)
            try:
                return await start_thread(self._threads, child.run, f"horarium-cpu-{run_id}")
            finally:
                child.kill()
                self._children.discard(child)


def _outcome(called: Called) -> Outcome:
    match called:
        case Returned(finished):
            return finished
        case Raised(error, error_class, used):
            return RunFailed(error, error_class, cost=used.cost, tokens=used.tokens, tool_calls=used.tool_calls)
        case _:
            assert_never(called)


def _cancel(work: asyncio.Future[Called], job: Job | None) -> None:
    """Whoever catches the cancellation and goes on can still ask."""
    if job is not None:
        job.stop()
    work.cancel()


def _left(abandoned: bool) -> str:
    return "; its thread did not stop and continues to run" if abandoned else ""
