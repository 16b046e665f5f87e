"""Create, upsert, update and patch schedules."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from hashlib import sha256

import orjson

from horarium.core.decision import decide
from horarium.core.decision.decide import released_by_edit
from horarium.core.decision.facts import Fact
from horarium.core.decision.guards import facts_needed
from horarium.core.document.canonical import UpdateMode, to_document
from horarium.core.document.definition import Definition
from horarium.core.document.document import ParsedDefinition, changed_fields, named_in, parse_definition, spec_equal
from horarium.core.document.states import EventType, Origin, Status
from horarium.core.policy.approval import run_needs_approval
from horarium.errors import InvalidDefinition
from horarium.features.bundles.values import BundleKind
from horarium.features.history.rows import Journal
from horarium.features.resources import Opened, Resources, open_schedule, wake_tickers
from horarium.features.runs import release_rows
from horarium.features.schedules import rows as schedules
from horarium.features.schedules import write_rows
from horarium.features.schedules.creation import (
    SECRETS,
    Planned,
    ScheduleChange,
    begin_schedule,
    current_definition,
    definition_payload,
    keep_credentials,
    moved,
    next_runs,
    same_exhausted,
    unchanged,
    wanted,
)
from horarium.features.schedules.decisions import bypass_on_record, refuse_skipping_in
from horarium.features.schedules.drafts import Draft, check_definitions, check_draft, write_of
from horarium.features.schedules.lifecycle import pause_opened, require_somebody, resume_opened
from horarium.features.schedules.references import note_attribute
from horarium.features.schedules.rows import PositionChange
from horarium.features.schedules.write_rows import add_revision, insert_schedule, save_position, set_note
from horarium.instant import Instant
from horarium.platform.caller import Caller, require_confirmed
from horarium.platform.database import Connection, statements
from horarium.platform.database.errors import UniqueConflict
from horarium.platform.database.wakeups import READY
from horarium.platform.errors import ScheduleAlreadyExists, ScheduleNotFound
from horarium.platform.ids import id_text, new_id
from horarium.platform.wire import Permission, WriteOutcome

_NAMELESS = "schedule"
_SPOKEN_OF = frozenset(
    {
        "action",
        "approval_policy",
        "assignee_id",
        "assignee_type",
        "inputs_rotation",
        "pre_dispatch_condition",
        "workflow_assignment_id",
    }
)
"""The parts of a definition that a draft may warn about."""


def create(resources: Resources, caller: Caller, document: object) -> ScheduleChange:
    """Raises ScheduleAlreadyExists, NamespaceNotFound, and InvalidDefinition with all that is wrong."""
    caller.require(Permission.WRITE)
    parsed = parse_new(resources, caller, document)
    try:
        with bypass_on_record(resources, caller):
            return resources.database.write(lambda connection: _create(resources, connection, caller, parsed))
    except UniqueConflict as taken:
        if taken.constraint == "schedules_live_id":
            raise ScheduleAlreadyExists(parsed.definition.schedule_id) from None
        raise


def upsert(
    resources: Resources, caller: Caller, document: object, *, update: UpdateMode = UpdateMode.WHOLE
) -> ScheduleChange:
    """Create or replace by id. An equal definition changes nothing, and a pause is never undone by it.

    Nor does it bring back a schedule whose runs are used up. Without an id the definition names itself, so that
    repeating it adds no second schedule.
    """
    caller.require(Permission.WRITE)
    document = _named(resources, caller, document)
    try:
        parsed: ParsedDefinition | InvalidDefinition = parse_new(resources, caller, document)
    except InvalidDefinition as wrong:  # as a new one it will not do; as what is there already it may
        parsed = wrong
    schedule_id = named_in(document) if isinstance(parsed, InvalidDefinition) else parsed.definition.schedule_id

    def put(connection: Connection) -> ScheduleChange:
        known = None if schedule_id is None else schedules.find(connection, caller.namespace, schedule_id)
        if schedule_id is not None and known is None:
            over = same_exhausted(resources, connection, caller, schedule_id, document)
            if over is not None:
                return over
        if schedule_id is None or known is None:
            if isinstance(parsed, InvalidDefinition):
                raise parsed
            return _create(resources, connection, caller, parsed)
        opened = open_schedule(resources, connection, caller, schedule_id)
        return update_opened(resources, connection, caller, opened, document, update, obey_pause=False)

    write = write_of(resources, document)
    try:
        with bypass_on_record(resources, caller, schedule_id):
            return write(put)
    except ScheduleNotFound:
        return write(put)  # somebody has deleted it between the look and the lock
    except UniqueConflict as taken:
        if taken.constraint != "schedules_live_id":
            raise
        return write(put)  # somebody was faster; now it is there


def update(
    resources: Resources,
    caller: Caller,
    schedule_id: str,
    document: object,
    *,
    how: UpdateMode = UpdateMode.MERGE,
    if_version: int | None = None,
) -> ScheduleChange:
    """`parts` for PUT, `merge` for PATCH. Whoever may only operate may change the pause state and nothing else."""
    caller.require(Permission.WRITE)

    def change(connection: Connection) -> ScheduleChange:
        opened = open_schedule(resources, connection, caller, schedule_id, if_version=if_version)
        return update_opened(resources, connection, caller, opened, document, how, obey_pause=True)

    with bypass_on_record(resources, caller, schedule_id):
        return write_of(resources, document)(change)


# ── creating ─────────────────────────────────────────────────────────────────────────────────────────


def parse_new(
    resources: Resources,
    caller: Caller,
    document: object,
    *,
    may_be_over: bool = False,
    generated_id: str | None = None,
) -> ParsedDefinition:
    """`may_be_over`: one whose occurrences all lie in the past is no mistake."""
    parsed = parse_definition(
        document,
        now=resources.clock.now(),
        generated_id=generated_id or id_text(new_id()).lower(),
        namespace=caller.namespace,
        defaults=resources.defaults(),
        kinds=resources.kinds_for(caller.namespace),
        may_be_over=may_be_over,
    )
    caller.require_namespace(parsed.definition.namespace)
    return parsed


def _named(resources: Resources, caller: Caller, document: object) -> object:
    """Derive the id of a schedule that gives none from its definition without credentials."""
    if not isinstance(document, Mapping) or named_in(document) is not None:
        return document
    # What was good once, such as a moment that has passed, must still find the schedule it made.
    for now in (resources.clock.now(), 0):
        with suppress(InvalidDefinition):
            parsed = _parsed_nameless(resources, caller, document, now)
            return {**document, "schedule_id": _own_name(parsed.definition)}
    return document


def _parsed_nameless(resources: Resources, caller: Caller, document: object, now: Instant) -> ParsedDefinition:
    return parse_definition(
        document,
        now=now,
        generated_id=_NAMELESS,
        namespace=caller.namespace,
        defaults=resources.defaults(),
        kinds=resources.kinds_for(caller.namespace),
    )


def _own_name(definition: Definition) -> str:
    said = orjson.dumps(to_document(replace(definition, note=None)), option=orjson.OPT_SORT_KEYS)
    return f"{_NAMELESS}-{sha256(said).hexdigest()[:24]}"


def _create(resources: Resources, connection: Connection, caller: Caller, parsed: ParsedDefinition) -> ScheduleChange:
    now = resources.clock.now()
    begun = begin_schedule(resources, connection, caller, parsed)
    specs = [begun.planning.spec]
    check_definitions(resources, connection, caller.namespace, [begun.new.revision], new=1, specs=specs, now=now)
    insert_schedule(connection, begun.new, now=now)
    begun.journal.write(connection, begun.new.schedule_uid, begun.new.namespace)
    begun.wake(resources, connection)
    uid = begun.new.schedule_uid
    planned = Planned(uid, begun.new.namespace, begun.new.schedule_id, begun.new.position, begun.planning)
    return replace(begun.change, next_run=next_runs(connection, [planned], now, resources.signals)[uid])


# ── changing ─────────────────────────────────────────────────────────────────────────────────────────


def update_opened(
    resources: Resources,
    connection: Connection,
    caller: Caller,
    opened: Opened,
    document: object,
    how: UpdateMode,
    *,
    obey_pause: bool,
) -> ScheduleChange:
    """For whoever holds the lock."""
    row = opened.row
    caller.require_owner(row.owner, f"the schedule {row.schedule_id!r}")
    base = current_definition(connection, row)
    parsed = wanted(resources, caller, base, document, how, opened.now)
    waits = edit_waits(opened, parsed.definition)
    refuse_skipping_in(connection, parsed.skipping, parsed.definition, needs_approval=waits)
    beside = (SECRETS,) if keep_credentials(resources, connection, caller, parsed) else ()
    written = change_opened(resources, connection, caller, opened, base, parsed.definition, beside)
    if obey_pause and parsed.paused is not None:
        written = _set_paused(resources, connection, caller, written, parsed.paused)
    return replace(written, warnings=(*parsed.warnings, *written.warnings))


def edit_waits(opened: Opened, wanted: Definition) -> bool:
    """Tell whether runs need approval before or after the edit."""
    now = not isinstance(opened.planning, Exception) and opened.planning.needs_approval
    return now or run_needs_approval(wanted.approval, has_assignee=wanted.assignee is not None, has_steps=False)


def change_opened(
    resources: Resources,
    connection: Connection,
    caller: Caller,
    opened: Opened,
    base: Definition,
    definition: Definition,
    beside: tuple[str, ...] = (),
) -> ScheduleChange:
    """`base` becomes `definition`. `beside` names what the caller changes of it that is no part of either."""
    changed = changed_fields(base, definition)
    if set(changed) <= {"note"} and (changed or beside):
        return _beside(connection, caller, opened, definition, (*changed, *beside))
    if changed:
        told_of = (*changed, *(each for each in beside if each == SECRETS))
        return _revise(resources, connection, caller, opened, base, definition, told_of)
    return unchanged(connection, opened)


def _revise(
    resources: Resources,
    connection: Connection,
    caller: Caller,
    opened: Opened,
    base: Definition,
    definition: Definition,
    changed: tuple[str, ...],
) -> ScheduleChange:
    """One new revision. An edit never fires the past: what it overtakes is recorded as superseded."""
    row, now = opened.row, opened.now
    before = None if isinstance(opened.planning, Exception) else opened.planning
    draft = check_draft(resources, connection, caller, definition, before)
    is_told = not _SPOKEN_OF.isdisjoint(changed)
    if is_told:
        resources.name_addresses(BundleKind.SCHEDULE.value, row.schedule_id, draft.addresses)
    change = planned_edit(opened, draft, spec_changed=not spec_equal(base, definition))
    status, until = change.position.status, row.paused_until
    started = released_by_edit(before, draft.planning, status, active=row.active, held=row.held, paused_until=until)
    require_confirmed(caller, started)
    position, revision = change.position, draft.revision(change.position.generation)
    specs = [] if spec_equal(base, definition) else [draft.planning.spec]
    check_definitions(resources, connection, row.namespace, [revision], new=0, specs=specs, now=now)
    number = add_revision(connection, row, revision, now=now, owner=definition.owner, edited_by=caller.principal)
    journal = Journal(row.next_sequence, now, caller.context())
    journal.missed(change.superseded)
    journal.add(EventType.UPDATED, changed_fields=list(changed), **definition_payload(definition, number, position))
    write_rows.move_position(
        connection,
        row.schedule_uid,
        status=position.status,
        next_due=position.next_due,
        decided_until=position.decided_until,
        rotation_index=position.rotation_index if base.inputs_rotation == definition.inputs_rotation else 0,
        next_sequence=journal.write(connection, row.schedule_uid, row.namespace),
    )
    if not facts_needed(draft.planning, Origin.SCHEDULED).isdisjoint({Fact.SPENDING, Fact.DAILY_RUNS}):
        statements.recount_today(connection, row.schedule_uid, now)
    if row.held and release_rows.release(connection, resources.known, row.schedule_uid, now=now):
        resources.database.notify(connection, READY)
    if position.next_due != row.next_due:
        wake_tickers(resources, connection, position.next_due)
    written = moved(
        connection,
        opened,
        WriteOutcome.UPDATED,
        row.version + 1,
        position,
        planning=draft.planning,
        changed=changed,
        # Whoever edits a note has heard it before.
        warnings=(
            *(draft.warnings if is_told else ()),
            *(draft.calendar_warnings if {"calendars", "spec"}.intersection(changed) else ()),
        ),
    )
    return replace(written, released=started, retries=draft.retries)


def _beside(
    connection: Connection, caller: Caller, opened: Opened, definition: Definition, changed: tuple[str, ...]
) -> ScheduleChange:
    """A note, or a bundle, is no part of what a schedule means: there is no new revision."""
    row = opened.row
    journal = Journal(row.next_sequence, opened.now, caller.context())
    journal.add(
        EventType.UPDATED, changed_fields=list(changed), **definition_payload(definition, row.revision, row.position())
    )
    change: PositionChange = {"next_sequence": journal.write(connection, row.schedule_uid, row.namespace)}
    if "note" in changed:
        set_note(connection, row, definition.note, note_attribute(definition.note))
    version = save_position(connection, row.schedule_uid, change, expected_version=row.version, now=opened.now)
    return replace(unchanged(connection, opened), outcome=WriteOutcome.UPDATED, version=version, changed=changed)


def planned_edit(opened: Opened, draft: Draft, *, spec_changed: bool) -> decide.PositionEdit:
    """Where the edit leaves the plan."""
    row, now = opened.row, opened.now
    position = row.position()
    if isinstance(opened.planning, Exception):
        # Nobody can say which occurrences a spec has that cannot be read; count from now on.
        position = position._replace(decided_until=max(position.decided_until, now))
        return decide.edit_position(
            draft.planning, draft.planning, row.schedule_uid, position, now=now, spec_changed=True
        )
    return decide.edit_position(
        opened.planning, draft.planning, row.schedule_uid, position, now=now, spec_changed=spec_changed
    )


def _set_paused(
    resources: Resources, connection: Connection, caller: Caller, written: ScheduleChange, paused: bool
) -> ScheduleChange:
    opened = open_schedule(resources, connection, caller, written.schedule_id)
    if paused is (opened.row.status is Status.PAUSED):
        return written  # what is broken is not paused: whoever sends back what they read mends nothing
    if not paused:
        require_somebody(connection, opened)
    done = pause_opened(connection, caller, opened) if paused else resume_opened(resources, connection, caller, opened)
    if done.outcome is WriteOutcome.UNCHANGED:
        return written
    return replace(
        written,
        outcome=WriteOutcome.UPDATED,
        version=done.version,
        status=done.status,
        next_due=done.next_due,
        next_run=done.next_run,
    )
