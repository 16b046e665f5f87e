"""Apply a bundle: all of it in one planned write, or nothing. A dry run only previews the write."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from horarium.core.decision.decide import due_within_a_minute
from horarium.core.document.canonical import UpdateMode
from horarium.core.document.definition import Definition
from horarium.core.document.document import to_document
from horarium.core.document.secret_values import MASK
from horarium.core.document.states import Source, Status
from horarium.core.document.stored_workflow import TEMPLATES
from horarium.core.recurrence.spec import Spec
from horarium.errors import InvalidDefinition, InvalidSpec
from horarium.features.bundles import rows as bundle_rows
from horarium.features.bundles.document import (
    Bundle,
    BundleAccess,
    BundleKind,
    Document,
    DocumentDifference,
    differences,
    initial_state,
)
from horarium.features.bundles.model import Change
from horarium.features.bundles.steps import (
    MAX_DELETED,
    Applying,
    BundledDocuments,
    DocumentErrors,
    Step,
    apply_documents,
    counted,
    prune_documents,
    require_few,
)
from horarium.features.history.rows import append
from horarium.features.resources import Opened, Resources
from horarium.features.schedules import rows as schedule_rows
from horarium.features.schedules.creation import (
    SECRETS,
    Begun,
    begin_schedule,
    current,
    keep_credentials,
    same_exhausted,
    wanted,
)
from horarium.features.schedules.decisions import bypass_on_record
from horarium.features.schedules.drafts import check_definitions, check_gap
from horarium.features.schedules.lifecycle import delete_opened
from horarium.features.schedules.references import Lookups
from horarium.features.schedules.rows import ScheduleRow
from horarium.features.schedules.service import change_opened, parse_new
from horarium.features.schedules.write_rows import insert_schedules, set_bundle
from horarium.features.tenants import rows as tenant_rows
from horarium.platform.caller import Caller, require_confirmed
from horarium.platform.database import Connection
from horarium.platform.database.errors import UniqueConflict
from horarium.platform.errors import NamespaceNotFound, OwnedByAnotherBundle
from horarium.platform.wire import Permission, WriteOutcome

_KIND = BundleKind.SCHEDULE

Stored = Mapping[str, tuple[ScheduleRow, Any]]
"""Live schedules under lock, by id, each with its document."""


def apply_schedules(applying: Applying, refusals: DocumentErrors, stored: Stored) -> list[Step]:
    documents = applying.documents(_KIND)
    new = [schedule_id for schedule_id in documents if schedule_id not in stored]
    gone = schedule_rows.deleted_ids(applying.connection, applying.caller.namespace, new) if new else set()
    others = _of_the_same_name(applying, stored)
    steps: list[Step] = []
    begun: list[Begun] = []
    for index, (schedule_id, document) in enumerate(documents.items()):
        with refusals.about(_KIND, schedule_id, index):
            there = stored.get(schedule_id)
            if schedule_id in others:
                steps.append(_kept(schedule_id, document, others[schedule_id]))
            elif there is not None:
                steps.append(_change(applying, document, *there))
            else:
                steps.append(_begin(applying, schedule_id, document, begun, was_there=schedule_id in gone))
    refusals.raise_any()
    _check_quotas(applying, begun)
    insert_schedules(applying.connection, [each.new for each in begun], now=applying.now)
    streams = [each.journal.stream(each.new.schedule_uid, each.new.namespace) for each in begun]
    append(applying.connection, streams, now=applying.now)
    for each in begun:
        each.wake(applying.resources, applying.connection)
    return steps


def _of_the_same_name(applying: Applying, stored: Stored) -> dict[str, str]:
    """Schedules that agents would own and whose name another schedule of the agent has.

    A schedule that has the name already keeps it.
    """
    named = {
        (document["assignee_id"], document["name"]): schedule_id
        for schedule_id, document in applying.documents(_KIND).items()
        if applying.bundle.is_seeded(schedule_id)
        and not (schedule_id in stored and stored[schedule_id][0].name == document["name"])
    }
    found = schedule_rows.named_in_workspaces(applying.connection, applying.caller.namespace, list(named))
    return {named[key]: other for key, other in found.items()}


def _kept(schedule_id: str, document: Document, other: str) -> Step:
    said = f"the agent already has a schedule {document['name']!r} ({other!r}), which is unchanged"
    return Step(Change.KEEP, _KIND, schedule_id, warnings=(said,))


def _check_quotas(applying: Applying, begun: list[Begun]) -> None:
    """Check quotas for all new schedules together; how often each may fire was checked before."""
    new = sum(each.new.deleted_at is None for each in begun)
    revisions = [each.new.revision for each in begun]
    check_definitions(
        applying.resources, applying.connection, applying.caller.namespace, revisions, new=new, now=applying.now
    )


def _begin(applying: Applying, schedule_id: str, document: Document, begun: list[Begun], *, was_there: bool) -> Step:
    """Prepare a schedule with a free id. It is written later, together with the others."""
    resources, connection = applying.resources, applying.connection
    state, left = initial_state(document)
    left["source"] = Source.TEMPLATE.value
    if was_there:
        over = same_exhausted(resources, connection, applying.caller, schedule_id, left)
        if over is not None:
            return Step(Change.UNCHANGED, _KIND, schedule_id, warnings=over.warnings, exhausted=True)
    parsed = parse_new(resources, applying.caller, left, may_be_over=True)
    caller = applying.caller.because(state.pause_reason)
    new = begin_schedule(
        resources,
        connection,
        caller,
        parsed,
        lookups=applying.lookups,
        bundle=applying.bundle.name,
        exhausted=state.exhausted,
        paused_until=state.paused_until,
    )
    check_gap(applying.caller.namespace, applying.limits, new.planning.spec, applying.now)
    begun.append(new)
    fires = new.new.position.status is Status.ACTIVE
    moved = (None, _spec(new.definition)) if fires else None
    return Step(
        Change.CREATE,
        _KIND,
        schedule_id,
        moved=moved,
        warnings=new.warnings,
        exhausted=state.exhausted,
        starts_soon=due_within_a_minute([new.new.position], applying.now),
    )


def _change(applying: Applying, document: Document, row: ScheduleRow, stored: Any) -> Step:
    bundle, name = applying.bundle.name, row.schedule_id
    by_hand = row.source != Source.TEMPLATE
    standing = applying.standing(_KIND, name, row.bundle, by_hand=by_hand)
    if standing is BundleAccess.KEPT:
        return Step(Change.KEEP, _KIND, name)
    applying.caller.require_owner(row.owner, f"the schedule {name!r}")
    base = current(row, stored)
    _, left = initial_state(document)
    left["source"] = Source.TEMPLATE.value
    parsed = wanted(applying.resources, applying.caller, base, left, UpdateMode.WHOLE, applying.now, may_be_over=True)
    moves = row.bundle != bundle
    replaced = keep_credentials(applying.resources, applying.connection, applying.caller, parsed)
    done = change_opened(
        applying.resources,
        applying.connection,
        applying.caller,
        _opened(applying, row),
        base,
        parsed.definition,
        (*(("bundle",) if moves else ()), *((SECRETS,) if replaced else ())),
    )
    if done.outcome is WriteOutcome.UNCHANGED:
        return Step(Change.UNCHANGED, _KIND, name, warnings=parsed.warnings)
    diff = differences(to_document(base), to_document(parsed.definition))
    diff += tuple(DocumentDifference(f"{SECRETS}.{each}", MASK, MASK) for each in replaced)
    if moves:
        diff += (DocumentDifference("bundle", row.bundle, bundle),)
    if moves or by_hand:
        set_bundle(applying.connection, row.schedule_uid, bundle, Source.TEMPLATE.value)
    moved = None if row.status is Status.PAUSED else (_spec(base), _spec(parsed.definition))
    after = row.position()._replace(status=done.status, next_due=done.next_due)
    soon = done.released + (due_within_a_minute([after], applying.now) if done.next_due != row.next_due else 0)
    warnings = (*parsed.warnings, *done.warnings)
    return Step(Change.UPDATE, _KIND, name, diff, moved=moved, warnings=warnings, starts_soon=soon)


def prune_schedules(applying: Applying, refusals: DocumentErrors, stored: Stored) -> list[Step]:
    """Those of the bundle that it does not have any more; what of their runs is left the janitor ends."""
    steps = []
    for name, (row, document) in sorted(stored.items()):
        if name in applying.documents(_KIND) or applying.bundle.name is None or row.bundle != applying.bundle.name:
            continue
        with refusals.about(_KIND, name, len(applying.documents(_KIND))):
            applying.caller.require_owner(row.owner, f"the schedule {name!r}")
            opened = _opened(applying, row)
            because = applying.caller.because(f"the bundle {applying.bundle.name!r} no longer contains it")
            delete_opened(applying.resources, applying.connection, because, opened)
        steps.append(Step(Change.DELETE, _KIND, name, moved=(_spec_of(row, document), None)))
    return steps


def _opened(applying: Applying, row: ScheduleRow) -> Opened:
    planning = applying.resources.known.load(applying.connection, [row.planning])[row.planning]
    return Opened(row, planning, applying.now, applying.resources.signals)


def _spec_of(row: ScheduleRow, document: Any) -> Spec | None:
    try:
        return None if row.status is Status.PAUSED else _spec(current(row, document))
    except InvalidDefinition:  # it was damaged, and can be deleted all the same
        return None


def _spec(definition: Definition) -> Spec | None:
    try:
        return definition.spec.compile(definition.schedule_id)
    except InvalidSpec:  # a zone that this tzdata does not know any more
        return None


def apply_bundle(
    resources: Resources,
    caller: Caller,
    bundle: Bundle,
    kinds: Sequence[BundledDocuments] = (),
    *,
    dry_run: bool = False,
    prune: bool = False,
    adopt: bool = False,
    of_app: bool = False,
) -> tuple[Step, ...]:
    """Apply a bundle kind by kind, then delete for `prune` from the last kind to the first; return all steps.

    `kinds` are those it may bring in addition to schedules, in their order (`bundle_kinds.py`). Raises InvalidBundle
    or BundleRefused, and then nothing was changed. A dry run raises the same errors. `of_app`: an application, or a
    workflow, applies its own templates; no other caller may use its name.
    """
    caller.require(Permission.WRITE)
    if not of_app and bundle.name is not None and bundle.name.startswith(TEMPLATES):
        raise OwnedByAnotherBundle(f"the bundle {bundle.name!r} belongs to a workflow; choose another name")

    def work(connection: Connection) -> tuple[Step, ...]:
        # Two bundles at once would wait for each other's schedules: those of a namespace take turns.
        if not tenant_rows.lock_namespace(connection, caller.namespace):
            raise NamespaceNotFound(caller.namespace)
        if (
            not of_app
            and bundle.name is not None
            and bundle_rows.release_numbers(connection, caller.namespace, bundle.name)
        ):
            raise OwnedByAnotherBundle(f"the bundle {bundle.name!r} belongs to an application; choose another name")
        # How many runs start is asked of all together, and a dry run only tells it.
        steps = _apply(resources, connection, caller.confirming(True), bundle, kinds, prune=prune, adopt=adopt)
        if not dry_run:
            require_confirmed(caller, sum(step.starts_soon for step in steps))
        return steps

    with bypass_on_record(resources, caller):
        steps = resources.database.preview(work) if dry_run else _written(resources, work)
    now = resources.clock.now()
    return tuple(counted(step, now) for step in steps)


def _written(resources: Resources, work: Callable[[Connection], tuple[Step, ...]]) -> tuple[Step, ...]:
    try:
        return resources.database.write_planned(work)
    except UniqueConflict:  # another request made one of them meanwhile; now it is there
        return resources.database.write_planned(work)


def _apply(
    resources: Resources,
    connection: Connection,
    caller: Caller,
    bundle: Bundle,
    kinds: Sequence[BundledDocuments],
    *,
    prune: bool,
    adopt: bool,
) -> tuple[Step, ...]:
    lookups, now = Lookups(connection, caller.namespace), resources.clock.now()
    standing = resources.quotas.standing(connection, caller.namespace, now)
    limits = resources.quotas.defaults if standing is None else standing.limits
    applying = Applying(resources, connection, caller, bundle, adopt, now, lookups, limits)
    refusals = DocumentErrors(bundle.places)
    steps: list[Step] = []
    for kind in kinds:
        steps += apply_documents(applying, refusals, kind)
    refusals.raise_any()
    ids = set(bundle.of(BundleKind.SCHEDULE))
    if prune and bundle.name is not None:
        ids |= _to_prune(connection, caller, bundle, bundle.name)
    stored = schedule_rows.lock_live(connection, caller.namespace, ids)
    steps += apply_schedules(applying, refusals, stored)
    if prune:
        steps += prune_schedules(applying, refusals, stored)
        for kind in reversed(kinds):
            steps += prune_documents(applying, refusals, kind)
    refusals.raise_any()
    return tuple(steps)


def _to_prune(connection: Connection, caller: Caller, bundle: Bundle, name: str) -> set[str]:
    wanted = bundle.of(BundleKind.SCHEDULE)
    gone = (
        set(schedule_rows.ids_of_bundle(connection, caller.namespace, name, len(wanted) + MAX_DELETED + 1))
        - wanted.keys()
    )
    require_few(BundleKind.SCHEDULE, gone)
    return gone
