"""How schedules are looked at: one with its next fire times, or pages of many."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import islice

from sqlalchemy import Connection

from horarium.errors import InvalidDefinition
from horarium.ids import id_text
from horarium.instant import Instant
from horarium.operations.caller import Caller, Permission
from horarium.operations.desk import Desk
from horarium.operations.drafts import require_namespace, searchable
from horarium.operations.errors import ScheduleNotFound
from horarium.operations.pages import checked_limit, make_token, read_token
from horarium.schedule.definition import Definition
from horarium.schedule.document import from_canonical
from horarium.schedule.planning import Planning
from horarium.schedule.position import Status
from horarium.schedule.run import instance_id
from horarium.store import references, runs_read, schedule_lists, schedules
from horarium.store.schedule_lists import Cursor, Filter
from horarium.store.schedules import Attribute, ScheduleRow

NEXT_FIRES = 5


@dataclass(frozen=True, slots=True)
class NextFire:
    nominal: Instant
    due: Instant


@dataclass(frozen=True, slots=True)
class Listed:
    row: ScheduleRow
    definition: Definition

    @property
    def remaining_runs(self) -> int | None:
        most = self.definition.max_runs
        return None if most is None else max(0, most - self.row.runs_born)


@dataclass(frozen=True, slots=True)
class Described(Listed):
    """`error` says why it cannot be planned, where it cannot; `last_instance_id` names its newest run outside."""

    next_fires: tuple[NextFire, ...] = ()
    last_instance_id: str | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class ListPage:
    schedules: tuple[Listed, ...]
    next_page_token: str | None


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which schedules to list; None = any."""

    statuses: Collection[Status] | None = None
    workflow: str | None = None
    owner: str | None = None
    source: str | None = None
    text: str | None = None
    labels: Mapping[str, str] | None = None
    search_attributes: Mapping[str, object] | None = None


EVERYTHING = Wanted()


def describe(desk: Desk, caller: Caller, schedule_id: str) -> Described:
    caller.require(Permission.READ)
    return desk.database.read(lambda connection: _describe(desk, connection, caller, schedule_id))


def list_schedules(
    desk: Desk,
    caller: Caller,
    wanted: Wanted = EVERYTHING,
    *,
    page_size: int | None = None,
    next_page_token: str | None = None,
) -> ListPage:
    """Newest first; deleted ones are not shown."""
    caller.require(Permission.READ)
    limit = checked_limit(page_size)
    after = None if next_page_token is None else _cursor(next_page_token)

    def look(connection: Connection) -> ListPage:
        require_namespace(connection, caller.namespace)
        page = schedule_lists.list_page(connection, caller.namespace, _filter(wanted), after=after, limit=limit)
        documents = references.current_documents(connection, [row.schedule_uid for row in page.rows])
        listed = tuple(Listed(row, from_canonical(documents[row.schedule_uid])) for row in page.rows)
        token = None if page.after is None else make_token(page.after.created_at, page.after.schedule_id)
        return ListPage(listed, token)

    return desk.database.read(look)


def next_fires(row: ScheduleRow, planning: Planning, now: Instant, count: int = NEXT_FIRES) -> tuple[NextFire, ...]:
    """What is due and not yet decided counts as coming; a paused schedule shows what a resume would bring."""
    if row.status is Status.DELETED:
        return ()
    after = row.decided_until if row.status is Status.ACTIVE else max(row.decided_until, now)
    spec = planning.spec
    return tuple(
        NextFire(nominal, spec.due(row.schedule_uid, nominal)) for nominal in islice(spec.occurrences(after), count)
    )


def _describe(desk: Desk, connection: Connection, caller: Caller, schedule_id: str) -> Described:
    row = schedules.find(connection, caller.namespace, schedule_id)
    if row is None:
        require_namespace(connection, caller.namespace)
        raise ScheduleNotFound(schedule_id)
    definition = from_canonical(references.current_documents(connection, [row.schedule_uid])[row.schedule_uid])
    planning = desk.known.load(connection, [row.planning])[row.planning]
    broken = isinstance(planning, Exception)
    return Described(
        row,
        definition,
        next_fires=() if isinstance(planning, Exception) else next_fires(row, planning, desk.clock.now()),
        last_instance_id=_last_instance(connection, row),
        error=row.last_error if broken or row.status is Status.BROKEN else None,
    )


def _last_instance(connection: Connection, row: ScheduleRow) -> str | None:
    run = None if row.last_run_id is None else runs_read.find(connection, row.namespace, row.last_run_id)
    return None if run is None else instance_id(row.schedule_id, run.origin, run.nominal, id_text(run.run_id))


def _filter(wanted: Wanted) -> Filter:
    attributes = [Attribute("label", name, value) for name, value in (wanted.labels or {}).items()]
    attributes += [
        Attribute("search_attribute", name, searchable(value))
        for name, value in (wanted.search_attributes or {}).items()
    ]
    return Filter(
        statuses=wanted.statuses,
        workflow=wanted.workflow,
        owner=wanted.owner,
        source=wanted.source,
        text=wanted.text,
        attributes=attributes,
    )


def _cursor(token: str) -> Cursor:
    created_at, schedule_id = read_token(token, 2)
    try:
        return Cursor(int(created_at), schedule_id)
    except ValueError:
        raise InvalidDefinition({"next_page_token": ["is not a token that a page has given"]}) from None
