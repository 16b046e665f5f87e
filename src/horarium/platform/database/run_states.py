"""Sets of run states as SQL conditions; `RunState` and its sets define the members."""

from __future__ import annotations

from collections.abc import Iterable

from horarium.core.document.reader import PULLED
from horarium.core.document.states import FINAL, HANDED_OUT, NOT_STARTED, OPEN, RunState


def names(states: Iterable[RunState]) -> tuple[str, ...]:
    """For `in_`, as drivers understand them."""
    return tuple(sorted(state.value for state in states))


def sql_list(states: Iterable[RunState]) -> str:
    """As text and not as parameters: only so do both databases see which partial index holds just these."""
    return f"({', '.join(repr(name) for name in names(states))})"


FINAL_NAMES = names(FINAL)
NOT_STARTED_NAMES = names(NOT_STARTED)
# As `has_not_started` in `core/lifecycle/live_run.py`.
IS_NOT_STARTED = (
    f"(state IN {sql_list(NOT_STARTED)} OR (state = 'queued' AND kind IN ({', '.join(map(repr, sorted(PULLED)))})))"
)
# A held run waits in a buffer; all others that have not ended count as active.
ACTIVE_NAMES = names(OPEN - {RunState.HELD})
ACTIVE_LIST = sql_list(OPEN - {RunState.HELD})
HANDED_OUT_LIST = sql_list(HANDED_OUT)
# The conditions of the indexes `runs_to_stop_by_schedule` and `runs_open`.
TO_STOP = "stop_requested_at IS NOT NULL AND finished_at IS NULL AND state <> 'held'"
OPEN_ROOT = f"state IN {sql_list(OPEN)} AND parent_run_id IS NULL"
# That of `runs_unsuccessful`: whoever looks for what went wrong does not read all that went well.
NOT_SUCCEEDED = FINAL - {RunState.SUCCEEDED}
ENDED_BADLY = f"state IN {sql_list(NOT_SUCCEEDED)}"
# Those of `runs_active_by_assignee` and `runs_active_by_member`.
OPEN_OF_ASSIGNEE = "assignee IS NOT NULL AND finished_at IS NULL"
OPEN_OF_MEMBER = "member IS NOT NULL AND finished_at IS NULL"
# Those of `runs_prompts_out`, `runs_prompts_busy` and `runs_prompts_unmarked`. A prompt counts from the send to the
# final answer, also while nobody holds it and the agent may be at work.
PROMPT_OUT = "kind = 'prompt' AND (state IN ('launching', 'running') OR (state = 'ready' AND heard))"
PROMPT_BUSY = "kind = 'prompt' AND state = 'ready' AND busy_since IS NOT NULL"
PROMPT_UNMARKED = "kind = 'prompt' AND state = 'ready' AND busy_since IS NULL"
# The condition of the index `runs_waiting`.
WAITING_ROOT = f"state = '{RunState.AWAITING_APPROVAL.value}' AND parent_run_id IS NULL"
