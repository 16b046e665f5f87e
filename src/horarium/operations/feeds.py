"""What happens in a namespace, as it happens: the feed, newest first or onward from a cursor.

A cursor is text such as `714-20-1.9f3c07ab`: the transaction and the number of the last row seen, and the server that
wrote it. It stays good for ever, also across a restore, and whoever goes on from one misses nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from horarium.errors import InvalidDefinition
from horarium.operations.caller import Caller
from horarium.operations.pages import checked_limit
from horarium.operations.resources import Resources
from horarium.schedule.event import EventType
from horarium.store.database import Connection
from horarium.store.history import feed
from horarium.store.history.events import HistoryRow
from horarium.store.history.feed import FeedCursor, FeedRow
from horarium.wire.roles import Permission

KINDS: Mapping[EventType, str] = MappingProxyType(
    {
        EventType.CREATED: "schedule_created",
        EventType.PAUSED: "schedule_paused",
        EventType.RESUMED: "schedule_resumed",
        EventType.UPDATED: "schedule_updated",
        EventType.TRIGGERED: "schedule_dispatch",
        EventType.TRIGGER_SKIPPED: "schedule_skipped",
        EventType.DELETED: "schedule_deleted",
        EventType.MISSED: "schedule_missed",
        EventType.BUFFERED: "schedule_buffered",
        EventType.BROKEN: "schedule_broken",
        EventType.APPROVAL_BYPASS_ATTEMPT: "approval_bypass_attempt",
    }
)
_CURSOR = re.compile(r"([0-9]{1,18})-([0-9]{1,18})(?:-([0-9a-z.]{1,20}))?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Entry:
    """`schedule_id` is None where retention has removed the schedule itself."""

    event: HistoryRow
    cursor: str
    schedule_id: str | None

    @property
    def kind(self) -> str:
        return KINDS[self.event.event_type]


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


def cursor_text(cursor: FeedCursor) -> str:
    text = f"{cursor.transaction_id}-{cursor.feed_id}"
    return f"{text}-{cursor.epoch}" if cursor.epoch else text


def read_cursor(text: str, field: str) -> FeedCursor:
    """Raises InvalidDefinition for what is no cursor of ours."""
    found = _CURSOR.fullmatch(text)
    if found is None:
        raise InvalidDefinition({field: ["is not a cursor such as 714-20 or 714-20-1.9f3c07ab"]})
    return FeedCursor(int(found[1]), int(found[2]), found[3] or "")


def _entries(connection: Connection, rows: Sequence[FeedRow]) -> tuple[Entry, ...]:
    names = feed.schedule_ids(connection, {row.event.schedule_uid for row in rows})
    return tuple(Entry(row.event, cursor_text(row.cursor), names.get(row.event.schedule_uid)) for row in rows)
