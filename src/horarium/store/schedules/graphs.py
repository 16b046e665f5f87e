"""What a decision must know of the stored workflows of schedules: one query for a batch, and one for their owners."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple, Protocol

from sqlalchemy import Connection, exists, or_, select

from horarium.schedule.kinds import WORKFLOW
from horarium.schedule.planning import Planning
from horarium.store.database.found import rows_with
from horarium.store.database.json_text import cycle_from_text
from horarium.store.tables import schedules, workflows


class Subject(Protocol):
    """A schedule."""

    @property
    def schedule_uid(self) -> bytes: ...
    @property
    def namespace(self) -> str: ...
    @property
    def planning(self) -> Planning: ...


Workflow = tuple[str, str | None]


def _workflow_of(subject: Subject) -> Workflow:
    return subject.namespace, subject.planning.workflow


class Graph(NamedTuple):
    """Facts about the stored workflow of a schedule that may prevent its runs.

    The nodes of a cycle; an owner that is another schedule's; and its newest version.
    """

    cycle: tuple[str, ...] = ()
    stranger: str | None = None
    newest: int | None = None


NO_GRAPH = Graph()
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


def graphs_of(connection: Connection, subjects: Sequence[Subject]) -> dict[bytes, Graph]:
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
    found: dict[bytes, Graph] = {}
    for subject in told:
        uid, workflow = subject.schedule_uid, _workflow_of(subject)
        owner = owners[workflow]
        stranger = None if owner == own.get(uid) else owner
        version = newest[workflow] if subject.planning.kind == WORKFLOW.name else None
        found[uid] = Graph(cycles.get(workflow, ()), stranger, version)
    return found


def _owners(connection: Connection, uids: Sequence[bytes]) -> dict[bytes, str | None]:
    statement = select(schedules.c.schedule_uid, schedules.c.owner)
    rows = rows_with(connection, statement, (schedules.c.schedule_uid,), [(uid,) for uid in uids])
    return dict(iter(rows))
