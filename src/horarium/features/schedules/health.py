"""Health of schedules: one, a page, those that need attention, and the health response for monitors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from horarium.core.decision.health import HealthFacts, HealthReport, judge
from horarium.core.decision.statuses import NEEDS_SOMEBODY
from horarium.core.document.assignee import AssigneeType
from horarium.core.document.calendar import CalendarDefinition, coverage_warning, shared_calendar
from horarium.core.document.planning import Planning
from horarium.errors import InvalidCalendar
from horarium.features.agents import rows as agent_rows
from horarium.features.agents.rows import AGENTS, NamedDocument
from horarium.features.agents.workspace_words import cron_of
from horarium.features.resources import Resources
from horarium.features.schedules import health_rows as stored
from horarium.features.schedules import list_rows as schedule_lists
from horarium.features.schedules import lookup_rows
from horarium.features.schedules import rows as schedules
from horarium.features.schedules.drafts import require_namespace
from horarium.features.schedules.fact_rows import own_calendars
from horarium.features.schedules.filters import fingerprint, make_list_token, read_list_token
from horarium.features.schedules.list_rows import Cursor
from horarium.features.schedules.lookup_rows import WorkspaceKey
from horarium.features.schedules.rows import ScheduleRow
from horarium.instant import Instant, to_datetime
from horarium.platform.caller import Caller, checked_limit
from horarium.platform.database import Connection
from horarium.platform.errors import Refused, ScheduleNotFound
from horarium.platform.ids import id_text, parse_id
from horarium.platform.wire import Permission

MOST_UNWELL = 1_000
"""Maximum schedules in a list of unhealthy schedules."""


@dataclass(frozen=True, slots=True)
class Examined:
    """`agent_name` is that of its assignee, if an agent. `warnings` are about its calendars."""

    row: ScheduleRow
    document: Mapping[str, Any]
    health: HealthReport
    agent_name: str | None = None
    warnings: tuple[str, ...] = ()

    @property
    def agent_id(self) -> str | None:
        return agent_of(self.document)


@dataclass(frozen=True, slots=True)
class HealthPage:
    examined: tuple[Examined, ...]
    next_page_token: str | None


def examine_page(
    resources: Resources, caller: Caller, *, page_size: int | None = None, next_page_token: str | None = None
) -> HealthPage:
    """Newest first."""
    caller.require(Permission.READ)
    if caller.all_namespaces:
        return _examine_all(resources, checked_limit(page_size), next_page_token)
    limit, filters = checked_limit(page_size), fingerprint({"list": "health"})
    after = None if next_page_token is None else read_list_token(next_page_token, caller.namespace, filters)

    def look(connection: Connection) -> HealthPage:
        require_namespace(connection, caller.namespace)
        page, following = _examine_page(resources, caller, after, limit, connection)
        token = None if following is None else make_list_token(caller.namespace, filters, following)
        return HealthPage(tuple(page), token)

    return resources.database.read(look)


def _examine_all(resources: Resources, limit: int, next_page_token: str | None) -> HealthPage:
    """Page through all namespaces by uid: two schedules may have one id, and uids are in the order of creation."""
    before = None if next_page_token is None else parse_id(next_page_token, "next_page_token")

    def look(connection: Connection) -> HealthPage:
        uids = schedule_lists.newest_uids(connection, before=before, limit=limit + 1)
        found = _examine(resources, connection, stored.find_live(connection, uids[:limit])[::-1])
        return HealthPage(tuple(found), id_text(uids[limit - 1]) if len(uids) > limit else None)

    return resources.database.read(look)


def examine_unwell(resources: Resources, caller: Caller) -> HealthPage:
    """Those that are not well or wait for an approval, oldest first; only they are looked at, `MOST_UNWELL` at most."""
    caller.require(Permission.READ)

    def look(connection: Connection) -> HealthPage:
        require_namespace(connection, caller.namespace)
        uids = stored.suspects(
            connection, caller.scope, resources.clock.now(), resources.settings.failing_after, MOST_UNWELL
        )
        found = _examine(resources, connection, stored.find_live(connection, uids))
        unwell = [each for each in found if each.health.status in NEEDS_SOMEBODY]
        return HealthPage(tuple(unwell[:MOST_UNWELL]), None)

    return resources.database.read(look)


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
    resources: Resources, caller: Caller, after: Cursor | None, limit: int, connection: Connection
) -> tuple[list[Examined], Cursor | None]:
    page = schedule_lists.list_page(connection, caller.namespace, after=after, limit=limit)
    return _examine(resources, connection, list(zip(page.rows, page.documents, strict=True))), page.after


def _examine(
    resources: Resources, connection: Connection, found: Sequence[tuple[ScheduleRow, Mapping[str, Any]]]
) -> list[Examined]:
    now = resources.clock.now()
    vitals = stored.vitals_of(connection, resources.known, [row for row, _ in found], resources.settings.failing_after)
    names: dict[tuple[str, str], str | None] = {}
    attached = _calendars(connection, [row for row, _ in found], vitals)
    return [
        Examined(
            row,
            document,
            judge(each, now),
            _agent_name(connection, row.namespace, agent_of(document), names),
            () if each.planning is None else _warnings(each.planning, row.namespace, attached, now),
        )
        for (row, document), each in zip(found, vitals, strict=True)
    ]


_Calendars: TypeAlias = Mapping[tuple[str, str], CalendarDefinition]


def _calendars(connection: Connection, rows: Sequence[ScheduleRow], vitals: Sequence[HealthFacts]) -> _Calendars:
    """Calendars that are not built in and that the schedules of a page name, with one query."""
    planned = [(row.namespace, each.planning) for row, each in zip(rows, vitals, strict=True) if each.planning]
    return own_calendars(connection, {(namespace, name) for namespace, of in planned for name in of.calendars})


def _warnings(planning: Planning, namespace: str, own: _Calendars, now: Instant) -> tuple[str, ...]:
    today, found = to_datetime(now).date(), list[str | None]()
    for name in planning.calendars:
        with suppress(InvalidCalendar):  # the calendar of a country that the package no longer has
            calendar = own.get((namespace, name)) or shared_calendar(name)
            found.append(None if calendar is None else coverage_warning(calendar, today))
    return tuple(f"calendars: {each}" for each in found if each)


def _agent_name(
    connection: Connection, namespace: str, agent_id: str | None, names: dict[tuple[str, str], str | None]
) -> str | None:
    """`names` keeps those that a page has met."""
    if agent_id is None:
        return None
    if (namespace, agent_id) not in names:
        found = AGENTS.find(connection, namespace, agent_id)
        names[namespace, agent_id] = None if found is None else found.document.get("name")
    return names[namespace, agent_id]


MOST_WATCHED: Final = 20_000
"""Schedules of a namespace that are put in order; of more, `/api/health/schedules` tells in pages."""
MOST_SHOWN = 1_000
# Of documents, which may be large, at one time.
_AT_ONCE = 100


@dataclass(frozen=True, slots=True)
class Watched:
    row: ScheduleRow
    cron_expr: str
    health: HealthReport
    workspace_name: str | None


@dataclass(frozen=True, slots=True)
class WatchedPage:
    """`after` is what asks for the rest; None = this is all."""

    schedules: tuple[Watched, ...]
    after: str | None


def watch(resources: Resources, caller: Caller, *, after: str | None = None) -> WatchedPage:
    """Without those whose agent is gone. `after` is the id of the last one that was seen."""
    caller.require(Permission.ADMINISTER)

    def look(connection: Connection) -> WatchedPage:
        require_namespace(connection, caller.namespace)
        keys = lookup_rows.workspace_keys(connection, caller.namespace, MOST_WATCHED + 1)
        if len(keys) > MOST_WATCHED:
            raise Refused(
                f"the namespace has more than {MOST_WATCHED} schedules; use /api/health/schedules, which has pages"
            )
        names = _names(connection, caller.namespace, keys)
        coming = _rest(ordered(keys, names), after)
        shown = coming[:MOST_SHOWN]
        rows: list[Watched] = []
        for start in range(0, len(shown), _AT_ONCE):
            rows += _watched(resources, connection, shown[start : start + _AT_ONCE], names)
        return WatchedPage(tuple(rows), shown[-1].schedule_id if len(coming) > len(shown) else None)

    return resources.database.read(look)


def ordered(keys: Sequence[WorkspaceKey], names: Mapping[str, str]) -> list[WorkspaceKey]:
    """By the name of the workspace, then of the schedule; those of no workspace first. Whose agent is gone is gone."""
    there = [key for key in keys if key.workspace is None or key.workspace in names]
    return sorted(there, key=lambda key: (names.get(key.workspace or "", ""), key.name, key.schedule_id))


def _rest(keys: Sequence[WorkspaceKey], after: str | None) -> Sequence[WorkspaceKey]:
    if after is None:
        return keys
    place = next((place for place, key in enumerate(keys) if key.schedule_id == after), None)
    if place is None:
        raise ScheduleNotFound(after)
    return keys[place + 1 :]


def _names(connection: Connection, namespace: str, keys: Sequence[WorkspaceKey]) -> dict[str, str]:
    """Names of the agents that exist, by id."""
    wanted, found = sorted({key.workspace for key in keys if key.workspace is not None}), dict[str, str]()
    for start in range(0, len(wanted), _AT_ONCE):
        agents = agent_rows.AGENTS.find_many(connection, namespace, wanted[start : start + _AT_ONCE])
        found |= {agent_id: _name(agent) for agent_id, agent in agents.items()}
    return found


def _name(agent: NamedDocument) -> str:
    """One whose document cannot be read has no other name than its id."""
    try:
        said: Any = agent.document
    except ValueError:
        return agent.name
    name = said.get("name") if isinstance(said, dict) else None
    return name if isinstance(name, str) and name else agent.name


def _watched(
    resources: Resources, connection: Connection, keys: Sequence[WorkspaceKey], names: Mapping[str, str]
) -> list[Watched]:
    found = {
        row.schedule_uid: (row, doc) for row, doc in stored.find_live(connection, [key.schedule_uid for key in keys])
    }
    both = [found[key.schedule_uid] for key in keys if key.schedule_uid in found]
    now = resources.clock.now()
    vitals = stored.vitals_of(connection, resources.known, [row for row, _ in both], resources.settings.failing_after)
    return [
        Watched(row, cron_of(document), judge(each, now), names.get(row.workspace or ""))
        for (row, document), each in zip(both, vitals, strict=True)
    ]
