"""How a method of a driver shows whose call it sends: its name, documentation and signature are the call's."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

_SELF = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)


def like(make: Callable[..., Any], method: F, *, bound: int = 0) -> F:
    """For people who ask at runtime, as `help` does; type checkers see it already. `bound` parameters are filled in."""
    asked = inspect.signature(make)
    parameters = [_SELF, *list(asked.parameters.values())[bound:]]
    method.__name__, method.__doc__ = make.__name__, make.__doc__
    method.__qualname__ = make.__qualname__
    # What the caller gets is inside the Call, and for lists inside the Page: no annotation is better than a wrong one.
    method.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return method
