"""What happens next in a workflow run: which steps are born, skipped or stopped, and how it ends.

A node is decided when every node with an edge to it has ended for good. It is then born if all sources
of edges without a condition succeeded and, where edges have conditions, at least one of them holds: its
source succeeded and the condition is true. An empty condition, which is always true, therefore says "any
of these is enough". Everything else is skipped, and so are the nodes that need it.

A condition sees `{"result": …, "inputs": …}`: what the source answered and what the run was given.

A failure comes here after its retries. It is given to the fallback assignee, and only then is it one. The run
fails if any step did, whatever came of the others; skipped branches are no failure. A request to cancel, a cap
or a policy to halt stops what is left; where nothing is left, the run ends as its steps did.

Only the nodes that have changed and those behind them are looked at, in topological order: what a step that ends
costs does not depend on how large the workflow is. What was said before is in the letters of `progress`, and what
is told twice changes nothing.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum

from horarium.decision.step import (
    Advance,
    EndCause,
    ResultsNeeded,
    RunEnd,
    RunFacts,
    SkipReason,
    Standing,
    StepBirth,
    StepFact,
    StepSkip,
    Stop,
)
from horarium.errors import InvalidWorkflow
from horarium.policy.failure import FailureMode, Reassign, on_step_failure
from horarium.policy.names import shown
from horarium.schedule.compiled import CompiledWorkflow, Way
from horarium.schedule.json_limits import Json
from horarium.schedule.run import FINAL, RunState

# As plain texts: a run of a thousand nodes is read and written as a whole each time.
_UNDECIDED, _SUCCEEDED, _FAILED = Standing.UNDECIDED.value, Standing.SUCCEEDED.value, Standing.FAILED.value
_UNSETTLED = (_UNDECIDED, Standing.OPEN.value, Standing.FALLEN_BACK.value)
_NOTHING: Mapping[str, Json] = {}


def advance(
    workflow: CompiledWorkflow,
    progress: str | None,
    changed: Sequence[StepFact],
    run: RunFacts,
    results: Mapping[str, Json] = _NOTHING,
) -> Advance | ResultsNeeded:
    """`progress` is None where the run begins; `results` are those that were asked for."""
    letters = _read(workflow, progress)
    ended = [fact for fact in changed if _is_heard(workflow, letters, fact)]
    for fact in ended:
        letters[workflow.places[fact.node_id]] = fact.standing.value
    reason = _stop_reason(letters, run)
    if reason is not None:
        return _stopped(workflow, letters, reason)
    births = _fallbacks(workflow, letters, ended, run)
    settled = [workflow.places[fact.node_id] for fact in ended]
    begin = workflow.starts if progress is None else ()
    walk = _Walk(workflow, letters, run, results)
    behind = (target for place in settled if letters[place] not in _UNSETTLED for target in workflow.out[place])
    walk.go((*begin, *behind))
    if walk.needed:
        return ResultsNeeded(frozenset(walk.needed))
    after = "".join(letters)
    return Advance(after, (*births, *walk.births), tuple(walk.skips), is_over=is_over(after))


def is_over(progress: str) -> bool:
    """No node can change any more."""
    return not any(letter in progress for letter in _UNSETTLED)


def _read(workflow: CompiledWorkflow, progress: str | None) -> list[str]:
    if progress is None:
        return [_UNDECIDED] * len(workflow.nodes)
    if len(progress) != len(workflow.nodes):
        raise InvalidWorkflow(f"progress: has {len(progress)} entries for {len(workflow.nodes)} nodes")
    return list(progress)


def _is_heard(workflow: CompiledWorkflow, letters: Sequence[str], fact: StepFact) -> bool:
    """It has ended, and that is news: the one whose place a fallback has taken says nothing any more."""
    place = workflow.places.get(fact.node_id)
    if place is None:
        name = f"{workflow.workflow.workflow_id} version {workflow.workflow.version}"
        raise InvalidWorkflow(f"steps: {shown(fact.node_id)} is not a node of workflow {name}")
    expected = Standing.FALLEN_BACK if fact.fallback else Standing.OPEN
    return fact.state in FINAL and letters[place] == expected.value


def _stop_reason(letters: Sequence[str], run: RunFacts) -> SkipReason | None:
    if run.cancel_requested:
        return SkipReason.RUN_CANCELLED
    if run.cap is not None:
        return SkipReason.RUN_CAP_REACHED
    if run.failure.mode is FailureMode.HALT and _FAILED in letters:
        return SkipReason.WORKFLOW_HALTED
    return None


def left_over(workflow: CompiledWorkflow, progress: str | None) -> Advance:
    """Skip the undecided nodes of a run that was ended from outside."""
    letters = _read(workflow, progress)
    skips = _skip_undecided(workflow, letters, SkipReason.WORKFLOW_ENDED)
    return Advance("".join(letters), skips=tuple(skips), is_over=True)


def _skip_undecided(workflow: CompiledWorkflow, letters: list[str], reason: SkipReason) -> list[StepSkip]:
    skips = []
    for place, node in enumerate(workflow.nodes):
        if letters[place] == _UNDECIDED:
            letters[place] = Standing.STOPPED.value
            skips.append(StepSkip(node.id, reason))
    return skips


def _stopped(workflow: CompiledWorkflow, letters: list[str], reason: SkipReason) -> Advance:
    """Nothing starts any more; a cap does not wait for those that are slow to stop."""
    skips = _skip_undecided(workflow, letters, reason)
    after = "".join(letters)
    how = Stop.END if reason is SkipReason.RUN_CAP_REACHED else Stop.ASK
    over = is_over(after)
    return Advance(after, skips=tuple(skips), stop=None if over else how, is_over=over)


def _fallbacks(
    workflow: CompiledWorkflow, letters: list[str], ended: Iterable[StepFact], run: RunFacts
) -> list[StepBirth]:
    births = []
    for fact in ended:
        if not fact.failed:
            continue
        # Giving a step to the one who has just failed it would be a retry by another name.
        spent = fact.fallback or fact.assignee_id == run.failure.fallback_assignee_id
        outcome = on_step_failure(run.failure, already_fallen_back=spent or not fact.reassignable)
        if isinstance(outcome, Reassign):
            letters[workflow.places[fact.node_id]] = Standing.FALLEN_BACK.value
            births.append(StepBirth(fact.node_id, outcome.assignee_id))
    return births


class _Turn(Enum):
    """Result of a node's edges while the node is undecided and not skipped."""

    WAIT = "wait"
    START = "start"


class _Walk:
    """From what has changed on, each node after those before it, so that a skip reaches all behind it at once."""

    def __init__(
        self, workflow: CompiledWorkflow, letters: list[str], run: RunFacts, results: Mapping[str, Json]
    ) -> None:
        self.births: list[StepBirth] = []
        self.skips: list[StepSkip] = []
        self.needed: set[str] = set()
        self._workflow = workflow
        self._letters = letters
        self._run = run
        self._results = results

    def go(self, places: Iterable[int]) -> None:
        rank, nodes = self._workflow.rank, self._workflow.nodes
        waiting = sorted({(rank[place], place) for place in places})
        while waiting:
            _, place = heapq.heappop(waiting)
            if self._letters[place] != _UNDECIDED:
                continue
            turn = self._turn(self._workflow.into[place])
            if turn is _Turn.START:
                self._letters[place] = Standing.OPEN.value
                self.births.append(StepBirth(nodes[place].id))
            elif isinstance(turn, SkipReason):
                self._letters[place] = Standing.SKIPPED.value
                self.skips.append(StepSkip(nodes[place].id, turn))
                for target in self._workflow.out[place]:
                    heapq.heappush(waiting, (rank[target], target))

    def _turn(self, ways: Sequence[Way]) -> _Turn | SkipReason:
        """The join rule; it waits for every source, so that the answer does not depend on which ends first."""
        letters = self._letters
        if any(letters[way.source] in _UNSETTLED for way in ways):
            return _Turn.WAIT
        if any(way.condition is None and letters[way.source] != _SUCCEEDED for way in ways):
            return SkipReason.PARENT_NOT_SUCCESSFUL
        conditional = [way for way in ways if way.condition is not None]
        reached = [way for way in conditional if letters[way.source] == _SUCCEEDED]
        unknown = [way for way in reached if way.reads_result and self._name(way) not in self._results]
        if unknown:
            self.needed.update(map(self._name, unknown))
            return _Turn.WAIT
        if not conditional or any(self._holds(way) for way in reached):
            return _Turn.START
        return SkipReason.BRANCH_NOT_TAKEN if reached else SkipReason.PARENT_NOT_SUCCESSFUL

    def _name(self, way: Way) -> str:
        return self._workflow.nodes[way.source].id

    def _holds(self, way: Way) -> bool:
        context = {"result": self._results.get(self._name(way)), "inputs": self._run.inputs}
        return way.condition is None or way.condition.evaluate(context)


# ── the end ───────────────────────────────────────────────────────────────────────────────────────


def first_failure(workflow: CompiledWorkflow, progress: str) -> str | None:
    """The node whose failure the end of the run tells of."""
    place = progress.find(_FAILED)
    return None if place < 0 else workflow.nodes[place].id


def results_at_end(workflow: CompiledWorkflow, progress: str) -> list[str]:
    """The nodes whose results are the result of the run."""
    return [workflow.nodes[place].id for place in workflow.ends if progress[place] == _SUCCEEDED]


def run_end(progress: str, run: RunFacts, result: Mapping[str, Json], failed: StepFact | None) -> RunEnd:
    """`failed` is the step at the node that `first_failure` names."""
    stopped = Standing.STOPPED.value in progress
    if stopped and run.cancel_requested:
        return RunEnd(RunState.CANCELLED, result, "cancelled on request", EndCause.CANCEL_REQUESTED)
    if stopped and run.cap is not None:
        return RunEnd(RunState.FAILED, result, f"stopped at a limit of the run: {run.cap}", run.cap)
    if failed is not None:
        others = progress.count(_FAILED) - 1
        return RunEnd(RunState.FAILED, result, _failure_text(failed, others), EndCause.STEP_FAILED)
    if stopped:
        return RunEnd(RunState.CANCELLED, result, "a step was cancelled", EndCause.STEP_CANCELLED)
    return RunEnd(RunState.SUCCEEDED, result)


def _failure_text(failed: StepFact, others: int) -> str:
    why = failed.error_class or failed.cause
    text = f"step {shown(failed.node_id)} ended in state {failed.state}" + (f" ({shown(why)})" if why else "")
    return f"{text}; {others} more failed" if others else text
