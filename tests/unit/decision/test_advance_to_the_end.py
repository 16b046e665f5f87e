"""Whole runs, drawn at random: whatever order things happen in, all nodes end, and as the rules say."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st
from unit.decision.workflows import S

from horarium.condition import compile_condition
from horarium.core.decision.advance import Advance, ResultsNeeded, StepFact, WorkflowRunFacts, advance, is_over
from horarium.core.document.states import RunState
from horarium.core.document.workflow import Edge, Node, WorkflowDefinition
from horarium.core.document.workflow_steps import CompiledWorkflow
from horarium.core.policy.approval import FailureMode, FailurePolicy

CONDITION = compile_condition({"/result": {"eq": "yes"}})
ENDS = (S.SUCCEEDED, S.SUCCEEDED, S.SUCCEEDED, S.FAILED, S.REJECTED, S.UNKNOWN, S.CANCELLED)


@st.composite
def workflows(draw: st.DrawFn) -> CompiledWorkflow:
    names = [f"n{place}" for place in range(draw(st.integers(1, 9)))]
    edges = []
    for place, target in enumerate(names):
        for source in draw(st.lists(st.sampled_from(names[:place]), unique=True, max_size=3)) if place else ():
            condition = draw(st.sampled_from([None, None, CONDITION, compile_condition({})]))
            edges.append(Edge(source, target, condition))
    needs = {name: tuple(edge.source for edge in edges if edge.target == name) for name in names}
    # The order of a document says nothing about what comes first.
    listed = draw(st.permutations([Node(name, {}, needs[name]) for name in names]))
    return CompiledWorkflow(WorkflowDefinition("w", 1, tuple(listed), tuple(edges)))


class Run:
    """The letters of one run, and what each step will come to."""

    def __init__(
        self, workflow: CompiledWorkflow, about: WorkflowRunFacts, fate: dict[str, tuple[RunState, str]]
    ) -> None:
        self.workflow, self.about, self.fate = workflow, about, fate
        self.open: dict[str, bool] = {}
        self.births: Counter[str] = Counter()
        self.progress = self._take(None, []).progress

    def end(self, names: list[str]) -> None:
        facts = [StepFact(name, self.fate[name][0], fallback=self.open.pop(name)) for name in names]
        self.progress = self._take(self.progress, facts).progress

    def stop(self) -> None:
        self.about = WorkflowRunFacts(self.about.failure, cancel_requested=True)
        self.progress = self._take(self.progress, []).progress

    def _take(self, progress: str | None, facts: list[StepFact]) -> Advance:
        known: dict[str, str] = {}
        answer = advance(self.workflow, progress, facts, self.about, known)
        while isinstance(answer, ResultsNeeded):
            assert not answer.node_ids <= known.keys(), "it asks for what it was given"
            known |= {name: self.fate[name][1] for name in answer.node_ids}
            answer = advance(self.workflow, progress, facts, self.about, known)
        for birth in answer.births:
            assert birth.node_id not in self.open
            self.open[birth.node_id] = birth.fallback_to is not None
            self.births[birth.node_id] += 1
        assert answer.is_over == is_over(answer.progress)
        again = advance(self.workflow, answer.progress, facts, self.about, known)
        assert isinstance(again, Advance)
        assert (again.births, again.skips, again.progress) == ((), (), answer.progress), "the same facts gave more"
        return answer


def expected(run: Run) -> str:
    """Every node in turn, by the join rule told once more: the full pass that `advance` never makes."""
    letters: dict[str, str] = {}
    for name in run.workflow.order:
        edges = [edge for edge in run.workflow.workflow.edges if edge.target == name]
        done = {edge.source for edge in edges if letters[edge.source] == "s"}
        conditional = [edge for edge in edges if edge.condition is not None]
        holding = [
            each
            for each in conditional
            if each.source in done and (each.condition != CONDITION or run.fate[each.source][1] == "yes")
        ]
        starts = all(edge.source in done or edge in conditional for edge in edges) and (holding or not conditional)
        state = run.fate[name][0]
        ended = "s" if state is S.SUCCEEDED else "c" if state is S.CANCELLED else "f"
        letters[name] = ended if starts else "k"
    return "".join(letters[node.id] for node in run.workflow.nodes)


def drive(run: Run, data: st.DataObject) -> None:
    for _ in range(50):
        if not run.open:
            break
        some = data.draw(st.lists(st.sampled_from(sorted(run.open)), min_size=1, max_size=3, unique=True))
        run.end(some)
    assert is_over(run.progress), "nothing can move and the run has not ended"


def fates(workflow: CompiledWorkflow, data: st.DataObject) -> dict[str, tuple[RunState, str]]:
    drawn = st.tuples(st.sampled_from(ENDS), st.sampled_from(["yes", "no"]))
    return {node.id: data.draw(drawn) for node in workflow.nodes}


@settings(max_examples=200, deadline=None, derandomize=True)
@given(workflow=workflows(), data=st.data())
def test_in_whatever_order_steps_end_the_run_comes_to_what_a_full_pass_says(
    workflow: CompiledWorkflow, data: st.DataObject
) -> None:
    run = Run(workflow, WorkflowRunFacts(), fates(workflow, data))
    drive(run, data)
    assert run.progress == expected(run)
    assert max(run.births.values()) == 1


@settings(max_examples=150, deadline=None, derandomize=True)
@given(workflow=workflows(), mode=st.sampled_from([*FailureMode]), data=st.data())
def test_a_run_that_is_halted_stopped_or_reassigned_ends_too(
    workflow: CompiledWorkflow, mode: FailureMode, data: st.DataObject
) -> None:
    run = Run(workflow, WorkflowRunFacts(FailurePolicy(mode, "spare")), fates(workflow, data))
    early = data.draw(st.booleans())
    if run.open and early:
        run.end([min(run.open)])
    if data.draw(st.booleans()):
        run.stop()
    drive(run, data)
    assert len(run.progress) == len(workflow.nodes)
    assert max(run.births.values(), default=0) <= 1 + (mode is FailureMode.FALLBACK)
