"""Create schedules, and compute the next occurrences in responses to changes.

A new schedule gets its definition, the generated secrets of its credentials, its first plan and its first events.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, NamedTuple

from horarium.core.decision import decide
from horarium.core.decision.evaluator import FACTS, Forecaster
from horarium.core.decision.facts import NO_FACTS, Facts, SharedFacts, Signal, UnreadablePolicies
from horarium.core.decision.forecast import NOT_TRIGGERABLE, NextRun
from horarium.core.decision.guards import CalendarSpans, reads_signal
from horarium.core.decision.predicted_runs import is_guarded, is_independent
from horarium.core.decision.statuses import NoRun
from horarium.core.document.canonical import UpdateMode, action_document, spec_document
from horarium.core.document.checks import hosts_of, names_in, secret_names
from horarium.core.document.definition import Definition
from horarium.core.document.document import ParsedDefinition, changed_fields, from_canonical, parse_definition
from horarium.core.document.json_values import Json
from horarium.core.document.planning import Planning
from horarium.core.document.secret_values import Redactor
from horarium.core.document.states import MAX_RUNS_EXHAUSTED, EventType, Position, Status
from horarium.core.recurrence.zone import Zone, exactly, load_zone, read_moment
from horarium.errors import InvalidDefinition, InvalidSpec
from horarium.features.bundles.values import BundleKind
from horarium.features.history.rows import Journal
from horarium.features.resources import Opened, Resources, wake_tickers
from horarium.features.runs.rows import RunRow
from horarium.features.schedules import fact_rows
from horarium.features.schedules import rows as schedules
from horarium.features.schedules.decisions import refuse_skipping_in
from horarium.features.schedules.drafts import check_draft, signed
from horarium.features.schedules.references import Lookups
from horarium.features.schedules.rows import ScheduleRow
from horarium.features.schedules.write_rows import NewSchedule
from horarium.features.secrets import rows as secret_rows
from horarium.features.secrets.rows import SecretRow
from horarium.features.secrets.service import seal
from horarium.instant import Instant, rfc3339_or_none, to_rfc3339
from horarium.launchers.signals import Signals
from horarium.platform.caller import Caller
from horarium.platform.database import Connection
from horarium.platform.database.errors import is_fault_of_a_row
from horarium.platform.database.installation import CannotUnseal, Sealer, require_key
from horarium.platform.errors import OperationRefused
from horarium.platform.ids import new_id
from horarium.platform.wire import WriteOutcome

NEXT_FIRES = 5
# What a document holds where a guard may refuse the next occurrence of an active schedule.
GUARDED_BY = ("calendars", "max_runs", "budget", "assignee_id", "workflow_assignment_id", "pre_dispatch_condition")


@dataclass(frozen=True, slots=True)
class NextFire:
    nominal: Instant
    due: Instant


class Planned(NamedTuple):
    """A schedule whose next run is asked for; `active` and `held` count its open runs."""

    schedule_uid: bytes
    namespace: str
    schedule_id: str
    position: Position
    planning: Planning | Exception
    active: int = 0
    held: int = 0
    paused_until: Instant | None = None


def planned_row(row: ScheduleRow, planning: Planning | Exception) -> Planned:
    return Planned(
        row.schedule_uid,
        row.namespace,
        row.schedule_id,
        row.position(),
        planning,
        row.active,
        row.held,
        row.paused_until,
    )


def next_fires(row: ScheduleRow, planning: Planning, now: Instant, count: int = NEXT_FIRES) -> tuple[NextFire, ...]:
    """Upcoming fires, with those due and undecided; for a paused schedule those after a resume."""
    if row.status is Status.DELETED:
        return ()
    after = row.decided_until if row.status is Status.ACTIVE else max(row.decided_until, now)
    spec = planning.spec
    return tuple(
        NextFire(nominal, spec.due(row.schedule_uid, nominal)) for nominal in islice(spec.occurrences(after), count)
    )


def next_due(row: ScheduleRow, planning: Planning | Exception, now: Instant) -> Instant | None:
    """When it acts next, or would if it were resumed now."""
    if row.status is not Status.PAUSED or isinstance(planning, Exception):
        return row.next_due
    return next((fire.due for fire in next_fires(row, planning, now, count=1)), None)


def is_plain(row: ScheduleRow, document: Mapping[str, Any], now: Instant) -> bool:
    """Report whether its next run is its next fire, as far as the row and the document show."""
    idle = row.status is Status.ACTIVE and not row.active and not row.held
    return idle and not _is_due(row.next_due, now) and all(document.get(name) is None for name in GUARDED_BY)


def _is_due(next_due: Instant | None, now: Instant) -> bool:
    """Report whether an occurrence is due and not decided: the catch-up policy may skip it."""
    return next_due is not None and next_due < now


def seen_signals(
    signals: Signals | None, asking: Iterable[tuple[bytes, str, str, Planning | Exception]], now: Instant
) -> dict[bytes, Signal]:
    """Return the newest answers of the signal provider by schedule uid, without waiting for it.

    `asking` are uid, namespace, id and planning of schedules; only conditions that read the signal need one.
    """
    if signals is None:
        return {}
    return {
        uid: signals.glance(namespace, schedule_id, now)
        for uid, namespace, schedule_id, planning in asking
        if isinstance(planning, Planning) and reads_signal(planning)
    }


def next_runs(
    connection: Connection, planned: Sequence[Planned], now: Instant, signals: Signals | None
) -> dict[bytes, NextRun]:
    """By schedule, with one query for each kind of fact, and none for schedules that nothing can refuse."""
    asking = [each for each in planned if _needs_facts(each)]
    subjects = [
        fact_rows.DecisionSubject(each.schedule_uid, each.namespace, each.planning, each.active, each.held)
        for each in asking
        if isinstance(each.planning, Planning)
    ]
    # Only runs that are open can stand in the way of the next one.
    known, shared = (
        fact_rows.gather(
            connection,
            subjects,
            now,
            lock=False,
            kinds=FACTS,
            signals=seen_signals(
                signals, ((each.schedule_uid, each.namespace, each.schedule_id, each.planning) for each in asking), now
            ),
            timed=fact_rows.has_open_runs,
        )
        if subjects
        else ({}, {})
    )
    asked = {each.schedule_uid for each in asking}
    spans: defaultdict[str, CalendarSpans] = defaultdict(CalendarSpans)
    return {
        each.schedule_uid: _next_run(
            each,
            known.get(each.schedule_uid, NO_FACTS),
            shared.get(each.namespace),
            spans[each.namespace],
            now,
            look=each.schedule_uid in asked,
        )
        for each in planned
    }


def _needs_facts(each: Planned) -> bool:
    planning = each.planning
    if isinstance(planning, Exception) or not _can_run(each):
        return False
    is_busy = (each.active or each.held) and not is_independent(planning)
    return bool(is_busy) or is_guarded(planning)


def _can_run(each: Planned) -> bool:
    status = each.position.status
    return status is Status.ACTIVE or (status is Status.PAUSED and each.paused_until is not None)


def _next_run(
    each: Planned, known: Facts, shared: SharedFacts | None, spans: CalendarSpans, now: Instant, *, look: bool
) -> NextRun:
    planning, position = each.planning, each.position
    # What cannot be read will be set aside by the tick.
    if isinstance(planning, Exception) or isinstance(known.policies, UnreadablePolicies):
        return NOT_TRIGGERABLE
    if not look and position.status is Status.ACTIVE and not _is_due(position.next_due, now):
        return NextRun(position.next_due, NoRun.FINISHED if position.next_due is None else None)
    try:
        return Forecaster(
            planning,
            each.schedule_uid,
            position,
            known,
            now=now,
            shared=shared,
            paused_until=each.paused_until,
            spans=spans,
        ).next_run()
    except Exception as wrong:  # stored numbers that make no sense: the other schedules of a list are shown
        if not is_fault_of_a_row(wrong):
            raise
        return NOT_TRIGGERABLE


@dataclass(frozen=True, slots=True)
class ScheduleChange:
    """`changed` are the top-level names of the document that differ; `version` is the ETag from now on.

    `exhausted`: it is deleted, because its runs are used up, and what was asked for says no more than it did.
    `retries` are those of a failed run, told where the definition was written.
    `released`: so many held runs it lets go at once. `paused_until`: when the pause that was asked for ends by itself.
    """

    schedule_uid: bytes
    namespace: str
    schedule_id: str
    outcome: WriteOutcome
    version: int
    status: Status
    next_due: Instant | None
    changed: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    next_run: NextRun = NOT_TRIGGERABLE
    exhausted: bool = False
    released: int = 0
    paused_until: Instant | None = None
    retries: int | None = None


def unchanged(connection: Connection, opened: Opened) -> ScheduleChange:
    row = opened.row
    position = row.position()._replace(next_due=next_due(row, opened.planning, opened.now))
    return moved(connection, opened, WriteOutcome.UNCHANGED, row.version, position)


def moved(
    connection: Connection,
    opened: Opened,
    outcome: WriteOutcome,
    version: int,
    position: Position,
    *,
    planning: Planning | None = None,
    changed: tuple[str, ...] = (),
    warnings: tuple[str, ...] = (),
) -> ScheduleChange:
    """`position` and `planning` are those from now on."""
    row = opened.row
    # A new pause ends as it says itself, whatever the one before it said.
    until = None if outcome is WriteOutcome.PAUSED else row.paused_until
    known = planning or opened.planning
    planned = Planned(row.schedule_uid, row.namespace, row.schedule_id, position, known, row.active, row.held, until)
    return ScheduleChange(
        row.schedule_uid,
        row.namespace,
        row.schedule_id,
        outcome,
        version,
        position.status,
        position.next_due,
        changed,
        warnings,
        next_runs(connection, [planned], opened.now, opened.signals)[row.schedule_uid],
    )


@dataclass(frozen=True, slots=True)
class MomentText:
    """`field` is the request's name for it; `timezone` is that of the request, None = it names none."""

    text: str
    timezone: str | None = None
    field: str = "until"

    @property
    def needs_schedule(self) -> bool:
        """Tell whether it may be a local time in a zone that only a schedule defines."""
        return self.timezone is None and exactly(self.text.strip(), field=self.field) is None

    def instant(self, now: Instant, zone: Zone | None = None) -> Instant:
        """Raises InvalidDefinition. Without `zone`, and none of its own, a local time is refused."""
        try:
            named = zone if self.timezone is None else load_zone(self.timezone)
            return read_moment(self.text, field=self.field, now=now, zone=named).instant
        except InvalidSpec as wrong:
            name = wrong.field or self.field
            raise InvalidDefinition({name: [wrong.message.removeprefix(f"{name}: ")]}) from None


def end_text(until: str | None, timezone: str | None) -> MomentText | None:
    """Read the end from a body with both fields; a zone without an end is an error."""
    if until is None and timezone is not None:
        raise InvalidDefinition({"timezone": ["has no effect without `until`"]})
    return None if until is None else MomentText(until, timezone)


def zone_of(opened: Opened) -> Zone | None:
    """None = the schedule cannot be read, and so has none."""
    return opened.planning.spec.zone if isinstance(opened.planning, Planning) else None


SECRETS = "secrets"
"""What is said to have changed where only a value has."""


def keep_credentials(
    resources: Resources, connection: Connection, caller: Caller, parsed: ParsedDefinition
) -> tuple[str, ...]:
    """The names of those that were not there, or had another value; the others are left alone."""
    given = parsed.credentials
    if not given:
        return ()
    if resources.sealer is None:
        raise OperationRefused("this process has no secret key, so it cannot store credentials; set secret_key")
    namespace, sealer = parsed.definition.namespace, resources.sealer
    hosts = hosts_of(parsed.definition.action)
    known = secret_rows.find_all(connection, namespace, given)
    written = []
    for name, value in given.items():
        if not _is(known.get(name), sealer, value, hosts):
            seal(resources, connection, caller, sealer, name, value, hosts, generated=True)
            written.append(name)
    return tuple(written)


def _is(row: SecretRow | None, sealer: Sealer, value: str, hosts: tuple[str, ...] | None) -> bool:
    """Tell whether the secret has this value; if it was set by hand since, its hosts are not compared."""
    if row is None or (row.generated and row.hosts != hosts):
        return False
    try:
        return row.unseal(sealer) == value
    except CannotUnseal:
        return False


def redactor(resources: Resources, connection: Connection, run: RunRow, definition: Definition) -> Redactor:
    """Build a redactor for all that the run may have received.

    Raises KeyReplaced: with an older key it would mask nothing.
    """
    return redactor_for(resources, connection, run.namespace, definition, run.inputs)


def redactor_for(
    resources: Resources, connection: Connection, namespace: str, definition: Definition, inputs: Json
) -> Redactor:
    names = secret_names(definition) | names_in(definition.action, inputs)
    if not names or resources.sealer is None:
        return Redactor(())
    found = secret_rows.find_all(connection, namespace, names)
    values = secret_rows.openable(resources.sealer, found.values())
    if len(values) < len(found):
        require_key(connection, resources.sealer)
    return Redactor(values)


_KIND = BundleKind.SCHEDULE.value


@dataclass(frozen=True, slots=True)
class Begun:
    """`journal` goes to history together with `new`."""

    definition: Definition
    planning: Planning
    new: NewSchedule
    journal: Journal
    warnings: tuple[str, ...]
    retries: int | None = None

    @property
    def change(self) -> ScheduleChange:
        new = self.new
        return ScheduleChange(
            new.schedule_uid,
            new.namespace,
            new.schedule_id,
            WriteOutcome.CREATED,
            version=1,
            status=new.position.status,
            next_due=new.position.next_due,
            warnings=self.warnings,
            retries=self.retries,
        )

    def wake(self, resources: Resources, connection: Connection) -> None:
        if self.new.position.status is Status.ACTIVE:
            wake_tickers(resources, connection, self.new.position.next_due)


def begin_schedule(
    resources: Resources,
    connection: Connection,
    caller: Caller,
    parsed: ParsedDefinition,
    *,
    lookups: Lookups | None = None,
    bundle: str | None = None,
    exhausted: bool = False,
    paused_until: Instant | None = None,
) -> Begun:
    """Raises what is wrong with it. `exhausted`: its runs were used up elsewhere, and it is only to be known here.

    A pause whose end has passed is over.
    """
    keep_credentials(resources, connection, caller, parsed)
    draft = check_draft(resources, connection, caller, signed(parsed.definition, caller), lookups=lookups)
    resources.name_addresses(_KIND, draft.definition.schedule_id, draft.addresses)
    refuse_skipping_in(connection, parsed.skipping, draft.definition, needs_approval=draft.planning.needs_approval)
    definition, now, uid = draft.definition, resources.clock.now(), new_id()
    paused = parsed.paused is True and not exhausted and (paused_until is None or paused_until > now)
    position = decide.begin_position(draft.planning, uid, now=now, paused=paused)
    journal = Journal(1, now, caller.context())
    journal.add(EventType.CREATED, **definition_payload(definition, 1, position))
    if paused:
        journal.add(
            EventType.PAUSED, reason=caller.reason, paused_at=to_rfc3339(now), until=rfc3339_or_none(paused_until)
        )
    revision = draft.revision(position.generation)
    if exhausted:
        journal.add(EventType.DELETED, reason=MAX_RUNS_EXHAUSTED, deleted_at=rfc3339_or_none(now))
        position = position._replace(status=Status.DELETED, next_due=None, runs_born=definition.max_runs or 0)
        revision = replace(revision, attributes=frozenset())  # which end with their schedule
    new = NewSchedule(
        schedule_uid=uid,
        namespace=definition.namespace,
        schedule_id=definition.schedule_id,
        revision=revision,
        position=position,
        source=definition.source.value,
        owner=definition.owner,
        paused_at=now if paused else None,
        pause_reason=caller.reason if paused else None,
        paused_by=caller.principal if paused else None,
        paused_until=paused_until if paused else None,
        next_sequence=journal.next_sequence,
        bundle=bundle,
        deleted_at=now if exhausted else None,
        created_by=caller.principal,
    )
    warnings = (*parsed.warnings, *draft.warnings, *draft.calendar_warnings)
    return Begun(definition, draft.planning, new, journal, warnings, draft.retries)


def definition_payload(definition: Definition, revision: int, position: Position) -> dict[str, Any]:
    """Payload about a definition in its events."""
    return {
        "spec": spec_document(definition.spec),
        "action": action_document(definition.action),
        "overlap_policy": definition.overlap.policy.value,
        "next_fire_at": rfc3339_or_none(position.next_due),
        "revision": revision,
        "generation": position.generation,
    }


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
    how: UpdateMode,
    now: Instant,
    *,
    may_be_over: bool = False,
) -> ParsedDefinition:
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
    if how is UpdateMode.WHOLE and not (isinstance(document, Mapping) and "source" in document):
        definition = replace(definition, source=base.source)
    if how is UpdateMode.WHOLE and not parsed.tells_note:
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
        parsed = wanted(resources, caller, base, document, UpdateMode.WHOLE, resources.clock.now())
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
