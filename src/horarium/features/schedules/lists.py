"""Show a schedule with its next fire times, and list schedules by page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from horarium.core.decision.forecast import NOT_TRIGGERABLE, NextRun
from horarium.core.decision.health import judge
from horarium.core.decision.statuses import Recent, in_order
from horarium.core.document.definition import Definition
from horarium.core.document.document import from_canonical
from horarium.core.document.states import RunState, Status, instance_id
from horarium.core.policy.queue import QueuePolicy
from horarium.errors import InvalidDefinition
from horarium.features.agents.policy_rows import capacity_of
from horarium.features.forecast import lane_rows
from horarium.features.resources import Resources, not_found
from horarium.features.runs import rows as runs_read
from horarium.features.runs.rows import RunFilter, RunRow
from horarium.features.schedules import health_rows
from horarium.features.schedules import list_rows as schedule_lists
from horarium.features.schedules import rows as schedules
from horarium.features.schedules.creation import (
    NextFire,
    current,
    is_plain,
    next_due,
    next_fires,
    next_runs,
    planned_row,
)
from horarium.features.schedules.drafts import require_namespace
from horarium.features.schedules.filters import (
    EVERYTHING,
    QUERY_FIELD,
    TEXT_FIELDS,
    TOKEN_FIELD,
    ScheduleFilter,
    StalePageToken,
    UnsupportedField,
    make_list_token,
    read_list_token,
)
from horarium.features.schedules.list_rows import Cursor, Filter, SchedulePage
from horarium.features.schedules.references import Lookups, effective_of, retries_of
from horarium.features.schedules.rows import ScheduleRow
from horarium.features.workflows.graph_rows import stored_workflows
from horarium.instant import Instant
from horarium.platform.caller import Caller, checked_limit
from horarium.platform.database import Connection
from horarium.platform.ids import id_text
from horarium.platform.wire import Permission

RECENT_RUNS = 10
MAX_HELD_SHOWN = 100
MOST_JUDGED = 1_000
"""Schedules that are looked at for a page of those of which only a closer look tells whether they fit."""


@dataclass(frozen=True, slots=True)
class Listed:
    """`document` is the canonical one, as it is stored: to read and to write it again would give the same.

    `next_due` is also that of a paused schedule: what a resume would bring. `next_run` is what will really run.
    `recent` are its last occurrences, the oldest first; None = nobody has asked for them.
    """

    row: ScheduleRow
    document: Mapping[str, Any]
    next_due: Instant | None = None
    next_run: NextRun = NOT_TRIGGERABLE
    recent: tuple[Recent, ...] | None = None

    @property
    def definition(self) -> Definition:
        return from_canonical(self.document)

    @property
    def remaining_runs(self) -> int | None:
        most = self.document.get("max_runs")
        return None if most is None else max(0, most - self.row.runs_born)


@dataclass(frozen=True, slots=True)
class Described(Listed):
    """`error` says why it cannot be planned, where it cannot; `last_instance_id` names its newest run outside.

    `newest` are its newest runs, `held` those that wait for their turn, newest first. `queue` is the
    `queue_policy` of its assignment.
    """

    next_fires: tuple[NextFire, ...] = ()
    last_instance_id: str | None = None
    last_result: Any = None
    error: str | None = None
    retries: int | None = None
    newest: tuple[RunRow, ...] = ()
    held: tuple[RunRow, ...] = ()
    queue: QueuePolicy | None = None


@dataclass(frozen=True, slots=True)
class ListPage:
    schedules: tuple[Listed, ...]
    next_page_token: str | None


def describe(resources: Resources, caller: Caller, schedule_id: str, *, include_deleted: bool = False) -> Described:
    """`include_deleted`: the last schedule that had this id will do."""
    caller.require(Permission.READ)
    return resources.database.read(
        lambda connection: _describe(resources, connection, caller, schedule_id, include_deleted)
    )


def list_schedules(
    resources: Resources,
    caller: Caller,
    wanted: ScheduleFilter = EVERYTHING,
    *,
    page_size: int | None = None,
    next_page_token: str | None = None,
    with_recent: bool = False,
) -> ListPage:
    """Newest first; deleted ones are not shown. Raises what `list_errors` has for a bad token or query."""
    caller.require(Permission.READ)
    limit = checked_limit(page_size)
    namespace, filters = caller.namespace, wanted.fingerprint()
    after = None if next_page_token is None else read_list_token(next_page_token, namespace, filters)

    def look(connection: Connection) -> ListPage:
        page = _page(resources, connection, namespace, wanted, after, limit)
        if not page.rows:
            require_namespace(connection, namespace)
        listed = _listed(resources, connection, page)
        if with_recent:
            listed = _with_recent(resources, connection, listed)
        token = None if page.after is None else make_list_token(namespace, filters, page.after)
        return ListPage(listed, token)

    return resources.database.glance(look)


def _page(
    resources: Resources,
    connection: Connection,
    namespace: str,
    wanted: ScheduleFilter,
    after: Cursor | None,
    limit: int,
) -> SchedulePage:
    """Nobody registers search attributes here: one that no schedule carries is taken for a mistake."""
    for name in sorted(wanted.attributes):
        if not schedule_lists.has_attribute(connection, namespace, name):
            known = ", ".join(TEXT_FIELDS)
            raise UnsupportedField(QUERY_FIELD, f"{name[:64]} is neither {known} nor a search attribute of a schedule")
    if after is not None and not schedule_lists.is_there(
        connection, namespace, after, include_deleted=wanted.include_deleted
    ):
        raise StalePageToken(
            TOKEN_FIELD, "the last schedule of the previous page was deleted; start with the first page", after
        )
    asked = wanted.filter()
    if asked is None:
        return SchedulePage((), (), None)
    if asked.health is not None or asked.mentions:
        asked = replace(asked, now=resources.clock.now(), failing_after=resources.settings.failing_after)
        return _judged_page(resources, connection, namespace, wanted, asked, after, limit)
    return schedule_lists.list_page(connection, namespace, asked, after=after, limit=limit)


def _judged_page(
    resources: Resources,
    connection: Connection,
    namespace: str,
    wanted: ScheduleFilter,
    asked: Filter,
    after: Cursor | None,
    limit: int,
) -> SchedulePage:
    """Those that may fit are judged one by one, `MOST_JUDGED` for a page: it may be short, and go on."""
    rows: list[ScheduleRow] = []
    documents: list[dict[str, Any]] = []
    for _ in range(-(-MOST_JUDGED // limit)):
        page = schedule_lists.list_page(connection, namespace, asked, after=after, limit=limit)
        fitting = _fitting(resources, connection, page, wanted, asked.now)
        for row, document, fits in zip(page.rows, page.documents, fitting, strict=True):
            if fits:
                rows.append(row)
                documents.append(document)
            after = Cursor(row.created_at, row.schedule_id)
            if len(rows) == limit:
                more = page.after is not None or row is not page.rows[-1]
                return SchedulePage(tuple(rows), tuple(documents), after if more else None)
        if page.after is None:
            return SchedulePage(tuple(rows), tuple(documents), None)
    return SchedulePage(tuple(rows), tuple(documents), after)


def _fitting(
    resources: Resources, connection: Connection, page: SchedulePage, wanted: ScheduleFilter, now: Instant
) -> Sequence[bool]:
    """Tell for each schedule of the page whether it matches."""
    fit = [wanted.fits(each) for each in page.documents]
    if wanted.health is None:
        return fit
    found = health_rows.vitals_of(
        connection, resources.known, page.rows, resources.settings.failing_after, with_failed=False
    )
    words = [judge(vitals, now).status for vitals in found]
    return [fits and word is wanted.health for fits, word in zip(fit, words, strict=True)]


def _listed(resources: Resources, connection: Connection, page: SchedulePage) -> tuple[Listed, ...]:
    """Most need no more than their row; what the others need is looked up for all of them together."""
    both, now = list(zip(page.rows, page.documents, strict=True)), resources.clock.now()
    plain = [row for row, document in both if is_plain(row, document, now)]
    stored = _stored_workflows(connection, plain)
    settled = {row.schedule_uid for row in plain if row.workflow not in stored}
    asked = [row for row in page.rows if row.schedule_uid not in settled]
    known = resources.known.load(connection, [row.planning for row in asked]) if asked else {}
    planned = [planned_row(row, known[row.planning]) for row in asked]
    runs = next_runs(connection, planned, now, resources.signals)
    return tuple(
        Listed(row, document, next_due(row, known[row.planning], now), runs[row.schedule_uid])
        if row.schedule_uid in runs
        else Listed(row, document, row.next_due, NextRun(row.next_due))
        for row, document in both
    )


def _stored_workflows(connection: Connection, rows: Sequence[ScheduleRow]) -> set[str | None]:
    """A stored workflow may have a cycle, or another owner."""
    names = {row.workflow for row in rows if row.workflow is not None}
    return {*stored_workflows(connection, rows[0].namespace, names)} if names else set()


def _with_recent(resources: Resources, connection: Connection, listed: Sequence[Listed]) -> tuple[Listed, ...]:
    found = lane_rows.newest_outcomes(connection, [each.row.schedule_uid for each in listed], resources.clock.now())
    return tuple(replace(each, recent=in_order(found.get(each.row.schedule_uid, ()))) for each in listed)


def _describe(
    resources: Resources, connection: Connection, caller: Caller, schedule_id: str, include_deleted: bool
) -> Described:
    found = schedules.find_with_document(connection, caller.namespace, schedule_id)
    if found is None and include_deleted:
        found = _deleted(connection, caller, schedule_id)
    if found is None:
        require_namespace(connection, caller.namespace)
        raise not_found(resources, connection, caller, schedule_id)
    row, document = found
    newest = runs_read.page_of_schedule(connection, row.schedule_uid, limit=RECENT_RUNS).rows
    planning = resources.known.load(connection, [row.planning])[row.planning]
    broken = isinstance(planning, Exception)
    now = resources.clock.now()
    planned = planned_row(row, planning)
    return Described(
        row,
        document,
        next_due(row, planning, now),
        next_runs(connection, [planned], now, resources.signals)[row.schedule_uid],
        next_fires=() if isinstance(planning, Exception) else next_fires(row, planning, now),
        last_instance_id=_last_instance(connection, row, newest),
        last_result=runs_read.result_of(connection, row.namespace, row.last_completed_run_id),
        error=row.last_error if broken or row.status is Status.BROKEN else None,
        retries=_retries(connection, row, document),
        newest=newest,
        held=_held(connection, row),
        queue=None if isinstance(planning, Exception) else _queue(connection, row.namespace, planning.assignment),
    )


def _retries(connection: Connection, row: ScheduleRow, document: object) -> int | None:
    """None for a definition that cannot be read."""
    try:
        definition = current(row, document)
    except InvalidDefinition:
        return None
    known = Lookups(connection, row.namespace)
    speakers = known.speakers(definition.assignee, definition.workflow_assignment_id)
    return retries_of(effective_of(speakers, definition), definition)


def _queue(connection: Connection, namespace: str, assignment_id: str | None) -> QueuePolicy | None:
    return None if assignment_id is None else capacity_of(connection, namespace, None, assignment_id)[0]


def _deleted(connection: Connection, caller: Caller, schedule_id: str) -> tuple[ScheduleRow, dict[str, Any]] | None:
    row = schedules.find_newest(connection, caller.namespace, schedule_id)
    revision = None if row is None else schedules.find_revision(connection, row.schedule_uid, row.revision)
    return None if row is None or revision is None else (row, revision.document)


def _held(connection: Connection, row: ScheduleRow) -> tuple[RunRow, ...]:
    if not row.held:
        return ()
    wanted = RunFilter(states=frozenset({RunState.HELD}))
    return runs_read.page_of_schedule(connection, row.schedule_uid, wanted, limit=MAX_HELD_SHOWN).rows


def _last_instance(connection: Connection, row: ScheduleRow, newest: Sequence[RunRow]) -> str | None:
    if row.last_run_id is None:
        return None
    run = next((each for each in newest if each.run_id == row.last_run_id), None)
    if run is None:  # it was born before many others, or retention has removed it
        run = runs_read.find(connection, row.namespace, row.last_run_id)
    return None if run is None else instance_id(row.schedule_id, run.origin, run.nominal, id_text(run.run_id))
