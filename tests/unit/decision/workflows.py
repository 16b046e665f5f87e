"""Small workflows, facts and questions for the tests of `advance`."""

from __future__ import annotations

from typing import Any

from horarium.condition import compile_condition
from horarium.decision.advance import advance
from horarium.decision.step import (
    RETRYABLE,
    Advance,
    RunPolicies,
    SkipReason,
    StepFact,
)
from horarium.instant import SECOND
from horarium.policy.failure import FailureMode, FailurePolicy
from horarium.policy.limits import Usage
from horarium.policy.retry import RetryPolicy
from horarium.schedule.run import RunState
from horarium.schedule.workflow import Edge, Node, Workflow

START = 1_800_000_000 * SECOND
ONCE = RetryPolicy(max_retries=0)
IS_YES = {"/result": {"eq": "yes"}}
ANY: dict[str, Any] = {}

S = RunState


def graph(*names: str, edges: tuple[tuple[Any, ...], ...] = (), **nodes: dict[str, Any]) -> Workflow:
    """Edges are (source, target) or (source, target, filter); keywords are nodes with fields of their own."""
    joined = tuple(
        Edge(source, target, *(compile_condition(given) for given in condition)) for source, target, *condition in edges
    )
    made = {**{name: {} for name in names}, **nodes}
    needs = {name: tuple(edge.source for edge in joined if edge.target == name) for name in made}
    return Workflow("w", 1, tuple(Node(name, {}, needs=needs[name], **fields) for name, fields in made.items()), joined)


def fact(node_id: str, state: RunState, **known: Any) -> StepFact:
    attempt = known.pop("attempt", 1 if state in RETRYABLE else 0)
    return StepFact(node_id, f"run-{node_id}", state, attempt, **known)


def ask(
    workflow: Workflow, /, *facts: StepFact, usage: Usage | None = None, cancel: bool = False, **given: Any
) -> Advance:
    """Failures are not retried unless the case brings a retry policy of its own."""
    now, inputs = given.pop("now", START), given.pop("inputs", {})
    return advance(
        workflow,
        {each.node_id: each for each in facts},
        root_inputs=inputs,
        root_started_at=START,
        policies=RunPolicies(**{"retry": ONCE, **given}),
        usage=usage or Usage(),
        now=now,
        cancel_requested=cancel,
    )


def born(answer: Advance) -> dict[str, RunState]:
    return {birth.node_id: birth.state for birth in answer.births}


def skipped(answer: Advance) -> dict[str, SkipReason]:
    return {skip.node_id: skip.reason for skip in answer.skips}


def ended(answer: Advance) -> tuple[RunState, str | None]:
    assert answer.root is not None
    return answer.root.state, answer.root.cause


HALT = FailurePolicy(FailureMode.HALT)
FALLBACK = FailurePolicy(FailureMode.FALLBACK, "spare")
PAIR = graph("a", "b", edges=(("a", "b"),))
