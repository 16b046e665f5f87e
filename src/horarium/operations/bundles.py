"""Apply a bundle: all of it in one planned write, or nothing. A dry run only previews the write."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from horarium.operations.bundle_documents import (
    MAX_DELETED,
    BundledDocuments,
    apply_documents,
    prune_documents,
    require_few,
)
from horarium.operations.bundle_schedules import apply_schedules, prune_schedules
from horarium.operations.bundle_steps import Applying, Refusals, Step, counted
from horarium.operations.bypasses import bypass_on_record
from horarium.operations.caller import Caller
from horarium.operations.errors import NamespaceNotFound, OwnedByAnotherBundle
from horarium.operations.lookups import Lookups
from horarium.operations.resources import Resources
from horarium.operations.storms import require_confirmed
from horarium.schedule.bundle import Bundle, BundleKind
from horarium.schedule.workflow_document import TEMPLATES
from horarium.store import namespaces, releases
from horarium.store.database import Connection
from horarium.store.errors import Conflict
from horarium.store.schedules import rows
from horarium.wire.roles import Permission


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
        if not namespaces.lock(connection, caller.namespace):
            raise NamespaceNotFound(caller.namespace)
        if not of_app and bundle.name is not None and releases.numbers(connection, caller.namespace, bundle.name):
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
    except Conflict:  # another request made one of them meanwhile; now it is there
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
    refusals = Refusals(bundle.places)
    steps: list[Step] = []
    for kind in kinds:
        steps += apply_documents(applying, refusals, kind)
    refusals.raise_any()
    ids = set(bundle.of(BundleKind.SCHEDULE))
    if prune and bundle.name is not None:
        ids |= _to_prune(connection, caller, bundle, bundle.name)
    stored = rows.lock_live(connection, caller.namespace, ids)
    steps += apply_schedules(applying, refusals, stored)
    if prune:
        steps += prune_schedules(applying, refusals, stored)
        for kind in reversed(kinds):
            steps += prune_documents(applying, refusals, kind)
    refusals.raise_any()
    return tuple(steps)


def _to_prune(connection: Connection, caller: Caller, bundle: Bundle, name: str) -> set[str]:
    wanted = bundle.of(BundleKind.SCHEDULE)
    gone = set(rows.ids_of_bundle(connection, caller.namespace, name, len(wanted) + MAX_DELETED + 1)) - wanted.keys()
    require_few(BundleKind.SCHEDULE, gone)
    return gone
