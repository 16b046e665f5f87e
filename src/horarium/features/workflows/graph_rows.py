"""SQL that loads workflows for execution and decisions: compiled versions, owners, cycles, and gates of nodes.

A compiled version is cached for each database. A version never changes, but a workflow may be deleted and created
again under its old name: the time of its creation tells the two apart.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol, TypeAlias
from weakref import WeakKeyDictionary

import sqlalchemy as sa
from sqlalchemy import Connection, Engine, exists, or_, select

from horarium.core.document.planning import Planning
from horarium.core.document.reader import WORKFLOW
from horarium.core.document.workflow import parse_workflow
from horarium.core.document.workflow_steps import CompiledWorkflow
from horarium.features.runs.work_rows import RunWork
from horarium.instant import Instant
from horarium.platform.database.statements import cycle_from_text, from_text, rows_with
from horarium.platform.database.tables import schedules, workflows

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


class WorkflowSubject(Protocol):
    """A schedule."""

    @property
    def schedule_uid(self) -> bytes: ...
    @property
    def namespace(self) -> str: ...
    @property
    def planning(self) -> Planning: ...


Workflow = tuple[str, str | None]


def _workflow_of(subject: WorkflowSubject) -> Workflow:
    return subject.namespace, subject.planning.workflow


class WorkflowFindings(NamedTuple):
    """Facts about the stored workflow of a schedule that may prevent its runs.

    The nodes of a cycle; an owner that is another schedule's; and its newest version.
    """

    cycle: tuple[str, ...] = ()
    stranger: str | None = None
    newest: int | None = None


NO_FINDINGS = WorkflowFindings()
_newer = workflows.alias("newer")
_IS_NEWEST = ~exists().where(
    _newer.c.namespace == workflows.c.namespace,
    _newer.c.workflow_id == workflows.c.workflow_id,
    _newer.c.version > workflows.c.version,
)
# Of a workflow of a thousand versions two rows at most are looked at, if the cycles of old ones are mended.
_TELLING = (
    select(workflows.c.namespace, workflows.c.workflow_id, workflows.c.version, workflows.c.cycle, workflows.c.owner)
    .where(or_(workflows.c.cycle.is_not(None), _IS_NEWEST))
    .order_by(workflows.c.version)
)


def stored_workflows(connection: Connection, namespace: str, names: Collection[str]) -> set[str]:
    """Return those of the names that are stored workflows."""
    columns = (workflows.c.namespace, workflows.c.workflow_id)
    wanted = {(namespace, name) for name in names}
    return (
        {name for _, name in rows_with(connection, select(*columns).distinct(), columns, wanted)} if wanted else set()
    )


def graphs_of(connection: Connection, subjects: Sequence[WorkflowSubject]) -> dict[bytes, WorkflowFindings]:
    """Facts for the schedules whose workflow is stored."""
    names = {_workflow_of(subject) for subject in subjects if subject.planning.workflow is not None}
    cycles: dict[Workflow, tuple[str, ...]] = {}
    owners: dict[Workflow, str | None] = {}
    columns = (workflows.c.namespace, workflows.c.workflow_id)
    newest: dict[Workflow, int] = {}
    for namespace, name, version, cycle, owner in rows_with(connection, _TELLING, columns, names):
        owners[namespace, name] = owner
        newest[namespace, name] = version
        if cycle is not None:
            cycles[namespace, name] = cycle_from_text(cycle)
    if not owners:
        return {}
    told = [subject for subject in subjects if _workflow_of(subject) in owners]
    own = _owners(connection, [subject.schedule_uid for subject in told if owners[_workflow_of(subject)] is not None])
    found: dict[bytes, WorkflowFindings] = {}
    for subject in told:
        uid, workflow = subject.schedule_uid, _workflow_of(subject)
        owner = owners[workflow]
        stranger = None if owner == own.get(uid) else owner
        version = newest[workflow] if subject.planning.kind == WORKFLOW.name else None
        found[uid] = WorkflowFindings(cycles.get(workflow, ()), stranger, version)
    return found


def _owners(connection: Connection, uids: Sequence[bytes]) -> dict[bytes, str | None]:
    statement = select(schedules.c.schedule_uid, schedules.c.owner)
    rows = rows_with(connection, statement, (schedules.c.schedule_uid,), [(uid,) for uid in uids])
    return dict(iter(rows))


def node_gates(connection: Connection, steps: Iterable[RunWork]) -> dict[bytes, tuple[str, ...]]:
    """By step. What cannot be found declares none: that the step waits was settled at its birth."""
    of = {
        step.run_id: (WorkflowVersion(step.namespace, step.of_workflow, step.of_version), step.node_id)
        for step in steps
        if step.of_workflow is not None and step.of_version is not None
    }
    if not of:
        return {}
    found = load(connection, {workflow for workflow, _ in of.values()})
    return {run_id: _declared(found[workflow], node_id) for run_id, (workflow, node_id) in of.items()}


def _declared(workflow: CompiledWorkflow | Exception, node_id: str | None) -> tuple[str, ...]:
    if isinstance(workflow, Exception) or node_id not in workflow.places:
        return ()
    return workflow.node(node_id).gates
