"""One answer of `advance` at a time: births, joins, results that are asked for, how a run ends, wrong facts, cost."""

from __future__ import annotations

import time
from typing import Any

import pytest
from unit.decision.workflows import ANY, IS_YES, S, ask, born, fact, graph, skipped

from horarium.core.decision.advance import (
    FAILURES,
    REASSIGNABLE,
    RETRYABLE,
    STOP_REASONS,
    STOPPED,
    Advance,
    ResultsNeeded,
    SkipReason,
    StepBirth,
    WorkflowRunFacts,
    advance,
    first_failure,
    results_at_end,
    run_end,
)
from horarium.core.document.states import FINAL, NOT_STARTED, RunState
from horarium.core.document.workflow import MAX_NODES
from horarium.core.document.workflow_steps import CompiledWorkflow
from horarium.errors import InvalidWorkflow

# ── what is born ──────────────────────────────────────────────────────────────────────────────────

DIAMOND = graph("a", "b", "c", "d", edges=(("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")))


def test_a_run_begins_with_the_nodes_that_need_nothing() -> None:
    answer = ask(graph("a", "b", "c", edges=(("a", "c"),)))
    assert answer == Advance("oo.", births=(StepBirth("a"), StepBirth("b")))


def test_both_arms_of_a_diamond_start_together() -> None:
    answer = ask(DIAMOND, fact("a", S.SUCCEEDED))
    assert (born(answer), answer.progress) == (["b", "c"], "soo.")


@pytest.mark.parametrize("state", sorted(set(RunState) - FINAL))
def test_a_join_waits_for_a_source_that_has_not_ended(state: RunState) -> None:
    answer = ask(DIAMOND, fact("b", S.SUCCEEDED), fact("c", state), progress="soo.")
    assert answer == Advance("sso.")


def test_what_was_told_before_changes_nothing() -> None:
    again = ask(DIAMOND, fact("a", S.SUCCEEDED), progress="soo.")
    assert again == Advance("soo.")
    assert ask(DIAMOND, fact("a", S.FAILED), progress="soo.") == Advance("soo.")


YES, NO = "yes", "no"


@pytest.mark.parametrize(
    ("conditions", "sources", "expected"),
    [
        pytest.param((None,), ((S.SUCCEEDED, NO),), "born", id="plain"),
        pytest.param((None, None), ((S.SUCCEEDED, NO), (S.FAILED, NO)), "parent_not_successful", id="all-plain-needed"),
        pytest.param((IS_YES,), ((S.SUCCEEDED, YES),), "born", id="holds"),
        pytest.param((IS_YES,), ((S.SUCCEEDED, NO),), "branch_not_taken", id="does-not-hold"),
        pytest.param((IS_YES,), ((S.FAILED, YES),), "parent_not_successful", id="failed-source-cannot-hold"),
        pytest.param((IS_YES, IS_YES), ((S.SUCCEEDED, NO), (S.SUCCEEDED, YES)), "born", id="one-is-enough"),
        pytest.param((IS_YES, IS_YES), ((S.SUCCEEDED, NO), (S.SUCCEEDED, NO)), "branch_not_taken", id="none-holds"),
        pytest.param((IS_YES, IS_YES), ((S.FAILED, NO), (S.SUCCEEDED, NO)), "branch_not_taken", id="failed-and-false"),
        pytest.param((IS_YES, IS_YES), ((S.FAILED, NO), (S.SUCCEEDED, YES)), "born", id="failed-and-true"),
        pytest.param((IS_YES, IS_YES), ((S.FAILED, NO), (S.REJECTED, NO)), "parent_not_successful", id="both-failed"),
        pytest.param((None, IS_YES), ((S.SUCCEEDED, NO), (S.SUCCEEDED, YES)), "born", id="plain-and-true"),
        pytest.param((None, IS_YES), ((S.SUCCEEDED, NO), (S.SUCCEEDED, NO)), "branch_not_taken", id="plain-and-false"),
        pytest.param(
            (None, IS_YES), ((S.FAILED, NO), (S.SUCCEEDED, YES)), "parent_not_successful", id="plain-is-a-must"
        ),
        pytest.param((ANY, ANY), ((S.SKIPPED, NO), (S.SUCCEEDED, NO)), "born", id="any-of-two"),
    ],
)
def test_the_join_rule(conditions: tuple[Any, ...], sources: tuple[tuple[RunState, str], ...], expected: str) -> None:
    names = [f"s{position}" for position in range(len(sources))]
    edges = tuple(
        (name, "end", given) if given is not None else (name, "end")
        for name, given in zip(names, conditions, strict=True)
    )
    facts = [fact(name, state) for name, (state, _) in zip(names, sources, strict=True)]
    results = {name: said for name, (_, said) in zip(names, sources, strict=True)}
    answer = ask(graph(*names, "end", edges=edges), *facts, results=results)
    assert {**dict.fromkeys(born(answer), "born"), **skipped(answer)} == {"end": expected}


def test_a_condition_also_sees_the_inputs_of_the_run() -> None:
    workflow = graph("a", "b", edges=(("a", "b", {"/inputs/loud": {"eq": True}}),))
    assert born(ask(workflow, fact("a", S.SUCCEEDED), inputs={"loud": True})) == ["b"]
    assert skipped(ask(workflow, fact("a", S.SUCCEEDED), inputs=None)) == {"b": "branch_not_taken"}


def test_only_results_that_a_condition_reads_are_asked_for_and_only_when_it_is_asked() -> None:
    edges = (("a", "d", IS_YES), ("b", "d"), ("c", "d", ANY), ("a", "e"))
    workflow = graph("a", "b", "c", "d", "e", edges=edges)
    done = [fact(name, S.SUCCEEDED) for name in "abc"]
    assert born(ask(workflow, done[0])) == ["e"], "the join waits, and reads nothing yet"
    assert advance(workflow, "ooo..", done, WorkflowRunFacts()) == ResultsNeeded(frozenset({"a"}))
    assert born(ask(workflow, *done, results={"a": None})) == ["d", "e"]


@pytest.mark.parametrize("state", sorted(FINAL - {S.SUCCEEDED}))
def test_what_needs_a_step_without_success_is_skipped_to_the_end_while_siblings_go_on(state: RunState) -> None:
    workflow = graph("a", "b", "c", "other", "next", edges=(("a", "b"), ("b", "c"), ("other", "next")))
    answer = ask(workflow, fact("a", state), fact("other", S.SUCCEEDED))
    assert skipped(answer) == {"b": "parent_not_successful", "c": "parent_not_successful"}
    assert born(answer) == ["next"]
    assert not answer.is_over


# ── how a run ends ────────────────────────────────────────────────────────────────────────────────


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
def test_the_end_of_a_run(states: tuple[RunState, RunState], expected: tuple[RunState, str | None]) -> None:
    workflow, facts = graph("a", "b"), {"a": fact("a", states[0]), "b": fact("b", states[1])}
    answer = ask(workflow, *facts.values())
    assert answer.is_over
    end = run_end(answer.progress, WorkflowRunFacts(), {}, facts.get(first_failure(workflow, answer.progress) or ""))
    assert (end.state, end.cause) == expected


def test_every_final_state_is_of_one_kind() -> None:
    kinds = [frozenset({S.SUCCEEDED}), frozenset({S.SKIPPED}), FAILURES, STOPPED]
    assert frozenset().union(*kinds) == FINAL
    assert sum(map(len, kinds)) == len(FINAL)
    assert RETRYABLE < REASSIGNABLE < FAILURES
    assert not NOT_STARTED & FINAL


def test_every_skip_reason_either_stops_a_run_or_follows_from_the_graph() -> None:
    assert set(SkipReason) - STOP_REASONS == {SkipReason.PARENT_NOT_SUCCESSFUL, SkipReason.BRANCH_NOT_TAKEN}


def test_the_result_of_a_run_is_that_of_the_ends_which_succeeded() -> None:
    workflow = graph("a", "b", "c", "d", edges=(("a", "b"), ("a", "c")))
    assert results_at_end(workflow, "ssfs") == ["b", "d"]


def test_the_error_names_the_first_failure_and_counts_the_others() -> None:
    workflow = graph("a", "b")
    assert first_failure(workflow, "ff") == "a"
    assert first_failure(workflow, "sk") is None
    assert (
        run_end("ff", WorkflowRunFacts(), {}, fact("a", S.EXPIRED)).error
        == "step 'a' ended in state expired; 1 more failed"
    )
    alone = run_end("f", WorkflowRunFacts(), {}, fact("b", S.FAILED, error_class="\ud800" * 10_000))
    assert alone.error is not None
    assert len(alone.error.encode()) < 400


# ── wrong facts, and cost ─────────────────────────────────────────────────────────────────────────


def test_facts_and_letters_of_another_workflow_are_refused() -> None:
    with pytest.raises(InvalidWorkflow, match="'z' is not a node of workflow w version 1"):
        advance(graph("a"), "o", [fact("z", S.READY)], WorkflowRunFacts())
    with pytest.raises(InvalidWorkflow, match="2 entries for 1 nodes"):
        advance(graph("a"), "oo", [], WorkflowRunFacts())


def _spread() -> CompiledWorkflow:
    """One, then all but two, then one."""
    names = [f"n{position}" for position in range(MAX_NODES - 2)]
    return graph(
        "first",
        *names,
        "last",
        edges=tuple(("first", name) for name in names) + tuple((name, "last") for name in names),
    )


def test_a_step_that_ends_costs_little_however_many_there_are() -> None:
    """In processor time: a pass over all facts for each of a thousand steps took seconds."""
    workflow = _spread()
    progress = ask(workflow, fact("first", S.SUCCEEDED)).progress
    begun = time.process_time()
    for place in range(MAX_NODES - 2):
        answer = ask(workflow, fact(f"n{place}", S.SUCCEEDED), progress=progress)
        progress = answer.progress
    assert born(answer) == ["last"]
    assert time.process_time() - begun < 5.0
