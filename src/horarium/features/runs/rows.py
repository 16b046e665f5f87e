"""SQL that reads runs: single ones, pages, steps and events, also from the archive.

Each step follows those it needs, and there are no more than fit.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from horarium.core.document.assignee import AssigneeType
from horarium.core.document.json_values import UnreadableEntry, damage_of
from horarium.core.document.states import FINAL, Delivery, Origin, RunState
from horarium.core.document.workflow import MAX_NODES
from horarium.features.workflows import graph_rows
from horarium.features.workflows.graph_rows import WorkflowVersion
from horarium.instant import Instant
from horarium.platform.database import run_archive
from horarium.platform.database.run_archive import ARCHIVED, RunsTable
from horarium.platform.database.run_states import ENDED_BADLY, NOT_SUCCEEDED
from horarium.platform.database.statements import (
    MAX_PAGE_BYTES,
    Scope,
    TypedRows,
    byte_size,
    object_from_text,
    sized,
    value_from_text,
    within_each_of_scope,
    within_scope,
)
from horarium.platform.database.tables import (
    run_definitions,
    run_events,
    runs,
    schedule_revisions,
    schedules,
)


@dataclass(frozen=True, slots=True)
class RunRow:
    """All columns of `runs`, and the id and the name of the schedule that its uid stands for, deleted or not.

    `inputs` is None where the run takes them from its revision; amounts are millionths of a credit.
    """

    run_id: bytes
    namespace: str
    schedule_uid: bytes | None
    revision: int | None
    workflow: str | None
    kind: str
    origin: Origin
    state: RunState
    nominal: Instant
    due: Instant
    ready_at: Instant
    deadline: Instant | None
    timeout_seconds: int
    priority: int
    queue: str | None
    delivery: Delivery
    attempt: int
    launches: int
    busy_since: Instant | None
    lease_epoch: int
    lease_owner: str | None
    lease_until: Instant | None
    reference: str | None
    needs_approval: bool
    approval_id: bytes | None
    rotation_index: int | None
    trigger_number: int | None
    covers_first: Instant | None
    covers_last: Instant | None
    covers_count: int | None
    concurrency_key: str | None
    assignee: str | None
    reserved: int
    external_key: str | None
    inputs: Any
    result: Any
    error: str | None
    error_class: str | None
    cause: str | None
    cost: int
    tokens: int
    tool_calls: int
    stop_requested_at: Instant | None
    parent_run_id: bytes | None
    root_run_id: bytes | None
    node_id: str | None
    next_event: int
    created_at: Instant
    started_at: Instant | None
    finished_at: Instant | None
    target: str
    attempt_ms: int | None
    runtime_seconds: int | None
    ends_by: Instant | None
    earlier_cost: int
    earlier_tokens: int
    earlier_tool_calls: int
    rerun_of: bytes | None
    claimed_by: str | None
    workflow_version: int | None
    of_workflow: str | None
    of_version: int | None
    node_path: str | None
    fallback: bool
    assignee_type: AssigneeType | None
    member: str | None
    effective: str | None
    progress: str | None
    gates_passed: int
    heard: bool
    requested_by: dict[str, Any] | None
    schedule_id: str | None
    schedule_name: str | None = None

    @property
    def damage(self) -> str | None:
        """Unreadable parts of the row with the reasons, where stored data is damaged."""
        parts = {"inputs": self.inputs, "result": self.result, "requested_by": self.requested_by}
        found = (f"{name}: {why}" for name, part in parts.items() if (why := damage_of(part)) is not None)
        return "; ".join(found) or None


@dataclass(frozen=True, slots=True)
class RunEventRow:
    sequence: int
    event_type: str
    recorded_at: Instant
    payload: dict[str, Any]


@dataclass(frozen=True, slots=True)
class RunFilter:
    """None = any; steps of workflows are shown only where asked for, as those of a `parent` or of a `root` are.

    `assignee` is an agent or a team; of an agent also what it does as the member of a team. `finished_after` shows runs
    that ended at that instant or later.
    """

    states: Collection[RunState] | None = None
    origins: Collection[Origin] | None = None
    workflow: str | None = None
    assignee: str | None = None
    queue: str | None = None
    with_steps: bool = False
    parent: bytes | None = None
    root: bytes | None = None
    finished_after: Instant | None = None


@dataclass(frozen=True, slots=True)
class RunRowPage:
    """`before` is where the next page begins; None = this is the last."""

    rows: tuple[RunRow, ...]
    before: bytes | None


EVERYTHING = RunFilter()


def _context(text: str | None) -> dict[str, Any] | None:
    return None if text is None else object_from_text(text)


def _assignee_type(text: str | None) -> AssigneeType | None:
    return None if text is None else AssigneeType(text)


_ROWS = TypedRows(
    RunRow,
    schedules,
    runs,
    renamed={"schedule_name": schedules.c.name},
    origin=Origin,
    state=RunState,
    delivery=Delivery,
    assignee_type=_assignee_type,
    inputs=value_from_text,
    result=value_from_text,
    requested_by=_context,
)
# Of many at once nobody is shown what they were given and what they gave, which may be megabytes each.
_LARGE = frozenset({"inputs", "result"})


# These are made once for each table: to build a statement of many columns takes longer than to run it.
@cache
def _select(runs: RunsTable) -> sa.Select[Any]:
    columns = (runs.c.get(each.name, each) for each in _ROWS.select.selected_columns)
    return sa.select(*columns).outerjoin_from(runs, schedules, runs.c.schedule_uid == schedules.c.schedule_uid)


@cache
def _summary(runs: RunsTable) -> sa.Select[Any]:
    whole = _select(runs)
    columns = (sa.null() if each.name in _LARGE else each for each in whole.selected_columns)
    return whole.with_only_columns(*columns, maintain_column_froms=True)


@cache
def _newest(runs: RunsTable) -> sa.Select[Any]:
    own = (runs.c.schedule_uid == sa.bindparam("uid"), runs.c.parent_run_id.is_(None))
    return _summary(runs).where(*own).order_by(runs.c.run_id.desc()).limit(sa.bindparam("most"))


_NEWEST_ARCHIVED = _newest(ARCHIVED).where(ARCHIVED.c.run_id > sa.bindparam("after"))
_FIRST = b""  # before all of them


def find(connection: Connection, namespace: str, run_id: bytes) -> RunRow | None:
    return _one(connection, lambda runs: (runs.c.namespace == namespace, runs.c.run_id == run_id))


def find_all(connection: Connection, run_ids: Collection[bytes], *, listed: bool = False) -> list[RunRow]:
    """Return the highest priority first, then the oldest. `listed`: rows that cannot be read are marked."""
    found = run_archive.rows_everywhere(
        connection, lambda runs: _select(runs).where(runs.c.run_id.in_(list(run_ids))), most=len(run_ids)
    )
    rows = {row.run_id: row for row in map(_ROWS.listed if listed else _ROWS.read, found)}
    return sorted(rows.values(), key=lambda row: (-row.priority, row.run_id))


def result_of(connection: Connection, namespace: str, run_id: bytes | None) -> Any:
    """None also for a run that is gone."""
    if run_id is None:
        return None
    found = run_archive.row_anywhere(
        connection,
        lambda runs: sa.select(runs.c.result).where(runs.c.namespace == namespace, runs.c.run_id == run_id),
    )
    return None if found is None else value_from_text(found.result)


def namespace_of(connection: Connection, run_id: bytes) -> str | None:
    """Find a run's namespace, for a caller that proves it was dispatched to them."""
    found = run_archive.row_anywhere(
        connection, lambda runs: sa.select(runs.c.namespace).where(runs.c.run_id == run_id)
    )
    return None if found is None else found.namespace


def find_by_callers_key(connection: Connection, namespace: str, external_key: str) -> RunRow | None:
    return _one(connection, lambda runs: (runs.c.namespace == namespace, runs.c.external_key == external_key))


def page_of_schedule(
    connection: Connection,
    uid: bytes,
    wanted: RunFilter = EVERYTHING,
    *,
    before: bytes | None = None,
    limit: int,
    whole: bool = False,
) -> RunRowPage:
    """Newest first. `whole`: with inputs and results, which are None otherwise."""
    if wanted is EVERYTHING and before is None and not whole:
        return _newest_page(connection, uid, limit)
    return _page(connection, lambda runs: runs.c.schedule_uid == uid, wanted, before, limit, whole)


def page_of_namespace(
    connection: Connection,
    namespace: Scope,
    wanted: RunFilter = EVERYTHING,
    *,
    before: bytes | None = None,
    limit: int,
    whole: bool = False,
) -> RunRowPage:
    """Newest first. `whole`: with inputs and results, which are None otherwise."""
    # Only with each namespace named is the index of what went wrong of use.
    is_indexed = wanted.states is not None and NOT_SUCCEEDED.issuperset(wanted.states)
    within = within_each_of_scope if is_indexed else within_scope
    return _page(connection, lambda runs: within(runs.c.namespace, namespace), wanted, before, limit, whole)


def reruns(connection: Connection, run_id: bytes, limit: int) -> list[bytes]:
    """The runs that do a run once more, oldest first."""

    def again(runs: RunsTable) -> sa.Select[Any]:
        those = sa.select(runs.c.run_id).where(sa.text("rerun_of IS NOT NULL"), runs.c.rerun_of == run_id)
        return those.order_by(runs.c.run_id).limit(limit)

    found = run_archive.rows_everywhere(connection, again)
    return sorted({row.run_id for row in found})[:limit]


def sizes(connection: Connection, run_ids: Sequence[bytes]) -> list[int]:
    """Bytes of what the runs were given and of the definitions that they name, in the order of their ids."""
    found = run_archive.rows_everywhere(connection, lambda runs: _sizes(runs, run_ids), most=len(run_ids))
    size_of = {row.run_id: row.size for row in found}
    return [size_of.get(run_id, 0) for run_id in run_ids]


def _sizes(runs: RunsTable, run_ids: Sequence[bytes]) -> sa.Select[Any]:
    of_revision = sa.and_(
        schedule_revisions.c.schedule_uid == runs.c.schedule_uid, schedule_revisions.c.revision == runs.c.revision
    )
    parts = (runs.c.inputs, schedule_revisions.c.document, run_definitions.c.document)
    size = sum((sa.func.coalesce(byte_size(part), 0) for part in parts), sa.literal(0))
    return (
        sa.select(runs.c.run_id, size.label("size"))
        .outerjoin_from(runs, schedule_revisions, of_revision)
        .outerjoin(run_definitions, run_definitions.c.run_id == runs.c.run_id)
        .where(runs.c.run_id.in_(list(run_ids)))
    )


def steps(connection: Connection, root_run_id: bytes) -> list[RunRow]:
    """The steps of a workflow's run, in the order of their birth."""

    def below(runs: RunsTable) -> sa.Select[Any]:
        own = (runs.c.root_run_id == root_run_id, runs.c.run_id != root_run_id)
        return _select(runs).where(*own).order_by(runs.c.run_id)

    found = run_archive.rows_of_tree(connection, below, root_run_id)
    return [_ROWS.read(values) for values in found]


def events(connection: Connection, run_id: bytes, *, after_sequence: int = 0, limit: int = 1000) -> list[RunEventRow]:
    """Those that are stored; the first ones are read off the run's own row."""
    statement = (
        sa.select(run_events.c.sequence, run_events.c.event_type, run_events.c.recorded_at, run_events.c.payload)
        .where(run_events.c.run_id == run_id, run_events.c.sequence > after_sequence)
        .order_by(run_events.c.sequence)
        .limit(limit)
    )
    return [RunEventRow(*values[:3], object_from_text(values[3])) for values in connection.execute(statement)]


def _one(connection: Connection, wanted: Callable[[RunsTable], Sequence[sa.ColumnElement[bool]]]) -> RunRow | None:
    found = run_archive.row_anywhere(connection, lambda runs: _select(runs).where(*wanted(runs)))
    return None if found is None else _ROWS.read(found)


def _page(
    connection: Connection,
    of: Callable[[RunsTable], sa.ColumnElement[bool]],
    wanted: RunFilter,
    before: bytes | None,
    limit: int,
    whole: bool,
) -> RunRowPage:
    def chosen(runs: RunsTable) -> sa.Select[Any]:
        conditions = [of(runs), *_conditions(runs, wanted)]
        if before is not None:
            conditions.append(runs.c.run_id < before)
        if wanted.assignee is not None:
            conditions = [runs.c.run_id.in_(_assigned(runs, conditions, wanted.assignee, limit + 1))]
        columns = _select(runs) if whole else _summary(runs)
        return columns.where(*conditions).order_by(runs.c.run_id.desc()).limit(limit + 1)

    rows = [_ROWS.listed(values) for values in connection.execute(chosen(runs))]
    if _may_be_archived(wanted) and run_archive.has_archive(connection):
        missing = chosen(ARCHIVED)
        # Of a full page only those are missing that are newer than its last: few weeks of the archive are looked at.
        if len(rows) > limit:
            missing = missing.where(ARCHIVED.c.run_id > rows[-1].run_id)
        rows = _merged(rows, connection.execute(missing))
    return _shown(rows, limit)


def _newest_page(connection: Connection, uid: bytes, limit: int) -> RunRowPage:
    """By statements that are made once: whoever looks at a schedule asks this."""
    values = {"uid": uid, "most": limit + 1}
    rows = [_ROWS.listed(found) for found in connection.execute(_newest(runs), values)]
    if run_archive.has_archive(connection):
        after = rows[-1].run_id if len(rows) > limit else _FIRST
        rows = _merged(rows, connection.execute(_NEWEST_ARCHIVED, {**values, "after": after}))
    return _shown(rows, limit)


def _may_be_archived(wanted: RunFilter) -> bool:
    return wanted.states is None or not FINAL.isdisjoint(wanted.states)


def _merged(rows: Sequence[RunRow], archived: Iterable[sa.Row[Any]]) -> list[RunRow]:
    """Newest first. One that moved meanwhile is there twice."""
    both = {row.run_id: row for row in (*map(_ROWS.listed, archived), *rows)}
    return sorted(both.values(), key=lambda row: row.run_id, reverse=True)


def _assigned(
    runs: RunsTable, conditions: Sequence[sa.ColumnElement[bool]], assignee: str, limit: int
) -> sa.Select[tuple[bytes]]:
    """The newest that somebody does, and that somebody does as the member of a team: each along its own index."""
    both = [
        sa.select(runs.c.run_id)
        .where(*conditions, sa.text(f"{column.name} IS NOT NULL"), column == assignee)
        .order_by(runs.c.run_id.desc())
        .limit(limit)
        .subquery()
        for column in (runs.c.assignee, runs.c.member)
    ]
    return sa.union(*(sa.select(each.c.run_id) for each in both)).subquery().select()


def _shown(rows: Sequence[RunRow], limit: int) -> RunRowPage:
    """One more was asked for than is shown: whether there is a next page."""
    shown = tuple(rows[:limit])
    return RunRowPage(shown, shown[-1].run_id if len(rows) > limit else None)


def _conditions(runs: RunsTable, wanted: RunFilter) -> Iterator[sa.ColumnElement[bool]]:
    if wanted.parent is not None:
        yield sa.and_(sa.text("parent_run_id IS NOT NULL"), runs.c.parent_run_id == wanted.parent)
    if wanted.root is not None:
        yield sa.and_(sa.text("root_run_id IS NOT NULL"), runs.c.root_run_id == wanted.root)
    if not wanted.with_steps and wanted.parent is None and wanted.root is None:
        yield runs.c.parent_run_id.is_(None)
    if wanted.states is not None:
        if NOT_SUCCEEDED.issuperset(wanted.states):  # the words of its index, for whom a part of them would not do
            yield sa.and_(sa.text(ENDED_BADLY))
        yield runs.c.state.in_(sorted(state.value for state in wanted.states))
    if wanted.origins is not None:
        yield runs.c.origin.in_(sorted(origin.value for origin in wanted.origins))
    if wanted.finished_after is not None:
        yield runs.c.finished_at >= wanted.finished_after
    for column in (runs.c.workflow, runs.c.queue):
        value = getattr(wanted, column.name)
        if value is not None:
            yield column == value


# A node has its step, and one more where somebody else took its place.
MAX_STEPS = 2 * MAX_NODES
_MAX_ERROR = 1_000
_STATES = frozenset(RunState)


@dataclass(frozen=True, slots=True)
class StepRow:
    """`omitted`: its result is there, and too large to be listed beside the others."""

    run_id: bytes
    node_id: str
    state: RunState
    attempt: int
    started_at: Instant | None
    finished_at: Instant | None
    error: str | None
    error_class: str | None
    cause: str | None
    workflow: str | None
    workflow_version: int | None
    assignee_type: str | None
    assignee: str | None
    member: str | None
    fallback: bool
    needs_approval: bool
    approval_id: bytes | None
    result: Any
    omitted: bool


_NAMES = [name for name in StepRow.__slots__ if name not in ("result", "omitted")]


@cache
def _steps(runs: RunsTable) -> sa.Select[Any]:
    columns = [sa.func.substr(runs.c.error, 1, _MAX_ERROR) if name == "error" else runs.c[name] for name in _NAMES]
    return (
        sized(sa.select(*columns, runs.c.result), runs.c.result)
        # As text, so that both databases see that it is the condition of the index `runs_one_per_node`.
        .where(sa.text("parent_run_id IS NOT NULL"), runs.c.parent_run_id == sa.bindparam("run_id"))
        .order_by(runs.c.run_id)
        .limit(MAX_STEPS)
    )


@cache
def _results(runs: RunsTable) -> sa.Select[Any]:
    return sa.select(runs.c.run_id, runs.c.result).where(runs.c.run_id.in_(sa.bindparam("run_ids", expanding=True)))


def steps_of(
    connection: Connection, run_id: bytes, namespace: str, workflow: str, version: int
) -> list[StepRow | UnreadableEntry]:
    """In topological order; a step that took the place of another stands after it.

    Results are listed as far as they fit in a page, the first ones first.
    """
    rows = [tuple(row) for row in run_archive.rows_of_tree(connection, _steps, run_id, {"run_id": run_id})]
    places = _places(connection, WorkflowVersion(namespace, workflow, version))
    of_node, fallback = _NAMES.index("node_id"), _NAMES.index("fallback")
    # By birth where the workflow is gone.
    rows.sort(key=lambda row: (places.get(row[of_node], len(places)), row[fallback]))
    shown = steps_that_fit(row[-1] or 0 for row in rows)
    large = [row[0] for row, is_shown in zip(rows, shown, strict=True) if is_shown and row[-1] and row[-2] is None]
    loaded: Mapping[bytes, str | None] = {}
    if large:
        found = run_archive.rows_everywhere(connection, _results, {"run_ids": large}, most=len(large))
        loaded = {bytes(step_id): text for step_id, text in found}
    return [_step(row, is_shown, loaded) for row, is_shown in zip(rows, shown, strict=True)]


def _step(row: Sequence[Any], is_shown: bool, loaded: Mapping[bytes, str | None]) -> StepRow | UnreadableEntry:
    *values, small, size = row
    named = dict(zip(_NAMES, values, strict=True))
    text = (small if small is not None else loaded.get(bytes(named["run_id"]))) if is_shown else None
    if named["state"] not in _STATES:
        return UnreadableEntry(bytes(named["run_id"]), f"state: {named['state']!r} is unknown"[:200])
    return StepRow(
        **{**named, "state": RunState(named["state"]), "node_id": named["node_id"] or ""},
        result=value_from_text(text),
        omitted=bool(size) and not is_shown,
    )


def steps_that_fit(sizes: Iterable[int], most: int = MAX_PAGE_BYTES) -> list[bool]:
    """Choose what fits together, the first ones first; an item after one that is too large may still fit."""
    left, fit = most, []
    for size in sizes:
        fit.append(size <= left)
        left -= size if size <= left else 0
    return fit


def _places(connection: Connection, asked: WorkflowVersion) -> Mapping[str, int]:
    found = graph_rows.load(connection, [asked])[asked]
    # What cannot be read is listed by birth.
    return {} if isinstance(found, Exception) else {node: place for place, node in enumerate(found.order)}
