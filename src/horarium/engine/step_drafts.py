"""Turn decisions about the nodes of a workflow into rows of steps, with inputs that are bounded together.

A step without a template is given a copy of the run's inputs and of the results before it. A thousand steps behind a
megabyte would be a gigabyte in one transaction, and again in the one that ends the run. So equal inputs are computed
once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from horarium.core.decision.advance import CONTRACT_VIOLATED, StepBirth, StepSkip
from horarium.core.document.assignee import Assignee, AssigneeType
from horarium.core.document.checks import SECRET_KEY
from horarium.core.document.definition import Action, Definition, of_worker
from horarium.core.document.effective_policies import Effective, PolicyOrigin, effective_text
from horarium.core.document.json_values import MAX_BYTES, DocumentProblems, Json, check_storable
from horarium.core.document.nodes import NothingFound, UnusableInput, render_step, step_input
from horarium.core.document.reader import WORKFLOW, Kinds
from horarium.core.document.rendering import RunFacts, ScheduleName
from horarium.core.document.states import RunState
from horarium.core.document.stored_workflow import MAX_DEPTH
from horarium.core.document.text_template import TemplateError
from horarium.core.document.workflow import Node
from horarium.core.document.workflow_steps import CompiledWorkflow
from horarium.core.policy.approval import (
    ApprovalMode,
    ApprovalPolicy,
    StepWaits,
    merge_approval_policies,
    step_needs_approval,
)
from horarium.errors import HorariumError
from horarium.features.agents.policy_rows import PolicyQuestion
from horarium.features.runs.step_rows import Advancing, NewStep
from horarium.instant import to_rfc3339
from horarium.platform.database.statements import event_text, from_text, to_text
from horarium.platform.ids import id_text, new_id

MAX_STEPS = 5_000
"""Maximum steps of one root run, at all depths: one transaction ends them all, and SQLite has one writer."""
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


def policy_question(parent: Parent, step: NewStep) -> PolicyQuestion | None:
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


class CreatedStep(NamedTuple):
    """A step, and the texts that its template was rendered to."""

    step: NewStep
    texts: Mapping[str, Json] = NO_TEXTS


def create_step(
    parent: Parent,
    step: NewStep,
    definition: Definition | Exception,
    given: Callable[[Node, Action], tuple[str, Mapping[str, Json]]],
    inner: CompiledWorkflow | Exception | None,
    kinds: Kinds,
) -> CreatedStep:
    """`given` returns the input and the texts of a node. `inner` is the stored workflow that the step runs, if it does.

    A step that cannot be given its input is born failed.
    """
    step = with_action(step, definition, kinds)
    node = parent.workflow.node(step.node_id)
    if isinstance(definition, Exception):
        return CreatedStep(
            _never_run(step, RunState.LAUNCH_FAILED, f"Its action cannot be read: {definition}", "refused")
        )
    if inner is not None and step.node_path.count("/") >= MAX_DEPTH:
        error = f"Workflows are nested more than {MAX_DEPTH} levels deep"
        return CreatedStep(_never_run(step, RunState.LAUNCH_FAILED, error, "refused"))
    try:
        inputs, texts = given(node, definition.action)
    except (NothingFound, UnusableInput, TemplateError, HorariumError) as wrong:
        return CreatedStep(_never_run(step, RunState.FAILED, str(wrong), CONTRACT_VIOLATED))
    held = step_needs_approval(_approval(parent, step, definition), node_gates=node.gates)
    waits = isinstance(held, StepWaits) or _asks_first(inner)
    state = RunState.AWAITING_APPROVAL if waits else RunState.READY
    return CreatedStep(step._replace(inputs=inputs, needs_approval=waits, state=state.value), texts)


def one_too_many(step: NewStep, definition: Definition | Exception, kinds: Kinds) -> NewStep:
    error = f"A run has at most {MAX_STEPS} steps, including the steps of sub-workflows"
    return _never_run(with_action(step, definition, kinds), RunState.LAUNCH_FAILED, error, "refused")


def _never_run(step: NewStep, state: RunState, error: str, error_class: str) -> NewStep:
    return step._replace(state=state.value, error=error[:4_000], error_class=error_class)


def _approval(parent: Parent, step: NewStep, definition: Definition) -> ApprovalPolicy:
    """Where somebody is assigned, sensitive actions wait unless a policy says otherwise."""
    policy = merge_approval_policies(definition.approval, parent.workflow.workflow.approval, None, None)
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


MAX_OPEN_BYTES: Final = 32 * MAX_BYTES
"""Maximum bytes of inputs of all open steps of a root run, at all depths."""
_FULL = f"input: the inputs of the run's open steps exceed {MAX_OPEN_BYTES} bytes in total"
_TOO_LARGE = "input: the results of earlier nodes are too large in total"
_WAY_OUT = "select the values that each node needs in its `input`"


class TooMuchAtOnce(Exception):
    """The inputs of the steps of several workflow runs are too large for one transaction."""


class StepInputs:
    """The inputs of the steps that one transaction creates."""

    def __init__(self, open_bytes: Callable[[bytes], int], *, several: bool) -> None:
        """`open_bytes` reads the size of the inputs of a root's open steps. `several`: the steps of several runs."""
        self._open_bytes = open_bytes
        self._several = several
        self._known: dict[tuple[bytes, frozenset[str]], str] = {}
        self._new: dict[bytes, int] = {}
        self._before: dict[bytes, int] = {}
        self._full: set[bytes] = set()

    def of(
        self, parent: Parent, node: Node, action: Action, results: Mapping[str, str | None] | None
    ) -> tuple[str, Mapping[str, Json]]:
        """Return the input of a step, and the texts that its template is rendered to.

        `results` are the texts of those that it may read, None where they are too large together. Raises NothingFound,
        TemplateError, Unusable, and TooMuchAtOnce.
        """
        root = parent.run.work.root_run_id or parent.run_id
        if root in self._full:
            raise UnusableInput(f"{_FULL}; {_WAY_OUT}")
        if results is None:
            raise UnusableInput(f"{_TOO_LARGE}; {_WAY_OUT}")
        key = parent.run_id, frozenset(results)
        is_alike = not (node.has_input or action.template)
        text, texts = self._known.get(key) if is_alike else None, NO_TEXTS
        if text is None:
            text, texts = _inputs(parent, node, action, results)
        if is_alike:
            self._known[key] = text
        self._count(root, len(text) + sum(len(to_text(each)) for each in texts.values()))
        return text, texts

    def _count(self, root: bytes, size: int) -> None:
        new = self._new[root] = self._new.get(root, 0) + size
        if self._several and sum(self._new.values()) > MAX_OPEN_BYTES:
            raise TooMuchAtOnce
        if new <= MAX_BYTES:  # the usual case needs no query
            return
        if root not in self._before:
            self._before[root] = self._open_bytes(root)
        if self._before[root] + new > MAX_OPEN_BYTES:
            self._full.add(root)
            raise UnusableInput(f"{_FULL}; {_WAY_OUT}")


def _inputs(
    parent: Parent, node: Node, action: Action, results: Mapping[str, str | None]
) -> tuple[str, Mapping[str, Json]]:
    # Neither what a target answers nor what a caller sends was written by the author of the workflow: no secret is
    # opened for it.
    if _names_secret(parent.inputs):
        raise UnusableInput("input: the inputs of the workflow refer to a secret; only its nodes may")
    known: dict[str, Any] = {}
    for name, text in results.items():
        known[name] = None if text is None else from_text(text)
        if text is not None and SECRET_KEY in text and _names_secret(known[name]):
            raise UnusableInput(f"input: the result of {name!r} refers to a secret; results may not")
    context = {"inputs": parent.inputs, "results": known, "run": _parent_fields(parent)}
    texts: Mapping[str, Json] = NO_TEXTS
    if action.template:
        given, texts = render_step(node, action, context, _facts_of(parent))
    else:
        given = step_input(node, context)
    problems = DocumentProblems()
    check_storable({"inputs": given}, problems)
    problems.raise_any()
    return event_text(given), texts


def _facts_of(parent: Parent) -> RunFacts:
    """The facts of the workflow's run, as those that pointers lead to."""
    work, definition = parent.run.work, parent.definition
    named = None if work.schedule_uid is None else ScheduleName(definition.schedule_id, definition.name)
    spec = definition.spec.compile(definition.schedule_id)
    run_id = id_text(work.run_id)
    return RunFacts(
        work.namespace, work.origin, work.nominal, work.due, spec, named, run_id=run_id, created_at=work.created_at
    )


def _names_secret(value: Json) -> bool:
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            if SECRET_KEY in item:
                return True
            waiting.extend(item.values())
        elif isinstance(item, list):
            waiting.extend(item)
    return False


def _parent_fields(parent: Parent) -> dict[str, Json]:
    work = parent.run.work
    return {
        "run_id": id_text(work.run_id),
        "schedule_id": None if work.schedule_uid is None else parent.definition.schedule_id,
        "nominal": to_rfc3339(work.nominal),
        "due": to_rfc3339(work.due),
        "attempt": work.attempt,
        "workflow_id": parent.workflow.workflow.workflow_id,
        "version": parent.workflow.workflow.version,
    }
