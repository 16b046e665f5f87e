"""Apply the templates of an application as the bundle of its name, at each of its releases."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from horarium.core.document.states import Status
from horarium.core.document.stored_workflow import template_bundle
from horarium.core.document.workflow import WorkflowDefinition
from horarium.errors import InvalidDefinition
from horarium.features.bundles import rows as bundle_rows
from horarium.features.bundles.document import Bundle, BundleKind
from horarium.features.bundles.model import Change
from horarium.features.bundles.service import apply_bundle
from horarium.features.bundles.values import ReleaseOrder, declared_no_more, release_order
from horarium.features.resources import Resources, open_schedule
from horarium.features.schedules import rows as schedule_rows
from horarium.features.schedules.lifecycle import pause_opened, resume_opened
from horarium.features.tenants import rows as tenant_rows
from horarium.features.workflows import rows as workflow_rows
from horarium.features.workflows.drafts import read_document
from horarium.features.workflows.service import put_read
from horarium.platform.caller import Caller
from horarium.platform.database import Connection
from horarium.platform.database.wrapper import JoinedTransaction
from horarium.platform.errors import NamespaceNotFound
from horarium.platform.wire import WriteOutcome

Templates = Mapping[str, Mapping[str, Any]]
"""Documents by id."""

APPLICATION = "app"
# More than anybody declares in one program.
_MOST = 10_000


@dataclass(frozen=True, slots=True)
class Registered:
    """`kept` are ids that somebody made by hand, `foreign` those of other bundles: neither was touched."""

    kept: tuple[str, ...] = ()
    foreign: tuple[str, ...] = ()
    paused: tuple[str, ...] = ()
    resumed: tuple[str, ...] = ()
    foreign_workflows: tuple[str, ...] = ()


def register(
    resources: Resources,
    caller: Caller,
    app: str | None,
    release: str,
    templates: Templates,
    declared: Templates = MappingProxyType({}),
) -> Registered:
    """In the caller's namespace, in one transaction. An application without a name has no bundle and pauses nothing.

    What is declared in code belongs to the application, unless it names another owner there. `declared` are its
    workflows; the schedules of their triggers are paused and resumed with the templates. Raises InvalidDefinition
    where the name is that of a bundle that somebody applies.
    """
    owned = {name: {"owner": owner_of(app), **document} for name, document in templates.items()}
    asked = _read(resources, caller, app, declared)

    def work(connection: Connection) -> Registered:
        if not tenant_rows.lock_namespace(connection, caller.namespace):
            raise NamespaceNotFound(caller.namespace)
        inside = replace(resources, database=JoinedTransaction(resources.database, connection))
        turn = None if app is None else _turn(connection, caller.namespace, app, release)
        # An older release that starts again would put its version after that of the newer one.
        put = [] if turn is ReleaseOrder.OLDER else asked
        others, triggered = _put_workflows(inside, connection, caller, app, put)
        there = schedule_rows.lock_live(connection, caller.namespace, templates)
        foreign = tuple(name for name, (row, _) in there.items() if row.bundle not in (None, app))
        ours = {name: document for name, document in owned.items() if name not in foreign}
        steps = apply_bundle(inside, caller, Bundle(app, {BundleKind.SCHEDULE: ours}), of_app=True)
        kept = tuple(step.name for step in steps if step.change is Change.KEEP)
        if app is None or turn is None:
            return Registered(kept, foreign, foreign_workflows=others)
        gone = _gone(connection, caller.namespace, app, templates, declared) if turn is ReleaseOrder.FIRST else set()
        paused = _pause_gone(inside, connection, caller, app, gone)
        found = [] if turn is ReleaseOrder.OLDER else [*ours, *triggered]
        resumed = _resume_found(inside, connection, caller, app, found)
        return Registered(kept, foreign, paused, resumed, others)

    return resources.database.write_planned(work)


def _read(resources: Resources, caller: Caller, app: str | None, declared: Templates) -> list[WorkflowDefinition]:
    owned = ((name, {"owner": owner_of(app), **document}) for name, document in declared.items())
    return [read_document(resources, caller, document, name) for name, document in owned]


def owner_of(app: str | None) -> str:
    """To whom the templates of an application belong."""
    return APPLICATION if app is None else f"{APPLICATION}:{app}"


def _turn(connection: Connection, namespace: str, app: str, release: str) -> ReleaseOrder:
    known = bundle_rows.release_numbers(connection, namespace, app)
    if not known and schedule_rows.ids_of_bundle(connection, namespace, app, 1):
        raise InvalidDefinition({"name": [f"{app!r} is the name of an applied bundle; choose another name"]})
    turn, number = release_order(release, known)
    if turn is ReleaseOrder.FIRST:
        bundle_rows.add_release(connection, namespace, app, release, number)
    return turn


def namespaces_of_app(connection: Connection, app: str) -> list[str]:
    """Where something of it is in place."""
    return sorted(
        {*schedule_rows.namespaces_of_bundle(connection, app), *workflow_rows.namespaces_of_bundle(connection, app)}
    )


def _put_workflows(
    resources: Resources, connection: Connection, caller: Caller, app: str | None, asked: Sequence[WorkflowDefinition]
) -> tuple[tuple[str, ...], list[str]]:
    """The ids of those that are somebody else's and were left alone; and the schedules of the others' triggers."""
    others, triggered = [], []
    for workflow in asked:
        there = workflow_rows.find(connection, caller.namespace, workflow.workflow_id)
        if there is not None and (there.bundle != app or (app is None and there.owner != owner_of(None))):
            others.append(workflow.workflow_id)
            continue
        done = put_read(resources, connection, caller, workflow, bundle=app)
        triggered += [each.schedule_id for each in done.schedules if each.outcome is not WriteOutcome.DELETED]
    return tuple(others), triggered


def _gone(connection: Connection, namespace: str, app: str, templates: Templates, declared: Templates) -> set[str]:
    """Schedules that nobody declares any more: its own, and those of workflows that it has no more."""
    gone = set(schedule_rows.ids_of_bundle(connection, namespace, app, _MOST)) - templates.keys()
    for name in set(workflow_rows.ids_of_bundle(connection, namespace, app, _MOST)) - declared.keys():
        gone.update(schedule_rows.ids_of_bundle(connection, namespace, template_bundle(name), _MOST))
    return gone


def _pause_gone(
    resources: Resources, connection: Connection, caller: Caller, app: str, gone: Collection[str]
) -> tuple[str, ...]:
    """Pause active schedules that are no longer declared."""
    paused = []
    for name in sorted(gone):
        opened = open_schedule(resources, connection, caller, name)
        if opened.row.status is Status.ACTIVE:
            pause_opened(connection, caller.because(declared_no_more(app)), opened)
            paused.append(name)
    return tuple(paused)


def _resume_found(
    resources: Resources, connection: Connection, caller: Caller, app: str, declared: Collection[str]
) -> tuple[str, ...]:
    """Resume schedules that were paused because they were not declared; any other pause stays."""
    there = schedule_rows.lock_live(connection, caller.namespace, declared)
    found = [name for name, (row, _) in there.items() if row.pause_reason == declared_no_more(app)]
    for name in sorted(found):
        resume_opened(resources, connection, caller, open_schedule(resources, connection, caller, name))
    return tuple(sorted(found))
