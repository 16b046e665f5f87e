"""Build methods of both clients from call functions: `Client` sends and waits, `AsyncClient` sends and awaits.

Signature and documentation of a method are those of the call function, for type checkers and for `help`. On the class,
a method is that function.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar, overload

from horarium.client.call import Call
from horarium.client.page import Page

if TYPE_CHECKING:
    from horarium.client.aio import AsyncClient, AsyncScheduleHandle
    from horarium.client.client import Client, ScheduleHandle

P = ParamSpec("P")
T = TypeVar("T")


class Method(Generic[P, T]):
    """A method that sends the call of its function."""

    def __init__(self, make: Callable[P, Call[T]]) -> None:
        self.make: Callable[P, Call[T]] = getattr(make, "__func__", make)

    @overload
    def __get__(self, client: None, owner: type) -> Callable[P, Call[T]]: ...
    @overload
    def __get__(self, client: Client, owner: type) -> Callable[P, T]: ...
    @overload
    def __get__(self, client: AsyncClient, owner: type) -> Callable[P, Coroutine[Any, Any, T]]: ...
    def __get__(self, client: Any, owner: type) -> Any:
        return self.make if client is None else _like(self.make, client.send)


class Pages(Generic[P, T]):
    """A method that iterates over all pages of a list."""

    def __init__(self, listing: Method[P, Page[T]]) -> None:
        self.make = listing.make

    @overload
    def __get__(self, client: None, owner: type) -> Callable[P, Call[Page[T]]]: ...
    @overload
    def __get__(self, client: Client, owner: type) -> Callable[P, Iterator[T]]: ...
    @overload
    def __get__(self, client: AsyncClient, owner: type) -> Callable[P, AsyncIterator[T]]: ...
    def __get__(self, client: Any, owner: type) -> Any:
        return self.make if client is None else _like(self.make, client.pages)


class Own(Generic[P, T]):
    """A method of a handle: sends a call with the ID of its schedule."""

    def __init__(self, make: Callable[Concatenate[str, P], Call[T]]) -> None:
        self._make = make

    @overload
    def __get__(self, handle: None, owner: type) -> Callable[Concatenate[str, P], Call[T]]: ...
    @overload
    def __get__(self, handle: ScheduleHandle, owner: type) -> Callable[P, T]: ...
    @overload
    def __get__(self, handle: AsyncScheduleHandle, owner: type) -> Callable[P, Coroutine[Any, Any, T]]: ...
    def __get__(self, handle: Any, owner: type) -> Any:
        return self._make if handle is None else _like(self._make, handle.client.send, handle.schedule_id)


class OwnPages(Generic[P, T]):
    """A method of a handle: iterates over all pages of a list of its schedule."""

    def __init__(self, make: Callable[Concatenate[str, P], Call[Page[T]]]) -> None:
        self._make = make

    @overload
    def __get__(self, handle: None, owner: type) -> Callable[Concatenate[str, P], Call[Page[T]]]: ...
    @overload
    def __get__(self, handle: ScheduleHandle, owner: type) -> Callable[P, Iterator[T]]: ...
    @overload
    def __get__(self, handle: AsyncScheduleHandle, owner: type) -> Callable[P, AsyncIterator[T]]: ...
    def __get__(self, handle: Any, owner: type) -> Any:
        return self._make if handle is None else _like(self._make, handle.client.pages, handle.schedule_id)


def _like(make: Callable[..., Any], act: Callable[[Any], Any], *first: str) -> Callable[..., Any]:
    if inspect.iscoroutinefunction(act):

        async def awaited(*args: Any, **named: Any) -> Any:
            return await act(make(*first, *args, **named))

        method: Callable[..., Any] = awaited
    else:

        def method(*args: Any, **named: Any) -> Any:
            return act(make(*first, *args, **named))

    shown = wraps(make)(method)
    # What the caller gets is inside the Call, and for lists inside the Page: no annotation is better than a wrong one.
    parameters = list(inspect.signature(make).parameters.values())[len(first) :]
    shown.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # what `inspect` reads
    return shown
