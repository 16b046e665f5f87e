"""How the inputs of a run become the arguments of its handler."""

from __future__ import annotations

from typing import Any

import pytest

from horarium.client.job import Job, arguments, is_async, job_of
from horarium.features.runs.model import ClaimedRun
from horarium.platform.client.lenient import read


def nothing() -> None: ...
def one(a: Any) -> None: ...
def two(a: Any, b: Any = 2) -> None: ...
def last(a: Any, context: Job) -> None: ...
def first(context: Job, a: Any) -> None: ...
def named(a: Any, *, context: Job) -> None: ...
def only(context: Job) -> None: ...
def whole(document: Any) -> None: ...
def anything(*args: Any, **kwargs: Any) -> None: ...


JOB = job_of(read(ClaimedRun, {}))


@pytest.mark.parametrize(
    ("handler", "inputs", "args", "kwargs"),
    [
        (nothing, None, (), {}),
        (one, [1], (1,), {}),
        (one, 1, (1,), {}),
        (one, "text", ("text",), {}),
        (two, [1], (1,), {}),
        (two, {"a": 1, "b": 3}, (), {"a": 1, "b": 3}),
        (whole, {"x": 1}, ({"x": 1},), {}),
        (two, {"c": 1}, ({"c": 1},), {}),
        (anything, {"x": 1}, (), {"x": 1}),
        (last, [1], (1, JOB), {}),
        (first, [1], (JOB, 1), {}),
        (named, [1], (1,), {"context": JOB}),
        (first, {"a": 1}, (), {"a": 1, "context": JOB}),
        (only, None, (), {"context": JOB}),
        (first, {"a": 1, "context": "mine"}, (), {"a": 1, "context": "mine"}),
    ],
)
def test_arguments(handler: Any, inputs: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    JOB.input = inputs
    assert arguments(handler, JOB) == (args, kwargs)
    handler(*args, **kwargs)


@pytest.mark.parametrize(
    ("handler", "inputs"),
    [(nothing, [1]), (one, None), (one, [1, 2]), (nothing, {"a": 1})],
    ids=["too-many", "too-few", "one-too-many", "no-names"],
)
def test_inputs_that_do_not_fit_are_refused(handler: Any, inputs: Any) -> None:
    JOB.input = inputs
    with pytest.raises(TypeError):
        arguments(handler, JOB)


def test_a_callable_without_a_signature_is_called_as_it_comes() -> None:
    JOB.input = [1, 2]
    assert arguments(max, JOB) == ((1, 2), {})


def test_coroutine_functions_are_known_also_as_objects() -> None:
    class Later:
        async def __call__(self) -> None: ...

    async def later() -> None: ...

    assert (is_async(later), is_async(Later()), is_async(one)) == (True, True, False)
