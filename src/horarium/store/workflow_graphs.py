"""Stored workflows as those read them who run them: which there are, and each version compiled once.

What was compiled is remembered for each database. A version never changes, but a workflow may be deleted and put
anew under its old name: the moment of its making tells the two apart.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple, TypeAlias
from weakref import WeakKeyDictionary

import sqlalchemy as sa
from sqlalchemy import Connection, Engine

from horarium.instant import Instant
from horarium.schedule.compiled import CompiledWorkflow
from horarium.schedule.workflow import parse_workflow
from horarium.store.database.json_text import from_text
from horarium.store.tables import workflows

WorkflowName: TypeAlias = tuple[str, str]
"""Namespace and id."""

_MAX_REMEMBERED = 512
# Of texts: what is compiled of them takes several times as much.
_MAX_REMEMBERED_BYTES = 16 * 1_024 * 1_024
# Of values in one statement older SQLites take 999.
_AT_ONCE = 300


class WorkflowVersion(NamedTuple):
    namespace: str
    workflow_id: str
    version: int


_Edition: TypeAlias = tuple[WorkflowVersion, Instant, int]
_KEY = sa.tuple_(workflows.c.namespace, workflows.c.workflow_id, workflows.c.version)
_EDITIONS = sa.select(
    workflows.c.namespace,
    workflows.c.workflow_id,
    workflows.c.version,
    workflows.c.created_at,
    sa.func.length(workflows.c.document).label("size"),
)
_DOCUMENTS = sa.select(
    workflows.c.namespace, workflows.c.workflow_id, workflows.c.version, workflows.c.created_at, workflows.c.document
)


class _Remembered:
    """The newest few hundred; threads share them."""

    def __init__(self) -> None:
        self._known: OrderedDict[_Edition, CompiledWorkflow | Exception] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def get(self, edition: _Edition) -> CompiledWorkflow | Exception | None:
        return self._known.get(edition)

    def keep(self, edition: _Edition, compiled: CompiledWorkflow | Exception) -> None:
        with self._lock:
            if edition not in self._known:
                self._bytes += edition[2]
            self._known[edition] = compiled
            while len(self._known) > _MAX_REMEMBERED or (self._bytes > _MAX_REMEMBERED_BYTES and len(self._known) > 1):
                (_, _, size), _ = self._known.popitem(last=False)
                self._bytes -= size


_REMEMBERED: WeakKeyDictionary[Engine, _Remembered] = WeakKeyDictionary()


def load(
    connection: Connection, wanted: Iterable[WorkflowVersion]
) -> Mapping[WorkflowVersion, CompiledWorkflow | Exception]:
    """Load workflows by version; a missing or unreadable one maps to the reason."""
    asked = list(set(wanted))
    remembered = _REMEMBERED.setdefault(connection.engine, _Remembered())
    found: dict[WorkflowVersion, CompiledWorkflow | Exception] = {}
    unknown: list[_Edition] = []
    for first in range(0, len(asked), _AT_ONCE):
        for row in connection.execute(_EDITIONS.where(_KEY.in_(asked[first : first + _AT_ONCE]))):
            edition = (WorkflowVersion(*row[:3]), row.created_at, row.size)
            known = remembered.get(edition)
            if known is None:
                unknown.append(edition)
            else:
                found[edition[0]] = known
    for edition in unknown:  # few, and each may be a megabyte
        compiled = _read(connection, edition[0])
        remembered.keep(edition, compiled)
        found[edition[0]] = compiled
    return {each: found.get(each) or _missing(each) for each in asked}


def _read(connection: Connection, version: WorkflowVersion) -> CompiledWorkflow | Exception:
    row = connection.execute(_DOCUMENTS.where(_KEY.in_([version]))).one()
    try:
        document = {**from_text(row.document), "workflow_id": version.workflow_id, "version": version.version}
        return CompiledWorkflow(parse_workflow(document))
    except Exception as wrong:  # one corrupt document is its own runs' trouble
        return wrong


def _missing(version: WorkflowVersion) -> LookupError:
    return LookupError(f"version {version.version} of the workflow {version.workflow_id!r} not found")


def newest_versions(connection: Connection, names: Collection[WorkflowName]) -> dict[WorkflowName, int]:
    """Newest versions of those workflows that are stored."""
    columns = (workflows.c.namespace, workflows.c.workflow_id)
    asked = list(names)
    found: dict[WorkflowName, int] = {}
    for first in range(0, len(asked), _AT_ONCE):
        newest = sa.select(*columns, sa.func.max(workflows.c.version)).group_by(*columns)
        rows = connection.execute(newest.where(sa.tuple_(*columns).in_(asked[first : first + _AT_ONCE])))
        found |= {(namespace, workflow_id): version for namespace, workflow_id, version in rows}
    return found
