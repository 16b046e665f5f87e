"""Conditions that a definition must meet before it is written: references, permissions, quotas.

Everything that it refers to must exist, and its author must be allowed to use it. The size of a definition decides
which write stores it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

from horarium.core.document.assignee import AssigneeType, AssignmentDefinition
from horarium.core.document.calendar import CalendarDefinition, coverage_warning, shared_calendar, zone_warning
from horarium.core.document.canonical import to_document
from horarium.core.document.checks import hosts_of
from horarium.core.document.checks import references as references_in
from horarium.core.document.condition_context import into_signal
from horarium.core.document.definition import Definition
from horarium.core.document.json_values import decode_input
from horarium.core.document.planning import Planning, compile_once, compile_planning, planning_text
from horarium.core.document.reader import WORKFLOW
from horarium.core.document.secret_values import may_go_to, not_allowed
from horarium.core.document.stored_workflow import WorkflowUse
from horarium.core.policy.approval import FailureMode, run_needs_approval
from horarium.core.policy.limits import Quotas, definitions_exceed, gap_exceeds
from horarium.core.policy.queue import PolicyError
from horarium.core.recurrence.lint import shortest_gap
from horarium.core.recurrence.spec import Spec
from horarium.errors import CycleDetected, InvalidCalendar, InvalidDefinition
from horarium.features.agents.policy_rows import PolicyDocuments, UnreadableDocument
from horarium.features.resources import Address, Resources, called_by
from horarium.features.schedules import lookup_rows
from horarium.features.schedules.references import (
    Lookups,
    attributes_of,
    effective_approval,
    effective_of,
    idle_approval,
    lacking_approval,
    retries_of,
)
from horarium.features.schedules.write_rows import NewRevision
from horarium.features.tenants import rows as tenant_rows
from horarium.features.workflows import rows as workflow_rows
from horarium.instant import Instant, to_datetime
from horarium.launchers.registry import unserved
from horarium.platform.caller import Caller
from horarium.platform.database import Connection
from horarium.platform.database import limits as database_limits
from horarium.platform.database.limits import RowLimit
from horarium.platform.database.statements import to_text
from horarium.platform.errors import NamespaceNotFound, OperationRefused, QuotaExceeded


@dataclass(frozen=True, slots=True)
class Draft:
    """A definition that may be written, with what the engine will read of it."""

    definition: Definition
    text: str
    planning: Planning
    warnings: tuple[str, ...] = ()
    calendar_warnings: tuple[str, ...] = ()
    """For writes that change the calendars or the spec."""
    addresses: tuple[Address, ...] = ()
    """The addresses that its runs would call."""
    retries: int | None = None
    """The retries of a failed run or step, by the policy that applies."""

    def revision(self, generation: int) -> NewRevision:
        definition = self.definition
        return NewRevision(
            document=to_document(replace(definition, note=None)),  # the note lives beside it
            planning=self.text,
            name=definition.name,
            workflow=definition.action.workflow,
            generation=generation,
            attributes=attributes_of(definition),
            note=definition.note,
        )


def check_draft(
    resources: Resources,
    connection: Connection,
    caller: Caller,
    definition: Definition,
    before: Planning | None = None,
    *,
    lookups: Lookups | None = None,
) -> Draft:
    """Raises what is wrong: an unknown calendar, a workflow of somebody else, a graph without an end.

    That nobody can do the work yet is no error but a warning: whoever can may start later.
    """
    hold_namespace(connection, caller.namespace)
    return examine_draft(resources, connection, caller, definition, before, lookups=lookups, to_be_kept=True)


def examine_draft(
    resources: Resources,
    connection: Connection,
    caller: Caller,
    definition: Definition,
    before: Planning | None = None,
    *,
    lookups: Lookups | None = None,
    secrets_given: Collection[str] = (),
    to_be_kept: bool = False,
) -> Draft:
    """As `check_draft`, for whoever writes nothing; `secrets_given` are names whose values come with the document."""
    known = lookups or Lookups(connection, definition.namespace)
    problems: dict[str, list[str]] = {}
    attached: Mapping[str, CalendarDefinition | None] = {}
    speakers: PolicyDocuments | None = None
    with _collect_errors(problems):
        _check_inputs(definition)
    with _collect_errors(problems):
        attached = check_calendars(known, definition)
    with _collect_errors(problems):
        speakers = _check_assigned(known, definition, before)
    if problems:
        raise InvalidDefinition(problems)
    stored = _check_workflow(known, caller, definition)
    # The least: the policies of the workflow, and later ones of others, are read when a run is created.
    approval = effective_approval(speakers, definition)
    text = planning_text(
        definition,
        needs_approval=run_needs_approval(approval, has_assignee=False, has_steps=stored is not None),
        kinds=resources.kinds_for(caller.namespace),
        before=before,
        workflow_owner=None if stored is None else stored.owner,
    )
    planning = compile_planning(text) if to_be_kept else compile_once(text)
    called = called_by(definition.action, definition.assignee, speakers, definition.namespace)
    warnings = (
        *called.warnings,
        *_unserved(resources, connection, definition, stored=stored is not None),
        *_missing_version(connection, definition, stored),
        *_unsignalled(resources, planning),
        *_unset(known, definition, secrets_given),
        *_nobody_to_fall_back_on(known, definition),
        *(idle_approval(definition) if stored is None else ()),
        *lacking_approval(resources, connection, caller, definition, speakers, stored),
    )
    told = _calendar_warnings(attached, planning.spec.zone.key, resources.clock.now())
    retries = retries_of(effective_of(speakers, definition), definition)
    return Draft(definition, text, planning, warnings, told, called.addresses, retries)


def _calendar_warnings(
    attached: Mapping[str, CalendarDefinition | None], timezone: str, now: Instant
) -> tuple[str, ...]:
    """Calendars in another zone than the schedule's, and calendars whose data ends soon."""
    today = to_datetime(now).date()
    found = [
        each
        for name, calendar in attached.items()
        if calendar is not None
        for each in (zone_warning(name, calendar.timezone, timezone), coverage_warning(calendar, today))
    ]
    return tuple(f"calendars: {each}" for each in found if each)


def _nobody_to_fall_back_on(known: Lookups, definition: Definition) -> tuple[str, ...]:
    """That nobody of this name is there yet is no error: it is asked when a step has failed."""
    name = definition.failure.fallback_assignee_id
    if definition.failure.mode is not FailureMode.FALLBACK or name is None or known.is_somebody(name):
        return ()
    missing = f"no agent or team {name!r} exists"
    return (f"failure_policy.fallback_assignee_id: {missing}; failed steps have no fallback until it is created",)


@contextmanager
def _collect_errors(problems: dict[str, list[str]]) -> Iterator[None]:
    """Whoever fills in a form is told all that is wrong at once."""
    try:
        yield
    except InvalidDefinition as wrong:
        problems |= wrong.errors


def _unset(known: Lookups, definition: Definition, given: Collection[str]) -> tuple[str, ...]:
    """Secrets that nobody has set yet, or that may not go where the action goes: they are asked for at each launch."""
    named = [each for each in references_in(definition) if each.name not in given]
    if not named:
        return ()
    found = known.secrets({each.name for each in named})
    [destination] = hosts_of(definition.action) or [""]
    warnings = []
    for path, name in named:
        secret = found.get(name)
        if secret is None:
            warnings.append(f"{path}: the secret {name!r} is not set; runs fail to launch without it")
        elif not may_go_to(secret.hosts, destination):
            warnings.append(f"{path}: {not_allowed(name, secret.hosts, destination)}")
    return tuple(warnings)


def _unsignalled(resources: Resources, planning: Planning) -> tuple[str, ...]:
    """A condition that waits for signals where nobody gives any."""
    if resources.signals is not None or planning.condition is None:
        return ()
    why = "no signal provider is configured (setting signal_provider)"
    return tuple(f"pre_dispatch_condition: {each} never exists: {why}" for each in into_signal(planning.condition))


def _unserved(resources: Resources, connection: Connection, definition: Definition, *, stored: bool) -> tuple[str, ...]:
    """Others are asked about only where this process cannot do it itself."""
    if resources.registry is None:
        return ()
    here, namespace = resources.registry, definition.namespace
    kinds = here.kinds_for(namespace)
    if not unserved(definition.action, kinds, [here], namespace, stored=stored):
        return ()
    elsewhere = resources.elsewhere.load(connection, resources.clock.now())
    return unserved(definition.action, kinds, [here, *elsewhere], namespace, stored=stored)


def _missing_version(
    connection: Connection, definition: Definition, stored: lookup_rows.WorkflowReference | None
) -> tuple[str, ...]:
    """That nobody has put it yet is no error: whoever does may be next."""
    name, version = definition.action.workflow, definition.action.target.get("version")
    if stored is None or name is None or not isinstance(version, int) or version == stored.version:
        return ()
    if workflow_rows.uses_of(connection, definition.namespace, [WorkflowUse(name, version)]):
        return ()
    return (
        f"action.version: version {version} of {name!r} not found; runs end in state launch_failed until it exists",
    )


def require_namespace(connection: Connection, namespace: str) -> None:
    if tenant_rows.find_namespace(connection, namespace) is None:
        raise NamespaceNotFound(namespace)


def hold_namespace(connection: Connection, namespace: str) -> None:
    """For whoever writes into it: nothing is born in a namespace that another process deletes meanwhile."""
    if not tenant_rows.hold_namespace(connection, namespace):
        raise NamespaceNotFound(namespace)


def signed(definition: Definition, caller: Caller, base: Definition | None = None) -> Definition:
    """With its owner and user: those of the caller, unless an admin names others or they are known already."""
    before = (None, None) if base is None else (base.owner, base.user_id)
    given = (definition.owner, definition.user_id) if caller.is_admin else (None, None)
    owner, user = (given[i] or before[i] or (caller.principal if base is None else None) for i in (0, 1))
    return replace(definition, owner=owner, user_id=user)


def check_input(field: str, value: object) -> dict[str, list[str]]:
    """Find errors of an encoded input: one that cannot be decoded would fail at every fire."""
    try:
        decode_input(value)
    except PolicyError as wrong:
        return {f"{field}.{wrong.field}": [wrong.text]}
    return {}


def _check_inputs(definition: Definition) -> None:
    problems = check_input("action.input", definition.action.input)
    for index, entry in enumerate(definition.inputs_rotation):
        problems |= check_input(f"inputs_rotation.{index}", entry)
    if problems:
        raise InvalidDefinition(problems)


def check_calendars(known: Lookups, definition: Definition) -> dict[str, CalendarDefinition | None]:
    """The attached calendars, by name; None = the calendar exists and its row cannot be read."""
    if not definition.calendars:
        return {}
    problems: dict[str, list[str]] = {}
    found = dict(known.calendars(definition.calendars))
    for index, name in enumerate(definition.calendars):
        if name in found:
            continue
        try:
            shared = shared_calendar(name)
        except InvalidCalendar as wrong:
            problems[f"calendars.{index}"] = [wrong.message]
            continue
        if shared is None:
            problems[f"calendars.{index}"] = [f"calendar {name!r} not found"]
        else:
            found[name] = shared
    if problems:
        raise InvalidDefinition(problems)
    return found


def _check_workflow(known: Lookups, caller: Caller, definition: Definition) -> lookup_rows.WorkflowReference | None:
    """As it is stored. A name that no stored workflow has is no error: a task or a worker may know it."""
    name = definition.action.workflow
    if definition.action.kind != WORKFLOW.name or name is None:
        return None
    workflow = known.workflow(name)
    if workflow is None:
        return None
    if workflow.cycle:
        raise CycleDetected(workflow.cycle, path="action")
    caller.require_owner(workflow.owner, f"the workflow {name!r}")
    return workflow


def _check_assigned(known: Lookups, definition: Definition, before: Planning | None) -> PolicyDocuments | None:
    """Those who have a word in it; None = nobody. An assignee that it had before may be gone."""
    assignee, assignment_id = definition.assignee, definition.workflow_assignment_id
    if assignee is None and assignment_id is None:
        return None
    speakers, namespace = known.speakers(assignee, assignment_id), definition.namespace
    problems: dict[str, list[str]] = {}
    if assignee is not None and not (before is not None and before.assigned == assignee):
        rows: Mapping[Any, Any] = speakers.agents if assignee.type is AssigneeType.AGENT else speakers.teams
        if (namespace, assignee.id) not in rows:
            problems["assignee_id"] = [f"{assignee.type.value} {assignee.id!r} not found"]
    if assignment_id is not None:
        wrong = _wrong_assignment(speakers.assignments.get((namespace, assignment_id)), definition)
        if wrong is not None:
            problems["workflow_assignment_id"] = [wrong]
    if problems:
        raise InvalidDefinition(problems)
    return speakers


def _wrong_assignment(found: AssignmentDefinition | UnreadableDocument | None, definition: Definition) -> str | None:
    name = definition.workflow_assignment_id
    match found:
        case None:
            return f"assignment {name!r} not found"
        case UnreadableDocument(why):
            return f"the assignment {name!r} cannot be read: {why}"
        case _ if found.workflow_id != definition.action.workflow:
            return f"the assignment {name!r} belongs to the workflow {found.workflow_id!r}"
        case _ if definition.assignee not in (None, found.assignee):
            who = f"{found.assignee.type.value} {found.assignee.id!r}"
            return f"the assignment {name!r} belongs to the {who}; set this assignee or omit the assignee"
        case _:
            return None


# Occurrences are whole seconds: no spec is closer than that.
_ALWAYS = 1


def check_definitions(
    resources: Resources,
    connection: Connection,
    namespace: str,
    revisions: Sequence[NewRevision],
    *,
    new: int,
    specs: Sequence[Spec] = (),
    now: Instant,
) -> None:
    """Raises QuotaExceeded, and writes down what is added: `new` schedules and the bytes of these definitions.

    `specs` are those that are new.
    """
    if not revisions:
        return
    size = sum(len(to_text(each.document)) for each in revisions)
    limits = _check(resources, connection, namespace, tenant_rows.Growth(schedules=new, bytes=size), now)
    if limits is not None:
        for spec in specs:
            check_gap(namespace, limits, spec, now)


def check_bytes(
    resources: Resources,
    connection: Connection,
    namespace: str,
    document: Mapping[str, Any],
    now: Instant,
    *,
    before: Mapping[str, Any] | None = None,
) -> None:
    """Raises QuotaExceeded, and writes down what is added: a document that takes the place of `before`."""
    size = len(to_text(document)) - (0 if before is None else len(to_text(before)))
    if size > 0:
        _check(resources, connection, namespace, tenant_rows.Growth(bytes=size), now)


def check_stored(resources: Resources, connection: Connection, namespace: str, size: int, now: Instant) -> None:
    """Raise QuotaExceeded for `size` bytes beside documents; write down that they are stored."""
    _check(resources, connection, namespace, tenant_rows.Growth(bytes=size), now)


def check_rows(connection: Connection, rows: RowLimit, namespace: str) -> None:
    """Raise OperationRefused where the namespace has as many of these rows as one namespace may have."""
    if database_limits.is_full(connection, rows, namespace):
        raise OperationRefused(f"the namespace has {rows.most} {rows.what}, the maximum; delete some first")


def require_room(
    resources: Resources, connection: Connection, revision: NewRevision, namespace: str, *, new: int, now: Instant
) -> Quotas | None:
    """The limits, as `check_definitions` asks for one definition; nothing is written."""
    size = len(to_text(revision.document))
    return _limits(resources, connection, namespace, tenant_rows.Growth(schedules=new, bytes=size), now)


def _check(
    resources: Resources, connection: Connection, namespace: str, growth: tenant_rows.Growth, now: Instant
) -> Quotas | None:
    limits = _limits(resources, connection, namespace, growth, now)
    if limits is not None:
        tenant_rows.add_growth(connection, {namespace: growth}, now)
    return limits


def _limits(
    resources: Resources, connection: Connection, namespace: str, growth: tenant_rows.Growth, now: Instant
) -> Quotas | None:
    """Raises QuotaExceeded; None = whoever writes into a namespace that is gone is told so elsewhere."""
    standing = resources.quotas.standing(connection, namespace, now, new=growth.schedules)
    if standing is None:
        return None
    found = definitions_exceed(standing.limits, standing.usage, schedules=growth.schedules, size=growth.bytes)
    if found is not None:
        raise QuotaExceeded(namespace, found)
    return standing.limits


def check_gap(namespace: str, limits: Quotas, spec: Spec, now: Instant) -> None:
    least = limits.shortest_gap_seconds
    if least is None or least <= _ALWAYS:
        return
    found = gap_exceeds(limits, shortest_gap(spec, after=now, enough=least))
    if found is not None:
        raise QuotaExceeded(namespace, found)


T = TypeVar("T")

LARGE_BYTES = 16_384
"""From this size of its JSON on, a definition is planned before the writer is taken."""


class Write(Protocol):
    """`Database.write` or `Database.write_planned`."""

    def __call__(self, work: Callable[[Connection], T]) -> T: ...


def write_of(resources: Resources, document: object) -> Write:
    """Plan what a large document changes before the writer is taken; write the others at once, which costs less."""
    database = resources.database
    return database.write_planned if len(to_text(document)) > LARGE_BYTES else database.write
