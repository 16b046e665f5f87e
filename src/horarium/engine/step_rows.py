"""How what was decided about the nodes of a workflow becomes rows: steps that are born, and those that never run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final, NamedTuple

from horarium.decision.step import CONTRACT_VIOLATED, StepBirth, StepSkip
from horarium.errors import HorariumError
from horarium.ids import new_id
from horarium.policy.approval import ApprovalMode, ApprovalPolicy, StepWaits, merge, step_needs_approval
from horarium.schedule.assignee import Assignee, AssigneeType
from horarium.schedule.compiled import CompiledWorkflow
from horarium.schedule.data_flow import NothingFound, Unusable
from horarium.schedule.definition import Action, Definition
from horarium.schedule.effective import Effective, PolicyOrigin, effective_text
from horarium.schedule.json_limits import Json
from horarium.schedule.kinds import WORKFLOW, Kinds
from horarium.schedule.run import RunState
from horarium.schedule.sub_workflows import MAX_DEPTH
from horarium.schedule.target import of_worker
from horarium.schedule.text_template import TemplateError
from horarium.schedule.workflow import Node
from horarium.store.policies import PolicyQuestion
from horarium.store.runs.steps import Advancing, NewStep

MAX_STEPS = 5_000
"""Maximum steps of one root run, at all depths: one transaction ends them all, and SQLite has one writer."""
_LATEST = "latest"
NO_TEXTS: Final[Mapping[str, Json]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Parent:
    """The run of a workflow whose steps are born, with what holds for it."""

    run: Advancing
    workflow: CompiledWorkflow
    definition: Definition
    effective: Effective | None
    inputs: Json

    @property
    def run_id(self) -> bytes:
        return self.run.work.run_id


def draft(parent: Parent, node_id: str, *, fallback_to: str | None = None) -> NewStep:
    """A row with what it takes from its parent and its node; what its action says is still missing."""
    work, node = parent.run.work, parent.workflow.node(node_id)
    # Inside of what somebody else has taken over: under the old keys a target would answer with the old failure.
    # No id of a node has this mark.
    above = f"{work.node_path}!fallback" if work.fallback else work.node_path
    path = node_id if above is None else f"{above}/{node_id}"
    step = NewStep(
        run_id=new_id(),
        namespace=work.namespace,
        schedule_uid=work.schedule_uid,
        revision=work.revision,
        nominal=work.nominal,
        due=work.due,
        priority=parent.run.priority,
        parent_run_id=work.run_id,
        root_run_id=work.root_run_id or work.run_id,
        node_id=node_id,
        node_path=path,
        of_workflow=parent.workflow.workflow.workflow_id,
        of_version=parent.workflow.workflow.version,
        fallback=fallback_to is not None,
        effective=work.effective,
        assignee=work.assignee,
        assignee_type=work.assignee_type,
        member=work.member,
    )
    if fallback_to is not None:
        return step._replace(assignee=fallback_to, assignee_type=AssigneeType.AGENT.value, member=None)
    if node.assignee is not None:
        return step._replace(assignee=node.assignee.id, assignee_type=node.assignee.type.value, member=None)
    return step


def question(parent: Parent, step: NewStep) -> PolicyQuestion | None:
    """Question about the policies of a step; None = those of the run apply, since there are no others.

    A policy of the run holds for its steps: the step's assignee may only add to it.
    """
    node = parent.workflow.node(step.node_id)
    floor = parent.workflow.workflow.approval
    is_known = parent.effective is not None and parent.run.work.parent_run_id is None  # it was asked for the root
    if node.assignee is None and not step.fallback and (floor is None or is_known):
        return None
    definition = parent.definition
    own = None
    if step.assignee is not None and (node.assignee is not None or step.fallback):
        own = Assignee(AssigneeType(step.assignee_type or AssigneeType.AGENT), step.assignee)
    return PolicyQuestion(
        definition.approval, definition.retry, definition.failure, definition.limits, None, own, floor, step.member
    )


def with_effective(parent: Parent, step: NewStep, effective: Effective | None) -> NewStep:
    """Store the step's policies. Those of the run retain their origins, and sub-workflows their versions."""
    if effective is None:
        return step
    before = parent.effective or Effective()
    origins = {
        name: before.origins.get(name, origin) if origin is PolicyOrigin.SCHEDULE else origin
        for name, origin in effective.origins.items()
    }
    return step._replace(effective=effective_text(replace(effective, origins=origins, versions=before.versions)))


def drafted(parent: Parent, birth: StepBirth) -> NewStep:
    return draft(parent, birth.node_id, fallback_to=birth.fallback_to)


def skipped(parent: Parent, skip: StepSkip) -> NewStep:
    """It is listed with the others, and says why it was not run."""
    return draft(parent, skip.node_id)._replace(state=RunState.SKIPPED.value, cause=skip.reason.value)


def with_action(step: NewStep, definition: Definition | Exception, kinds: Kinds) -> NewStep:
    """Add the action; one that is unreadable is left to fail at the launch."""
    if isinstance(definition, Exception):
        return step._replace(kind=WORKFLOW.name, target=f"{WORKFLOW.name}:", timeout_seconds=1)
    action = definition.action
    seconds = kinds.timeout_of(action)
    allowed = definition.retry.timeout_ms
    return step._replace(
        workflow=action.workflow,
        kind=action.kind,
        target=of_worker(kinds.target_of(action, definition.assignee), _worker(step), step.member),
        timeout_seconds=seconds,
        attempt_ms=None if allowed is None or allowed >= seconds * 1_000 else allowed,
        queue=action.queue,
        delivery=action.delivery.value,
    )


def _worker(step: NewStep) -> Assignee | None:
    return None if step.assignee is None else Assignee(AssigneeType(step.assignee_type or "agent"), step.assignee)


class Born(NamedTuple):
    """A step, and the texts that its template was rendered to."""

    step: NewStep
    texts: Mapping[str, Json] = NO_TEXTS


def born(
    parent: Parent,
    step: NewStep,
    definition: Definition | Exception,
    given: Callable[[Node, Action], tuple[str, Mapping[str, Json]]],
    inner: CompiledWorkflow | Exception | None,
    kinds: Kinds,
) -> Born:
    """`given` returns the input and the texts of a node. `inner` is the stored workflow that the step runs, if it does.

    A step that cannot be given its input is born failed.
    """
    step = with_action(step, definition, kinds)
    node = parent.workflow.node(step.node_id)
    if isinstance(definition, Exception):
        return Born(_never_run(step, RunState.LAUNCH_FAILED, f"Its action cannot be read: {definition}", "refused"))
    if inner is not None and step.node_path.count("/") >= MAX_DEPTH:
        error = f"Workflows are nested more than {MAX_DEPTH} levels deep"
        return Born(_never_run(step, RunState.LAUNCH_FAILED, error, "refused"))
    try:
        inputs, texts = given(node, definition.action)
    except (NothingFound, Unusable, TemplateError, HorariumError) as wrong:
        return Born(_never_run(step, RunState.FAILED, str(wrong), CONTRACT_VIOLATED))
    held = step_needs_approval(_approval(parent, step, definition), node_gates=node.gates)
    waits = isinstance(held, StepWaits) or _asks_first(inner)
    state = RunState.AWAITING_APPROVAL if waits else RunState.READY
    return Born(step._replace(inputs=inputs, needs_approval=waits, state=state.value), texts)


def one_too_many(step: NewStep, definition: Definition | Exception, kinds: Kinds) -> NewStep:
    error = f"A run has at most {MAX_STEPS} steps, including the steps of sub-workflows"
    return _never_run(with_action(step, definition, kinds), RunState.LAUNCH_FAILED, error, "refused")


def _never_run(step: NewStep, state: RunState, error: str, error_class: str) -> NewStep:
    return step._replace(state=state.value, error=error[:4_000], error_class=error_class)


def _approval(parent: Parent, step: NewStep, definition: Definition) -> ApprovalPolicy:
    """Where somebody is assigned, sensitive actions wait unless a policy says otherwise."""
    policy = merge(definition.approval, parent.workflow.workflow.approval, None, None)
    if policy.mode is None and step.assignee is not None:
        return replace(policy, mode=ApprovalMode.SENSITIVE_ACTIONS)
    return policy


def _asks_first(inner: CompiledWorkflow | Exception | None) -> bool:
    """Tell whether a workflow requires approval for each start, which includes its start as a step."""
    floor = inner.workflow.approval if isinstance(inner, CompiledWorkflow) else None
    return floor is not None and floor.requires_approval is True


def stored_name(action: Action) -> str | None:
    """Name of the stored workflow that the action runs, if any."""
    return action.workflow if action.kind == WORKFLOW.name else None


def asked_version(action: Action) -> int | None:
    """Requested version of a stored workflow; None = the newest."""
    version = action.target.get("version")
    return None if version is None or version == _LATEST else int(version)
