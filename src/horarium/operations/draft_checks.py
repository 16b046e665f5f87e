"""Whether a document may be written as it is: asked of the very functions that write, and nothing is written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from horarium.decision import lifecycle
from horarium.decision.storm import MOST_AT_ONCE, must_be_confirmed, released_by_edit
from horarium.errors import HorariumError, InvalidCalendar, InvalidDefinition, InvalidSpec, InvalidWorkflow
from horarium.instant import Instant
from horarium.operations.bypasses import refuse_skipping_in
from horarium.operations.caller import Caller
from horarium.operations.definitions import current_definition, wanted
from horarium.operations.drafts import Draft, examine_draft, require_namespace, signed
from horarium.operations.errors import (
    AlreadyExists,
    ConfirmNeeded,
    Forbidden,
    QuotaExceeded,
    Refused,
    ScheduleAlreadyExists,
)
from horarium.operations.quotas import check_gap, require_room
from horarium.operations.resources import Opened, Resources, not_found
from horarium.operations.schedules import edit_waits, parse_new, planned_edit
from horarium.policy.quotas import Quota
from horarium.schedule.definition import Definition, SpecText
from horarium.schedule.document import Parsed, changed_fields, named_in, spec_equal, spec_in, to_document
from horarium.schedule.patch import Update
from horarium.schedule.planning import Planning
from horarium.schedule.position import Position, Status
from horarium.store.database import Connection
from horarium.store.schedules import rows as schedules

NAMELESS: Final = "new-schedule"
"""Stands for an id that is made when a schedule is."""
NOBODY: Final = bytes(16)
"""The uid of a schedule that does not exist yet; its real uid, and with it its jitter, is unknown."""
WHOLE: Final = "document"
"""Where a sentence stands that is about no field."""


@dataclass(frozen=True, slots=True)
class Asked:
    """`how` an edit is meant. `year` None = the one that it is now, where the schedule is."""

    document: object
    schedule_id: str | None
    how: Update
    rows: int
    year: int | None
    now: Instant


@dataclass(frozen=True, slots=True)
class Checked:
    """A checked draft. `opened` is the schedule that it edits; `position` is then that after the edit."""

    draft: Draft
    position: Position
    warnings: tuple[str, ...]
    opened: Opened | None = None

    @property
    def uid(self) -> bytes:
        return NOBODY if self.opened is None else self.opened.row.schedule_uid


@dataclass(frozen=True, slots=True)
class Invalid:
    """`spec` is what can be read of it all the same. `forbidden`: whatever it says, this caller may not write it."""

    errors: Mapping[str, Sequence[str]]
    key: str | None
    spec: SpecText | None = None
    document: Mapping[str, Any] | None = None
    forbidden: bool = False


def check_asked(resources: Resources, connection: Connection, *, caller: Caller, asked: Asked) -> Checked | Invalid:
    require_namespace(connection, caller.namespace)
    if asked.schedule_id is None:
        return _check_new(resources, connection, caller, asked)
    row = schedules.find(connection, caller.namespace, asked.schedule_id)
    if row is None:
        raise not_found(resources, connection, caller, asked.schedule_id)
    planning = resources.known.load(connection, [row.planning])[row.planning]
    return _check_edit(resources, connection, caller, asked, Opened(row, planning, asked.now))


def _check_new(resources: Resources, connection: Connection, caller: Caller, asked: Asked) -> Checked | Invalid:
    key = named_in(asked.document)
    try:
        parsed = parse_new(resources, caller, asked.document, generated_id=NAMELESS)
    except InvalidDefinition as wrong:
        return _unreadable(resources, caller, asked, wrong, key)
    definition = signed(parsed.definition, caller)
    errors: dict[str, list[str]] = {}
    if key is not None and schedules.find(connection, caller.namespace, key) is not None:
        errors |= _by_field(ScheduleAlreadyExists(key))
    try:
        draft = _examined(resources, connection, caller, parsed, definition, None)
        refuse_skipping_in(connection, parsed.skipping, definition, needs_approval=draft.planning.needs_approval)
        position = lifecycle.begin(draft.planning, NOBODY, now=asked.now, paused=parsed.paused is True)
        _require_room(resources, connection, caller, draft, position, new=1, now=asked.now)
    except _WRONG as wrong:
        errors |= _by_field(wrong)
    if errors:
        return Invalid(errors, key, definition.spec, kept_document(definition, key))
    return Checked(draft, position, (*parsed.warnings, *draft.warnings, *draft.calendar_warnings))


def _check_edit(
    resources: Resources, connection: Connection, caller: Caller, asked: Asked, opened: Opened
) -> Checked | Invalid:
    row = opened.row
    base: Definition | None = None
    try:
        caller.require_owner(row.owner, f"the schedule {row.schedule_id!r}")
        base = current_definition(connection, row)
        parsed = wanted(resources, caller, base, asked.document, asked.how, asked.now)
    except _WRONG as wrong:
        return _unreadable(resources, caller, asked, wrong, row.schedule_id, base)
    try:
        waits = edit_waits(opened, parsed.definition)
        refuse_skipping_in(connection, parsed.skipping, parsed.definition, needs_approval=waits)
        draft = _examined_edit(resources, connection, caller, parsed, base, opened)
        spec_changed = not spec_equal(base, parsed.definition)
        position = planned_edit(opened, draft, spec_changed=spec_changed).position
        if parsed.definition != base:
            _require_room(resources, connection, caller, draft, position, new=0, now=asked.now, gap=spec_changed)
    except _WRONG as wrong:
        return Invalid(_by_field(wrong), row.schedule_id, parsed.definition.spec, to_document(parsed.definition))
    if base.inputs_rotation != parsed.definition.inputs_rotation:
        position = position._replace(rotation_index=0)
    before = None if isinstance(opened.planning, Exception) else opened.planning
    started = released_by_edit(
        before,
        draft.planning,
        position.status,
        active=row.active,
        held=row.held,
        paused_until=row.paused_until,
    )
    storm = (f"{WHOLE}: {ConfirmNeeded(started, MOST_AT_ONCE).message}",) if must_be_confirmed(started) else ()
    warnings = (*parsed.warnings, *draft.warnings, *draft.calendar_warnings, *storm)
    return Checked(draft, _paused(parsed, draft, opened, position), warnings, opened)


def _examined_edit(
    resources: Resources, connection: Connection, caller: Caller, parsed: Parsed, base: Definition, opened: Opened
) -> Draft:
    """Examine an edit. A change of the note alone is not checked, since its references may no longer exist."""
    before = None if isinstance(opened.planning, Exception) else opened.planning
    if before is not None and set(changed_fields(base, parsed.definition)) <= {"note"}:
        return Draft(parsed.definition, "", before)
    return _examined(resources, connection, caller, parsed, parsed.definition, before)


def _paused(parsed: Parsed, draft: Draft, opened: Opened, position: Position) -> Position:
    """As the document wants it, where it says so."""
    if parsed.paused is True and position.status is Status.ACTIVE:
        return position._replace(status=Status.PAUSED)
    if parsed.paused is False and position.status is Status.PAUSED:
        return lifecycle.resume(draft.planning, opened.row.schedule_uid, position, now=opened.now).position
    return position


def _examined(
    resources: Resources,
    connection: Connection,
    caller: Caller,
    parsed: Parsed,
    definition: Definition,
    before: Planning | None,
) -> Draft:
    if parsed.credentials and resources.sealer is None:
        raise Refused("this process has no secret key, so it cannot store credentials; set secret_key")
    return examine_draft(resources, connection, caller, definition, before, secrets_given=parsed.credentials)


def _require_room(
    resources: Resources,
    connection: Connection,
    caller: Caller,
    draft: Draft,
    position: Position,
    *,
    new: int,
    now: Instant,
    gap: bool = True,
) -> None:
    revision = draft.revision(position.generation)
    limits = require_room(resources, connection, revision, caller.namespace, new=new, now=now)
    if limits is not None and gap:
        check_gap(caller.namespace, limits, draft.planning.spec, now)


def _unreadable(
    resources: Resources,
    caller: Caller,
    asked: Asked,
    wrong: HorariumError,
    key: str | None,
    base: Definition | None = None,
) -> Invalid:
    spec = spec_in(
        asked.document,
        now=asked.now,
        key=key or NAMELESS,
        defaults=resources.defaults(),
        kinds=resources.kinds_for(caller.namespace),
        base=base,
        update=asked.how,
    )
    return Invalid(_by_field(wrong), key, spec, forbidden=isinstance(wrong, Forbidden))


# What a write refuses because of what the document says, or of who sends it. All else is no part of a draft.
_WRONG = (
    InvalidDefinition, InvalidWorkflow, InvalidCalendar, InvalidSpec, Forbidden, AlreadyExists, Refused, QuotaExceeded,
)  # fmt: skip


def _by_field(wrong: HorariumError) -> dict[str, list[str]]:
    match wrong:
        case InvalidDefinition() | InvalidWorkflow():
            return dict(wrong.errors)
        case AlreadyExists():
            return {"schedule_id": [wrong.message]}
        case QuotaExceeded() if wrong.quota == Quota.SHORTEST_GAP_SECONDS:
            return {"spec": [wrong.message]}
        case _:
            return {WHOLE: [wrong.message]}


def kept_document(definition: Definition, key: str | None) -> dict[str, Any]:
    """As it would be kept; a name that is made when it is kept is not known before."""
    document = to_document(definition)
    return document if key is not None else {name: value for name, value in document.items() if name != "schedule_id"}
