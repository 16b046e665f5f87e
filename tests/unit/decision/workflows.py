"""Small workflows, facts and questions for the tests of `advance`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from horarium.condition import compile_condition
from horarium.core.decision.advance import Advance, ResultsNeeded, SkipReason, StepFact, WorkflowRunFacts, advance
from horarium.core.document.states import RunState
from horarium.core.document.workflow import Edge, Node, WorkflowDefinition
from horarium.core.document.workflow_steps import CompiledWorkflow
from horarium.core.policy.approval import FailureMode, FailurePolicy

IS_YES = {"/result": {"eq": "yes"}}
ANY: dict[str, Any] = {}

S = RunState


def graph(*names: str, edges: tuple[tuple[Any, ...], ...] = (), **nodes: dict[str, Any]) -> CompiledWorkflow:
    """Edges are (source, target) or (source, target, filter); keywords are nodes with fields of their own."""
    joined = tuple(
        Edge(source, target, *(compile_condition(given) for given in condition)) for source, target, *condition in edges
    )
    made = {**{name: {} for name in names}, **nodes}
    needs = {name: tuple(edge.source for edge in joined if edge.target == name) for name in made}
    listed = tuple(Node(name, {}, needs=needs[name], **fields) for name, fields in made.items())
    return CompiledWorkflow(WorkflowDefinition("w", 1, listed, joined))


def fact(node_id: str, state: RunState, **known: Any) -> StepFact:
    return StepFact(node_id, state, **known)


def ask(
    workflow: CompiledWorkflow,
    /,
    *facts: StepFact,
    progress: str | None = None,
    results: Mapping[str, Any] | None = None,
    **about: Any,
) -> Advance:
    """Without `progress`, of a run whose starts were born, and whose facts are all news."""
    known = {each.node_id for each in facts}
    open_ones = {workflow.nodes[place].id for place in workflow.starts} | known
    if progress is None and facts:
        back = {each.node_id for each in facts if each.fallback}
        letters = ["r" if node.id in back else "o" if node.id in open_ones else "." for node in workflow.nodes]
        progress = "".join(letters)
    answer = advance(workflow, progress, facts, WorkflowRunFacts(**about), results or {})
    assert not isinstance(answer, ResultsNeeded), f"it wants the results of {sorted(answer.node_ids)}"
    return answer


def born(answer: Advance) -> list[str]:
    return [birth.node_id for birth in answer.births]


def skipped(answer: Advance) -> dict[str, SkipReason]:
    return {skip.node_id: skip.reason for skip in answer.skips}


HALT = FailurePolicy(FailureMode.HALT)
FALLBACK = FailurePolicy(FailureMode.FALLBACK, "spare")
PAIR = graph("a", "b", edges=(("a", "b"),))
