"""How the audit stream of a schedule is read, also after its deletion, and the feed of all of them."""

from __future__ import annotations

from dataclasses import dataclass

from horarium.errors import InvalidDefinition
from horarium.operations.caller import Caller
from horarium.operations.drafts import require_namespace
from horarium.operations.errors import ScheduleNotFound
from horarium.operations.resources import Resources
from horarium.store.database import Connection
from horarium.store.history import events as history
from horarium.store.history import feed as store_feed
from horarium.store.history.events import HistoryRow
from horarium.store.history.feed import START, FeedCursor, FeedEvent
from horarium.store.schedules import rows as schedules
from horarium.store.schedules.rows import ScheduleRow
from horarium.wire.roles import Permission

DEFAULT_LIMIT = 100
MAX_LIMIT = 500


@dataclass(frozen=True, slots=True)
class HistoryPage:
    """`next_cursor` is the sequence to go on after; None = this is the end of the stream."""

    schedule: ScheduleRow
    rows: tuple[HistoryRow, ...]
    next_cursor: int | None


@dataclass(frozen=True, slots=True)
class FeedPage:
    rows: tuple[FeedEvent, ...]
    cursor: FeedCursor


def read(
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


def feed(
    resources: Resources,
    caller: Caller,
    *,
    after: FeedCursor = START,
    limit: int | None = None,
    everywhere: bool = False,
) -> FeedPage:
    """Entries recorded since a cursor, in the caller's namespace or, for an admin, everywhere."""
    caller.require(Permission.READ)
    if everywhere:
        caller.require_house()
    namespace = None if everywhere else caller.namespace
    rows, cursor = resources.database.read(
        lambda connection: store_feed.onward(connection, namespace, after=after, limit=_clamped(limit))
    )
    return FeedPage(tuple(row.event for row in rows), cursor)


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
