"""How the schedules are doing, each judged by its own spec: what is due and undecided for too long is stale.

No gap between fires is measured: a schedule for weekdays has nothing to do on a Sunday, and is well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from horarium.instant import SECOND, Instant
from horarium.operations.caller import Caller
from horarium.operations.drafts import require_namespace
from horarium.operations.errors import ScheduleNotFound
from horarium.operations.resources import Resources
from horarium.operations.upcoming import next_fires
from horarium.schedule.assignee import AssigneeType
from horarium.schedule.planning import Planning
from horarium.schedule.position import Status
from horarium.store.database import Connection
from horarium.store.schedules import lists as schedule_lists
from horarium.store.schedules import references
from horarium.store.schedules import rows as schedules
from horarium.store.schedules.lists import Cursor
from horarium.store.schedules.rows import ScheduleRow
from horarium.wire.outcomes import HealthStatus
from horarium.wire.roles import Permission

_PAGE = 200


@dataclass(frozen=True, slots=True)
class Examined:
    """`late_seconds`: how long its next occurrence has been due. `agent_name` is that of its assignee, if an agent."""

    row: ScheduleRow
    document: Mapping[str, Any]
    health: HealthStatus
    expected_next: Instant | None
    late_seconds: float
    threshold_seconds: float
    agent_name: str | None = None

    @property
    def agent_id(self) -> str | None:
        return agent_of(self.document)


def examine(resources: Resources, caller: Caller) -> list[Examined]:
    """Every schedule of the namespace, newest first."""
    caller.require(Permission.READ)
    found: list[Examined] = []
    after: Cursor | None = None
    while True:
        page, after = resources.database.read(partial(_examine_page, resources, caller, after))
        found += page
        if after is None:
            return found


def examine_one(resources: Resources, caller: Caller, schedule_id: str) -> Examined:
    caller.require(Permission.READ)

    def look(connection: Connection) -> Examined:
        found = schedules.find_with_document(connection, caller.namespace, schedule_id)
        if found is None:
            require_namespace(connection, caller.namespace)
            raise ScheduleNotFound(schedule_id)
        return _examine(resources, connection, [found])[0]

    return resources.database.read(look)


def agent_of(document: Mapping[str, Any]) -> str | None:
    is_agent = document.get("assignee_type") == AssigneeType.AGENT.value
    return str(document["assignee_id"]) if is_agent and document.get("assignee_id") else None


def _examine_page(
    resources: Resources, caller: Caller, after: Cursor | None, connection: Connection
) -> tuple[list[Examined], Cursor | None]:
    page = schedule_lists.list_page(connection, caller.namespace, after=after, limit=_PAGE)
    return _examine(resources, connection, list(zip(page.rows, page.documents, strict=True))), page.after


def _examine(
    resources: Resources, connection: Connection, found: Sequence[tuple[ScheduleRow, Mapping[str, Any]]]
) -> list[Examined]:
    compiled = resources.known.load(connection, [row.planning for row, _ in found])
    names: dict[tuple[str, str], str | None] = {}
    return [
        _examined(
            resources,
            row,
            compiled[row.planning],
            document,
            _agent_name(connection, row.namespace, agent_of(document), names),
        )
        for row, document in found
    ]


def _agent_name(
    connection: Connection, namespace: str, agent_id: str | None, names: dict[tuple[str, str], str | None]
) -> str | None:
    """`names` keeps those that a page has met."""
    if agent_id is None:
        return None
    if (namespace, agent_id) not in names:
        document = references.agent_document(connection, namespace, agent_id)
        names[namespace, agent_id] = None if document is None else document.get("name")
    return names[namespace, agent_id]


def _examined(
    resources: Resources,
    row: ScheduleRow,
    planning: Planning | Exception,
    document: Mapping[str, Any],
    agent_name: str | None,
) -> Examined:
    now, threshold = resources.clock.now(), resources.settings.ready_undecided_seconds
    fires = () if isinstance(planning, Exception) else next_fires(row, planning, now, 1)
    expected = fires[0].due if fires else None
    # By the spec, not by the stored due time: a row that lost its due time waits for ever and looks at rest.
    late = max(0, now - expected) / SECOND if expected is not None and row.status is Status.ACTIVE else 0.0
    health = _judged(row, broken=isinstance(planning, Exception), late=late > threshold)
    return Examined(row, document, health, expected, late, threshold, agent_name)


def _judged(row: ScheduleRow, *, broken: bool, late: bool) -> HealthStatus:
    if broken or row.status is Status.BROKEN:
        return HealthStatus.BROKEN
    if row.status is Status.PAUSED:
        return HealthStatus.PAUSED
    if late:
        return HealthStatus.STALE
    if row.last_fired_at is None and row.status is Status.ACTIVE:
        return HealthStatus.NEVER_RUN
    return HealthStatus.FINISHED if row.status is Status.FINISHED else HealthStatus.OK
