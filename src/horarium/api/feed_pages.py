"""What the streams of a namespace send next: each page of the feed is read and written out once, however many follow.

Rows after a cursor never change, so a page that was found stays good for every stream that comes to the same place.
Streams that have caught up are all at one place. One look at a time for each namespace: whoever follows with many
streams waits for itself, and takes one thread.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from weakref import WeakKeyDictionary, WeakValueDictionary

from starlette.concurrency import run_in_threadpool

from horarium.api.pages import readable
from horarium.errors import HorariumError
from horarium.operations import feeds
from horarium.operations.caller import Caller
from horarium.operations.feeds import Entry
from horarium.operations.resources import Resources
from horarium.store.history.feed import FeedCursor, cursor_text
from horarium.wire.answer import UnreadableRow, encode
from horarium.wire.feed import UNREADABLE_KIND, entry_of
from horarium.wire.service import FeedEntry

LOOK_SECONDS = 1.0
"""Between two looks for what is new."""
_PAGE = 200
_PIECE_BYTES = 65_536
# Of all namespaces together. Streams that keep up need one page each; who is behind reads again.
_KEPT_BYTES = 16 * 1_048_576
_KEPT_PAGES = 1_024


@dataclass(frozen=True, slots=True)
class Page:
    """`pieces` are events as they are sent; without any, `cursor` is where the page begins. It was read `at`."""

    pieces: tuple[bytes, ...]
    cursor: FeedCursor
    at: float

    @property
    def size(self) -> int:
        return sum(map(len, self.pieces))


class FeedPages:
    """Feed pages of one process; a program that runs several loops has a set of pages for each."""

    def __init__(self) -> None:
        self._of_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, _Pages] = WeakKeyDictionary()

    async def after(self, resources: Resources, caller: Caller, cursor: FeedCursor) -> Page:
        return await self._of_loop.setdefault(asyncio.get_running_loop(), _Pages()).after(resources, caller, cursor)


class _Pages:
    def __init__(self) -> None:
        self._looking: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._kept: OrderedDict[tuple[str, str], Page] = OrderedDict()
        self._bytes = 0

    async def after(self, resources: Resources, caller: Caller, cursor: FeedCursor) -> Page:
        looking = self._looking.setdefault(caller.namespace, asyncio.Lock())
        key = caller.namespace, cursor_text(cursor)
        async with looking:
            now = asyncio.get_running_loop().time()
            found = self._kept.get(key)
            if found is None or (not found.pieces and now - found.at >= LOOK_SECONDS / 2):
                found = await run_in_threadpool(_read, resources, caller, cursor, now)
                self._keep(key, found)
            return found

    def _keep(self, key: tuple[str, str], page: Page) -> None:
        before = self._kept.pop(key, None)
        self._bytes += page.size - (0 if before is None else before.size)
        self._kept[key] = page
        while self._kept and (self._bytes > _KEPT_BYTES or len(self._kept) > _KEPT_PAGES):
            self._bytes -= self._kept.popitem(last=False)[1].size


def _read(resources: Resources, caller: Caller, cursor: FeedCursor, now: float) -> Page:
    """A database that is away for a while ends no stream: what happens meanwhile is told later."""
    try:
        entries = feeds.onward(resources, caller, cursor, page_size=_PAGE).entries
    except HorariumError:
        return Page((), cursor, now)
    last = feeds.read_cursor(entries[-1].cursor, "cursor") if entries else cursor
    return Page(tuple(_pieces(message(resources, entry) for entry in entries)), last, now)


def _pieces(messages: Iterable[bytes]) -> Iterable[bytes]:
    """Many small ones are sent at once: each costs a write."""
    waiting: list[bytes] = []
    size = 0
    for each in messages:
        waiting.append(each)
        size += len(each)
        if size >= _PIECE_BYTES:
            yield b"".join(waiting)
            waiting, size = [], 0
    if waiting:
        yield b"".join(waiting)


def message(resources: Resources, entry: Entry) -> bytes:
    """Write an entry as an event. JSON has no line end inside, so an event is one line of data."""
    (shown,) = readable(resources, "feed entry", (entry,), entry_shown, lambda each: each.cursor)
    kind = UNREADABLE_KIND if isinstance(shown, UnreadableRow) else entry.kind
    return b"id: %b\nevent: %b\ndata: %b\n\n" % (entry.cursor.encode(), kind.encode(), encode(shown))


def entry_shown(entry: Entry) -> FeedEntry:
    return entry_of(entry.event, entry.cursor, entry.schedule_id)
