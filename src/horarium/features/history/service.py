"""Read the history of a schedule, also after its deletion, and the feed of a namespace."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from horarium.core.document.states import FEED_KINDS
from horarium.errors import InvalidDefinition
from horarium.features.history import entry_rows
from horarium.features.history import rows as history
from horarium.features.history.entry_rows import START, FeedCursor, FeedEvent, FeedRow, cursor_text
from horarium.features.history.rows import HistoryRow
from horarium.features.resources import Resources
from horarium.features.schedules import rows as schedules
from horarium.features.schedules.drafts import require_namespace
from horarium.features.schedules.rows import ScheduleRow
from horarium.platform.caller import Caller, checked_limit
from horarium.platform.database import Connection
from horarium.platform.errors import ScheduleNotFound
from horarium.platform.wire import Permission

DEFAULT_LIMIT = 100
MAX_LIMIT = 500


@dataclass(frozen=True, slots=True)
class HistoryPage:
    """`next_cursor` is the sequence to go on after; None = this is the end of the stream."""

    schedule: ScheduleRow
    rows: tuple[HistoryRow, ...]
    next_cursor: int | None


@dataclass(frozen=True, slots=True)
class FeedRows:
    rows: tuple[FeedEvent, ...]
    cursor: FeedCursor


def read_history(
    resources: Resources,
    caller: Caller,
    schedule_id: str,
    *,
    after_sequence: int = 0,
    limit: int | None = None,
    uid: bytes | None = None,
    newest_first: bool = False,
) -> HistoryPage:
    """Read the history of the newest schedule that had this id; `uid` names an older one."""
    caller.require(Permission.READ)
    most = _clamped(limit)
    if after_sequence < 0:
        raise InvalidDefinition({"after_sequence": ["must not be negative"]})

    def look(connection: Connection) -> HistoryPage:
        row = find_any(connection, caller, schedule_id, uid)
        rows, more = history.read_page(
            connection, row.schedule_uid, after_sequence=after_sequence, limit=most, newest_first=newest_first
        )
        return HistoryPage(row, tuple(rows), rows[-1].sequence if more and rows else None)

    return resources.database.read(look)


def feed_rows(
    resources: Resources,
    caller: Caller,
    *,
    after: FeedCursor = START,
    limit: int | None = None,
    everywhere: bool = False,
) -> FeedRows:
    """Entries recorded since a cursor, in the caller's namespace or, for an admin, everywhere."""
    caller.require(Permission.READ)
    if everywhere:
        caller.require_house()
    namespace = None if everywhere else caller.namespace
    rows, cursor = resources.database.read(
        lambda connection: entry_rows.onward(connection, namespace, after=after, limit=_clamped(limit))
    )
    return FeedRows(tuple(row.event for row in rows), cursor)


def find_any(connection: Connection, caller: Caller, schedule_id: str, uid: bytes | None = None) -> ScheduleRow:
    """Live or deleted."""
    if uid is None:
        row = schedules.find_newest(connection, caller.namespace, schedule_id)
    else:
        row = schedules.find_by_uid(connection, caller.namespace, uid)
    if row is None or row.schedule_id != schedule_id:
        require_namespace(connection, caller.namespace)
        raise ScheduleNotFound(schedule_id)
    return row


def _clamped(limit: int | None) -> int:
    """The published contract clamps instead of refusing."""
    return DEFAULT_LIMIT if limit is None else max(1, min(limit, MAX_LIMIT))


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


def newest_entries(
    resources: Resources, caller: Caller, *, page_size: int | None = None, next_page_token: str | None = None
) -> FeedPage:
    """Newest first; the token of a page leads to older entries."""
    caller.require(Permission.READ)
    limit = checked_limit(page_size)
    before = None if next_page_token is None else read_cursor(next_page_token, "next_page_token")

    def look(connection: Connection) -> FeedPage:
        rows, following = entry_rows.newest(connection, caller.namespace, before=before, limit=limit)
        return FeedPage(_entries(connection, rows), None if following is None else cursor_text(following))

    return resources.database.read(look)


def onward(resources: Resources, caller: Caller, after: FeedCursor, *, page_size: int | None = None) -> FeedPage:
    """Oldest first, what comes after a cursor; the token is the cursor of the last entry."""
    caller.require(Permission.READ)
    limit = checked_limit(page_size)

    def look(connection: Connection) -> FeedPage:
        rows, cursor = entry_rows.onward(connection, caller.namespace, after=after, limit=limit)
        return FeedPage(_entries(connection, rows), cursor_text(cursor) if rows else None)

    return resources.database.read(look)


def end(resources: Resources, caller: Caller) -> FeedCursor:
    """Where somebody begins who wants only what is still to come."""
    caller.require(Permission.READ)
    return resources.database.read(entry_rows.end)


def read_cursor(text: str, field: str) -> FeedCursor:
    """Raises InvalidDefinition for what is no cursor of ours."""
    found = entry_rows.parse_cursor(text)
    if found is None:
        raise InvalidDefinition({field: ["must be a cursor such as 714-20 or 714-20-1.9f3c07ab"]})
    return found


def _entries(connection: Connection, rows: Sequence[FeedRow]) -> tuple[Entry, ...]:
    names = entry_rows.schedule_ids(connection, [row.event.schedule_uid for row in rows])
    return tuple(Entry(row.event, cursor_text(row.cursor), names.get(row.event.schedule_uid or b"")) for row in rows)
