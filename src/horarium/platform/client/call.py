"""A call: one request and the reader of its answer; and the methods of both clients, built from calls.

A call sends nothing itself. `Client` sends it and waits, `AsyncClient` sends and awaits. Signature and documentation
of a method are those of the call function, for type checkers and for `help`. On the class, a method is that
function.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar, overload
from urllib.parse import quote

from horarium.errors import InvalidDefinition
from horarium.instant import from_datetime, to_rfc3339
from horarium.platform.client.lenient import A, read
from horarium.platform.wire import UnreadableRow, is_unreadable, unreadable_rows_of

if TYPE_CHECKING:
    from horarium.client.client import AsyncClient, AsyncScheduleHandle, Client, ScheduleHandle


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """A page of a list. `cursor` leads to the next page (None = last page). `raw` is the answer."""

    items: tuple[T, ...]
    cursor: str | int | None = None
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def unreadable_rows(self) -> tuple[UnreadableRow, ...]:
        """Rows that the service could not read. They are not in the items."""
        return unreadable_rows_of(self.raw)

    def __iter__(self) -> Iterator[T]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)


Row = TypeVar("Row")

When = datetime | str
"""An aware datetime, or RFC 3339 text."""

JSON = "application/json"
TEXT = "text/plain"
EVENTS = "text/event-stream"


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """One request. `template` is the route as in OpenAPI, filled with `names`. None in `query` is omitted.

    `idempotent`: repeating the request is safe, for a write because of its idempotency key. `cursor`: query parameter
    that continues a list. `also`: statuses other than 2xx that are answers.
    """

    method: str
    template: str
    parse: Callable[[Any], T]
    names: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, Any] = field(default_factory=dict)
    body: Any = field(default=None, repr=False)  # it may hold a secret
    headers: Mapping[str, str] = field(default_factory=dict)
    idempotent: bool = True
    key: str | None = None
    cursor: str | None = None
    accept: str = JSON
    also: tuple[int, ...] = ()

    @property
    def path(self) -> str:
        return self.template.format(**{place: _segment(place, name) for place, name in self.names.items()})

    @property
    def params(self) -> list[tuple[str, str]]:
        return [(name, text) for name, value in self.query.items() for text in _texts(value)]

    @property
    def content(self) -> bytes | None:
        return None if self.body is None else dump(self.body)

    @property
    def reads(self) -> bool:
        return self.method == "GET"

    def after(self: Call[Page[Row]], page: Page[Row]) -> Call[Page[Row]] | None:
        """The call for the next page. A cursor that does not move would lead round in a circle: it ends the list."""
        if self.cursor is None or page.cursor is None or page.cursor == self.query.get(self.cursor):
            return None
        return replace(self, query={**self.query, self.cursor: page.cursor})


def dump(body: Any) -> bytes:
    """Raises InvalidDefinition for what JSON cannot hold; datetimes and dates become text."""
    try:
        return json.dumps(body, default=_plain, allow_nan=False, separators=(",", ":")).encode("ascii")
    except (TypeError, ValueError, RecursionError) as wrong:
        raise InvalidDefinition({"body": [f"cannot be written as JSON: {str(wrong)[:200]}"]}) from None


def rfc3339(when: When | None) -> str | None:
    return to_rfc3339(from_datetime(when)) if isinstance(when, datetime) else when


def given(**fields: Any) -> dict[str, Any]:
    """Only what was said."""
    return {name: rfc3339(value) if isinstance(value, datetime) else value for name, value in fields.items()
            if value is not None}  # fmt: skip


def one(kind: type[A]) -> Callable[[Any], A]:
    return lambda body: read(kind, body)


def many(kind: type[A], *members: str, cursor: str = "next_page_token") -> Callable[[Any], Page[A]]:
    """The first of `members` that the answer has is the list; an answer that is a list itself will do."""

    def parse(body: Any) -> Page[A]:
        whole = body if isinstance(body, dict) else {}
        rows = body if isinstance(body, list) else next((whole[name] for name in members if name in whole), None)
        items = tuple(read(kind, row) for row in rows if _is_row(row)) if isinstance(rows, list) else ()
        following = whole.get(cursor)
        moves = isinstance(following, str | int) and not isinstance(following, bool) and following != ""
        return Page(items, following if moves else None, whole)

    return parse


def _is_row(row: object) -> bool:
    return isinstance(row, dict) and not is_unreadable(row)


def if_match(version: int | None) -> dict[str, str]:
    return {} if version is None else {"If-Match": f'"{version}"'}


def _segment(place: str, name: str) -> str:
    # A dot or two would be taken for a step in the path by what lies between us and the server.
    if name in ("", ".", "..") or len(name) > 1_000:
        raise InvalidDefinition({place: ["must be a string of 1 to 1000 characters, other than . and .."]})
    return quote(name.encode("utf-8", "surrogatepass"), safe="")


def _texts(value: Any) -> list[str]:
    match value:
        case None:
            return []
        case bool():
            return ["true" if value else "false"]
        case datetime():
            return [to_rfc3339(from_datetime(value))]
        case str():
            return [value]
        case Mapping():
            return [f"{name}={each}" for name, each in value.items()]
        case Sequence():
            return [text for each in value for text in _texts(each)]
        case _:
            return [str(value)]


def _plain(value: object) -> str:
    match value:
        case datetime():
            return to_rfc3339(from_datetime(value))
        case date():
            return value.isoformat()
        case _:
            raise TypeError(f"{type(value).__name__} is not a JSON value")


# ── methods of the clients ────────────────────────────────────────────────────────────────────────────


P = ParamSpec("P")


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
