"""Rows that definitions refer to, read once in a transaction."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from horarium.errors import HorariumError
from horarium.schedule.assignee import Assignee
from horarium.schedule.calendar import Calendar, parse_calendar
from horarium.store import calendars, secrets
from horarium.store.assignees import AGENTS, TEAMS
from horarium.store.calendars import CalendarRow
from horarium.store.database import Connection
from horarium.store.policies import Speakers, find_speakers
from horarium.store.schedules import references
from horarium.store.secrets import SecretName


class Lookups:
    """Objects that definitions refer to, read once in a transaction and shared by many definitions."""

    def __init__(self, connection: Connection, namespace: str) -> None:
        self._connection, self._namespace = connection, namespace
        self._found: dict[tuple[str, str], Any] = {}
        self._calendars: dict[str, Calendar | None] = {}
        self._no_calendars: set[str] = set()

    def calendars(self, names: Sequence[str]) -> Mapping[str, Calendar | None]:
        """Calendars of the namespace, by name; None = its row cannot be read."""
        unknown = [name for name in names if name not in self._calendars and name not in self._no_calendars]
        rows = calendars.find_many(self._connection, self._namespace, unknown) if unknown else {}
        self._calendars |= {name: _calendar(row) for name, row in rows.items()}
        self._no_calendars.update(name for name in unknown if name not in rows)
        return {name: self._calendars[name] for name in names if name in self._calendars}

    def workflow(self, name: str) -> references.WorkflowReference | None:
        found: references.WorkflowReference | None = self._once("workflow", name, references.newest_workflow)
        return found

    def speakers(self, assignee: Assignee | None, assignment_id: str | None) -> Speakers:
        """Whoever has a word in the work of these, among those that there are."""
        key = "speakers", f"{assignment_id} {assignee}"
        if key not in self._found:
            given = [] if assignment_id is None else [(self._namespace, assignment_id)]
            who = [] if assignee is None else [(self._namespace, assignee)]
            self._found[key] = find_speakers(self._connection, given, who)
        found: Speakers = self._found[key]
        return found

    def is_somebody(self, name: str) -> bool:
        """Return whether an agent or a team has this id."""
        found: bool = self._once("somebody", name, _is_somebody)
        return found

    def secrets(self, names: Collection[str]) -> Mapping[str, SecretName]:
        """Not remembered: what is written meanwhile may set some."""
        return secrets.find_names(self._connection, self._namespace, names)

    def _once(self, kind: str, name: str, ask: Callable[[Connection, str, str], Any]) -> Any:
        if (kind, name) not in self._found:
            self._found[kind, name] = ask(self._connection, self._namespace, name)
        return self._found[kind, name]


def _calendar(row: CalendarRow) -> Calendar | None:
    try:
        return parse_calendar(row.document)
    except (HorariumError, ValueError, TypeError, AttributeError):
        return None


def _is_somebody(connection: Connection, namespace: str, name: str) -> bool:
    return any(rows.find(connection, namespace, name) is not None for rows in (AGENTS, TEAMS))
