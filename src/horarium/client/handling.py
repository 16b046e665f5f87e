"""Call handlers: inputs become arguments, and the result becomes a report.

| inputs  | the call                                                             |
|---------|----------------------------------------------------------------------|
| null    | `f()`                                                                |
| object  | `f(**inputs)` if the signature takes these names, else `f(inputs)`   |
| array   | `f(*inputs)`                                                         |
| other   | `f(inputs)`                                                          |

A parameter `context` receives the Job by name, unless the inputs bring a `context` of their own. A function is
thus called by a worker as it would be as a task inside the service.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from horarium.client.call import Call
from horarium.client.job import HeldRun, Job
from horarium.features.runs.model import RunReported
from horarium.job.capture import keep_output
from horarium.policy.retry import RetryCause

Handler = Callable[..., Any]

Arguments = tuple[tuple[Any, ...], dict[str, Any]]

CONTEXT = "context"


async def call_handler(handler: Handler, held: HeldRun) -> Call[RunReported]:
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


async def _in_thread(handler: Handler, args: tuple[Any, ...], named: dict[str, Any], held: HeldRun) -> Any:
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
