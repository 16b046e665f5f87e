"""What happens next in a workflow run: which steps are born, tried again, skipped or stopped, and how it ends.

A step is decided when every node with an edge to it has ended for good. It is then born if all sources
of edges without a condition succeeded and, where edges have conditions, at least one of them holds: its
source succeeded and the condition is true. An empty condition, which is always true, therefore says "any
of these is enough". Everything else is skipped, and so are the nodes that need it.

A condition sees `{"result": …, "inputs": …}`: what the source answered and what the root was given. A
step gets `{"inputs": …, "results": {source: result}}`, with the sources that succeeded.

A failure is first retried, then given to the fallback assignee, and only then is it one. The root fails
if any step did, whatever came of the others; skipped branches are no failure. A request to cancel or a
cap stops what is left; where nothing is left, the root ends as its steps did.

`advance` is asked again whenever a step has changed, until the root ends. After its answer was written,
it has nothing to add to the same facts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import TypeAlias, assert_never

from horarium.decision.step import (
    RETRYABLE,
    STOP_REASONS,
    Advance,
    EndCause,
    RootEnd,
    RunPolicies,
    SkipReason,
    StepBirth,
    StepFact,
    StepRetry,
    StepSkip,
    StepWait,
)
from horarium.errors import InvalidWorkflow
from horarium.instant import SECOND, Instant
from horarium.policy.approval import ApprovalPolicy, StepProceeds, StepWaits, step_needs_approval
from horarium.policy.failure import FailureOutcome, FailurePolicy, HaltRun, Reassign, on_step_failure
from horarium.policy.limits import Usage, exceeded
from horarium.policy.names import shown
from horarium.policy.retry import GiveUp, Retry, RetryCause, RetryPolicy, decide_retry
from horarium.schedule.json_limits import Json
from horarium.schedule.run import FINAL, NOT_STARTED, RunState
from horarium.schedule.workflow import Edge, Node, Workflow, edges_into, topological_order


def advance(
    workflow: Workflow,
    steps: Mapping[str, StepFact],
    *,
    root_inputs: Json,
    root_started_at: Instant,
    policies: RunPolicies,
    usage: Usage,
    now: Instant,
    cancel_requested: bool = False,
) -> Advance:
    """`steps` holds the nodes that have a run, by their ids; `usage` is the sum over all of them."""
    _check_facts(workflow, steps)
    elapsed = (now - root_started_at) // SECOND
    cap = exceeded(policies.limits, replace(usage, runtime_seconds=max(usage.runtime_seconds, elapsed)))
    failures = _failures(workflow, steps, policies, root_started_at, now)
    case = _Case(workflow, steps, root_inputs, policies.approval, failures, cap, cancel_requested)
    stop = _stop_reason(case)
    plan = _go_on(case) if stop is None else _wind_down(case, stop)
    return replace(plan, root=_root_end(case, plan)) if _is_over(case, plan) else plan


_Failure: TypeAlias = Retry | FailureOutcome


@dataclass(frozen=True, slots=True)
class _Case:
    """All that one question is about; `failures` says what is to become of each failed step."""

    workflow: Workflow
    steps: Mapping[str, StepFact]
    root_inputs: Json
    approval: ApprovalPolicy
    failures: Mapping[str, _Failure]
    cap: str | None
    cancel_requested: bool


def _check_facts(workflow: Workflow, steps: Mapping[str, StepFact]) -> None:
    known = {node.id for node in workflow.nodes}
    for node_id, fact in steps.items():
        if node_id not in known or fact.node_id != node_id:
            name = f"{workflow.workflow_id} version {workflow.version}"
            raise InvalidWorkflow(f"steps: {shown(node_id)} is no node of {name}, or holds the facts of another")


def _stop_reason(case: _Case) -> SkipReason | None:
    if case.cancel_requested:
        return SkipReason.RUN_CANCELLED
    if case.cap is not None:
        return SkipReason.RUN_CAP_REACHED
    if any(isinstance(outcome, HaltRun) for outcome in case.failures.values()):
        return SkipReason.WORKFLOW_HALTED
    return None


# ── what becomes of a failure ─────────────────────────────────────────────────────────────────────


def _failures(
    workflow: Workflow, steps: Mapping[str, StepFact], policies: RunPolicies, root_started_at: Instant, now: Instant
) -> dict[str, _Failure]:
    runtime = policies.limits.runtime_seconds
    deadline = None if runtime is None else root_started_at + runtime * SECOND
    found: dict[str, _Failure] = {}
    for node in workflow.nodes:
        fact = steps.get(node.id)
        if fact is not None and fact.failed:
            retry = _retry(fact, node.retry_policy or policies.retry, deadline, now)
            found[node.id] = retry or _failure_outcome(fact, policies.failure)
    return found


def _retry(fact: StepFact, policy: RetryPolicy, deadline: Instant | None, now: Instant) -> Retry | None:
    if fact.state not in RETRYABLE:
        return None
    error_class = fact.error_class
    if error_class is None and fact.state is RunState.TIMED_OUT:
        error_class = RetryCause.TIMEOUT
    outcome = decide_retry(
        policy, attempt=fact.attempt, error_class=error_class, deadline=deadline, now=now, key=fact.run_id
    )
    match outcome:
        case Retry():
            return outcome
        case GiveUp():
            return None
        case _:
            assert_never(outcome)


def _failure_outcome(fact: StepFact, policy: FailurePolicy) -> FailureOutcome:
    # Giving a step to the one who has just failed it would be a retry by another name.
    spent = fact.fallen_back or fact.assignee_id == policy.fallback_assignee_id
    return on_step_failure(policy, already_fallen_back=spent or not fact.reassignable)


# ── going on ──────────────────────────────────────────────────────────────────────────────────────


class _Standing(Enum):
    """What a node is to those that need it."""

    OPEN = "open"
    SUCCEEDED = "succeeded"
    LOST = "lost"


class _Turn(Enum):
    """What its edges say of a node without a run, where they do not skip it."""

    WAIT = "wait"
    START = "start"


def _go_on(case: _Case) -> Advance:
    """One pass in topological order, so that a skip reaches everything behind it at once."""
    nodes = {node.id: node for node in case.workflow.nodes}
    into = edges_into(case.workflow)
    standing: dict[str, _Standing] = {}
    births: list[StepBirth] = []
    skips: list[StepSkip] = []
    for node_id in topological_order(nodes, [(edge.source, edge.target) for edge in case.workflow.edges]):
        if node_id in case.steps:
            fact, outcome = case.steps[node_id], case.failures.get(node_id)
            standing[node_id] = _standing(fact, outcome)
            if isinstance(outcome, Reassign):
                birth = _birth(case, nodes[node_id], into[node_id])
                births.append(replace(birth, assignee_id=outcome.assignee_id, replaces=fact.run_id))
            continue
        turn = _turn(case, into[node_id], standing)
        standing[node_id] = _Standing.LOST if isinstance(turn, SkipReason) else _Standing.OPEN
        if isinstance(turn, SkipReason):
            skips.append(StepSkip(node_id, turn))
        elif turn is _Turn.START:
            births.append(_birth(case, nodes[node_id], into[node_id]))
    return Advance(tuple(births), _retries(case), _waits(case), tuple(skips))


def _standing(fact: StepFact, outcome: _Failure | None) -> _Standing:
    if fact.state is RunState.SUCCEEDED:
        return _Standing.SUCCEEDED
    if fact.state not in FINAL or isinstance(outcome, Retry | Reassign):
        return _Standing.OPEN
    return _Standing.LOST


def _turn(case: _Case, edges: Sequence[Edge], standing: Mapping[str, _Standing]) -> _Turn | SkipReason:
    """The join rule; it waits for every source, so that the answer does not depend on which ends first."""
    if any(standing[edge.source] is _Standing.OPEN for edge in edges):
        return _Turn.WAIT
    if any(edge.condition is None and standing[edge.source] is _Standing.LOST for edge in edges):
        return SkipReason.PARENT_NOT_SUCCESSFUL
    conditional = [edge for edge in edges if edge.condition is not None]
    reached = [edge for edge in conditional if standing[edge.source] is _Standing.SUCCEEDED]
    if not conditional or any(_holds(case, edge) for edge in reached):
        return _Turn.START
    return SkipReason.BRANCH_NOT_TAKEN if reached else SkipReason.PARENT_NOT_SUCCESSFUL


def _holds(case: _Case, edge: Edge) -> bool:
    context = {"result": case.steps[edge.source].result, "inputs": case.root_inputs}
    return edge.condition is None or edge.condition.evaluate(context)


def _birth(case: _Case, node: Node, edges: Sequence[Edge]) -> StepBirth:
    """A run of its own has an approval of its own, also where it takes the place of one that was approved."""
    sources = [case.steps[edge.source] for edge in edges if edge.source in case.steps]
    results = {fact.node_id: fact.result for fact in sources if fact.state is RunState.SUCCEEDED}
    inputs = {"inputs": case.root_inputs, "results": results}
    assignee_id = None if node.assignee is None else node.assignee.id
    needed = step_needs_approval(case.approval, node_gates=node.gates)
    match needed:
        case StepWaits(gates):
            return StepBirth(node.id, RunState.AWAITING_APPROVAL, inputs, assignee_id, gates)
        case StepProceeds():
            return StepBirth(node.id, RunState.READY, inputs, assignee_id)
        case _:
            assert_never(needed)


def _retries(case: _Case) -> tuple[StepRetry, ...]:
    return tuple(
        StepRetry(node_id, case.steps[node_id].run_id, case.steps[node_id].attempt, outcome.at)
        for node_id, outcome in case.failures.items()
        if isinstance(outcome, Retry)
    )


def _waits(case: _Case) -> tuple[StepWait, ...]:
    """A step that says it is blocked waits whether or not its gate is in force: nothing else would move it on."""
    return tuple(
        StepWait(fact.node_id, fact.run_id, (fact.gate,))
        for fact in case.steps.values()
        if fact.state is RunState.RUNNING and fact.gate is not None
    )


# ── stopping and ending ───────────────────────────────────────────────────────────────────────────


def _wind_down(case: _Case, reason: SkipReason) -> Advance:
    """Nothing starts, not even a retry; a cap does not wait for those that are slow to stop."""
    going = [fact for fact in case.steps.values() if fact.state not in FINAL]
    cancels = [fact for fact in going if case.cap is not None or fact.state in NOT_STARTED]
    asked = {fact.run_id for fact in cancels}
    return Advance(
        skips=tuple(StepSkip(node.id, reason) for node in case.workflow.nodes if node.id not in case.steps),
        cancels=tuple(fact.run_id for fact in cancels),
        stops=tuple(fact.run_id for fact in going if fact.run_id not in asked and not fact.stop_requested),
    )


def _is_over(case: _Case, plan: Advance) -> bool:
    cancelled = set(plan.cancels)
    ended = {fact.node_id for fact in case.steps.values() if fact.state in FINAL or fact.run_id in cancelled}
    ended.update(skip.node_id for skip in plan.skips)
    ended.difference_update(birth.node_id for birth in plan.births)
    ended.difference_update(retry.node_id for retry in plan.retries)
    return len(ended) == len(case.workflow.nodes)


def _root_end(case: _Case, plan: Advance) -> RootEnd:
    result = _leaf_results(case)
    stopped = (
        bool(plan.cancels)
        or any(skip.reason in STOP_REASONS for skip in plan.skips)
        or any(fact.stopped for fact in case.steps.values())
    )
    if stopped and case.cancel_requested:
        return RootEnd(RunState.CANCELLED, result, "cancelled on request", EndCause.CANCEL_REQUESTED)
    if stopped and case.cap is not None:
        return RootEnd(RunState.FAILED, result, f"stopped by a limit of the run: {case.cap}", case.cap)
    if case.failures:
        return RootEnd(RunState.FAILED, result, _failure_text(case), EndCause.STEP_FAILED)
    if stopped:
        return RootEnd(RunState.CANCELLED, result, "a step was cancelled", EndCause.STEP_CANCELLED)
    return RootEnd(RunState.SUCCEEDED, result)


def _leaf_results(case: _Case) -> dict[str, Json]:
    inner = {edge.source for edge in case.workflow.edges}
    return {
        node.id: case.steps[node.id].result
        for node in case.workflow.nodes
        if node.id not in inner and node.id in case.steps and case.steps[node.id].state is RunState.SUCCEEDED
    }


def _failure_text(case: _Case) -> str:
    first = case.steps[next(iter(case.failures))]
    why = first.error_class or first.cause
    text = f"step {shown(first.node_id)} is {first.state}" + (f" ({shown(why)})" if why else "")
    others = len(case.failures) - 1
    return f"{text}, and {others} more" if others else text
