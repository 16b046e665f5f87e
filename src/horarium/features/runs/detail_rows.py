"""SQL of details in responses about runs: steps of a workflow, and display names.

Each step follows those it needs, and there are no more than fit. The names of agents, teams and workflows are read for
a whole page of runs in one query.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol

import sqlalchemy as sa
from sqlalchemy import Connection, Table

from horarium.core.document.assignee import AssigneeType
from horarium.core.document.json_values import UnreadableEntry
from horarium.core.document.states import RunState
from horarium.core.document.workflow import MAX_NODES
from horarium.features.workflows import graph_rows
from horarium.features.workflows.graph_rows import WorkflowVersion
from horarium.instant import Instant
from horarium.platform.database import run_archive
from horarium.platform.database.columns import from_text, value_from_text
from horarium.platform.database.statements import MAX_PAGE_BYTES, sized
from horarium.platform.database.tables import agents, runs, teams, workflows

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
_COLUMNS = [sa.func.substr(runs.c.error, 1, _MAX_ERROR) if name == "error" else runs.c[name] for name in _NAMES]
_STEPS = (
    sized(sa.select(*_COLUMNS, runs.c.result), runs.c.result)
    # As text, so that both databases see that it is the condition of the index `runs_one_per_node`.
    .where(sa.text("parent_run_id IS NOT NULL"), runs.c.parent_run_id == sa.bindparam("run_id"))
    .order_by(runs.c.run_id)
    .limit(MAX_STEPS)
)
_RESULTS = sa.select(runs.c.run_id, runs.c.result).where(runs.c.run_id.in_(sa.bindparam("run_ids", expanding=True)))


def steps_of(
    connection: Connection, run_id: bytes, namespace: str, workflow: str, version: int
) -> list[StepRow | UnreadableEntry]:
    """In topological order; a step that took the place of another stands after it.

    Results are listed as far as they fit in a page, the first ones first.
    """
    rows = [tuple(row) for row in run_archive.rows_of_tree(connection, _STEPS, run_id, {"run_id": run_id})]
    places = _places(connection, WorkflowVersion(namespace, workflow, version))
    of_node, fallback = _NAMES.index("node_id"), _NAMES.index("fallback")
    # By birth where the workflow is gone.
    rows.sort(key=lambda row: (places.get(row[of_node], len(places)), row[fallback]))
    shown = steps_that_fit(row[-1] or 0 for row in rows)
    large = [row[0] for row, is_shown in zip(rows, shown, strict=True) if is_shown and row[-1] and row[-2] is None]
    loaded: Mapping[bytes, str | None] = {}
    if large:
        found = run_archive.rows_everywhere(connection, _RESULTS, {"run_ids": large}, most=len(large))
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


_UNREADABLE = (ValueError, AttributeError, RecursionError)


class NamedColumns(Protocol):
    """The columns of a run, or of a step, that name something else."""

    @property
    def workflow(self) -> str | None: ...
    @property
    def workflow_version(self) -> int | None: ...
    @property
    def assignee_type(self) -> str | None: ...
    @property
    def assignee(self) -> str | None: ...
    @property
    def member(self) -> str | None: ...


class NameKey(NamedTuple):
    """`kind` is the name of a table; the version is 0 where it has no versions."""

    kind: str
    namespace: str
    key: str
    version: int = 0


@dataclass(frozen=True, slots=True)
class DisplayNames:
    """Names by key; an object without a name, or one that is gone, has none."""

    found: Mapping[NameKey, str]

    def workflow(self, namespace: str, workflow_id: str, version: int) -> str | None:
        return self.found.get(workflow_key(namespace, workflow_id, version))

    def assignee(self, namespace: str, type: str | None, assignee_id: str) -> str | None:
        return self.found.get(_assignee_key(namespace, type, assignee_id))


NO_NAMES: Final = DisplayNames({})


def workflow_key(namespace: str, workflow_id: str, version: int) -> NameKey:
    return NameKey(workflows.name, namespace, workflow_id, version)


def keys_of(namespace: str, row: NamedColumns) -> set[NameKey]:
    """Keys of the workflow, the assignee and the working team member of a run."""
    found = set[NameKey]()
    if row.workflow is not None and row.workflow_version is not None:
        found.add(workflow_key(namespace, row.workflow, row.workflow_version))
    if row.assignee is not None:
        found.add(_assignee_key(namespace, row.assignee_type, row.assignee))
    if row.member is not None:
        found.add(_assignee_key(namespace, AssigneeType.AGENT, row.member))
    return found


def find_names(connection: Connection, wanted: Iterable[NameKey]) -> DisplayNames:
    keys = set(wanted)
    parts = [_of_documents(table, mine) for table in (agents, teams) if (mine := _of(table, keys))]
    if versions := _of(workflows, keys):
        parts.append(_of_workflows(versions))
    if not parts:
        return NO_NAMES
    rows = connection.execute(sa.union_all(*parts))
    named = ((NameKey(*row[:4]), _name_in(row.document) if row.name is None else row.name) for row in rows)
    return DisplayNames({key: name for key, name in named if name})


def _of(table: Table, keys: Collection[NameKey]) -> list[NameKey]:
    return sorted(each for each in keys if each.kind == table.name)


def _assignee_key(namespace: str, type: str | None, assignee_id: str) -> NameKey:
    table = teams if type == AssigneeType.TEAM else agents
    return NameKey(table.name, namespace, assignee_id)


def _of_documents(table: Table, keys: Collection[NameKey]) -> sa.Select[Any]:
    namespace, key = table.primary_key.columns
    wanted = sa.tuple_(namespace, key).in_([(each.namespace, each.key) for each in keys])
    nothing = sa.cast(sa.null(), sa.Text).label("name")
    return sa.select(_word(table.name), namespace, key, sa.literal(0), table.c.document, nothing).where(wanted)


def _of_workflows(keys: Collection[NameKey]) -> sa.Select[Any]:
    columns = tuple(workflows.primary_key.columns)
    wanted = sa.tuple_(*columns).in_([each[1:] for each in keys])
    nothing = sa.cast(sa.null(), sa.Text).label("document")
    return sa.select(_word(workflows.name), *columns, nothing, workflows.c.name).where(wanted)


def _word(text: str) -> sa.ColumnElement[str]:
    return sa.literal(text, sa.Text).label("kind")


def _name_in(document: str | None) -> str | None:
    """None also for a document that cannot be read: it is the trouble of whoever needs more of it than its name."""
    try:
        name = from_text(document or "{}").get("name")
    except _UNREADABLE:
        return None
    return name if isinstance(name, str) else None
