"""What a schedule has been: its definitions, who wrote each, and what differs between two of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from horarium.decision.fires import FireChanges
from horarium.errors import InvalidDefinition
from horarium.operations.caller import Caller
from horarium.operations.history import find_any
from horarium.operations.list_errors import MalformedPageToken
from horarium.operations.pages import checked_limit
from horarium.operations.resources import Resources
from horarium.operations.schedule_drafts import changes_between
from horarium.schedule.bundle import Difference, differences
from horarium.schedule.damage import damage_of
from horarium.schedule.planning import Planning
from horarium.store.database import Connection
from horarium.store.schedules import revisions as store
from horarium.store.schedules import rows
from horarium.store.schedules.revisions import Author
from horarium.store.schedules.rows import RevisionRow, ScheduleRow
from horarium.wire.roles import Permission

DEFAULT_LIMIT = 20
MAX_LIMIT = 100
_MAX_REVISION = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Written:
    row: RevisionRow
    author: Author


@dataclass(frozen=True, slots=True)
class RevisionPage:
    """`next_page_token` None = there is none before these."""

    schedule: ScheduleRow
    revisions: tuple[Written, ...]
    next_page_token: str | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """`changes` None = one of them cannot be planned any more, so that nobody knows when it would fire."""

    before: int
    after: int
    fields: tuple[Difference, ...]
    changes: FireChanges | None


def read(
    resources: Resources,
    caller: Caller,
    schedule_id: str,
    *,
    page_size: int | None = None,
    next_page_token: str | None = None,
) -> RevisionPage:
    """Newest first, also of a deleted schedule."""
    caller.require(Permission.READ)
    limit = checked_limit(page_size, default=DEFAULT_LIMIT, most=MAX_LIMIT)
    before = None if next_page_token is None else _place(next_page_token)

    def look(connection: Connection) -> RevisionPage:
        row = find_any(connection, caller, schedule_id)
        found, more = store.read_page(connection, row.schedule_uid, before=before, limit=limit)
        known = _authors(connection, row, found)
        written = tuple(Written(each, known.get(each.revision) or _remembered(row, each)) for each in found)
        return RevisionPage(row, written, str(found[-1].revision) if more and found else None)

    return resources.database.read(look)


def compare(
    resources: Resources, caller: Caller, schedule_id: str, *, before: int | None = None, after: int | None = None
) -> Comparison:
    """Compare two revisions and the upcoming fires that differ; by default the newest two."""
    caller.require(Permission.READ)

    def look(connection: Connection) -> Comparison:
        row = find_any(connection, caller, schedule_id)
        later = row.revision if after is None else after
        earlier = max(1, later - 1) if before is None else before
        one, other = _revision(connection, row, "from", earlier), _revision(connection, row, "to", later)
        known = resources.known.load(connection, [one.planning, other.planning])
        old, new, position = known[one.planning], known[other.planning], row.position()
        changes = None
        if isinstance(old, Planning) and isinstance(new, Planning):
            now = resources.clock.now()
            changes = changes_between(connection, row.namespace, (old, position), (new, position), now)
        return Comparison(earlier, later, differences(one.document, other.document), changes)

    return resources.database.read(look)


def _revision(connection: Connection, row: ScheduleRow, name: str, number: int) -> RevisionRow:
    found = rows.find_revision(connection, row.schedule_uid, number) if 1 <= number <= _MAX_REVISION else None
    if found is None:
        raise InvalidDefinition({name: [f"revision {number} not found; the newest is {row.revision}"]})
    if (why := damage_of(found.document)) is not None:
        raise InvalidDefinition({name: [f"the revision {number} cannot be read: {why}"]})
    return found


def _authors(connection: Connection, row: ScheduleRow, found: Sequence[RevisionRow]) -> Mapping[int, Author]:
    if not found:
        return {}
    return store.authors(connection, row.schedule_uid, found, next_sequence=row.next_sequence)


def _remembered(row: ScheduleRow, revision: RevisionRow) -> Author:
    """Author of the first or the newest revision, which the schedule stores itself, however old they are."""
    if revision.revision == 1:
        return Author(row.created_by)
    return Author(row.edited_by) if revision.revision == row.revision else Author()


def _place(token: str) -> int:
    if not (token.isascii() and token.isdigit() and len(token) <= len(str(_MAX_REVISION)) and int(token)):
        raise MalformedPageToken("next_page_token", "is not a valid page token")
    return min(int(token), _MAX_REVISION)
