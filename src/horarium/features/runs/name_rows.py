"""SQL of display names: of agents, teams and workflows, for a whole page of runs in one query."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol

import sqlalchemy as sa
from sqlalchemy import Connection, Table

from horarium.core.document.assignee import AssigneeType
from horarium.platform.database.statements import from_text
from horarium.platform.database.tables import agents, teams, workflows

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
