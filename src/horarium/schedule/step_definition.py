"""What a step is: derived from the definition of its root, with the action, the time and the retries of its node.

Nothing of it is stored: the revision of the root and the version of the workflow never change.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

from horarium.policy.limits import RunLimits, merge_limits
from horarium.schedule.definition import Action
from horarium.schedule.effective import Effective
from horarium.schedule.node_action import action_of
from horarium.schedule.workflow import Node, Workflow

D = TypeVar("D")


def step_action(root: Action, workflow: Workflow, node: Node) -> Action:
    """Where its own action says nothing, the root's queue, connection and model hold, then the workflow's."""
    own = action_of(node)
    return replace(
        own,
        queue=own.queue or root.queue or workflow.queue,
        connection=own.connection or root.connection or workflow.connection,
        global_model_id=own.global_model_id or root.global_model_id,
        timeout_seconds=own.timeout_seconds if node.timeout_seconds is None else node.timeout_seconds,
    )


def step_definition(root: D, workflow: Workflow, node: Node, effective: Effective | None) -> D:
    """`root` is the whole definition of the root, or the part that a run needs."""
    held = root if effective is None else with_policies(root, effective)
    changes: dict[str, Any] = {
        "action": step_action(getattr(root, "action"), workflow, node),  # noqa: B009 - of whichever type it is
        "inputs_rotation": (),
        "node_gates": node.gates,
    }
    if node.retry_policy is not None:
        changes["retry"] = node.retry_policy
    if node.assignee is not None:
        changes["assignee"] = node.assignee
    return with_changes(held, changes)


def with_policies(definition: D, effective: Effective) -> D:
    """With the policies that were settled when the run was born."""
    named = {name: getattr(effective, name) for name in ("approval", "retry", "failure", "limits")}
    return with_changes(definition, named)


def with_limits(definition: D, limits: RunLimits) -> D:
    """With no more than these beside its own."""
    own: RunLimits = getattr(definition, "limits")  # noqa: B009 - of whichever type it is
    return with_changes(definition, {"limits": merge_limits(own, limits)})


def with_changes(definition: D, changes: dict[str, Any]) -> D:
    """Apply those changes that the definition has fields for: a part of a definition has not all."""
    if is_dataclass(definition):
        known = {each.name for each in fields(definition)}
        return replace(definition, **{name: value for name, value in changes.items() if name in known})  # type: ignore[type-var]  # a dataclass, and no class
    own = getattr(definition, "_fields")  # noqa: B009 - a NamedTuple, then
    changed: D = definition._replace(**{name: value for name, value in changes.items() if name in own})  # type: ignore[attr-defined]  # NamedTuples have no type in common
    return changed
