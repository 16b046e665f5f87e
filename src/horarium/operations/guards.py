"""How the calendars, the condition and the rotation of a schedule are set and cleared, one without the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum

from horarium.operations.caller import Caller
from horarium.operations.changes import ScheduleChange
from horarium.operations.resources import Resources, open_schedule
from horarium.operations.schedules import update_opened
from horarium.schedule.event import EventType
from horarium.schedule.patch import Update
from horarium.store.database import Connection
from horarium.store.history.append import Journal
from horarium.store.schedules.write import save_position
from horarium.wire.outcomes import WriteOutcome
from horarium.wire.roles import Permission


class Guarded(StrEnum):
    """The part of a definition, by its name in the document."""

    CALENDARS = "calendars"
    CONDITION = "pre_dispatch_condition"
    ROTATION = "inputs_rotation"


def put(
    resources: Resources,
    caller: Caller,
    schedule_id: str,
    part: Guarded,
    value: object,
    *,
    if_version: int | None = None,
) -> ScheduleChange:
    """In place of the old one, whole: a condition is not merged with the one before."""
    return _change(resources, caller, schedule_id, part, {part.value: value}, Update.PARTS, if_version)


def clear(
    resources: Resources, caller: Caller, schedule_id: str, part: Guarded, *, if_version: int | None = None
) -> ScheduleChange:
    return _change(resources, caller, schedule_id, part, {part.value: None}, Update.MERGE, if_version)


def _change(
    resources: Resources,
    caller: Caller,
    schedule_id: str,
    part: Guarded,
    document: dict[str, object],
    how: Update,
    if_version: int | None,
) -> ScheduleChange:
    caller.require(Permission.WRITE)

    def work(connection: Connection) -> ScheduleChange:
        opened = open_schedule(resources, connection, caller, schedule_id, if_version=if_version)
        written = update_opened(resources, connection, caller, opened, document, how, obey_pause=False)
        if part is Guarded.ROTATION and written.outcome is WriteOutcome.UNCHANGED and opened.row.rotation_index:
            return _begin_again(resources, connection, caller, written, ["rotation_index"])
        return written

    return resources.database.write(work)


def _begin_again(
    resources: Resources, connection: Connection, caller: Caller, written: ScheduleChange, changed: Sequence[str]
) -> ScheduleChange:
    """Setting the rotation that it has already is how one starts it from its first inputs."""
    opened = open_schedule(resources, connection, caller, written.schedule_id)
    row, now = opened.row, opened.now
    journal = Journal(row.next_sequence, now, caller.context())
    journal.add(EventType.UPDATED, changed_fields=list(changed), revision=row.revision, generation=row.generation)
    version = save_position(
        connection,
        row.schedule_uid,
        {"rotation_index": 0, "next_sequence": journal.write(connection, row.schedule_uid, row.namespace)},
        expected_version=row.version,
        now=now,
    )
    return replace(written, outcome=WriteOutcome.UPDATED, version=version, changed=tuple(changed))
