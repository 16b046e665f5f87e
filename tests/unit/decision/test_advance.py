"""One answer of `advance` at a time: births, joins, approval, how a root ends, wrong facts, speed."""

from __future__ import annotations

import sys
import time
from typing import Any

import pytest
from unit.decision.workflows import (
    ANY,
    IS_YES,
    START,
    S,
    ask,
    born,
    ended,
    fact,
    graph,
    skipped,
)

from horarium.decision.advance import advance
from horarium.decision.step import (
    FAILURES,
    REASSIGNABLE,
    RETRYABLE,
    STOP_REASONS,
    STOPPED,
    Advance,
    RunPolicies,
    SkipReason,
    StepBirth,
    StepFact,
    StepWait,
)
from horarium.errors import InvalidWorkflow
from horarium.policy.approval import ApprovalMode, ApprovalPolicy
from horarium.policy.limits import Usage
from horarium.schedule.assignee import Assignee, AssigneeType
from horarium.schedule.run import FINAL, NOT_STARTED, RunState
from horarium.schedule.workflow import MAX_EDGES, MAX_NODES, Workflow

# ── what is born ──────────────────────────────────────────────────────────────────────────────────

DIAMOND = graph("a", "b", "c", "d", edges=(("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")))


def test_a_run_begins_with_the_nodes_that_need_nothing() -> None:
    assert ask(graph("a", "b", "c", edges=(("a", "c"),))) == Advance(
        births=tuple(StepBirth(name, S.READY, {"inputs": {}, "results": {}}) for name in ("a", "b"))
    )


def test_both_arms_of_a_diamond_start_together() -> None:
    assert born(ask(DIAMOND, fact("a", S.SUCCEEDED))) == {"b": S.READY, "c": S.READY}


@pytest.mark.parametrize("state", sorted(set(RunState) - FINAL))
def test_a_join_waits_for_a_source_that_has_not_ended(state: RunState) -> None:
    assert ask(DIAMOND, fact("a", S.SUCCEEDED), fact("b", S.SUCCEEDED), fact("c", state)) == Advance()


def test_a_step_is_given_the_inputs_of_the_root_and_the_results_of_its_sources() -> None:
    done = (fact("a", S.SUCCEEDED, result=0), fact("b", S.SUCCEEDED, result=[1]), fact("c", S.SUCCEEDED, result=None))
    [birth] = ask(DIAMOND, *done, inputs={"day": 7}).births
    assert birth.inputs == {"inputs": {"day": 7}, "results": {"b": [1], "c": None}}


def test_a_step_is_given_no_result_of_a_source_that_failed() -> None:
    either = graph("a", "b", "c", edges=(("a", "c", ANY), ("b", "c", ANY)))
    [birth] = ask(either, fact("a", S.FAILED, result="half"), fact("b", S.SUCCEEDED, result="whole")).births
    assert birth.inputs["results"] == {"b": "whole"}


def test_a_node_is_assigned_to_its_own_assignee_or_to_nobody_else_than_the_root_is() -> None:
    answer = ask(graph("a", b={"assignee": Assignee(AssigneeType.AGENT, "ada")}))
    assert [birth.assignee_id for birth in answer.births] == [None, "ada"]


# ── joins ─────────────────────────────────────────────────────────────────────────────────────────

NO, YES = {"result": "no"}, {"result": "yes"}


@pytest.mark.parametrize(
    ("conditions", "sources", "expected"),
    [
        pytest.param((None,), ((S.SUCCEEDED, NO),), S.READY, id="plain"),
        pytest.param((None, None), ((S.SUCCEEDED, NO), (S.FAILED, {})), "parent_not_successful", id="all-plain-needed"),
        pytest.param((IS_YES,), ((S.SUCCEEDED, YES),), S.READY, id="holds"),
        pytest.param((IS_YES,), ((S.SUCCEEDED, NO),), "branch_not_taken", id="does-not-hold"),
        pytest.param((IS_YES,), ((S.FAILED, YES),), "parent_not_successful", id="failed-source-cannot-hold"),
        pytest.param((IS_YES, IS_YES), ((S.SUCCEEDED, NO), (S.SUCCEEDED, YES)), S.READY, id="one-is-enough"),
        pytest.param((IS_YES, IS_YES), ((S.SUCCEEDED, NO), (S.SUCCEEDED, NO)), "branch_not_taken", id="none-holds"),
        pytest.param((IS_YES, IS_YES), ((S.FAILED, {}), (S.SUCCEEDED, NO)), "branch_not_taken", id="failed-and-false"),
        pytest.param((IS_YES, IS_YES), ((S.FAILED, {}), (S.SUCCEEDED, YES)), S.READY, id="failed-and-true"),
        pytest.param((IS_YES, IS_YES), ((S.FAILED, {}), (S.REJECTED, {})), "parent_not_successful", id="both-failed"),
        pytest.param((None, IS_YES), ((S.SUCCEEDED, NO), (S.SUCCEEDED, YES)), S.READY, id="plain-and-true"),
        pytest.param((None, IS_YES), ((S.SUCCEEDED, NO), (S.SUCCEEDED, NO)), "branch_not_taken", id="plain-and-false"),
        pytest.param(
            (None, IS_YES), ((S.FAILED, {}), (S.SUCCEEDED, YES)), "parent_not_successful", id="plain-is-a-must"
        ),
        pytest.param((ANY, ANY), ((S.SKIPPED, {}), (S.SUCCEEDED, NO)), S.READY, id="any-of-two"),
    ],
)
def test_the_join_rule(
    conditions: tuple[Any, ...], sources: tuple[tuple[RunState, dict[str, Any]], ...], expected: str
) -> None:
    names = [f"s{position}" for position in range(len(sources))]
    edges = tuple(
        (name, "end", given) if given is not None else (name, "end")
        for name, given in zip(names, conditions, strict=True)
    )
    facts = [fact(name, state, **known) for name, (state, known) in zip(names, sources, strict=True)]
    answer = ask(graph(*names, "end", edges=edges), *facts)
    assert {**born(answer), **skipped(answer)} == {"end": expected}


def test_a_condition_also_sees_the_inputs_of_the_root() -> None:
    workflow = graph("a", "b", edges=(("a", "b", {"/inputs/loud": {"eq": True}}),))
    assert born(ask(workflow, fact("a", S.SUCCEEDED), inputs={"loud": True})) == {"b": S.READY}
    assert skipped(ask(workflow, fact("a", S.SUCCEEDED), inputs=None)) == {"b": "branch_not_taken"}


@pytest.mark.parametrize("state", sorted(FINAL - {S.SUCCEEDED}))
def test_what_needs_a_step_without_success_is_skipped_to_the_end_while_siblings_go_on(state: RunState) -> None:
    workflow = graph("a", "b", "c", "other", "next", edges=(("a", "b"), ("b", "c"), ("other", "next")))
    answer = ask(workflow, fact("a", state), fact("other", S.SUCCEEDED))
    assert skipped(answer) == {"b": "parent_not_successful", "c": "parent_not_successful"}
    assert born(answer) == {"next": S.READY}
    assert answer.root is None


# ── approval ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("mode", "waiting"),
    [
        (None, {"listed": ("audit",)}),
        (ApprovalMode.EVERY_NODE, {"plain": (), "listed": ("audit",), "sensitive": (), "unlisted": ()}),
        (ApprovalMode.SENSITIVE_ACTIONS, {"listed": ("audit",), "sensitive": ("publish",)}),
        (ApprovalMode.ON_BLOCK, {"listed": ("audit",)}),
    ],
)
def test_which_steps_are_born_waiting(mode: ApprovalMode | None, waiting: dict[str, tuple[str, ...]]) -> None:
    workflow = graph(
        "plain", listed={"gates": ("audit",)}, sensitive={"gates": ("publish",)}, unlisted={"gates": ("peek",)}
    )
    answer = ask(workflow, approval=ApprovalPolicy(mode=mode, gates=frozenset({"audit"})))
    assert {b.node_id: b.gates for b in answer.births if b.state is S.AWAITING_APPROVAL} == waiting
    assert all(birth.state is S.READY for birth in answer.births if birth.node_id not in waiting)


def test_every_approval_mode_has_a_row() -> None:
    marked: Any = test_which_steps_are_born_waiting
    [marks] = [mark for mark in marked.pytestmark if mark.name == "parametrize"]
    assert {row[0] for row in marks.args[1]} == {None, *ApprovalMode}


@pytest.mark.parametrize("mode", [None, *ApprovalMode])
def test_a_running_step_that_is_blocked_waits_whatever_the_mode(mode: ApprovalMode | None) -> None:
    answer = ask(graph("a"), fact("a", S.RUNNING, gate="odd"), approval=ApprovalPolicy(mode=mode))
    assert answer == Advance(waits=(StepWait("a", "run-a", ("odd",)),))


@pytest.mark.parametrize("state", [S.AWAITING_APPROVAL, S.READY, S.LAUNCHING])
def test_a_gate_is_asked_about_once(state: RunState) -> None:
    assert ask(graph("a"), fact("a", state, gate="publish")) == Advance()


# ── how a root ends ───────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        ((S.SUCCEEDED, S.SUCCEEDED), (S.SUCCEEDED, None)),
        ((S.SUCCEEDED, S.SKIPPED), (S.SUCCEEDED, None)),
        ((S.SUCCEEDED, S.FAILED), (S.FAILED, "step_failed")),
        ((S.SUCCEEDED, S.TIMED_OUT), (S.FAILED, "step_failed")),
        ((S.SUCCEEDED, S.LAUNCH_FAILED), (S.FAILED, "step_failed")),
        ((S.SUCCEEDED, S.UNKNOWN), (S.FAILED, "step_failed")),
        ((S.SUCCEEDED, S.REJECTED), (S.FAILED, "step_failed")),
        ((S.SUCCEEDED, S.EXPIRED), (S.FAILED, "step_failed")),
        ((S.SUCCEEDED, S.CANCELLED), (S.CANCELLED, "step_cancelled")),
        ((S.SUCCEEDED, S.TERMINATED), (S.CANCELLED, "step_cancelled")),
        ((S.FAILED, S.CANCELLED), (S.FAILED, "step_failed")),
    ],
)
def test_the_end_of_a_root(states: tuple[RunState, RunState], expected: tuple[RunState, str | None]) -> None:
    assert ended(ask(graph("a", "b"), fact("a", states[0]), fact("b", states[1]))) == expected


def test_every_final_state_is_of_one_kind() -> None:
    kinds = [frozenset({S.SUCCEEDED}), frozenset({S.SKIPPED}), FAILURES, STOPPED]
    assert frozenset().union(*kinds) == FINAL
    assert sum(map(len, kinds)) == len(FINAL)
    assert RETRYABLE < REASSIGNABLE < FAILURES
    assert not NOT_STARTED & FINAL


def test_every_skip_reason_either_stops_a_run_or_follows_from_the_graph() -> None:
    assert set(SkipReason) - STOP_REASONS == {SkipReason.PARENT_NOT_SUCCESSFUL, SkipReason.BRANCH_NOT_TAKEN}


def test_the_result_of_the_root_is_that_of_the_leaves_which_succeeded() -> None:
    workflow = graph("a", "b", "c", "d", edges=(("a", "b"), ("a", "c")))
    facts = (fact("a", S.SUCCEEDED, result=1), fact("b", S.SUCCEEDED, result={"n": 2}), fact("c", S.FAILED, result=3))
    root = ask(workflow, *facts, fact("d", S.SUCCEEDED, result=None)).root
    assert root is not None
    assert root.result == {"b": {"n": 2}, "d": None}


def test_the_error_names_the_first_failure_and_counts_the_others() -> None:
    failures = (fact("b", S.FAILED, error_class="\ud800" * 10_000), fact("a", S.EXPIRED))
    root = ask(graph("a", "b"), *failures).root
    assert root is not None
    assert root.error == "step 'a' is expired, and 1 more"
    alone = ask(graph("b"), failures[0]).root
    assert alone is not None
    assert alone.error is not None
    assert len(alone.error.encode()) < 400


# ── wrong facts, and speed ────────────────────────────────────────────────────────────────────────


def test_facts_of_another_workflow_are_refused() -> None:
    with pytest.raises(InvalidWorkflow, match="'z' is no node of w version 1"):
        ask(graph("a"), fact("z", S.READY))
    with pytest.raises(InvalidWorkflow, match="facts of another"):
        advance(
            graph("a", "b"),
            {"a": fact("b", S.READY)},
            root_inputs=None,
            root_started_at=START,
            policies=RunPolicies(),
            usage=Usage(),
            now=START,
        )


@pytest.mark.parametrize(("state", "attempt"), [(S.FAILED, 0), (S.TIMED_OUT, 0), (S.READY, -1)])
def test_a_failure_that_was_not_counted_is_refused(state: RunState, attempt: int) -> None:
    with pytest.raises(ValueError, match="attempt"):
        StepFact("a", "r", state, attempt)


def _layers(width: int) -> Workflow:
    """As many nodes and edges as a workflow may have."""
    names = [f"n{position}" for position in range(MAX_NODES)]
    pairs = [(one, two) for place, one in enumerate(names) for two in names[place + 1 : place + 1 + width]]
    return graph(*names, edges=tuple((one, two, IS_YES) for one, two in pairs[:MAX_EDGES]))


@pytest.mark.parametrize("first", [S.SUCCEEDED, S.REJECTED])
def test_the_largest_workflow_advances_in_20_milliseconds(first: RunState) -> None:
    workflow = _layers(10)
    facts = [fact("n0", first), *(fact(f"n{place}", S.SUCCEEDED) for place in range(1, MAX_NODES // 2))]
    best = float("inf")
    for _ in range(5):
        # Time of this process only: what else the machine does is not measured.
        begun = time.process_time()
        ask(workflow, *facts)
        best = min(best, time.process_time() - begun)
    # Coverage traces every line, which costs several times the work itself.
    assert best < (0.02 if sys.gettrace() is None else 0.2)
