"""Random workflows with random outcomes, driven to the end: a small store that writes what `advance` answers.

Every change of a run goes through the table of transitions, so an answer that could not be written fails here.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from horarium.condition import compile_condition
from horarium.decision.advance import advance
from horarium.decision.step import FAILURES, STOPPED, Advance, RootEnd, RunPolicies, StepBirth, StepFact
from horarium.instant import SECOND
from horarium.policy.approval import ApprovalMode, ApprovalPolicy
from horarium.policy.failure import FailureMode, FailurePolicy
from horarium.policy.limits import RunLimits, Usage
from horarium.policy.retry import RetryPolicy
from horarium.schedule.run import FINAL, RunState, check_transition
from horarium.schedule.workflow import Edge, Node, Workflow

S = RunState
START = 1_800_000_000 * SECOND
CONDITION = compile_condition({"/result": {"eq": "yes"}})
MAX_BLOCKS = 2


@dataclass(frozen=True)
class Move:
    """What the world may do to a run next: a new state, and what is reported with it."""

    state: RunState
    known: dict[str, Any] = field(default_factory=dict)


APPROVE = Move(S.READY)
BLOCK = Move(S.RUNNING, {"gate": "publish"})

MOVES: dict[RunState, tuple[Move, ...]] = {
    S.AWAITING_APPROVAL: (APPROVE, APPROVE, APPROVE, Move(S.REJECTED), Move(S.EXPIRED)),
    S.READY: (Move(S.LAUNCHING),),
    S.LAUNCHING: (
        *(Move(S.RUNNING),) * 4,
        Move(S.QUEUED),
        Move(S.LAUNCH_FAILED),
        Move(S.UNKNOWN),
        Move(S.SKIPPED, {"cause": "target_busy"}),
    ),
    S.QUEUED: (Move(S.RUNNING),),
    S.RUNNING: (
        Move(S.SUCCEEDED, {"result": "yes"}),
        Move(S.SUCCEEDED, {"result": "yes"}),
        Move(S.SUCCEEDED, {"result": "no"}),
        Move(S.FAILED, {"error_class": "rate_limit"}),
        Move(S.FAILED, {"error_class": "no_such_file"}),
        Move(S.TIMED_OUT),
        Move(S.CANCELLED),
        BLOCK,
    ),
}


class World:
    """The rows of one run, and the rules that no answer may break."""

    def __init__(self, workflow: Workflow, policies: RunPolicies) -> None:
        self.workflow = workflow
        self.policies = policies
        self.rows: dict[str, StepFact] = {}
        self.births: Counter[str] = Counter()
        self.blocks: Counter[str] = Counter()
        self.approved: set[str] = set()
        self.now = START
        self.usage = Usage()
        self.cancel_requested = False
        self.root: RootEnd | None = None
        self.settle()

    def ask(self, facts: dict[str, StepFact]) -> Advance:
        return advance(
            self.workflow,
            facts,
            root_inputs={},
            root_started_at=START,
            policies=self.policies,
            usage=self.usage,
            now=self.now,
            cancel_requested=self.cancel_requested,
        )

    def settle(self, report: StepFact | None = None) -> None:
        """One transaction: the report, the answer to it, and what it changes."""
        answer = self.ask({**self.rows, report.node_id: report} if report else self.rows)
        retried = {retry.node_id: retry for retry in answer.retries}
        if report is not None and report.node_id not in retried:
            self.write(report)
        for retry in answer.retries:
            assert report is not None
            assert retry.run_id == report.run_id
            assert retry.at >= self.now
            self.write(replace(report, state=S.READY, attempt=retry.attempt, error_class=None))
        self.apply(answer)
        assert self.ask(self.rows) == Advance(root=self.root), "the same facts gave more after the answer was written"

    def apply(self, answer: Advance) -> None:
        runs = {row.run_id: row for row in self.rows.values()}
        for wait in answer.waits:
            self.write(replace(runs[wait.run_id], state=S.AWAITING_APPROVAL))
        for run_id in answer.cancels:
            self.write(replace(runs[run_id], state=S.CANCELLED))
        for run_id in answer.stops:
            assert not runs[run_id].stop_requested
            self.rows[runs[run_id].node_id] = replace(runs[run_id], stop_requested=True)
        for skip in answer.skips:
            assert skip.node_id not in self.rows
            self.rows[skip.node_id] = StepFact(skip.node_id, f"{skip.node_id}/0", S.SKIPPED, cause=skip.reason)
        for birth in answer.births:
            self.bear(birth)
        self.root = answer.root
        if self.is_stopped():
            assert (answer.births, answer.retries, answer.waits) == ((), (), ())

    def bear(self, birth: StepBirth) -> None:
        before = self.rows.get(birth.node_id)
        assert (None if before is None else before.run_id) == birth.replaces
        assert before is None or before.state in FINAL
        self.births[birth.node_id] += 1
        sources = [edge.source for edge in self.workflow.edges if edge.target == birth.node_id]
        assert all(self.rows[source].state in FINAL for source in sources), "born before its parents were final"
        run_id = f"{birth.node_id}/{self.births[birth.node_id]}"
        self.rows[birth.node_id] = StepFact(
            birth.node_id, run_id, birth.state, assignee_id=birth.assignee_id, fallen_back=before is not None
        )

    def write(self, row: StepFact) -> None:
        old = self.rows[row.node_id]
        assert old.run_id == row.run_id
        if old.state is not row.state:
            check_transition(old.state, row.state)
        self.rows[row.node_id] = row

    def is_stopped(self) -> bool:
        limit, runtime = self.policies.limits.cost, self.policies.limits.runtime_seconds
        capped = limit is not None and self.usage.cost > limit
        late = runtime is not None and self.now - START >= runtime * SECOND
        return capped or late or self.cancel_requested

    def choices(self) -> list[tuple[StepFact, Move]]:
        found = [(row, move) for row in self.rows.values() for move in MOVES.get(row.state, ())]
        return [(row, move) for row, move in found if move is not BLOCK or self.blocks[row.run_id] < MAX_BLOCKS]

    def make(self, row: StepFact, move: Move) -> None:
        if row.state is S.AWAITING_APPROVAL and move is APPROVE:
            self.approved.add(row.run_id)
            row = replace(row, gate=None)
        if move is BLOCK:
            self.blocks[row.run_id] += 1
        failed = move.state in (S.FAILED, S.TIMED_OUT)
        self.settle(replace(row, state=move.state, attempt=row.attempt + failed, **move.known))
        if move.state is S.LAUNCHING and self.policies.approval.mode is ApprovalMode.EVERY_NODE:
            assert row.run_id in self.approved


@st.composite
def workflows(draw: st.DrawFn) -> Workflow:
    names = [f"n{place}" for place in range(draw(st.integers(1, 9)))]
    edges = []
    for place, target in enumerate(names):
        for source in draw(st.lists(st.sampled_from(names[:place]), unique=True, max_size=3)) if place else ():
            condition = draw(st.sampled_from([None, None, CONDITION, compile_condition({})]))
            edges.append(Edge(source, target, condition))
    needs = {name: tuple(edge.source for edge in edges if edge.target == name) for name in names}
    gates = st.sampled_from([(), (), ("publish",)])
    retries = st.sampled_from([None, None, RetryPolicy(max_retries=2, backoff_ms=10)])
    nodes = [Node(name, {}, needs[name], draw(gates), draw(retries)) for name in names]
    return Workflow("w", 1, tuple(nodes), tuple(edges))


POLICIES = st.builds(
    RunPolicies,
    approval=st.builds(
        ApprovalPolicy,
        mode=st.sampled_from([None, *ApprovalMode]),
        gates=st.sampled_from([frozenset(), frozenset({"publish"})]),
    ),
    retry=st.builds(RetryPolicy, max_retries=st.integers(0, 2)),
    failure=st.builds(FailurePolicy, st.sampled_from(FailureMode), st.just("spare")),
    limits=st.builds(RunLimits, st.sampled_from([None, None, 5, 60]), st.sampled_from([None, None, 3])),
)


def drive(world: World, data: st.DataObject) -> None:
    bound = 100 * len(world.workflow.nodes)
    while world.root is None:
        bound -= 1
        assert bound > 0, "the run does not end"
        choices = world.choices()
        assert choices, "nothing can move and the root has not ended"
        chosen = data.draw(st.integers(0, len(choices) - 1 if world.cancel_requested else len(choices) + 1))
        world.now += data.draw(st.sampled_from([0, SECOND // 10, SECOND]))
        if chosen < len(choices):
            cost = Decimal(world.usage.cost) + data.draw(st.sampled_from([0, 0, 0, 1]))
            world.usage = replace(world.usage, cost=cost)
            world.make(*choices[chosen])
        elif data.draw(st.integers(0, 9)) == 0:
            world.cancel_requested = True
            world.settle()


def should_start(world: World, node_id: str) -> bool:
    """The join rule again, told by what became of the sources."""
    edges = [edge for edge in world.workflow.edges if edge.target == node_id]
    done = {row.node_id: row.result for row in world.rows.values() if row.state is S.SUCCEEDED}
    conditional = [edge for edge in edges if edge.condition is not None]
    holding = [e for e in conditional if e.source in done and (e.condition != CONDITION or done[e.source] == "yes")]
    return all(edge.source in done or edge in conditional for edge in edges) and bool(holding or not conditional)


def expected_end(world: World) -> set[RunState]:
    states = {row.state for row in world.rows.values()}
    turned_away = any(row.cause == "target_busy" for row in world.rows.values())
    if states & FAILURES or turned_away:
        return {S.FAILED, S.CANCELLED} if world.is_stopped() else {S.FAILED}
    if world.is_stopped():
        return {S.FAILED, S.CANCELLED, S.SUCCEEDED}
    return {S.CANCELLED} if states & STOPPED else {S.SUCCEEDED}


@settings(max_examples=400, deadline=None, derandomize=True)
@given(workflow=workflows(), policies=POLICIES, data=st.data())
def test_every_run_ends_with_one_final_state_for_every_node(
    workflow: Workflow, policies: RunPolicies, data: st.DataObject
) -> None:
    world = World(workflow, policies)
    drive(world, data)

    assert world.root is not None
    assert world.rows.keys() == {node.id for node in workflow.nodes}
    assert all(row.state in FINAL for row in world.rows.values())
    assert world.root.state in expected_end(world)
    may_fall_back = policies.failure.mode is FailureMode.FALLBACK
    stopped = world.is_stopped() or policies.failure.mode is FailureMode.HALT
    for node in workflow.nodes:
        assert world.births[node.id] <= 1 + may_fall_back
        assert world.rows[node.id].attempt <= 1 + (node.retry_policy or policies.retry).max_retries
        if world.births[node.id]:
            assert should_start(world, node.id)
        else:
            assert stopped or not should_start(world, node.id)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(workflow=workflows(), data=st.data())
def test_the_order_in_which_steps_end_does_not_change_how_the_run_ends(workflow: Workflow, data: st.DataObject) -> None:
    ends = st.sampled_from([move for move in MOVES[S.RUNNING] if move.state in FINAL])
    fate = {node.id: data.draw(ends) for node in workflow.nodes}
    finals = []
    for _ in range(2):
        world = World(workflow, RunPolicies(retry=RetryPolicy(max_retries=1)))
        while world.root is None:
            live = sorted(row.node_id for row in world.rows.values() if row.state not in FINAL)
            row = world.rows[data.draw(st.sampled_from(live))]
            move = fate[row.node_id] if row.state is S.RUNNING else MOVES[row.state][0]
            world.make(row, move)
        finals.append((world.root, {row.node_id: (row.state, row.cause) for row in world.rows.values()}))
    assert finals[0] == finals[1]
