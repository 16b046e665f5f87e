"""Check a document by the functions that write it, without writing; test a condition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from horarium.condition import Clause, ClauseResult, Condition, Operator, compile_condition
from horarium.core.decision import decide
from horarium.core.decision.decide import MOST_AT_ONCE, must_be_confirmed, released_by_edit
from horarium.core.decision.facts import NO_SIGNAL, Fact, Signal
from horarium.core.document.canonical import UpdateMode
from horarium.core.document.condition_context import ContextMember, DayCount, into_signal, never_there
from horarium.core.document.definition import Definition, SpecText
from horarium.core.document.document import ParsedDefinition, changed_fields, named_in, spec_equal, spec_in, to_document
from horarium.core.document.planning import Planning
from horarium.core.document.states import Position, Status
from horarium.core.policy.limits import Quota
from horarium.errors import (
    ConditionError,
    HorariumError,
    InvalidCalendar,
    InvalidDefinition,
    InvalidSpec,
    InvalidWorkflow,
)
from horarium.features.resources import Opened, Resources, not_found
from horarium.features.schedules import fact_rows as store_facts
from horarium.features.schedules import rows as schedules
from horarium.features.schedules.creation import current_definition, wanted
from horarium.features.schedules.decisions import refuse_skipping_in
from horarium.features.schedules.drafts import Draft, check_gap, examine_draft, require_namespace, require_room, signed
from horarium.features.schedules.service import edit_waits, parse_new, planned_edit
from horarium.instant import Instant
from horarium.platform.caller import Caller
from horarium.platform.database import Connection
from horarium.platform.errors import (
    AlreadyExists,
    ConfirmNeeded,
    Forbidden,
    QuotaExceeded,
    Refused,
    ScheduleAlreadyExists,
)
from horarium.platform.wire import Permission

NAMELESS: Final = "new-schedule"
"""Stands for an id that is made when a schedule is."""
NOBODY: Final = bytes(16)
"""The uid of a schedule that does not exist yet; its real uid, and with it its jitter, is unknown."""
WHOLE: Final = "document"
"""Where a sentence stands that is about no field."""


@dataclass(frozen=True, slots=True)
class DraftRequest:
    """`how` an edit is meant. `year` None = the one that it is now, where the schedule is."""

    document: object
    schedule_id: str | None
    how: UpdateMode
    rows: int
    year: int | None
    now: Instant


@dataclass(frozen=True, slots=True)
class CheckedDraft:
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


def check_asked(
    resources: Resources, connection: Connection, *, caller: Caller, asked: DraftRequest
) -> CheckedDraft | Invalid:
    require_namespace(connection, caller.namespace)
    if asked.schedule_id is None:
        return _check_new(resources, connection, caller, asked)
    row = schedules.find(connection, caller.namespace, asked.schedule_id)
    if row is None:
        raise not_found(resources, connection, caller, asked.schedule_id)
    planning = resources.known.load(connection, [row.planning])[row.planning]
    return _check_edit(resources, connection, caller, asked, Opened(row, planning, asked.now))


def _check_new(
    resources: Resources, connection: Connection, caller: Caller, asked: DraftRequest
) -> CheckedDraft | Invalid:
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
        position = decide.begin_position(draft.planning, NOBODY, now=asked.now, paused=parsed.paused is True)
        _require_room(resources, connection, caller, draft, position, new=1, now=asked.now)
    except _WRONG as wrong:
        errors |= _by_field(wrong)
    if errors:
        return Invalid(errors, key, definition.spec, kept_document(definition, key))
    return CheckedDraft(draft, position, (*parsed.warnings, *draft.warnings, *draft.calendar_warnings))


def _check_edit(
    resources: Resources, connection: Connection, caller: Caller, asked: DraftRequest, opened: Opened
) -> CheckedDraft | Invalid:
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
    return CheckedDraft(draft, _paused(parsed, draft, opened, position), warnings, opened)


def _examined_edit(
    resources: Resources,
    connection: Connection,
    caller: Caller,
    parsed: ParsedDefinition,
    base: Definition,
    opened: Opened,
) -> Draft:
    """Examine an edit. A change of the note alone is not checked, since its references may no longer exist."""
    before = None if isinstance(opened.planning, Exception) else opened.planning
    if before is not None and set(changed_fields(base, parsed.definition)) <= {"note"}:
        return Draft(parsed.definition, "", before)
    return _examined(resources, connection, caller, parsed, parsed.definition, before)


def _paused(parsed: ParsedDefinition, draft: Draft, opened: Opened, position: Position) -> Position:
    """As the document wants it, where it says so."""
    if parsed.paused is True and position.status is Status.ACTIVE:
        return position._replace(status=Status.PAUSED)
    if parsed.paused is False and position.status is Status.PAUSED:
        return decide.resume_position(draft.planning, opened.row.schedule_uid, position, now=opened.now).position
    return position


def _examined(
    resources: Resources,
    connection: Connection,
    caller: Caller,
    parsed: ParsedDefinition,
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
    asked: DraftRequest,
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


_SIGNAL: Final = ContextMember.SIGNAL_RPC_RESULT
# Of a schedule that has had no run: what every new one sees.
_NO_RUNS: Final[Mapping[str, Any]] = {
    ContextMember.PRIOR_RUN_RESULT.value: None,
    ContextMember.LAST_24H_STATS.value: {each.value: 0 for each in DayCount},
}


@dataclass(frozen=True, slots=True)
class Tried:
    """`error`: the condition cannot be read, and so does not hold. `signal_error`: why the signal is null."""

    holds: bool
    error: str | None
    findings: tuple[ClauseResult, ...]
    context: Any
    warnings: tuple[str, ...] = ()
    signal_error: str | None = None


def try_condition(
    resources: Resources, caller: Caller, condition: object, *, schedule_id: str | None = None, context: Any = None
) -> Tried:
    """Without a context, and without a schedule, it is that of a schedule that has had no run."""
    caller.require(Permission.READ)
    if schedule_id is not None and context is not None:
        raise InvalidDefinition({"context": ["cannot be combined with schedule_id"]})
    try:
        compiled: Condition | ConditionError = compile_condition(condition)
    except ConditionError as wrong:
        compiled = wrong
    warnings: tuple[str, ...] = ()
    signal = NO_SIGNAL
    if context is None:
        context, signal = _live(resources, caller, compiled, schedule_id)
        warnings = () if isinstance(compiled, ConditionError) else _warnings(resources, compiled)
    if isinstance(compiled, ConditionError):
        return Tried(False, compiled.message, (), context)
    findings = compiled.explain(context)
    return Tried(all(each.holds for each in findings), None, findings, context, warnings, signal.error)


def _live(
    resources: Resources, caller: Caller, condition: Condition | ConditionError, schedule_id: str | None
) -> tuple[dict[str, Any], Signal]:
    """The signal is in it where the condition reads it: nobody outside is asked for what nobody wants to know."""
    wants_signal = isinstance(condition, Condition) and condition.reads(_SIGNAL.value)
    if schedule_id is None:
        return {**_NO_RUNS, **({_SIGNAL.value: None} if wants_signal else {})}, NO_SIGNAL
    resources.database.read(lambda connection: _opened(resources, connection, caller, schedule_id))
    signal = NO_SIGNAL
    if wants_signal and resources.signals is not None:
        signal = resources.signals.ask(caller.namespace, schedule_id, resources.clock.now())
    members = [member for member in ContextMember if member is not _SIGNAL or wants_signal]

    def look(connection: Connection) -> dict[str, Any]:
        opened = _opened(resources, connection, caller, schedule_id)
        row, planning = opened.row, replace(opened.sound, condition=_reading(members))
        subject = store_facts.DecisionSubject(row.schedule_uid, row.namespace, planning, row.active, row.held)
        found, _ = store_facts.gather(
            connection,
            [subject],
            opened.now,
            lock=False,
            kinds=frozenset({Fact.CONTEXT}),
            signals={row.schedule_uid: signal},
        )
        seen = found[row.schedule_uid].context
        return {member.value: seen[member.value] for member in members}

    return resources.database.read(look), signal


def _opened(resources: Resources, connection: Connection, caller: Caller, schedule_id: str) -> Opened:
    row = schedules.find(connection, caller.namespace, schedule_id)
    if row is None:
        raise not_found(resources, connection, caller, schedule_id)
    planning = resources.known.load(connection, [row.planning])[row.planning]
    return Opened(row, planning, resources.clock.now())


def _reading(members: list[ContextMember]) -> Condition:
    """One that sees all of them: what a condition reads is what is looked up for it."""
    return Condition(tuple(Clause(f"/{each.value}", (each.value,), Operator.EQ, None) for each in members))


def _warnings(resources: Resources, condition: Condition) -> tuple[str, ...]:
    """As whoever writes it down would be told."""
    missing = () if resources.signals is not None else into_signal(condition)
    return (
        *never_there(condition),
        *(f"{each} never exists, because no signal provider is configured" for each in missing),
    )
