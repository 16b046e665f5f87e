"""Create a schedule: current definition, generated secrets of credentials, first plan and first events."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from horarium.core.decision import changes
from horarium.core.document.canonical import UpdateMode, action_document, spec_document
from horarium.core.document.definition import Definition
from horarium.core.document.document import ParsedDefinition, changed_fields, from_canonical, parse_definition
from horarium.core.document.event import MAX_RUNS_EXHAUSTED, EventType
from horarium.core.document.json_values import Json
from horarium.core.document.planning import Planning
from horarium.core.document.secret_values import Redactor
from horarium.core.document.secrets import hosts_of, names_in, secret_names
from horarium.core.document.states import Position, Status
from horarium.errors import InvalidDefinition
from horarium.features.bundles.values import BundleKind
from horarium.features.history.rows import Journal
from horarium.features.resources import Resources, wake_tickers
from horarium.features.runs.rows import RunRow
from horarium.features.schedules import rows as schedules
from horarium.features.schedules.decisions import refuse_skipping_in
from horarium.features.schedules.drafts import check_draft, signed
from horarium.features.schedules.references import Lookups
from horarium.features.schedules.rows import ScheduleRow
from horarium.features.schedules.upcoming import ScheduleChange
from horarium.features.schedules.write_rows import NewSchedule
from horarium.features.secrets import rows as secret_rows
from horarium.features.secrets.rows import SecretRow
from horarium.features.secrets.service import seal
from horarium.instant import Instant, rfc3339_or_none, to_rfc3339
from horarium.platform.caller import Caller
from horarium.platform.database import Connection
from horarium.platform.database.installation import CannotUnseal, Sealer, require_key
from horarium.platform.errors import Refused
from horarium.platform.ids import new_id
from horarium.platform.wire import WriteOutcome

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
        raise Refused("this process has no secret key, so it cannot store credentials; set secret_key")
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
    position = changes.begin_position(draft.planning, uid, now=now, paused=paused)
    journal = Journal(1, now, caller.context())
    journal.add(EventType.CREATED, **told(definition, 1, position))
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


def told(definition: Definition, revision: int, position: Position) -> dict[str, Any]:
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
