"""A call: one request and the reader of its answer. Sends nothing."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from typing import Any, Generic, TypeVar
from urllib.parse import quote

from horarium.client.lenient import A, read
from horarium.client.page import Page
from horarium.errors import InvalidDefinition
from horarium.instant import from_datetime, to_rfc3339
from horarium.platform.wire import is_unreadable

T = TypeVar("T")
P = TypeVar("P")

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

    def after(self: Call[Page[P]], page: Page[P]) -> Call[Page[P]] | None:
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
