"""The routes of the feed: what happened, newest first, or what comes, as a server-sent stream.

The format of the stream is that of the HTML standard, section 9.2. Its ids are cursors: a reader that was cut
off names the last one (`Last-Event-ID`) and misses nothing. Between two looks the stream holds no connection to
the database.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator
from typing import Annotated

from fastapi import Header, Query, Request
from starlette.concurrency import run_in_threadpool

from horarium.api import examples
from horarium.api.answers import Reply
from horarium.api.feed_pages import LOOK_SECONDS, FeedPages, entry_shown
from horarium.api.pages import readable, within_bytes
from horarium.api.requests import CallerOf, ResourcesOf, caller_again, resources_of
from horarium.api.routing import READ, Routes
from horarium.api.streams import EventStream
from horarium.errors import HorariumError
from horarium.operations import feeds
from horarium.operations.caller import Caller
from horarium.operations.errors import OperationError
from horarium.operations.feeds import Entry, FeedPage
from horarium.operations.resources import Resources
from horarium.store.history.feed import START, FeedCursor, cursor_text
from horarium.wire.answer import Answer
from horarium.wire.service import Feed

routes = Routes("/api", tag="feed")

# How often a stream asks whether its caller is still welcome, busy or silent: who is not is gone within ten seconds.
WELCOME_SECONDS = 5.0
# Proxies close what is silent for a minute, and our own client what is silent for that long.
COMMENT_SECONDS = 15.0
_RETRY_MS = 2_000


@routes(
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
    begun = None if after is None else feeds.read_cursor(next_page_token or after, "after")

    def ask(most: int | None) -> FeedPage:
        if begun is not None:
            return feeds.onward(resources, caller, begun, page_size=most)
        return feeds.newest(resources, caller, page_size=most, next_page_token=next_page_token)

    page, entries = within_bytes(page_size, ask, lambda page: listed(resources, page.entries))
    return Reply(Feed(entries=entries, next_page_token=page.next_page_token))


@routes(
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
        cursor = START if begun == "0-0" else feeds.read_cursor(begun, "Last-Event-ID" if last_event_id else "after")
    else:
        cursor = await run_in_threadpool(feeds.end, resources, caller)
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
