"""A claimed run: the job that its handler receives, the call of the handler, and the final report.

| inputs  | the call                                                             |
|---------|----------------------------------------------------------------------|
| null    | `f()`                                                                |
| object  | `f(**inputs)` if the signature takes these names, else `f(inputs)`   |
| array   | `f(*inputs)`                                                         |
| other   | `f(inputs)`                                                          |

A parameter `context` receives the Job by name, unless the inputs bring a `context` of their own. A function is thus
called by a worker as it would be as a task inside the service.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from horarium.core.policy.approval import RetryCause
from horarium.errors import InvalidDefinition
from horarium.features.runs.calls import RunCalls
from horarium.features.runs.model import ClaimedRun, RunLogsKept, RunReported
from horarium.instant import to_rfc3339
from horarium.platform.client.call import Call, dump
from horarium.platform.clock import SystemClock
from horarium.platform.job import Job, keep_output
from horarium.platform.run_log import Batch, RunLog

__all__ = ["NO_HANDLER", "Blocked", "Job", "LeasedRun", "job_of"]

NO_HANDLER = "no_handler"
_MAX_ERROR = 4_000
_FRAMES = 10


class Blocked(Exception):
    """Raise this in a handler when the run reaches a gate that needs approval, such as `publish` or `spend`."""

    def __init__(self, gate: str) -> None:
        super().__init__(f"needs approval of the gate {gate}")
        self.gate = gate


def job_of(run: ClaimedRun, log: RunLog | None = None) -> Job:
    """A run that was claimed has all its times; what a server left out is as of its birth."""
    return Job(
        run_id=run.run_id,
        namespace=run.namespace,
        schedule_id=run.schedule_id,
        key=run.key or "",
        nominal=run.nominal or run.created_at,
        due=run.due or run.created_at,
        deadline=run.deadline or run.lease_until,
        attempt=run.attempt,
        input=run.inputs,
        origin=run.origin,
        instance_id=run.workflow_instance_id,
        workflow_type=run.workflow_type,
        labels=run.labels,
        memo=run.memo,
        report_url=run.report_url,
        report_token=run.report_token,
        user_id=run.user_id,
        search_attributes=run.search_attributes,
        workflow=run.raw.get("workflow") or run.raw.get("step_of"),
        node_id=run.node_id,
        parent_run_id=run.parent_run_id,
        root_run_id=run.root_run_id,
        assignee=run.raw.get("assignee"),
        approval_mode=run.approval_mode,
        gates=run.gates,
        approved_gates=run.approved_gates,
        limits=run.limits,
        allow_tools=run.allow_tools,
        global_model_id=run.global_model_id,
        _log=log,
    )


@dataclass(slots=True, eq=False)
class LeasedRun:
    """`lost`: the lease is over, and what is said about the run is no longer ours to say."""

    run: ClaimedRun
    job: Job
    log: RunLog | None = None
    lost: bool = False

    @classmethod
    def of(cls, run: ClaimedRun, log_bytes: int) -> LeasedRun:
        """With `log_bytes` 0 nothing is kept of what its handler says."""
        log = RunLog(SystemClock().now, log_bytes) if log_bytes else None
        return cls(run, job_of(run, log), log)

    @property
    def run_id(self) -> str:
        return self.run.run_id

    # ── what it says meanwhile ───────────────────────────────────────────────────────────────────

    def waiting_lines(self, *, last: bool = False) -> Batch | None:
        """Lines that the handler has written since the last call; None = there are none."""
        if self.log is None or not self.log.touched:
            return None
        batch = self.log.peek(last=last)
        return batch if batch.lines else None

    def lines_call(self, batch: Batch) -> Call[RunLogsKept]:
        lines = [{"at": to_rfc3339(line.at), "stream": line.stream, "text": line.text} for line in batch.lines]
        return RunCalls.add_run_logs(self.run_id, self.run.lease_epoch, lines, dropped=batch.dropped or None)

    # ── what is said about it in the end ─────────────────────────────────────────────────────────

    def returned(self, result: Any) -> Call[RunReported]:
        """A handler that returns after it was asked to stop has stopped; what it has got so far is kept."""
        try:
            dump(result)
        except InvalidDefinition as wrong:
            return self.failed(f"the result {wrong.errors['body'][0]}", RetryCause.CONTRACT_VIOLATED)
        return self._report("cancelled" if self.job.cancelled() else "succeeded", result=result)

    def failed(self, error: str, error_class: str) -> Call[RunReported]:
        return self._report("failed", error=error[-_MAX_ERROR:], error_class=error_class[:100])

    def raised(self, error: BaseException) -> Call[RunReported]:
        """An exception may name its class itself, in `error_class`, as that of a task may."""
        if isinstance(error, Blocked):
            return self._report("blocked", gate=error.gate)
        if self.job.cancelled():
            return self._report("cancelled", error=_traceback_text(error))
        own = getattr(error, "error_class", None)
        usual = RetryCause.TIMEOUT if isinstance(error, TimeoutError) else RetryCause.PROVIDER_ERROR
        return self.failed(_traceback_text(error), own if isinstance(own, str) and own else usual)

    def _report(self, state: str, **said: Any) -> Call[RunReported]:
        return RunCalls.report_run(
            self.run_id,
            state,
            lease_epoch=self.run.lease_epoch,
            cost=self.job.cost,
            tokens=self.job.tokens,
            tool_calls=self.job.tool_calls,
            **said,
        )


def _traceback_text(error: BaseException) -> str:
    return "".join(traceback.format_exception(type(error), error, error.__traceback__, limit=-_FRAMES)).strip()


# ── handlers ──────────────────────────────────────────────────────────────────────────────────────────


Handler = Callable[..., Any]

Arguments = tuple[tuple[Any, ...], dict[str, Any]]

CONTEXT = "context"


async def call_handler(handler: Handler, held: LeasedRun) -> Call[RunReported]:
    """Call the handler and turn its result into a report. Runs in a task of its own to capture its output."""
    keep_output(held.log)
    try:
        args, named = arguments(handler, held.job)
    except TypeError as wrong:
        return held.failed(
            f"the input does not match the signature of the handler: {wrong}", RetryCause.CONTRACT_VIOLATED
        )
    try:
        if is_async(handler):
            return held.returned(await handler(*args, **named))
        return held.returned(await _in_thread(handler, args, named, held))
    except asyncio.CancelledError as cancelled:
        if not held.job.cancelled():  # the worker itself is being cancelled, not this run
            raise
        return held.raised(cancelled)
    except Exception as wrong:
        return held.raised(wrong)


async def _in_thread(handler: Handler, args: tuple[Any, ...], named: dict[str, Any], held: LeasedRun) -> Any:
    """A daemon thread of its own: one that never ends must not keep the process from ending."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[Any] = loop.create_future()

    def deliver(result: Any, error: Exception | None) -> None:
        if answer.done():
            return
        answer.set_result(result) if error is None else answer.set_exception(error)

    def work() -> None:
        result: Any = None
        failed: Exception | None = None
        keep_output(held.log)
        try:
            result = handler(*args, **named)
        except StopIteration as wrong:  # which a future refuses
            failed = RuntimeError(f"the handler raised {wrong!r}")
        except Exception as wrong:
            failed = wrong
        except BaseException as wrong:  # a handler that exits must not leave its run without an answer
            failed = RuntimeError(f"the handler raised {wrong!r}")
        with suppress(RuntimeError):  # the loop may be closed: then nobody waits any more
            loop.call_soon_threadsafe(deliver, result, failed)

    threading.Thread(target=work, name=f"horarium-run-{held.run_id}", daemon=True).start()
    return await answer


def arguments(handler: Handler, job: Job) -> Arguments:
    """Raises TypeError when the inputs do not fit the signature."""
    signature, inputs = _signature(handler), job.input
    ways: list[Arguments]
    match inputs:
        case None:
            ways = [((), {})]
        case list():
            ways = [(tuple(inputs), {})]
        case dict():
            ways = [((), inputs), ((inputs,), {})]
        case _:
            ways = [((inputs,), {})]
    if signature is None:  # some built-ins have none: they are called as they come
        return ways[0]
    ways = [_with_context(signature, args, named, job) for args, named in ways]
    # When no way fits, the first is what the writer of the schedule meant, and binding it says what is wrong.
    args, named = next((way for way in ways if _fits(signature, *way)), ways[0])
    signature.bind(*args, **named)
    return args, named


def _with_context(signature: inspect.Signature, args: tuple[Any, ...], named: dict[str, Any], job: Job) -> Arguments:
    """By name, or in its place when arguments that stand after it are given by position."""
    names = list(signature.parameters)
    if CONTEXT not in names or CONTEXT in named:
        return args, named
    place = names.index(CONTEXT)
    by_position = signature.parameters[CONTEXT].kind is not inspect.Parameter.KEYWORD_ONLY
    if args and by_position and place <= len(args):
        return (*args[:place], job, *args[place:]), named
    return args, {**named, CONTEXT: job}


def is_async(handler: Handler) -> bool:
    return inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(type(handler).__call__)


def _signature(handler: Handler) -> inspect.Signature | None:
    try:
        return inspect.signature(handler)
    except (ValueError, TypeError):
        return None


def _fits(signature: inspect.Signature, args: tuple[Any, ...], named: dict[str, Any]) -> bool:
    try:
        signature.bind(*args, **named)
    except TypeError:
        return False
    return True
