"""Which runs are unsound: a table of what they are and what a check of the ledger says about them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from horarium.core.document.states import OPEN, RunState
from horarium.core.lifecycle.live_run import RecordedApproval, StoredRunFacts, Unsound, unsound

_YES = RecordedApproval(True, same_run=True, same_inputs=True)
_WORKFLOW = StoredRunFacts(RunState.RUNNING, is_workflow=True)
_WAITS = StoredRunFacts(RunState.AWAITING_APPROVAL, needs_approval=True, is_asked_about=True)
_STEP = StoredRunFacts(RunState.RUNNING, is_step=True, parent=RunState.RUNNING)
_LET_GO = StoredRunFacts(RunState.SUCCEEDED, needs_approval=True, answer=_YES)
_NO = ()
_STUCK, _OUTLIVES, _UNAPPROVED = (Unsound.STUCK,), (Unsound.OUTLIVES,), (Unsound.UNAPPROVED,)

CASES = [
    pytest.param(StoredRunFacts(RunState.RUNNING), _NO, id="what runs outside has a lease or a deadline"),
    pytest.param(_WORKFLOW, _STUCK, id="a workflow without an open step"),
    pytest.param(replace(_WORKFLOW, has_open_steps=True), _NO, id="a workflow with an open step"),
    pytest.param(replace(_WORKFLOW, has_changes=True), _NO, id="a workflow that has a change to take note of"),
    pytest.param(replace(_WORKFLOW, state=RunState.READY), _NO, id="a workflow that has not begun"),
    pytest.param(replace(_WORKFLOW, state=RunState.FAILED), _NO, id="a workflow that has ended"),
    pytest.param(_WAITS, _NO, id="it waits for an answer"),
    pytest.param(replace(_WAITS, is_asked_about=False), _STUCK, id="it waits and nobody was asked"),
    pytest.param(replace(_WAITS, is_asked_about=False, is_to_stop=True), _NO, id="the janitor ends it"),
    pytest.param(_STEP, _NO, id="a step of a workflow that runs"),
    pytest.param(replace(_STEP, parent=RunState.SUCCEEDED), _OUTLIVES, id="a step of a workflow that has ended"),
    pytest.param(replace(_STEP, parent=None), _OUTLIVES, id="a step of a workflow that is gone"),
    pytest.param(replace(_STEP, parent=RunState.FAILED, state=RunState.CANCELLED), _NO, id="both have ended"),
    pytest.param(_LET_GO, _NO, id="somebody said yes"),
    pytest.param(replace(_LET_GO, answer=None), _UNAPPROVED, id="nobody was asked"),
    pytest.param(replace(_LET_GO, answer=replace(_YES, yes=False)), _UNAPPROVED, id="no answer, or a no"),
    pytest.param(
        replace(_LET_GO, answer=replace(_YES, same_run=False)), _UNAPPROVED, id="the yes was about another run"
    ),
    pytest.param(
        replace(_LET_GO, answer=replace(_YES, same_inputs=False)), _UNAPPROVED, id="the yes was to other inputs"
    ),
    pytest.param(StoredRunFacts(RunState.REJECTED, needs_approval=True), _NO, id="it ended without a yes"),
    pytest.param(
        StoredRunFacts(RunState.READY, needs_approval=True), _UNAPPROVED, id="it is about to begin without a yes"
    ),
    pytest.param(
        replace(_STEP, parent=RunState.FAILED, needs_approval=True), (*_OUTLIVES, *_UNAPPROVED), id="both are told"
    ),
]


@pytest.mark.parametrize(("run", "found"), CASES)
def test_what_is_wrong_with_a_run(run: StoredRunFacts, found: tuple[Unsound, ...]) -> None:
    assert unsound(run) == found


@pytest.mark.parametrize("state", sorted(OPEN - {RunState.AWAITING_APPROVAL}))
def test_a_plain_run_is_sound_in_every_state(state: RunState) -> None:
    assert unsound(StoredRunFacts(state)) == ()
