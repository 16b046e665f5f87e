"""What a Celery message of a run is: arguments, time limits, priority and the header that names the run. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import ceil
from typing import Any, Final

from horarium.core.document.json_values import Json
from horarium.instant import SECOND, Instant, to_rfc3339
from horarium.launchers.launcher import LaunchRequest
from horarium.launchers.payload import encode
from horarium.platform.job import HEADER, RunHeader

LOWEST_PRIORITY: Final = 0
HIGHEST_PRIORITY: Final = 9
# A task is warned by its soft limit so long before the hard one, and not at all where that leaves it too little.
_WARNED_BEFORE: Final = 10
_LEAST_WARNED: Final = 30
# What a worker's log and its monitors show of the arguments.
_MOST_SHOWN: Final = 1_024
_HIDDEN: Final = "***"
# What stands beside the arguments in the body (Celery's message protocol 2): nothing follows on a task of ours.
_EMBED: Final = {"callbacks": None, "errbacks": None, "chain": None, "chord": None}


class BadArguments(ValueError):
    """The input is neither an array nor an object."""


@dataclass(frozen=True, slots=True)
class Message:
    """`queue` None = the connection's default one. `once`: what may have arrived must not be sent again."""

    task: str
    task_id: str
    queue: str | None
    body: bytes = field(repr=False)
    shown: tuple[str, str] = field(repr=False)
    priority: int
    time_limit: int
    soft_time_limit: int | None
    expires: str
    headers: Mapping[str, Any] = field(repr=False)
    deadline: Instant
    once: bool


def message_of(request: LaunchRequest, queue: str | None, seconds_left: float) -> Message:
    """Raises BadArguments, and NotJson for arguments that cannot be spelled."""
    args, kwargs = arguments(request.action.target, request.inputs, wins=request.own_inputs)
    limit, soft = time_limits(seconds_left)
    return Message(
        task=str(request.action.target.get("task", "")),
        task_id=request.key,
        queue=queue,
        body=encode([args, kwargs, _EMBED]),
        shown=(_HIDDEN, _HIDDEN) if request.secrets else (_shown(args), _shown(kwargs)),
        priority=clipped_priority(request.priority),
        time_limit=limit,
        soft_time_limit=soft,
        expires=to_rfc3339(request.deadline),
        headers={HEADER: header_of(request).to_header(), **_trace(request)},
        deadline=request.deadline,
        once=request.once,
    )


def arguments(target: Mapping[str, Json], inputs: Json, *, wins: bool) -> tuple[list[Any], dict[str, Any]]:
    """By place and by name. An input is one or the other, where the action does not say it itself.

    `wins`: the input is that of a rotation, or was given for this run alone, and stands in place of the action's own.
    """
    args, kwargs = target.get("args"), target.get("kwargs")
    if isinstance(inputs, Mapping):
        kwargs = inputs if wins or kwargs is None else kwargs
    elif isinstance(inputs, list | tuple):
        args = inputs if wins or args is None else args
    elif inputs is not None:
        raise BadArguments("the input must be an array of positional arguments or an object of keyword arguments")
    if not isinstance(args, list | tuple | None) or not isinstance(kwargs, Mapping | None):
        raise BadArguments("args must be an array, and kwargs an object")
    return list(args or ()), dict(kwargs or {})


def time_limits(seconds_left: float) -> tuple[int, int | None]:
    """Hard and soft, in whole seconds: the worker stops a task when its run's time is up, and warns it before."""
    hard = max(1, ceil(seconds_left))
    return hard, hard - _WARNED_BEFORE if hard >= _LEAST_WARNED else None


def clipped_priority(priority: int) -> int:
    return max(LOWEST_PRIORITY, min(HIGHEST_PRIORITY, priority))


def priority_at(driver: str, priority: int) -> int:
    """As the broker counts: on Redis 0 is taken first."""
    return HIGHEST_PRIORITY - priority if driver == "redis" else priority


def header_of(request: LaunchRequest) -> RunHeader:
    return RunHeader(
        run_id=request.run_id,
        namespace=request.namespace,
        attempt=request.attempt,
        nominal=to_rfc3339(request.nominal),
        schedule_id=request.schedule_id,
        report_url=request.report_url,
        report_token=request.report_token,
    )


def seconds_until(deadline: Instant, now: Instant) -> float:
    return (deadline - now) / SECOND


def _trace(request: LaunchRequest) -> dict[str, str]:
    return {} if request.traceparent is None else {"traceparent": request.traceparent}


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _MOST_SHOWN else f"{text[: _MOST_SHOWN - 1]}…"
