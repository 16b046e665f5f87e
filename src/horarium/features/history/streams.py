"""Server-sent streams of the feed, and the limit of open streams."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from weakref import WeakKeyDictionary, WeakValueDictionary

from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import StreamingResponse
from starlette.types import Message, Receive, Scope, Send

from horarium.errors import HorariumError
from horarium.features.history import service
from horarium.features.history.entry_rows import FeedCursor, cursor_text
from horarium.features.history.model import UNREADABLE_KIND, entry_of
from horarium.features.history.service import Entry
from horarium.features.resources import Resources
from horarium.features.tenants.model import FeedEntry
from horarium.platform.caller import Caller
from horarium.platform.http.authentication import authorization_of, credential_of
from horarium.platform.http.connections import TooManyStreams
from horarium.platform.http.limits import readable
from horarium.platform.http.responses import problem_of
from horarium.platform.wire import UnreadableRow, encode

LOOK_SECONDS = 1.0
"""Between two looks for what is new."""
_PAGE = 200
_PIECE_BYTES = 65_536
# Of all namespaces together. Streams that keep up need one page each; who is behind reads again.
_KEPT_BYTES = 16 * 1_048_576
_KEPT_PAGES = 1_024


@dataclass(frozen=True, slots=True)
class StreamPage:
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

    async def after(self, resources: Resources, caller: Caller, cursor: FeedCursor) -> StreamPage:
        return await self._of_loop.setdefault(asyncio.get_running_loop(), _Pages()).after(resources, caller, cursor)


class _Pages:
    def __init__(self) -> None:
        self._looking: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._kept: OrderedDict[tuple[str, str], StreamPage] = OrderedDict()
        self._bytes = 0

    async def after(self, resources: Resources, caller: Caller, cursor: FeedCursor) -> StreamPage:
        looking = self._looking.setdefault(caller.namespace, asyncio.Lock())
        key = caller.namespace, cursor_text(cursor)
        async with looking:
            now = asyncio.get_running_loop().time()
            found = self._kept.get(key)
            if found is None or (not found.pieces and now - found.at >= LOOK_SECONDS / 2):
                found = await run_in_threadpool(_read, resources, caller, cursor, now)
                self._keep(key, found)
            return found

    def _keep(self, key: tuple[str, str], page: StreamPage) -> None:
        before = self._kept.pop(key, None)
        self._bytes += page.size - (0 if before is None else before.size)
        self._kept[key] = page
        while self._kept and (self._bytes > _KEPT_BYTES or len(self._kept) > _KEPT_PAGES):
            self._bytes -= self._kept.popitem(last=False)[1].size


def _read(resources: Resources, caller: Caller, cursor: FeedCursor, now: float) -> StreamPage:
    """A database that is away for a while ends no stream: what happens meanwhile is told later."""
    try:
        entries = service.onward(resources, caller, cursor, page_size=_PAGE).entries
    except HorariumError:
        return StreamPage((), cursor, now)
    last = service.read_cursor(entries[-1].cursor, "cursor") if entries else cursor
    return StreamPage(tuple(_pieces(message(resources, entry) for entry in entries)), last, now)


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


# Streams end when their readers like, so nobody knows when there will be room.
_TRY_AGAIN_SECONDS = 10
UNREAD_SECONDS = 60.0
"A stream whose client reads nothing for this long is closed."


class Streams:
    """Open streams of one process."""

    def __init__(self, *, of_token: int, most: int) -> None:
        self._of_token = of_token
        self._most = most
        self._lock = threading.Lock()
        self._open: Counter[str] = Counter()

    @contextmanager
    def opened(self, token: str, namespace: str) -> Iterator[None]:
        """Raises TooManyStreams."""
        shares = {
            "all": self._most,
            f"namespace {namespace}": max(1, self._most // 2),
            f"token {token}": self._of_token,
        }
        with self._lock:
            if any(self._open[share] >= most for share, most in shares.items()):
                raise TooManyStreams(_TRY_AGAIN_SECONDS)
            self._open.update(shares.keys())
        try:
            yield
        finally:
            with self._lock:
                self._open.subtract(shares.keys())
                self._open = +self._open  # what is no longer open is forgotten


class EventStream(StreamingResponse):
    """Counts as open while it is sent: a reader who left before the first line is not counted for ever."""

    media_type = "text/event-stream"

    def __init__(self, content: AsyncIterator[bytes], request: Request, caller: Caller) -> None:
        super().__init__(content, headers={"X-Accel-Buffering": "no"})  # nginx would hold events back by the bufferful
        self._streams: Streams = request.app.state.streams
        self._namespace = caller.namespace
        self._token = credential_of(authorization_of(request), caller.principal)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_unread = False

        async def send_in_time(message: Message) -> None:
            nonlocal is_unread
            try:
                async with asyncio.timeout(UNREAD_SECONDS):
                    await send(message)
            except TimeoutError:
                is_unread = True
                raise

        try:
            with self._streams.opened(self._token, self._namespace):
                await super().__call__(scope, receive, send_in_time)
        except TooManyStreams as refused:
            await problem_of(refused)(scope, receive, send)
        except (TimeoutError, ClientDisconnect):
            if not is_unread:
                raise
