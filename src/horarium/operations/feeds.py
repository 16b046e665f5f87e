"""What happens in a namespace, as it happens: the feed, newest first or onward from a cursor.

A cursor is text such as `714-20-1.9f3c07ab`: the transaction and the number of the last row seen, and the server that
wrote it. It stays good for ever, also across a restore, and whoever goes on from one misses nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from horarium.errors import InvalidDefinition
from horarium.operations.caller import Caller
from horarium.operations.pages import checked_limit
from horarium.operations.resources import Resources
from horarium.schedule.event import FEED_KINDS
from horarium.store.database import Connection
from horarium.store.history import feed
from horarium.store.history.feed import FeedCursor, FeedEvent, FeedRow, cursor_text
from horarium.wire.roles import Permission


@dataclass(frozen=True, slots=True)
class Entry:
    """`schedule_id` is None where no schedule asked for the run, or retention has removed the schedule itself."""

    event: FeedEvent
    cursor: str
    schedule_id: str | None

    @property
    def kind(self) -> str:
        return FEED_KINDS[self.event.event_type]


@dataclass(frozen=True, slots=True)
class FeedPage:
    """`next_page_token` leads on in the direction in which the page was read; None = there is no more now."""

    entries: tuple[Entry, ...]
    next_page_token: str | None


def newest(
    resources: Resources, caller: Caller, *, page_size: int | None = None, next_page_token: str | None = None
) -> FeedPage:
    """Newest first; the token of a page leads to older entries."""
    caller.require(Permission.READ)
    limit = checked_limit(page_size)
    before = None if next_page_token is None else read_cursor(next_page_token, "next_page_token")

    def look(connection: Connection) -> FeedPage:
        rows, following = feed.newest(connection, caller.namespace, before=before, limit=limit)
        return FeedPage(_entries(connection, rows), None if following is None else cursor_text(following))

    return resources.database.read(look)


def onward(resources: Resources, caller: Caller, after: FeedCursor, *, page_size: int | None = None) -> FeedPage:
    """Oldest first, what comes after a cursor; the token is the cursor of the last entry."""
    caller.require(Permission.READ)
    limit = checked_limit(page_size)

    def look(connection: Connection) -> FeedPage:
        rows, cursor = feed.onward(connection, caller.namespace, after=after, limit=limit)
        return FeedPage(_entries(connection, rows), cursor_text(cursor) if rows else None)

    return resources.database.read(look)


def end(resources: Resources, caller: Caller) -> FeedCursor:
    """Where somebody begins who wants only what is still to come."""
    caller.require(Permission.READ)
    return resources.database.read(feed.end)


def read_cursor(text: str, field: str) -> FeedCursor:
    """Raises InvalidDefinition for what is no cursor of ours."""
    found = feed.parse_cursor(text)
    if found is None:
        raise InvalidDefinition({field: ["must be a cursor such as 714-20 or 714-20-1.9f3c07ab"]})
    return found


def _entries(connection: Connection, rows: Sequence[FeedRow]) -> tuple[Entry, ...]:
    names = feed.schedule_ids(connection, [row.event.schedule_uid for row in rows])
    return tuple(Entry(row.event, cursor_text(row.cursor), names.get(row.event.schedule_uid or b"")) for row in rows)
