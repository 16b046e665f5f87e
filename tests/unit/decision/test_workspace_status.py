"""What is told of the runs of a workspace's schedules, and of the last of them."""

from __future__ import annotations

import pytest

from horarium.core.decision.statuses import LastStatus
from horarium.core.document.states import FINAL, RunState
from horarium.features.agents.workspace_words import RunStatus, last_error, run_error, run_status


@pytest.mark.parametrize(
    ("status", "last_state", "text"),
    [
        (LastStatus.NOTHING, None, ""),
        (LastStatus.SUCCESS, "succeeded", ""),
        (LastStatus.ERROR, "failed", "it broke"),
        (LastStatus.ERROR, "timed_out", "it broke"),
        (LastStatus.ERROR, "cancelled", "cancelled"),
        (LastStatus.ERROR, None, "it broke"),
        (LastStatus.SKIPPED, None, "skipped: overlap_policy_skip"),
        (LastStatus.SKIPPED, "skipped", "skipped: workspace busy"),
        (LastStatus.SKIPPED, "rejected", "skipped: rejected"),
        (LastStatus.STALE, "failed", "empty response 3 consecutive times: the agent answers without a text"),
    ],
    ids=str,
)
def test_every_status_has_its_sentence(status: LastStatus, last_state: str | None, text: str) -> None:
    told = last_error(status, last_state, "it broke", skip_reason="overlap_policy_skip", empty_in_a_row=3)
    assert told == text


@pytest.mark.parametrize("state", RunState)
def test_every_state_has_a_word_and_what_failed_a_reason(state: RunState) -> None:
    status = run_status(state)
    assert (status in (RunStatus.SUCCESS, RunStatus.ERROR, RunStatus.SKIPPED)) is (state in FINAL)
    assert bool(run_error(state, None, None)) is (status in (RunStatus.ERROR, RunStatus.SKIPPED))
    assert len(run_error(state, "x" * 5_000, None)) <= 1_000
