"""Python functions that can be scheduled, and the arguments that the inputs of a run become.

| inputs  | the call                                                             |
|---------|----------------------------------------------------------------------|
| null    | `f()`                                                                |
| object  | `f(**inputs)` if the signature takes these names, else `f(inputs)`   |
| array   | `f(*inputs)`                                                         |
| other   | `f(inputs)`                                                          |

A parameter named `context` receives the Job, unless the inputs bring a `context` of their own.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar

from horarium.audience import USUAL, Audience
from horarium.core.document.json_values import Json
from horarium.instant import to_datetime
from horarium.launchers.launcher import LaunchRequest
from horarium.platform.job import Job

F = TypeVar("F", bound=Callable[..., Any])
Arguments: TypeAlias = tuple[tuple[Any, ...], dict[str, Any]]
_Way: TypeAlias = "Callable[[Json, Job | None], Arguments]"
"""From inputs of one shape to arguments."""
_Shape: TypeAlias = tuple[str, ...] | int | str | None
"""What decides whether inputs fit: their names, their number, or that they are one value or none."""

CONTEXT = "context"
_ONE = "one value"
# A schedule has inputs of one shape; whoever makes more of them pays for the question each time.
_MAX_SHAPES = 64
_MAX_NAMES = 100
_ANYTHING = inspect.Signature(
    [
        inspect.Parameter("args", inspect.Parameter.VAR_POSITIONAL),
        inspect.Parameter("kwargs", inspect.Parameter.VAR_KEYWORD),
    ]
)


def job_of(request: LaunchRequest, inputs: Json) -> Job:
    return Job(
        run_id=request.run_id,
        namespace=request.namespace,
        schedule_id=request.schedule_id,
        key=request.key,
        nominal=to_datetime(request.nominal),
        due=to_datetime(request.due),
        deadline=to_datetime(request.deadline),
        attempt=request.attempt,
        input=inputs,
        origin=request.origin,
        instance_id=request.instance_id,
        workflow_type=request.action.workflow,
        labels=dict(request.labels),
        memo=dict(request.memo),
        report_url=request.report_url,
        report_token=request.report_token,
        user_id=request.user_id,
        search_attributes=dict(request.search_attributes),
        workflow=None if request.workflow is None else dict(request.workflow),
        node_id=request.node_id,
        parent_run_id=request.parent_run_id,
        root_run_id=request.root_run_id,
        assignee=None if request.assignee is None else dict(request.assignee),
        **request.terms.document(),
        _log=request.log,
    )


@dataclass(frozen=True, slots=True)
class Task:
    """`cpu`: it computes for long without waiting, so it gets a process of its own, which can be killed."""

    name: str
    function: Callable[..., Any]
    cpu: bool = False
    signature: inspect.Signature = field(init=False, repr=False, compare=False)
    is_async: bool = field(init=False, repr=False, compare=False)
    wants_context: bool = field(init=False, repr=False, compare=False)
    _ways: dict[_Shape, _Way] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not 0 < len(self.name) <= 255:
            raise ValueError("the name of a task must be a string of 1 to 255 characters")
        if not callable(self.function):
            raise TypeError(f"the task {self.name!r} is a {type(self.function).__name__}, which is not callable")
        signature = _signature(self.function)
        object.__setattr__(self, "signature", signature)
        object.__setattr__(self, "is_async", _is_async(self.function))
        object.__setattr__(self, "wants_context", CONTEXT in signature.parameters)
        object.__setattr__(self, "_ways", {})
        if self.cpu and self.is_async:
            raise ValueError(f"the task {self.name!r} is async; cpu=True requires a regular function")

    def bind(self, inputs: Json, context: Job | None = None) -> Arguments:
        """The arguments of the call; raises TypeError when the inputs do not fit the signature.

        `context` is needed only where the task wants one. Whether inputs fit is a question of how many there are
        and of their names, not of their values, so it is asked of the signature once for each shape.
        """
        shape = _shape(inputs)
        way = self._ways.get(shape)
        if way is None:
            way = self._way(inputs)
            args, kwargs = way(inputs, context)
            self.signature.bind(*args, **kwargs)
            if len(self._ways) < _MAX_SHAPES and not (isinstance(shape, tuple) and len(shape) > _MAX_NAMES):
                self._ways[shape] = way
            return args, kwargs
        return way(inputs, context)

    def _way(self, inputs: Json) -> _Way:
        match inputs:
            case None:
                return self._by_position(0, _no_arguments)
            case list() | tuple():
                return self._by_position(len(inputs), tuple)
            case Mapping():
                wants = self.wants_context and CONTEXT not in inputs
                whole = self._by_position(1, _one_argument)
                # When neither way fits, the names are what the writer of the schedule meant.
                if not self._fits((), {**inputs, CONTEXT: None} if wants else inputs) and self._fits(
                    *whole(inputs, None)
                ):
                    return whole
                return _by_name_with_context if wants else _by_name
            case _:
                return self._by_position(1, _one_argument)

    def _by_position(self, count: int, arguments: Callable[[Json], tuple[Any, ...]]) -> _Way:
        """The context by name, or in its place when arguments that stand after it are given by position."""
        if not self.wants_context:
            return lambda inputs, _context: (arguments(inputs), {})
        place = list(self.signature.parameters).index(CONTEXT)
        by_position = self.signature.parameters[CONTEXT].kind is not inspect.Parameter.KEYWORD_ONLY
        if not by_position or place > count:
            return lambda inputs, context: (arguments(inputs), {CONTEXT: context})

        def in_its_place(inputs: Json, context: Job | None) -> Arguments:
            args = arguments(inputs)
            return (*args[:place], context, *args[place:]), {}

        return in_its_place

    def _fits(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
        try:
            self.signature.bind(*args, **kwargs)
        except TypeError:
            return False
        return True


def _shape(inputs: Json) -> _Shape:
    match inputs:
        case None:
            return None
        case list() | tuple():
            return len(inputs)
        case Mapping():
            return tuple(inputs)
        case _:
            return _ONE


def _no_arguments(_inputs: Json) -> tuple[Any, ...]:
    return ()


def _one_argument(inputs: Json) -> tuple[Any, ...]:
    return (inputs,)


def _by_name(inputs: Json, _context: Job | None) -> Arguments:
    return (), {**inputs}


def _by_name_with_context(inputs: Json, context: Job | None) -> Arguments:
    return (), {**inputs, CONTEXT: context}


def _signature(function: Callable[..., Any]) -> inspect.Signature:
    try:
        return inspect.signature(function)
    except (ValueError, TypeError):  # some built-ins have none: they are called as they come
        return _ANYTHING


def _is_async(function: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)


class TaskRegistry:
    """Name → task. A name is given once: two functions under one name would be a silent swap.

    `audience` is that of tasks that say nothing; None = the default namespace of whoever serves them.
    """

    def __init__(self, audience: Audience | None = None) -> None:
        self._tasks: dict[str, Task] = {}
        self._audience = audience
        self._audiences: dict[str, Audience] = {}
        self._opened: dict[str, Audience] = {}

    def add(
        self,
        function: Callable[..., Any],
        *,
        name: str | None = None,
        cpu: bool = False,
        audience: Audience | None = None,
    ) -> Task:
        task = Task(name if name is not None else f"{function.__module__}.{function.__qualname__}", function, cpu)
        known = self._tasks.setdefault(task.name, task)
        if known != task:
            raise ValueError(f"the task {task.name!r} is already registered")
        if audience is not None and self._audiences.setdefault(task.name, audience) != audience:
            raise ValueError(f"the task {task.name!r} is already registered for other namespaces")
        return known

    def task(self, *, name: str | None = None, cpu: bool = False, audience: Audience | None = None) -> Callable[[F], F]:
        """`add` as a decorator; the function itself stays as it is and can be called as before."""

        def register(function: F) -> F:
            self.add(function, name=name, cpu=cpu, audience=audience)
            return function

        return register

    def open_to(self, name: str, audience: Audience) -> None:
        """For these as well, whatever else is said: the program itself schedules the task there."""
        self._opened[name] = self._opened[name] | audience if name in self._opened else audience

    def get(self, name: str) -> Task | None:
        return self._tasks.get(name)

    def offered(self, usual: Audience = USUAL) -> dict[str, Audience]:
        """For whom each task is; `usual` where nobody has said it."""
        return {name: self._audience_of(name, usual) for name in self}

    def find(self, name: object, namespace: str, usual: Audience = USUAL) -> Task | None:
        """None also for a task that is not for this namespace: there it does not exist."""
        task = self._tasks.get(name) if isinstance(name, str) else None
        return task if task is not None and namespace in self._audience_of(task.name, usual) else None

    def _audience_of(self, name: str, usual: Audience) -> Audience:
        said = self._audiences.get(name, self._audience or usual)
        return said | self._opened[name] if name in self._opened else said

    def __contains__(self, name: object) -> bool:
        return name in self._tasks

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._tasks))

    def __len__(self) -> int:
        return len(self._tasks)
