"""What `advance` makes of failures, of a request to cancel and of a cap."""

from __future__ import annotations

from typing import Any

import pytest
from unit.decision.workflows import FALLBACK, HALT, PAIR, S, ask, born, fact, graph, skipped

from horarium.core.decision.advance import (
    CONTRACT_VIOLATED,
    FAILURES,
    REASSIGNABLE,
    Advance,
    EndCause,
    SkipReason,
    StepBirth,
    StepSkip,
    Stop,
    WorkflowRunFacts,
    run_end,
)
from horarium.core.document.states import RunState


def test_halt_starts_nothing_and_stops_the_rest_before_the_run_fails() -> None:
    workflow = graph("a", "b", "c", "d", "e", edges=(("a", "b"), ("e", "d")))
    answer = ask(workflow, fact("a", S.FAILED), progress="o.oos", failure=HALT)
    assert answer == Advance("fcoos", skips=(StepSkip("b", SkipReason.WORKFLOW_HALTED),), stop=Stop.ASK)
    later = ask(workflow, fact("d", S.CANCELLED), progress=answer.progress, failure=HALT)
    assert later == Advance("fcocs", stop=Stop.ASK)
    last = ask(workflow, fact("c", S.SUCCEEDED), progress=later.progress, failure=HALT)
    assert last == Advance("fcscs", is_over=True)
    assert run_end("fcscs", WorkflowRunFacts(failure=HALT), {}, fact("a", S.FAILED)).cause == EndCause.STEP_FAILED


def test_a_cancelled_step_does_not_halt() -> None:
    workflow = graph("a", "b", "c", edges=(("b", "c"),))
    assert born(ask(workflow, fact("a", S.CANCELLED), fact("b", S.SUCCEEDED), failure=HALT)) == ["c"]


@pytest.mark.parametrize("state", sorted(FAILURES))
def test_a_fallback_takes_over_what_was_tried_and_not_what_was_refused_or_may_be_done(state: RunState) -> None:
    answer = ask(PAIR, fact("a", state), failure=FALLBACK)
    if state in REASSIGNABLE:
        assert answer == Advance("r.", births=(StepBirth("a", "spare"),))
    else:
        assert answer == Advance("fk", skips=(StepSkip("b", SkipReason.PARENT_NOT_SUCCESSFUL),), is_over=True)


@pytest.mark.parametrize(
    "known",
    [{"fallback": True}, {"assignee_id": "spare"}, {"error_class": CONTRACT_VIOLATED}],
    ids=["once", "not-to-itself", "not-what-nobody-can-be-given"],
)
def test_a_step_falls_back_once_and_to_somebody_else(known: dict[str, Any]) -> None:
    answer = ask(PAIR, fact("a", S.FAILED, **known), failure=FALLBACK)
    assert (answer.births, answer.progress, answer.is_over) == ((), "fk", True)


def test_a_fallback_that_succeeds_covers_the_failure() -> None:
    answer = ask(PAIR, fact("a", S.SUCCEEDED, fallback=True), failure=FALLBACK)
    assert (born(answer), answer.progress) == (["b"], "so")


def test_the_one_whose_place_was_taken_is_not_heard_again() -> None:
    assert ask(PAIR, fact("a", S.FAILED), progress="r.", failure=FALLBACK) == Advance("r.")


def test_a_target_that_had_no_room_is_a_failure_unlike_other_skips() -> None:
    busy = fact("a", S.SKIPPED, cause="target_busy")
    assert ask(graph("a"), busy).progress == "f"
    assert ask(graph("a"), busy, failure=FALLBACK).births == (StepBirth("a", "spare"),)
    assert ask(graph("a"), fact("a", S.SKIPPED, cause="branch_not_taken")).progress == "k"


# ── caps and cancelling ───────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("about", "how", "reason", "end"),
    [
        ({"cancel_requested": True}, Stop.ASK, "run_cancelled", (S.CANCELLED, "cancel_requested")),
        ({"cap": "cost_cap"}, Stop.END, "run_cap_reached", (S.FAILED, "cost_cap")),
    ],
    ids=["cancel", "cap"],
)
def test_a_run_that_is_stopped_begins_nothing_and_ends_for_that_reason(
    about: dict[str, Any], how: Stop, reason: str, end: tuple[RunState, str]
) -> None:
    workflow = graph("a", "b", "c", edges=(("a", "c"),))
    answer = ask(workflow, progress="oo.", **about)
    assert (answer.progress, answer.stop, answer.births) == ("ooc", how, ())
    assert skipped(answer) == {"c": reason}
    assert ask(workflow, progress="ooc", **about) == Advance("ooc", stop=how), "it is asked again until all have ended"
    last = ask(workflow, fact("a", S.CANCELLED), fact("b", S.SUCCEEDED), progress="ooc", **about)
    assert last == Advance("csc", is_over=True)
    told = run_end(last.progress, WorkflowRunFacts(**about), {}, None)
    assert (told.state, told.cause) == end


def test_a_run_that_is_stopped_before_it_began_has_no_step() -> None:
    answer = ask(PAIR, cancel_requested=True)
    assert (answer.progress, answer.births, answer.is_over) == ("cc", (), True)


def test_a_cap_reassigns_nothing() -> None:
    answer = ask(graph("a"), fact("a", S.FAILED), failure=FALLBACK, cap="cost_cap")
    assert (answer.births, answer.progress) == ((), "f")


@pytest.mark.parametrize("late", [{"cancel_requested": True}, {"cap": "cost_cap"}])
def test_a_stop_that_finds_nothing_left_changes_nothing(late: dict[str, Any]) -> None:
    answer = ask(graph("a"), fact("a", S.SUCCEEDED), **late)
    assert run_end(answer.progress, WorkflowRunFacts(**late), {}, None).state is S.SUCCEEDED
