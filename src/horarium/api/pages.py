"""How a page is kept within its bytes: what does not fit is left to the next page.

What a database holds of a row is bounded where it is read (`store/database/page_bytes.py`); here the answer itself is
measured, with all that is said about each row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar
from urllib.parse import quote

import msgspec

from horarium.errors import HorariumError
from horarium.ids import id_text
from horarium.operations.resources import Resources
from horarium.schedule.damage import Unreadable, unreadable_of
from horarium.store.database.page_bytes import fitting
from horarium.wire.answer import Answer, UnreadableRow, encode

P = TypeVar("P")
T = TypeVar("T")
A = TypeVar("A", bound=Answer)

_LOG_FIELDS = ("namespace", "schedule_id", "run_id")
_OF_A_ROW = (HorariumError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError)


def within_bytes(
    page_size: int | None, ask: Callable[[int | None], P], shown: Callable[[P], Iterable[Answer]]
) -> tuple[P, tuple[Any, ...]]:
    """A page and its rows as JSON text. One that is too large is asked for again, with as many rows as fit.

    So the page itself says where the next one begins, whatever its token is made of.
    """
    page = ask(page_size)
    rows, is_whole = cut(shown(page))
    if not is_whole:
        page = ask(len(rows))
        # None is left out now: the token of this page would lead past it.
        rows = tuple(msgspec.Raw(encode(each)) for each in shown(page))
    return page, rows


def readable(
    resources: Resources,
    what: str,
    rows: Iterable[T | Unreadable],
    view: Callable[[T], Answer],
    name: Callable[[T], object],
) -> Iterator[Answer]:
    """Show each row of a list. One that cannot be read, or shown, becomes an `UnreadableRow`.

    `what` names the kind of row in the log; `name` returns the id of a row as far as it can be read.
    """
    for row in rows:
        shown = readable_row(row, view, name)
        if isinstance(shown, UnreadableRow):
            resources.damages.tell(resources.telemetry, what, shown.id, shown.detail, **log_fields(row))
        yield shown


def readable_row(row: T | Unreadable, view: Callable[[T], A], name: Callable[[T], object]) -> A | UnreadableRow:
    """Show one row of a list as `readable` does, without a line in the log."""
    found = row if isinstance(row, Unreadable) else unreadable_of(row)
    if not isinstance(row, Unreadable):
        try:
            if found is None:
                return view(row)
            found = Unreadable(name(row), found.detail)
        except _OF_A_ROW as wrong:
            found = Unreadable(name(row), f"{type(wrong).__name__}: {wrong}"[:200])
    assert found is not None
    key = id_text(found.key) if isinstance(found.key, bytes) and len(found.key) == 16 else str(found.key)
    return UnreadableRow(id=key, unreadable=True, detail=found.detail)


def log_fields(row: object) -> dict[str, str]:
    """The namespace, schedule and run that a row names, as far as it can be read; an event or a row may be inside."""
    inner = getattr(row, "row", None) or getattr(row, "event", None) or row
    found = {name: getattr(inner, name, None) or getattr(row, name, None) for name in _LOG_FIELDS}
    texts = {name: id_text(value) if isinstance(value, bytes) else value for name, value in found.items()}
    return {name: value for name, value in texts.items() if isinstance(value, str)}


def next_page(path: str, after: str) -> dict[str, str]:
    """The header of an answer that is a plain array: where the rest of it is (RFC 8288)."""
    return {"Link": f'<{path}?after={quote(after, safe="")}>; rel="next"'}


def cut(shown: Iterable[Answer]) -> tuple[tuple[Any, ...], bool]:
    """The first ones that fit in a page, and whether all do."""
    texts = [encode(each) for each in shown]
    count = fitting(map(len, texts))
    return tuple(msgspec.Raw(text) for text in texts[:count]), count == len(texts)
