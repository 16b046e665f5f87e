"""Rows that a definition refers to, attributes for search, and the approvals that its runs will need."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Any, Final

from horarium.core.document.assignee import Assignee
from horarium.core.document.calendar import CalendarDefinition, parse_calendar
from horarium.core.document.definition import Definition
from horarium.core.document.effective_policies import Effective
from horarium.core.document.reader import WORKFLOW
from horarium.core.document.stored_workflow import WorkflowUse, sub_workflows
from horarium.core.document.workflow_parts import Node
from horarium.core.document.workflow_steps import CompiledWorkflow
from horarium.core.policy.approval import (
    ROLE_PREFIX,
    ApprovalMode,
    ApprovalPolicy,
    FailurePolicy,
    RetryPolicy,
    StepWaits,
    merge_approval_policies,
    run_needs_approval,
    step_needs_approval,
)
from horarium.core.policy.limits import RunLimits
from horarium.core.policy.votes import names_of
from horarium.errors import HorariumError
from horarium.features.agents.policy_rows import PolicyDocuments, PolicyQuestion, effective_for, find_policy_documents
from horarium.features.agents.rows import AGENTS, TEAMS
from horarium.features.calendars import rows as calendar_rows
from horarium.features.calendars.rows import CalendarRow
from horarium.features.resources import Resources
from horarium.features.schedules import lookup_rows
from horarium.features.schedules.lookup_rows import WorkflowReference
from horarium.features.schedules.write_rows import Attribute
from horarium.features.secrets import rows as secret_rows
from horarium.features.secrets.rows import SecretName
from horarium.features.tenants import rows as tenant_rows
from horarium.features.workflows import graph_rows
from horarium.features.workflows.graph_rows import WorkflowVersion
from horarium.instant import Instant
from horarium.platform.caller import Caller, roles_with
from horarium.platform.database import Connection
from horarium.platform.settings import Settings
from horarium.platform.wire import Permission, Role


class Lookups:
    """Objects that definitions refer to, read once in a transaction and shared by many definitions."""

    def __init__(self, connection: Connection, namespace: str) -> None:
        self._connection, self._namespace = connection, namespace
        self._found: dict[tuple[str, str], Any] = {}
        self._calendars: dict[str, CalendarDefinition | None] = {}
        self._no_calendars: set[str] = set()

    def calendars(self, names: Sequence[str]) -> Mapping[str, CalendarDefinition | None]:
        """Calendars of the namespace, by name; None = its row cannot be read."""
        unknown = [name for name in names if name not in self._calendars and name not in self._no_calendars]
        rows = calendar_rows.find_many(self._connection, self._namespace, unknown) if unknown else {}
        self._calendars |= {name: _calendar(row) for name, row in rows.items()}
        self._no_calendars.update(name for name in unknown if name not in rows)
        return {name: self._calendars[name] for name in names if name in self._calendars}

    def workflow(self, name: str) -> lookup_rows.WorkflowReference | None:
        found: lookup_rows.WorkflowReference | None = self._once("workflow", name, lookup_rows.newest_workflow)
        return found

    def speakers(self, assignee: Assignee | None, assignment_id: str | None) -> PolicyDocuments:
        """Whoever has a word in the work of these, among those that there are."""
        key = "speakers", f"{assignment_id} {assignee}"
        if key not in self._found:
            given = [] if assignment_id is None else [(self._namespace, assignment_id)]
            who = [] if assignee is None else [(self._namespace, assignee)]
            self._found[key] = find_policy_documents(self._connection, given, who)
        found: PolicyDocuments = self._found[key]
        return found

    def is_somebody(self, name: str) -> bool:
        """Return whether an agent or a team has this id."""
        found: bool = self._once("somebody", name, _is_somebody)
        return found

    def secrets(self, names: Collection[str]) -> Mapping[str, SecretName]:
        """Not remembered: what is written meanwhile may set some."""
        return secret_rows.find_names(self._connection, self._namespace, names)

    def _once(self, kind: str, name: str, ask: Callable[[Connection, str, str], Any]) -> Any:
        if (kind, name) not in self._found:
            self._found[kind, name] = ask(self._connection, self._namespace, name)
        return self._found[kind, name]


def _calendar(row: CalendarRow) -> CalendarDefinition | None:
    try:
        return parse_calendar(row.document)
    except (HorariumError, ValueError, TypeError, AttributeError):
        return None


def _is_somebody(connection: Connection, namespace: str, name: str) -> bool:
    return any(rows.find(connection, namespace, name) is not None for rows in (AGENTS, TEAMS))


def attributes_of(definition: Definition) -> frozenset[Attribute]:
    labels = {Attribute("label", name, value) for name, value in definition.labels.items()}
    found = {each for name, value in definition.search_attributes.items() for each in _facet(name, value)}
    written = {"TaskQueue": definition.action.queue, "Note": definition.note}
    fields = {field_attribute(name, value) for name, value in written.items() if value}
    return frozenset(labels | found | fields)


def note_attribute(note: str | None) -> Attribute | None:
    return field_attribute("Note", note) if note else None


def field_attribute(name: str, value: str) -> Attribute:
    """A field that has no column of its own; hashed, since a note may be longer than what an index takes."""
    return Attribute("field", name, sha256(value.encode()).hexdigest())


def _facet(name: str, value: object) -> list[Attribute]:
    """A list is found by each of its members; what is no plain value cannot be searched for."""
    values = value if isinstance(value, list) else [value]
    return [
        Attribute("search_attribute", name, searchable(each)) for each in values if not isinstance(each, dict | list)
    ]


def searchable(value: object) -> str:
    """Write a value as filters do: `true`, `42`, `text`; 42.0 is the same number as 42."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return "null" if value is None else str(value)


_MOST: Final = 200
"""Workflows that are read, once for each policy; beyond them a step is taken to need an approval."""


def steps_wait(connection: Connection, definition: Definition, policy: ApprovalPolicy) -> bool:
    """Check the steps of the stored workflow that the definition names; without one, the call is the only step."""
    action = definition.action
    if action.kind != WORKFLOW.name or action.workflow is None:
        return policy.mode is ApprovalMode.EVERY_NODE
    version = action.target.get("version")
    root = WorkflowUse(action.workflow, version if isinstance(version, int) else None)
    has_assignee = definition.assignee is not None or definition.workflow_assignment_id is not None
    return any_step_waits(connection, definition.namespace, root, policy, has_assignee=has_assignee)


def workflow_floor(connection: Connection, definition: Definition, newest: int) -> ApprovalPolicy | None:
    """The approval policy of the stored workflow that the definition names; `newest` is the newest version of it."""
    asked = definition.action.target.get("version")
    version = asked if isinstance(asked, int) else newest
    wanted = WorkflowVersion(definition.namespace, definition.action.workflow or "", version)
    compiled = graph_rows.load(connection, [wanted])[wanted]
    return compiled.workflow.approval if isinstance(compiled, CompiledWorkflow) else None


def any_step_waits(
    connection: Connection, namespace: str, root: WorkflowUse, policy: ApprovalPolicy, *, has_assignee: bool
) -> bool:
    """Check whether a step, also of a sub-workflow, would await approval under the policy of the run.

    A workflow that is missing or cannot be read has no steps that could start. One that several use is read for each
    policy that it inherits.
    """
    level, seen = {(root, policy)}, set[tuple[str, int, ApprovalPolicy]]()
    while level:
        newest = graph_rows.newest_versions(
            connection, {(namespace, use.name) for use, _ in level if use.version is None}
        )
        following: set[tuple[WorkflowUse, ApprovalPolicy]] = set()
        for use, above in level:
            version = use.version or newest.get((namespace, use.name))
            if version is None or (use.name, version, above) in seen:
                continue
            if len(seen) >= _MOST:
                return True
            seen.add((use.name, version, above))
            wanted = WorkflowVersion(namespace, use.name, version)
            compiled = graph_rows.load(connection, [wanted])[wanted]
            if not isinstance(compiled, CompiledWorkflow):
                continue
            floor = compiled.workflow.approval
            if use is not root and floor is not None and floor.requires_approval is True:
                return True
            own = merge_approval_policies(above, floor)
            if any(_waits(connection, namespace, node, own, has_assignee=has_assignee) for node in compiled.nodes):
                return True
            following |= {(WorkflowUse(sub.name, sub.version), own) for sub in sub_workflows(compiled.workflow)}
        level = following
    return False


def _waits(connection: Connection, namespace: str, node: Node, policy: ApprovalPolicy, *, has_assignee: bool) -> bool:
    policy = _with_worker(connection, namespace, node.assignee, policy)
    if policy.mode is None and (has_assignee or node.assignee is not None):
        policy = replace(policy, mode=ApprovalMode.SENSITIVE_ACTIONS)
    return isinstance(step_needs_approval(policy, node_gates=node.gates), StepWaits)


def _with_worker(
    connection: Connection, namespace: str, assignee: Assignee | None, policy: ApprovalPolicy
) -> ApprovalPolicy:
    """Add what the agent or team of the node says."""
    if assignee is None:
        return policy
    asked = PolicyQuestion(policy, RetryPolicy(), FailurePolicy(), RunLimits(), None, assignee, None)
    [found] = effective_for(connection, namespace, [asked])
    return policy if found is None else found.approval


# Settings that let in principals of which no row is stored.
_OUTSIDE = ("jwt_secret", "jwks_file", "jwks_url", "jwt_key_file", "tls_principals")
# The principal of the setting `token`.
FIXED = "admin"


def lacking_approvers(
    settings: Settings,
    connection: Connection,
    caller: Caller,
    policy: ApprovalPolicy,
    owner: str | None,
    now: Instant,
) -> str | None:
    """Explain why nobody could approve the runs of a schedule that the caller writes; None = somebody could.

    Where principals come from outside (signed tokens, certificates, names in `approvers`), somebody is taken to exist.
    """
    if caller.principal is None or any(getattr(settings, name) for name in _OUTSIDE):
        return None
    authors = {caller.principal, owner or caller.principal}
    named = {each for each in policy.approvers if not each.startswith(ROLE_PREFIX)}
    known = _known(settings, connection, caller, now)
    able = {who for who, role in known if not policy.approvers or names_of(who, role) & policy.approvers} | named
    required = policy.approvals_required or 1
    if policy.allow_requester:
        if len(able) >= required:
            return None
        return f"approvals_required: is {required}, but only {len(able)} users may approve"
    if len(able - authors) >= required:
        return None
    others = f"{required} other approvers" if required > 1 else "another approver"
    who = " and ".join(sorted(authors))
    return (
        f"allow_requester: runs await approval, but {who} may not approve runs of their own schedule; "
        f"set allow_requester (--allow-requester), or issue a token for {others}"
    )


def _known(settings: Settings, connection: Connection, caller: Caller, now: Instant) -> set[tuple[str, str]]:
    """Principals that hold the permission, with their roles."""
    roles = [role.value for role in roles_with(Permission.APPROVE)]
    found = set(tenant_rows.principals(connection, caller.namespace, roles, now))
    if caller.principal is not None and caller.may(Permission.APPROVE):
        found.add((caller.principal, caller.role.value))
    return found | ({(FIXED, Role.ADMIN.value)} if settings.token is not None else set())


_NO_SPEAKERS: Final = PolicyDocuments({}, {}, {})


def effective_approval(
    speakers: PolicyDocuments | None, definition: Definition, floor: ApprovalPolicy | None = None
) -> ApprovalPolicy:
    """By what holds now, with the policy of the stored workflow where it is given (`floor`)."""
    effective = effective_of(speakers, definition, floor)
    return definition.approval if effective is None else effective.approval


def effective_of(
    speakers: PolicyDocuments | None, definition: Definition, floor: ApprovalPolicy | None = None
) -> Effective | None:
    """Merge the policies that apply to the next run; None = only those of the definition."""
    asked = PolicyQuestion(
        definition.approval,
        definition.retry,
        definition.failure,
        definition.limits,
        definition.workflow_assignment_id,
        definition.assignee,
        floor,
    )
    return (speakers or _NO_SPEAKERS).effective(definition.namespace, asked)


def retries_of(effective: Effective | None, definition: Definition) -> int:
    """Return how often a failed run or step is retried."""
    return (definition.retry if effective is None else effective.retry).max_retries


def lacking_approval(
    resources: Resources,
    connection: Connection,
    caller: Caller,
    definition: Definition,
    speakers: PolicyDocuments | None,
    stored: WorkflowReference | None,
) -> tuple[str, ...]:
    """A warning where runs, or steps of the stored workflow, would await an approval that nobody could give."""
    floor = None if stored is None else workflow_floor(connection, definition, stored.version)
    policy, now = effective_approval(speakers, definition, floor), resources.clock.now()
    lacking = lacking_approvers(resources.settings, connection, caller, policy, definition.owner, now)
    if lacking is None:
        return ()
    waits = run_needs_approval(policy, has_assignee=False, has_steps=stored is not None)
    return (f"approval_policy.{lacking}",) if waits or steps_wait(connection, definition, policy) else ()


def idle_approval(definition: Definition) -> tuple[str, ...]:
    """Settings for steps where the action is no stored workflow."""
    policy, found = definition.approval, list[str]()
    without = "applies only to steps of a stored workflow"
    if policy.mode is ApprovalMode.EVERY_NODE:
        found.append(f"mode: every_node {without}; each run awaits approval before its only call")
    elif policy.mode is not None:
        found.append(f"mode: {policy.mode} {without}; set requires_approval to hold each run")
    if policy.gates:
        found.append(f"gates: a gate {without}; set requires_approval to hold each run")
    return tuple(f"approval_policy.{each}" for each in found)
