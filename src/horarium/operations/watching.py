"""How the schedules of a namespace are doing, for a monitor: by the name of the workspace, then by their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from horarium.decision.health import Health, judge
from horarium.operations.caller import Caller
from horarium.operations.drafts import require_namespace
from horarium.operations.errors import Refused, ScheduleNotFound
from horarium.operations.resources import Resources
from horarium.schedule.workspace_request import cron_of
from horarium.store import assignees
from horarium.store.database import Connection
from horarium.store.named_documents import NamedDocument
from horarium.store.schedules import health as stored
from horarium.store.schedules import workspaces
from horarium.store.schedules.rows import ScheduleRow
from horarium.store.schedules.workspaces import Key
from horarium.wire.roles import Permission

MOST_WATCHED: Final = 20_000
"""Schedules of a namespace that are put in order; of more, `/api/health/schedules` tells in pages."""
MOST_SHOWN = 1_000
# Of documents, which may be large, at one time.
_AT_ONCE = 100


@dataclass(frozen=True, slots=True)
class Watched:
    row: ScheduleRow
    cron_expr: str
    health: Health
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
        keys = workspaces.keys(connection, caller.namespace, MOST_WATCHED + 1)
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


def ordered(keys: Sequence[Key], names: Mapping[str, str]) -> list[Key]:
    """By the name of the workspace, then of the schedule; those of no workspace first. Whose agent is gone is gone."""
    there = [key for key in keys if key.workspace is None or key.workspace in names]
    return sorted(there, key=lambda key: (names.get(key.workspace or "", ""), key.name, key.schedule_id))


def _rest(keys: Sequence[Key], after: str | None) -> Sequence[Key]:
    if after is None:
        return keys
    place = next((place for place, key in enumerate(keys) if key.schedule_id == after), None)
    if place is None:
        raise ScheduleNotFound(after)
    return keys[place + 1 :]


def _names(connection: Connection, namespace: str, keys: Sequence[Key]) -> dict[str, str]:
    """Names of the agents that exist, by id."""
    wanted, found = sorted({key.workspace for key in keys if key.workspace is not None}), dict[str, str]()
    for start in range(0, len(wanted), _AT_ONCE):
        agents = assignees.AGENTS.find_many(connection, namespace, wanted[start : start + _AT_ONCE])
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
    resources: Resources, connection: Connection, keys: Sequence[Key], names: Mapping[str, str]
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
