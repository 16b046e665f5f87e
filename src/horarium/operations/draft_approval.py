"""The approval policy that a schedule would have, and warnings about it."""

from __future__ import annotations

from horarium.operations.approvers import lacking_approvers
from horarium.operations.caller import Caller
from horarium.operations.gated_steps import steps_wait
from horarium.operations.resources import Resources
from horarium.policy.approval import ApprovalMode, ApprovalPolicy
from horarium.schedule.definition import Definition
from horarium.store.database import Connection
from horarium.store.policies import PolicyQuestion, Speakers


def effective_approval(speakers: Speakers | None, definition: Definition) -> ApprovalPolicy:
    """By what holds now. It is the least: whoever asks for more later is heard when a run is born."""
    if speakers is None:
        return definition.approval
    asked = PolicyQuestion(
        definition.approval,
        definition.retry,
        definition.failure,
        definition.limits,
        definition.workflow_assignment_id,
        definition.assignee,
        None,
    )
    effective = speakers.effective(definition.namespace, asked)
    return definition.approval if effective is None else effective.approval


def lacking_approval(
    resources: Resources,
    connection: Connection,
    caller: Caller,
    definition: Definition,
    policy: ApprovalPolicy,
    *,
    waits: bool,
) -> tuple[str, ...]:
    """A warning where runs, or steps of the stored workflow, would await an approval that nobody could give."""
    now = resources.clock.now()
    lacking = lacking_approvers(resources.settings, connection, caller, policy, definition.owner, now)
    if lacking is None or not (waits or steps_wait(connection, definition, policy)):
        return ()
    return (f"approval_policy.{lacking}",)


def idle_approval(definition: Definition) -> tuple[str, ...]:
    """Settings for steps where the action is no stored workflow."""
    policy, found = definition.approval, list[str]()
    without = "applies to steps, and the action is no stored workflow"
    if policy.mode is ApprovalMode.EVERY_NODE:
        found.append(f"mode: every_node {without}; each run awaits approval before its one call")
    elif policy.mode is not None:
        found.append(f"mode: {policy.mode} {without}; set requires_approval to hold each run")
    if policy.gates:
        found.append(f"gates: each gate {without}; set requires_approval to hold each run")
    return tuple(f"approval_policy.{each}" for each in found)
