"""Advance of a workflow run: the steps that start, are skipped or are cancelled, and the end of the run.

A node is decided when every node with an edge to it has ended for good. It then starts if all sources
of edges without a condition succeeded and, where edges have conditions, at least one of them holds: its
source succeeded and the condition is true. An empty condition, which is always true, therefore means "any
of these is enough". Everything else is skipped, and so are the nodes that need it.

A condition sees `{"result": …, "inputs": …}`: the result of the source and the inputs of the run.

A failure is evaluated after its retries. It goes to the fallback assignee first, and counts only after that. The run
fails if any step did, whatever the others did; skipped branches are no failure. A request to cancel, a cap
or a policy to halt stops what is left; where nothing is left, the run ends as its steps did.

Only the nodes that have changed and those behind them are looked at, in topological order: the cost of a step that ends
does not depend on how large the workflow is. Earlier states are in the letters of `progress`, and a repeated
report changes nothing.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, StrEnum

from horarium.core.document.json_values import Json
from horarium.core.document.states import FINAL, Reason, RunState
from horarium.core.document.workflow_steps import CompiledWorkflow, IncomingEdge
from horarium.core.policy.approval import FailureMode, FailurePolicy, Reassign, on_step_failure
from horarium.core.policy.queue import shown
from horarium.errors import InvalidWorkflow

# Outcomes of work that was done badly. A launch has a retry budget of its own.
RETRYABLE = frozenset({RunState.FAILED, RunState.TIMED_OUT})
# Nobody else may take over a step that a person refused, or one that may have been done (`unknown`).
REASSIGNABLE = RETRYABLE | {RunState.LAUNCH_FAILED}
FAILURES = REASSIGNABLE | {RunState.UNKNOWN, RunState.REJECTED, RunState.EXPIRED}
STOPPED = frozenset({RunState.CANCELLED, RunState.TERMINATED})
# What a step was to be given could not be had: whoever took it over would get no more.
CONTRACT_VIOLATED = "contract_violated"


class NodeState(StrEnum):
    """State of a node: the letter that a run stores for it, in the order of the document."""

    UNDECIDED = "."
    OPEN = "o"
    FALLEN_BACK = "r"  # open again: somebody else has taken it over
    SUCCEEDED = "s"
    FAILED = "f"
    SKIPPED = "k"  # a way that was not taken, or that led nowhere
    STOPPED = "c"  # cancelled, terminated, or never begun because the run was stopped


class SkipReason(StrEnum):
    PARENT_NOT_SUCCESSFUL = "parent_not_successful"
    BRANCH_NOT_TAKEN = "branch_not_taken"
    WORKFLOW_HALTED = "workflow_halted"
    RUN_CANCELLED = "run_cancelled"
    RUN_CAP_REACHED = "run_cap_reached"
    WORKFLOW_ENDED = "workflow_ended"


class EndCause(StrEnum):
    """Why a workflow did not succeed; the caps of `policy.limits` are causes too."""

    STEP_FAILED = "step_failed"
    STEP_CANCELLED = "step_cancelled"
    CANCEL_REQUESTED = "cancel_requested"


STOP_REASONS = frozenset(
    {SkipReason.WORKFLOW_HALTED, SkipReason.RUN_CANCELLED, SkipReason.RUN_CAP_REACHED, SkipReason.WORKFLOW_ENDED}
)


@dataclass(frozen=True, slots=True)
class StepFact:
    """State of a changed step; retries are over when it is in a final state.

    `fallback`: it replaces one that failed. `cause` is the reason of a skip.
    """

    node_id: str
    state: RunState
    error_class: str | None = None
    assignee_id: str | None = None
    fallback: bool = False
    cause: str | None = None

    @property
    def failed(self) -> bool:
        return self.state in FAILURES or self._turned_away

    @property
    def reassignable(self) -> bool:
        return (self.state in REASSIGNABLE and self.error_class != CONTRACT_VIOLATED) or self._turned_away

    @property
    def standing(self) -> NodeState:
        """Node state of a final step; the policy decides the consequences of a failure."""
        if self.state is RunState.SUCCEEDED:
            return NodeState.SUCCEEDED
        if self.failed:
            return NodeState.FAILED
        return NodeState.STOPPED if self.state in STOPPED else NodeState.SKIPPED

    @property
    def _turned_away(self) -> bool:
        # Its turn had come and its target had no room: unlike other skips, this is work that was not done.
        return self.state is RunState.SKIPPED and self.cause == Reason.TARGET_BUSY


@dataclass(frozen=True, slots=True)
class WorkflowRunFacts:
    """Facts about the workflow's run. `cap` names the limit that was exceeded, `inputs` are the run's."""

    failure: FailurePolicy = field(default_factory=FailurePolicy)
    inputs: Json = None
    cap: str | None = None
    cancel_requested: bool = False


@dataclass(frozen=True, slots=True)
class StepBirth:
    """`fallback_to` is who takes the place of whoever failed at the same node."""

    node_id: str
    fallback_to: str | None = None


@dataclass(frozen=True, slots=True)
class StepSkip:
    node_id: str
    reason: SkipReason


class Stop(StrEnum):
    """Treatment of open steps when a run is stopped."""

    ASK = "ask"  # what has not started is cancelled, what runs is asked to stop
    END = "end"  # nobody is waited for


@dataclass(frozen=True, slots=True)
class ResultsNeeded:
    """Conditions read the results of these nodes: the question is to be asked again with them."""

    node_ids: frozenset[str]


@dataclass(frozen=True, slots=True)
class Advance:
    """`progress` has a letter for each node. `is_over`: no node can change any more."""

    progress: str
    births: tuple[StepBirth, ...] = ()
    skips: tuple[StepSkip, ...] = ()
    stop: Stop | None = None
    is_over: bool = False


@dataclass(frozen=True, slots=True)
class RunEnd:
    """`result` maps each end node that succeeded to its result, also where the run as a whole did not."""

    state: RunState
    result: Mapping[str, Json]
    error: str | None = None
    cause: str | None = None


# As plain texts: a run of a thousand nodes is read and written as a whole each time.
_UNDECIDED, _SUCCEEDED, _FAILED = NodeState.UNDECIDED.value, NodeState.SUCCEEDED.value, NodeState.FAILED.value
_UNSETTLED = (_UNDECIDED, NodeState.OPEN.value, NodeState.FALLEN_BACK.value)
_NOTHING: Mapping[str, Json] = {}


def advance(
    workflow: CompiledWorkflow,
    progress: str | None,
    changed: Sequence[StepFact],
    run: WorkflowRunFacts,
    results: Mapping[str, Json] = _NOTHING,
) -> Advance | ResultsNeeded:
    """`progress` is None where the run begins; `results` are those that were asked for."""
    letters = _read(workflow, progress)
    ended = [fact for fact in changed if _is_news(workflow, letters, fact)]
    for fact in ended:
        letters[workflow.places[fact.node_id]] = fact.standing.value
    reason = _stop_reason(letters, run)
    if reason is not None:
        return _stopped(workflow, letters, reason)
    births = _fallbacks(workflow, letters, ended, run)
    settled = [workflow.places[fact.node_id] for fact in ended]
    begin = workflow.starts if progress is None else ()
    walk = _AdvanceWalk(workflow, letters, run, results)
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


def _is_news(workflow: CompiledWorkflow, letters: Sequence[str], fact: StepFact) -> bool:
    """It has ended, and that is news: the one whose place a fallback has taken says nothing any more."""
    place = workflow.places.get(fact.node_id)
    if place is None:
        name = f"{workflow.workflow.workflow_id} version {workflow.workflow.version}"
        raise InvalidWorkflow(f"steps: {shown(fact.node_id)} is not a node of workflow {name}")
    expected = NodeState.FALLEN_BACK if fact.fallback else NodeState.OPEN
    return fact.state in FINAL and letters[place] == expected.value


def _stop_reason(letters: Sequence[str], run: WorkflowRunFacts) -> SkipReason | None:
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
            letters[place] = NodeState.STOPPED.value
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
    workflow: CompiledWorkflow, letters: list[str], ended: Iterable[StepFact], run: WorkflowRunFacts
) -> list[StepBirth]:
    births = []
    for fact in ended:
        if not fact.failed:
            continue
        # Giving a step to the one who has just failed it would be a retry by another name.
        spent = fact.fallback or fact.assignee_id == run.failure.fallback_assignee_id
        outcome = on_step_failure(run.failure, already_fallen_back=spent or not fact.reassignable)
        if isinstance(outcome, Reassign):
            letters[workflow.places[fact.node_id]] = NodeState.FALLEN_BACK.value
            births.append(StepBirth(fact.node_id, outcome.assignee_id))
    return births


class _Turn(Enum):
    """Result of a node's edges while the node is undecided and not skipped."""

    WAIT = "wait"
    START = "start"


class _AdvanceWalk:
    """From what has changed on, each node after those before it, so that a skip reaches all behind it at once."""

    def __init__(
        self, workflow: CompiledWorkflow, letters: list[str], run: WorkflowRunFacts, results: Mapping[str, Json]
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
                self._letters[place] = NodeState.OPEN.value
                self.births.append(StepBirth(nodes[place].id))
            elif isinstance(turn, SkipReason):
                self._letters[place] = NodeState.SKIPPED.value
                self.skips.append(StepSkip(nodes[place].id, turn))
                for target in self._workflow.out[place]:
                    heapq.heappush(waiting, (rank[target], target))

    def _turn(self, ways: Sequence[IncomingEdge]) -> _Turn | SkipReason:
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

    def _name(self, way: IncomingEdge) -> str:
        return self._workflow.nodes[way.source].id

    def _holds(self, way: IncomingEdge) -> bool:
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


def run_end(progress: str, run: WorkflowRunFacts, result: Mapping[str, Json], failed: StepFact | None) -> RunEnd:
    """`failed` is the step at the node that `first_failure` names."""
    stopped = NodeState.STOPPED.value in progress
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
