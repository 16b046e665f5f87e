"""How the triggers of a workflow become schedules: templates that follow it, and end with it.

They are the bundle of the workflow, so that those it has no more are found. A pause stays with whoever paused it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from horarium.errors import InvalidWorkflow
from horarium.operations.bundles import apply_bundle
from horarium.operations.caller import Caller
from horarium.operations.errors import InvalidBundle, Refused
from horarium.operations.resources import Resources
from horarium.operations.workflow_drafts import schedule_documents
from horarium.schedule.bundle import Bundle, BundleKind
from horarium.schedule.workflow import TriggerKind, Workflow
from horarium.schedule.workflow_document import template_bundle
from horarium.store.database import Connection
from horarium.store.database.joined_transaction import JoinedTransaction
from horarium.wire.bundles import Change
from horarium.wire.outcomes import WriteOutcome

_OUTCOMES: Final = {
    Change.CREATE: WriteOutcome.CREATED,
    Change.UPDATE: WriteOutcome.UPDATED,
    Change.UNCHANGED: WriteOutcome.UNCHANGED,
    Change.DELETE: WriteOutcome.DELETED,
}


@dataclass(frozen=True, slots=True)
class TemplateChange:
    schedule_id: str
    outcome: WriteOutcome
    warnings: tuple[str, ...] = ()
    starts_soon: int = 0
    """Runs that start within a minute because the schedule is new or changed."""
    fires_added: int = 0
    fires_removed: int = 0


def put_templates(
    resources: Resources, connection: Connection, caller: Caller, workflow: Workflow
) -> tuple[TemplateChange, ...]:
    """The schedules are what its triggers say, in the transaction of `connection`. Raises what is wrong with one."""
    documents = schedule_documents(workflow)
    try:
        return _apply(resources, connection, caller, workflow.workflow_id, documents)
    except InvalidBundle as wrong:
        raise InvalidWorkflow(_by_trigger(workflow, wrong)) from None


def delete_templates(
    resources: Resources, connection: Connection, caller: Caller, workflow_id: str
) -> tuple[TemplateChange, ...]:
    return _apply(resources, connection, caller, workflow_id, {})


def _apply(
    resources: Resources,
    connection: Connection,
    caller: Caller,
    workflow_id: str,
    documents: dict[str, dict[str, object]],
) -> tuple[TemplateChange, ...]:
    inside = replace(resources, database=JoinedTransaction(resources.database, connection))
    bundle = Bundle(template_bundle(workflow_id), {BundleKind.SCHEDULE: documents})
    steps = apply_bundle(inside, caller, bundle, prune=True, of_app=True)
    by_hand = next((step.name for step in steps if step.change is Change.KEEP), None)
    if by_hand is not None:
        raise Refused(f"the schedule {by_hand!r} was created manually and has the name of a trigger; delete it first")
    return tuple(
        TemplateChange(
            step.name,
            _OUTCOMES[step.change],
            step.warnings,
            step.starts_soon,
            step.fires_added,
            step.fires_removed,
        )
        for step in steps
    )


def _by_trigger(workflow: Workflow, wrong: InvalidBundle) -> dict[str, list[str]]:
    """The paths of a bundle as those of the workflow: its schedules are the triggers that make some, in their order."""
    places = [index for index, each in enumerate(workflow.triggers) if each.kind is TriggerKind.SCHEDULE]
    found: dict[str, list[str]] = {}
    for path, said in wrong.errors.items():
        _, index, rest = (*path.split(".", 2), "", "")[:3]
        place = f"triggers.{places[int(index)]}.schedule" if index.isdecimal() else "triggers"
        found[f"{place}.{rest}" if rest else place] = said
    return found
