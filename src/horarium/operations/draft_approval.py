"""The approval policy that a schedule would have, and warnings about it."""

from __future__ import annotations

from typing import Final

from horarium.operations.approvers import lacking_approvers
from horarium.operations.caller import Caller
from horarium.operations.gated_steps import steps_wait, workflow_floor
from horarium.operations.resources import Resources
from horarium.policy.approval import ApprovalMode, ApprovalPolicy, run_needs_approval
from horarium.schedule.definition import Definition
from horarium.schedule.effective import Effective
from horarium.store.database import Connection
from horarium.store.policies import PolicyQuestion, Speakers
from horarium.store.schedules.references import WorkflowReference

_NO_SPEAKERS: Final = Speakers({}, {}, {})


def effective_approval(
    speakers: Speakers | None, definition: Definition, floor: ApprovalPolicy | None = None
) -> ApprovalPolicy:
    """By what holds now, with the policy of the stored workflow where it is given (`floor`)."""
    effective = effective_of(speakers, definition, floor)
    return definition.approval if effective is None else effective.approval


def effective_of(
    speakers: Speakers | None, definition: Definition, floor: ApprovalPolicy | None = None
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
    speakers: Speakers | None,
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
