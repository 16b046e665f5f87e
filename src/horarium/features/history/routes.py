"""Routes of the history of a schedule, and of the feed of a namespace."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator
from enum import StrEnum
from typing import Annotated, Any

from fastapi import Header, Query, Request
from starlette.concurrency import run_in_threadpool

from horarium.errors import HorariumError, InvalidDefinition
from horarium.features.history import service
from horarium.features.history.entry_rows import START, FeedCursor, cursor_text
from horarium.features.history.rows import HistoryRow
from horarium.features.history.service import Entry, FeedPage
from horarium.features.history.streams import LOOK_SECONDS, EventStream, FeedPages, entry_shown
from horarium.features.resources import Resources
from horarium.features.schedules.model import History, HistoryEvent
from horarium.features.tenants.model import Feed
from horarium.instant import to_datetime
from horarium.platform.caller import Caller
from horarium.platform.errors import OperationError
from horarium.platform.http import examples
from horarium.platform.http.limits import readable, within_bytes
from horarium.platform.http.requests import CallerOf, ResourcesOf, caller_again, resources_of
from horarium.platform.http.responses import Reply
from horarium.platform.http.routing import READ, Routes
from horarium.platform.ids import id_text, parse_id
from horarium.platform.wire import Answer


class Order(StrEnum):
    ASC = "asc"
    DESC = "desc"


routes = Routes("/api/schedules/{schedule_id}", tag="history")
waterline = Routes("/waterline/api/v2/schedules/{schedule_id}", tag="waterline")

_MAX_DIGITS = 18  # fit in 64 bits


_HISTORY: dict[str, Any] = {
    "needs": READ,
    "summary": "List the history of a schedule",
    "answer": History,
    "example": History(
        schedule_id="nightly-report",
        uid=examples.UID,
        namespace="default",
        events=(examples.EVENT,),
        has_more=False,
        next_cursor=None,
    ),
}


@routes("GET", "/history", **_HISTORY)
@waterline("GET", "/history", name="waterline_schedule_history", **_HISTORY)
def get_schedule_history(
    resources: ResourcesOf,
    caller: CallerOf,
    schedule_id: str,
    limit: Annotated[
        str | None, Query(description=("Page size, 1 to 500 (default 100). Larger values are reduced to 500."))
    ] = None,
    after_sequence: Annotated[str, Query(description="Sequence number, or `next_cursor` of the previous page.")] = "0",
    uid: Annotated[str | None, Query(description="UID of an older schedule with the same ID.")] = None,
    order: Annotated[
        Order, Query(description="Sort order: oldest first (`asc`) or newest first (`desc`).")
    ] = Order.ASC,
) -> Reply:
    """Also available for deleted schedules. With `desc`, pages continue with older events."""
    older = None if uid is None else parse_id(uid, "uid")
    after = _sequence(after_sequence)
    page, events = within_bytes(
        _limit(limit),
        lambda most: service.read_history(
            resources,
            caller,
            schedule_id,
            limit=most,
            after_sequence=after,
            uid=older,
            newest_first=order is Order.DESC,
        ),
        lambda page: readable(resources, "event", page.rows, history_event, lambda each: each.sequence),
    )
    return Reply(
        History(
            schedule_id=page.schedule.schedule_id,
            uid=id_text(page.schedule.schedule_uid),
            namespace=page.schedule.namespace,
            events=events,
            has_more=page.next_cursor is not None,
            next_cursor=page.next_cursor,
        )
    )


class InvalidAfterSequence(InvalidDefinition):
    """The contract has a reason of its own for it."""

    reason = "invalid_after_sequence"


def _sequence(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS):
        raise InvalidAfterSequence({"after_sequence": ["must be a whole number of at least 0"]})
    return int(text)


def _limit(text: str | None) -> int | None:
    """Read a limit; any text that is no positive number means the default, since the contract never rejects one."""
    if text is None or not (text.isascii() and text.isdigit()) or not text.strip("0"):
        return None
    return service.MAX_LIMIT if len(text) > _MAX_DIGITS else int(text)


def history_event(row: HistoryRow) -> HistoryEvent:
    return HistoryEvent(
        id=f"{id_text(row.schedule_uid)}:{row.sequence}",
        sequence=row.sequence,
        namespace=row.namespace,
        event_type=row.event_type,
        recorded_at=to_datetime(row.recorded_at),
        workflow_instance_id=row.payload.get("workflow_instance_id"),
        workflow_run_id=row.payload.get("workflow_run_id"),
        payload=row.payload,
    )


feed_routes = Routes("/api", tag="feed")

# How often a stream asks whether its caller is still welcome, busy or silent: who is not is gone within ten seconds.
WELCOME_SECONDS = 5.0
# Proxies close what is silent for a minute, and our own client what is silent for that long.
COMMENT_SECONDS = 15.0
_RETRY_MS = 2_000


@feed_routes(
    "GET",
    "/feed",
    needs=READ,
    summary="List feed entries",
    answer=Feed,
    example=Feed(entries=(examples.ENTRY,), next_page_token="714-20"),
)
def get_feed(
    resources: ResourcesOf,
    caller: CallerOf,
    after: Annotated[
        str | None, Query(max_length=64, description="Cursor. Returns the entries after it, oldest first.")
    ] = None,
    page_size: Annotated[int | None, Query(description="Page size, 1 to 200.")] = None,
    next_page_token: Annotated[str | None, Query(max_length=64)] = None,
) -> Reply:
    """Events of the namespace, newest first."""
    begun = None if after is None else service.read_cursor(next_page_token or after, "after")

    def ask(most: int | None) -> FeedPage:
        if begun is not None:
            return service.onward(resources, caller, begun, page_size=most)
        return service.newest_entries(resources, caller, page_size=most, next_page_token=next_page_token)

    page, entries = within_bytes(page_size, ask, lambda page: listed(resources, page.entries))
    return Reply(Feed(entries=entries, next_page_token=page.next_page_token))


@feed_routes(
    "GET",
    "/events",
    needs=READ,
    summary="Stream the feed",
    media_type="text/event-stream",
    example='id: 714-20\nevent: schedule_skipped\ndata: {"id": "714-20"}\n\n',
)
async def events(
    request: Request,
    caller: CallerOf,
    last_event_id: Annotated[
        str | None,
        Header(alias="Last-Event-ID", description="ID of the last event received. The stream continues after it."),
    ] = None,
    after: Annotated[
        str | None, Query(max_length=64, description="Same as `Last-Event-ID`, for clients that cannot set headers.")
    ] = None,
) -> EventStream:
    """Server-sent events from now on, or after the last event received. `0-0` is the beginning."""
    resources, begun = resources_of(request), last_event_id or after
    if begun:
        cursor = START if begun == "0-0" else service.read_cursor(begun, "Last-Event-ID" if last_event_id else "after")
    else:
        cursor = await run_in_threadpool(service.end, resources, caller)
    return EventStream(_events(request, resources, caller, cursor), request, caller)


async def _events(request: Request, resources: Resources, caller: Caller, cursor: FeedCursor) -> AsyncIterator[bytes]:
    """Ends when the service stops, and when the token is no longer good; then the reader comes again, or is refused."""
    # An id without data is no event, but a place to come back to: who is cut off before the first event has one.
    yield f"retry: {_RETRY_MS}\nid: {cursor_text(cursor)}\n\n".encode()
    silent, welcome = 0.0, _Welcome(request)
    pages: FeedPages = request.app.state.feed_pages
    while not request.app.state.closing.is_set() and await welcome.lasts():
        page = await pages.after(resources, caller, cursor)
        for piece in page.pieces:
            if not await welcome.lasts():  # a page takes long where its reader is slow
                return
            yield piece
        if page.pieces:
            cursor, silent = page.cursor, 0.0
            continue
        await asyncio.sleep(LOOK_SECONDS)
        silent += LOOK_SECONDS
        if silent >= COMMENT_SECONDS:
            silent = 0.0
            yield b": still here\n\n"


class _Welcome:
    """Check that a caller who was admitted would still be."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self._now = asyncio.get_running_loop().time
        self._asked_at = self._now()

    async def lasts(self) -> bool:
        """Costs nothing in between two questions."""
        if self._now() - self._asked_at < WELCOME_SECONDS:
            return True
        try:
            await run_in_threadpool(caller_again, self._request)
        except OperationError:
            return False
        except HorariumError:
            pass  # nobody can say now; ask again later
        self._asked_at = self._now()
        return True


def listed(resources: Resources, entries: Iterable[Entry]) -> Iterator[Answer]:
    return readable(resources, "feed entry", entries, entry_shown, lambda each: each.cursor)
