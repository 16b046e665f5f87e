"""What applying a bundle would do: each calendar and schedule created, updated, unchanged, kept or deleted.

Pure: it is told what the bundle wants and what the server has. Fires are counted over the next seven days.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from horarium.cli.bundle import Document, existing_definition, read_definition, written_calendar
from horarium.instant import DAY, Instant
from horarium.schedule.definition import Definition
from horarium.schedule.document import changed_fields

HORIZON = 7 * DAY
# One of every minute has 10,080 in a week; beyond this the number says no more than "many".
_MAX_FIRES = 20_000


class Change(StrEnum):
    CREATE = "create"
    UPDATE = "update"
    UNCHANGED = "unchanged"
    KEEP = "keep"  # it is not ours to change
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class Step:
    """`document` is what is sent. `added` and `removed` are fires; None = the week has too many to count."""

    kind: str
    name: str
    change: Change
    document: Document
    fields: tuple[str, ...] = ()
    added: int | None = 0
    removed: int | None = 0


def plan_calendar(wanted: Document, existing: Mapping[str, Any] | None) -> Step:
    name = wanted["name"]
    if existing is None:
        return Step("calendar", name, Change.CREATE, wanted)
    if existing.get("read_only"):
        return Step("calendar", name, Change.KEEP, wanted)
    has = written_calendar(existing)
    fields = tuple(field for field, value in wanted.items() if _plain(value) != _plain(has.get(field)))
    return Step("calendar", name, Change.UPDATE if fields else Change.UNCHANGED, wanted, fields)


def plan_schedule(wanted: Document, existing: Mapping[str, Any] | None, *, now: Instant) -> Step:
    """`runtime` schedules belong to their users: a bundle does not touch them."""
    name = wanted["schedule_id"]
    document = {**wanted, "source": "template"}
    if existing is None:
        fires = _fires(read_definition(document, None, now=now), now)
        return Step("schedule", name, Change.CREATE, document, added=None if fires is None else len(fires))
    if existing.get("source") != "template":
        return Step("schedule", name, Change.KEEP, document)
    has = existing_definition(existing)
    wants = read_definition(document, has, now=now)
    fields = changed_fields(has, wants)
    if not fields:
        return Step("schedule", name, Change.UNCHANGED, document)
    before, after = (set(), set()) if existing.get("paused") else (_fires(has, now), _fires(wants, now))
    if before is None or after is None:
        return Step("schedule", name, Change.UPDATE, document, fields, None, None)
    return Step("schedule", name, Change.UPDATE, document, fields, len(after - before), len(before - after))


def plan_deletion(existing: Mapping[str, Any], *, now: Instant) -> Step:
    fires = set() if existing.get("paused") else _fires(existing_definition(existing), now)
    removed = None if fires is None else len(fires)
    return Step("schedule", str(existing["schedule_id"]), Change.DELETE, {}, removed=removed)


def _fires(definition: Definition, now: Instant) -> set[Instant] | None:
    found: set[Instant] = set()
    for nominal in definition.spec.compile(definition.schedule_id).occurrences(now):
        if nominal > now + HORIZON:
            break
        if len(found) == _MAX_FIRES:
            return None
        found.add(nominal)
    return found


def _plain(value: Any) -> Any:
    """The order of dates says nothing."""
    return sorted(value) if isinstance(value, list) and all(isinstance(each, str) for each in value) else value
