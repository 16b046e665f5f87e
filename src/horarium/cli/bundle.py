"""What a bundle is: calendars and schedules as people write them, without what a server adds.

{"calendars": [{"name": …, "kind": …, "dates": […]}], "schedules": [{"schedule_id": …, "spec": …, "action": …}]}
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from horarium.cli.reading import read_object, refuse
from horarium.errors import HorariumError
from horarium.instant import Instant
from horarium.schedule.definition import Definition
from horarium.schedule.document import Update, from_canonical, parse_definition
from horarium.schedule.field import ANYTHING, Field
from horarium.schedule.kinds import SHIPPED, Kind, Kinds
from horarium.schedule.places import NAMES

Document = dict[str, Any]

# The namespace is that of whoever applies it; owner and user are those of the credential.
_NOT_WRITTEN = frozenset({"namespace", "owner", "user_id"})
_CALENDAR_FIELDS = ("name", "kind", "timezone", "dates", "rule", "covers")
_EMPTY: tuple[Any, ...] = (None, "", [], {})


@dataclass(frozen=True, slots=True)
class Bundle:
    calendars: tuple[Document, ...]
    schedules: tuple[Document, ...]


def read_bundle(file: str) -> Bundle:
    document = read_object("file", file)
    unknown = sorted(document.keys() - {"calendars", "schedules"})
    if unknown:
        refuse(f"file: unknown field {unknown[0][:64]!r}; a bundle has calendars and schedules")
    calendars = _array(document, "calendars", "name")
    return Bundle(calendars, _array(document, "schedules", "schedule_id"))


def written(schedule: Mapping[str, Any]) -> Document:
    """What somebody wrote, out of what the server tells about a schedule."""
    kept = {name: schedule[name] for name in NAMES if name in schedule and name not in _NOT_WRITTEN}
    if isinstance(kept.get("action"), Mapping):
        kept["action"] = {name: value for name, value in kept["action"].items() if name != "task_queue"}
    if kept.get("source") == "runtime":
        del kept["source"]
    return {name: value for name, value in kept.items() if value not in _EMPTY}


def written_calendar(calendar: Mapping[str, Any]) -> Document:
    return {name: calendar[name] for name in _CALENDAR_FIELDS if calendar.get(name) not in _EMPTY}


def read_definition(document: Document, base: Definition | None, *, now: Instant) -> Definition:
    """What the server will make of it, by the rules and defaults of this program; `base` is what it has."""
    try:
        if base is None:
            return parse_definition(document, now=now, kinds=_kinds(document)).definition
        return parse_definition(
            document, now=now, namespace=base.namespace, base=base, update=Update.WHOLE, kinds=_kinds(document)
        ).definition
    except HorariumError as wrong:
        refuse(f"schedule {document['schedule_id'][:128]!r}: {wrong.message}")


def _kinds(document: Document) -> Kinds:
    """A kind that this program does not know may be one of the server's: its fields are left for it to check."""
    action = document.get("action")
    name = action.get("kind") if isinstance(action, dict) else None
    if not isinstance(action, dict) or not isinstance(name, str) or name in SHIPPED:
        return SHIPPED
    known = SHIPPED.names.objects["action"]
    try:
        return SHIPPED.extended([Kind(name, {each: Field("", ANYTHING) for each in action if each not in known})])
    except ValueError:  # no server can have a kind of this name
        return SHIPPED


def existing_definition(schedule: Mapping[str, Any]) -> Definition:
    try:
        return from_canonical({**written(schedule), "namespace": schedule.get("namespace")})
    except HorariumError as wrong:
        refuse(f"the server's schedule {str(schedule.get('schedule_id'))[:128]!r}: {wrong.message}")


def _array(document: Document, member: str, identity: str) -> tuple[Document, ...]:
    rows = document.get(member) or []
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        refuse(f"file: {member} must be an array of objects")
    names = [row.get(identity) for row in rows]
    if not all(isinstance(name, str) and name for name in names):
        refuse(f"file: each of {member} needs a {identity}")
    twice = next((name for name in names if names.count(name) > 1), None) if len(set(names)) < len(names) else None
    if twice is not None:
        refuse(f"file: {identity} {twice[:128]!r} is there twice")
    return tuple(rows)
