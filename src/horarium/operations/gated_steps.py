"""Steps of a stored workflow that would need an approval, found before the run starts."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from horarium.policy.approval import ApprovalMode, ApprovalPolicy, StepWaits, merge, step_needs_approval
from horarium.policy.failure import FailurePolicy
from horarium.policy.limits import RunLimits
from horarium.policy.retry import RetryPolicy
from horarium.schedule.assignee import Assignee
from horarium.schedule.compiled import CompiledWorkflow
from horarium.schedule.definition import Definition
from horarium.schedule.kinds import WORKFLOW
from horarium.schedule.sub_workflows import Use
from horarium.schedule.workflow_document import sub_workflows
from horarium.schedule.workflow_parts import Node
from horarium.store import workflow_graphs
from horarium.store.database import Connection
from horarium.store.policies import PolicyQuestion, effective_for
from horarium.store.workflow_graphs import WorkflowVersion

_MOST: Final = 200
"""Workflows that are read, once for each policy; beyond them a step is taken to need an approval."""


def steps_wait(connection: Connection, definition: Definition, policy: ApprovalPolicy) -> bool:
    """Check the steps of the stored workflow that the definition names; without one, the call is the only step."""
    action = definition.action
    if action.kind != WORKFLOW.name or action.workflow is None:
        return policy.mode is ApprovalMode.EVERY_NODE
    version = action.target.get("version")
    root = Use(action.workflow, version if isinstance(version, int) else None)
    has_assignee = definition.assignee is not None or definition.workflow_assignment_id is not None
    return any_step_waits(connection, definition.namespace, root, policy, has_assignee=has_assignee)


def workflow_floor(connection: Connection, definition: Definition, newest: int) -> ApprovalPolicy | None:
    """The approval policy of the stored workflow that the definition names; `newest` is the newest version of it."""
    asked = definition.action.target.get("version")
    version = asked if isinstance(asked, int) else newest
    wanted = WorkflowVersion(definition.namespace, definition.action.workflow or "", version)
    compiled = workflow_graphs.load(connection, [wanted])[wanted]
    return compiled.workflow.approval if isinstance(compiled, CompiledWorkflow) else None


def any_step_waits(
    connection: Connection, namespace: str, root: Use, policy: ApprovalPolicy, *, has_assignee: bool
) -> bool:
    """Check whether a step, also of a sub-workflow, would await approval under the policy of the run.

    A workflow that is missing or cannot be read has no steps that could start. One that several use is read for each
    policy that it inherits.
    """
    level, seen = {(root, policy)}, set[tuple[str, int, ApprovalPolicy]]()
    while level:
        newest = workflow_graphs.newest_versions(
            connection, {(namespace, use.name) for use, _ in level if use.version is None}
        )
        following: set[tuple[Use, ApprovalPolicy]] = set()
        for use, above in level:
            version = use.version or newest.get((namespace, use.name))
            if version is None or (use.name, version, above) in seen:
                continue
            if len(seen) >= _MOST:
                return True
            seen.add((use.name, version, above))
            wanted = WorkflowVersion(namespace, use.name, version)
            compiled = workflow_graphs.load(connection, [wanted])[wanted]
            if not isinstance(compiled, CompiledWorkflow):
                continue
            floor = compiled.workflow.approval
            if use is not root and floor is not None and floor.requires_approval is True:
                return True
            own = merge(above, floor)
            if any(_waits(connection, namespace, node, own, has_assignee=has_assignee) for node in compiled.nodes):
                return True
            following |= {(Use(sub.name, sub.version), own) for sub in sub_workflows(compiled.workflow)}
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
