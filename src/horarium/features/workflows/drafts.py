"""Check a workflow before it is stored, and derive the schedules of its triggers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from horarium.core.document.assignee import AssigneeType
from horarium.core.document.canonical import action_document
from horarium.core.document.checks import hosts_of, move_credentials, names_in, of_node
from horarium.core.document.definition import Action, Definition, SpecText
from horarium.core.document.document import ParsedDefinition
from horarium.core.document.nodes import action_of
from horarium.core.document.reader import WORKFLOW
from horarium.core.document.secret_values import may_go_to, not_allowed
from horarium.core.document.states import Source
from horarium.core.document.stored_workflow import (
    MAX_REACHABLE,
    StoredUses,
    WorkflowUse,
    check_sub_workflows,
    sub_workflows,
    template_bundle,
)
from horarium.core.document.workflow import (
    TriggerKind,
    WorkflowDefinition,
    WorkflowTrigger,
    parse_workflow,
    template_schedule_id,
)
from horarium.errors import InvalidDefinition, InvalidWorkflow
from horarium.features.agents.policy_rows import find_policy_documents
from horarium.features.bundles.document import Bundle
from horarium.features.bundles.model import Change
from horarium.features.bundles.service import apply_bundle
from horarium.features.bundles.values import BundleKind
from horarium.features.resources import Resources, called_by
from horarium.features.schedules.creation import keep_credentials
from horarium.features.schedules.drafts import check_calendars
from horarium.features.schedules.references import Lookups
from horarium.features.schedules.service import parse_new
from horarium.features.secrets import rows as secret_rows
from horarium.features.workflows import rows as workflow_rows
from horarium.features.workflows.graph_rows import newest_versions
from horarium.launchers.registry import Serves, unserved
from horarium.platform.caller import Caller
from horarium.platform.database import Connection
from horarium.platform.database.wrapper import JoinedTransaction
from horarium.platform.errors import Forbidden, InvalidBundle, OperationRefused
from horarium.platform.wire import WriteOutcome

_MAX_WARNINGS = 50
# What the workflow itself says of the schedules of its triggers.
_OURS = ("schedule_id", "id", "namespace", "action", "owner", "source", "workflow_id", "workflow_type", "version")
_ID = ("workflow_id", "workflowId", "id")
_NAMELESS = "workflow"


def read_document(
    resources: Resources, caller: Caller, document: Mapping[str, Any], workflow_id: str | None = None
) -> WorkflowDefinition:
    """As its author wrote it, version and owner to be settled. Raises InvalidWorkflow with all problems."""
    given = {name: value for name, value in document.items() if name not in ("version", *_ID)}
    said = next((document[name] for name in _ID if document.get(name) is not None), None)
    name = said if workflow_id is None else workflow_id
    given["workflow_id"] = _NAMELESS if name is None else name
    elsewhere = {} if said in (None, name) else {"workflow_id": [f"must be {name}, as in the URL"]}

    def check_trigger(trigger: WorkflowTrigger) -> Mapping[str, Sequence[str]]:
        own = {
            field: ["cannot be set here, because the workflow defines it"]
            for field in trigger.settings
            if field in _OURS
        }
        if own:
            return own
        try:
            parse_new(resources, caller, schedule_document(str(name), None, trigger), may_be_over=True)
        except InvalidDefinition as wrong:
            # Its id is made of the workflow's, of which it is told elsewhere.
            return {path: said for path, said in wrong.errors.items() if path != "schedule_id"}
        return {}

    try:
        read = parse_workflow(given, kinds=resources.kinds_for(caller.namespace), check_trigger=check_trigger)
    except InvalidWorkflow as wrong:
        if not elsewhere:
            raise
        raise InvalidWorkflow({**elsewhere, **wrong.errors}) from None
    if elsewhere:
        raise InvalidWorkflow(elsewhere)
    return read


def schedule_document(workflow_id: str, owner: str | None, trigger: WorkflowTrigger) -> dict[str, Any]:
    """The schedule that a trigger makes: it starts the newest version there is."""
    return {
        **trigger.settings,
        "schedule_id": template_schedule_id(workflow_id, trigger.key),
        "source": Source.TEMPLATE.value,
        "action": {"kind": WORKFLOW.name, "workflow_id": workflow_id, "version": "latest"},
        **({} if owner is None else {"owner": owner}),
    }


def schedule_documents(workflow: WorkflowDefinition) -> dict[str, dict[str, Any]]:
    """By their ids."""
    found = (each for each in workflow.triggers if each.kind is TriggerKind.SCHEDULE)
    documents = (schedule_document(workflow.workflow_id, workflow.owner, trigger) for trigger in found)
    return {document["schedule_id"]: document for document in documents}


def settled_owner(caller: Caller, given: str | None, before: workflow_rows.WorkflowRow | None) -> str | None:
    """The caller's, unless an admin names another or it is known already. Raises Forbidden."""
    usual = caller.principal if before is None else before.owner
    if given is None or given == usual:
        return usual
    if not caller.is_admin:
        raise Forbidden("only an admin may change the owner of a workflow")
    return given


def check_references(
    connection: Connection,
    caller: Caller,
    workflow: WorkflowDefinition,
    before: workflow_rows.WorkflowRow | None,
    *more: Callable[[], None],
) -> None:
    """Check that references of nodes exist and form no cycle.

    Raises InvalidWorkflow with all problems, or CycleDetected. `more` are further checks.
    """
    namespace = caller.namespace
    checks: tuple[Callable[[], None], ...] = (
        partial(_check_parts, connection, namespace, workflow),
        partial(_check_assignees, connection, namespace, workflow, before),
        *more,
    )
    found: list[InvalidWorkflow] = []
    for check in checks:
        try:
            check()
        except InvalidWorkflow as wrong:
            found.append(wrong)
    if len(found) == 1:
        raise found[0]
    if found:
        raise InvalidWorkflow({path: said for wrong in found for path, said in wrong.errors.items()})


def _check_parts(connection: Connection, namespace: str, workflow: WorkflowDefinition) -> None:
    """Raises CycleDetected or InvalidWorkflow for what its nodes name."""
    subs = sub_workflows(workflow)
    if not subs:
        return
    root = WorkflowUse(workflow.workflow_id, workflow.version)
    wanted = [WorkflowUse(sub.name, sub.version) for sub in subs]
    known = _reachable(connection, namespace, wanted)
    pinned = {use.name for use in wanted if use not in known and use.version is not None and use != root}
    there = newest_versions(connection, {(namespace, name) for name in pinned})
    missing = {
        f"{sub.path}.version": [f"version {sub.version} of {sub.name!r} not found"]
        for sub, use in zip(subs, wanted, strict=True)
        if use.version is not None and use not in known and use != root and (namespace, use.name) in there
    }
    if missing:
        raise InvalidWorkflow(missing)
    check_sub_workflows(root, subs, known)


def _check_assignees(
    connection: Connection, namespace: str, workflow: WorkflowDefinition, before: workflow_rows.WorkflowRow | None
) -> None:
    """Raises InvalidWorkflow for work for nobody. Whom the version before had may be gone."""
    named = {index: node.assignee for index, node in enumerate(workflow.nodes) if node.assignee is not None}
    if not named:
        return
    speakers = find_policy_documents(connection, [], {(namespace, assignee) for assignee in named.values()})
    nodes = [] if before is None else before.document.get("nodes", ())
    had = {(node.get("assignee_type"), node.get("assignee_id")) for node in nodes}
    problems = {}
    for index, assignee in named.items():
        rows: Mapping[Any, Any] = speakers.agents if assignee.type is AssigneeType.AGENT else speakers.teams
        if (namespace, assignee.id) not in rows and (assignee.type.value, assignee.id) not in had:
            problems[f"nodes.{index}.assignee_id"] = [f"{assignee.type.value} {assignee.id!r} not found"]
    if problems:
        raise InvalidWorkflow(problems)


def check_trigger_calendars(
    resources: Resources, connection: Connection, caller: Caller, workflow: WorkflowDefinition
) -> None:
    """Raises InvalidWorkflow for those that are not there."""
    known, problems = Lookups(connection, caller.namespace), dict[str, list[str]]()
    for index, trigger in enumerate(workflow.triggers):
        if trigger.kind is not TriggerKind.SCHEDULE:
            continue
        document = schedule_document(workflow.workflow_id, None, trigger)
        try:
            check_calendars(known, parse_new(resources, caller, document, may_be_over=True).definition)
        except InvalidDefinition as wrong:
            problems |= {f"triggers.{index}.schedule.{path}": said for path, said in wrong.errors.items()}
    if problems:
        raise InvalidWorkflow(problems)


def _reachable(connection: Connection, namespace: str, first: Sequence[WorkflowUse]) -> dict[WorkflowUse, StoredUses]:
    known: dict[WorkflowUse, StoredUses] = {}
    asked: set[WorkflowUse] = set()
    waiting = set(first)
    while waiting:
        asked |= waiting
        found = workflow_rows.uses_of(connection, namespace, waiting)
        known |= found
        if len(known) > MAX_REACHABLE:
            raise InvalidWorkflow({"nodes": [f"reference more than {MAX_REACHABLE} workflows in total"]})
        waiting = {use for stored in found.values() for use in stored.uses} - asked
    return known


def without_credentials(workflow: WorkflowDefinition) -> tuple[WorkflowDefinition, list[tuple[Action, dict[str, str]]]]:
    """With references in the place of plain credentials, and what was taken out, each with the action that needs it."""
    nodes, taken = [], []
    for node in workflow.nodes:
        if node.action.get("headers"):
            action, credentials = move_credentials(action_of(node), of_node(workflow.workflow_id, node.id))
            if credentials:
                node = replace(node, action=action_document(action))
                taken.append((action, credentials))
        nodes.append(node)
    return replace(workflow, nodes=tuple(nodes)), taken


def keep_taken(
    resources: Resources, connection: Connection, caller: Caller, taken: Sequence[tuple[Action, dict[str, str]]]
) -> bool:
    """Store credentials and tell whether one of them was missing or had another value."""
    changed = False
    for action, credentials in taken:
        definition = Definition("", SpecText(), action, caller.namespace)
        parsed = ParsedDefinition(definition, None, credentials=credentials)
        changed |= bool(keep_credentials(resources, connection, caller, parsed))
    return changed


def warnings_of(
    resources: Resources,
    connection: Connection,
    caller: Caller,
    workflow: WorkflowDefinition,
    will_be_set: Collection[str] = (),
) -> tuple[str, ...]:
    """Warnings about missing secrets, tasks and workers of nodes, which can be added before they run."""
    namespace, found = caller.namespace, []
    actions = [(f"nodes.{index}.action", action_of(node), node.input) for index, node in enumerate(workflow.nodes)]
    named = {path: names_in(action, given) for path, action, given in actions}
    known = secret_rows.find_names(connection, namespace, set().union(*named.values()))
    for path, action, _ in actions:
        [destination] = hosts_of(action) or [""]
        for name in sorted(named[path].difference(will_be_set)):
            secret = known.get(name)
            if secret is None:
                found.append(f"{path}: the secret {name!r} is not set; the step fails to launch without it")
            elif not may_go_to(secret.hosts, destination):
                found.append(f"{path}: {not_allowed(name, secret.hosts, destination)}")
    routed = [(path, replace(action, queue=action.queue or workflow.queue)) for path, action, _ in actions]
    found += _unserved(resources, connection, namespace, routed)
    found += _called(resources, connection, namespace, workflow)
    more = len(found) - _MAX_WARNINGS
    return (*found[:_MAX_WARNINGS], f"… and {more} more warnings") if more > 0 else tuple(found)


def _called(resources: Resources, connection: Connection, namespace: str, workflow: WorkflowDefinition) -> list[str]:
    """Warn of prompts that reach no agent, and name the addresses that the nodes call."""
    assigned = {(namespace, node.assignee) for node in workflow.nodes if node.assignee is not None}
    speakers = find_policy_documents(connection, [], assigned) if assigned else None
    told: list[str] = []
    for index, node in enumerate(workflow.nodes):
        path = f"nodes.{index}"
        called = called_by(
            action_of(node),
            node.assignee,
            speakers,
            namespace,
            action_path=f"{path}.action",
            assignee_path=f"{path}.assignee_id",
            needs_assignee=False,  # a run may bring one
        )
        told += called.warnings
        resources.name_addresses(BundleKind.WORKFLOW.value, workflow.workflow_id, called.addresses)
    return told


def _unserved(
    resources: Resources, connection: Connection, namespace: str, actions: Sequence[tuple[str, Action]]
) -> list[str]:
    if resources.registry is None:
        return []
    here = resources.registry
    kinds = here.kinds_for(namespace)
    names = {action.workflow for _, action in actions if action.kind == WORKFLOW.name and action.workflow}
    stored = newest_versions(connection, {(namespace, name) for name in names})
    elsewhere = resources.elsewhere.load(connection, resources.clock.now())
    everybody: list[Serves] = [here, *elsewhere]
    told: list[str] = []
    for path, action in actions:
        is_stored = (namespace, action.workflow or "") in stored
        said = unserved(action, kinds, everybody, namespace, stored=is_stored)
        told += [f"{path.removesuffix('.action')}.{each}" for each in said]
    return told


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
    resources: Resources, connection: Connection, caller: Caller, workflow: WorkflowDefinition
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
        raise OperationRefused(
            f"the schedule {by_hand!r} was created manually and has the name of a trigger; delete it first"
        )
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


def _by_trigger(workflow: WorkflowDefinition, wrong: InvalidBundle) -> dict[str, list[str]]:
    """The paths of a bundle as those of the workflow: its schedules are the triggers that make some, in their order."""
    places = [index for index, each in enumerate(workflow.triggers) if each.kind is TriggerKind.SCHEDULE]
    found: dict[str, list[str]] = {}
    for path, said in wrong.errors.items():
        _, index, rest = (*path.split(".", 2), "", "")[:3]
        place = f"triggers.{places[int(index)]}.schedule" if index.isdecimal() else "triggers"
        found[f"{place}.{rest}" if rest else place] = said
    return found
