"""What a schedule says now, and what a document would make of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from horarium.errors import InvalidDefinition
from horarium.instant import Instant
from horarium.operations.caller import Caller
from horarium.operations.changes import ScheduleChange
from horarium.operations.drafts import signed
from horarium.operations.resources import Resources
from horarium.schedule.definition import Definition
from horarium.schedule.document import Parsed, changed_fields, from_canonical, parse_definition
from horarium.schedule.patch import Update
from horarium.schedule.position import Status
from horarium.store.database import Connection
from horarium.store.schedules import rows as schedules
from horarium.store.schedules.rows import ScheduleRow
from horarium.wire.outcomes import WriteOutcome


def current_definition(connection: Connection, row: ScheduleRow) -> Definition:
    revision = schedules.find_revision(connection, row.schedule_uid, row.revision)
    if revision is None:
        raise LookupError(f"the revision {row.revision} of {row.schedule_id!r} does not exist any more")
    return current(row, revision.document)


def current(row: ScheduleRow, document: object) -> Definition:
    """`document` is the newest of the row."""
    return replace(from_canonical(document), note=row.note)


def wanted(
    resources: Resources,
    caller: Caller,
    base: Definition,
    document: object,
    how: Update,
    now: Instant,
    *,
    may_be_over: bool = False,
) -> Parsed:
    """Apply the document to `base`. A whole document without source or note leaves them unchanged."""
    parsed = parse_definition(
        document,
        now=now,
        namespace=caller.namespace,
        defaults=resources.defaults(),
        kinds=resources.kinds_for(caller.namespace),
        base=base,
        update=how,
        may_be_over=may_be_over,
    )
    definition = signed(parsed.definition, caller, base)
    if how is Update.WHOLE and not (isinstance(document, Mapping) and "source" in document):
        definition = replace(definition, source=base.source)
    if how is Update.WHOLE and not parsed.tells_note:
        definition = replace(definition, note=base.note)
    return replace(parsed, definition=definition)


def is_used_up(max_runs: int | None, runs_born: int) -> bool:
    return max_runs is not None and runs_born >= max_runs


def exhausted(connection: Connection, caller: Caller, schedule_id: str) -> tuple[ScheduleRow, Definition] | None:
    """The last schedule of this id, if it was deleted because its runs are used up and the caller may change it."""
    row = schedules.find_newest(connection, caller.namespace, schedule_id)
    if row is None or row.deleted_at is None or not caller.owns(row.owner):
        return None
    try:
        definition = current_definition(connection, row)
    except (InvalidDefinition, LookupError):  # what cannot be read cannot be compared
        return None
    return (row, definition) if is_used_up(definition.max_runs, row.runs_born) else None


def same_exhausted(
    resources: Resources, connection: Connection, caller: Caller, schedule_id: str, document: object
) -> ScheduleChange | None:
    """The answer to a document that says no more than a schedule whose runs are used up; None = it says more.

    Whoever puts a definition in place again, at each start or deployment, does not ask for its runs again.
    """
    found = exhausted(connection, caller, schedule_id)
    if found is None:
        return None
    row, base = found
    try:
        parsed = wanted(resources, caller, base, document, Update.WHOLE, resources.clock.now())
    except InvalidDefinition:  # it is refused, or made, as a new one
        return None
    if not set(changed_fields(base, parsed.definition)) <= {"note", "owner"}:
        return None
    return ScheduleChange(
        row.schedule_uid,
        row.namespace,
        row.schedule_id,
        WriteOutcome.UNCHANGED,
        row.version,
        Status.DELETED,
        None,
        warnings=parsed.warnings,
        exhausted=True,
    )
