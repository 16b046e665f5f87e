"""What a step is given: templates, pointers, defaults, and which results are read for it."""

from __future__ import annotations

from typing import Any

import pytest

from horarium.core.document.nodes import NothingFound, results_read, step_input
from horarium.core.document.workflow import Edge, Node, WorkflowDefinition
from horarium.core.document.workflow_steps import CompiledWorkflow
from horarium.errors import ConditionError

CONTEXT: dict[str, Any] = {
    "inputs": {"day": 7, "a/b": [1, 2]},
    "results": {"fetch": {"rows": [{"n": 1}, {"n": 2}]}, "empty": None},
    "run": {"run_id": "R", "attempt": 0},
}


def node(template: Any) -> Node:
    return Node("n", {}, input=template, has_input=True)


@pytest.mark.parametrize(
    ("template", "given"),
    [
        ({"$from": "/inputs/day"}, 7),
        ({"rows": {"$from": "/results/fetch/rows/1"}, "plain": [True]}, {"rows": {"n": 2}, "plain": [True]}),
        ([{"$from": "/run/run_id"}, {"x": {"$from": "/inputs/a~1b/0"}}], ["R", {"x": 1}]),
        ({"$from": "/results/empty"}, None),
        ({"$from": "/inputs/night", "default": {"$from": "as it is"}}, {"$from": "as it is"}),
        ({"$from": "/inputs/day", "default": 1}, 7),
        (None, None),
        ({"$from": ""}, CONTEXT),
    ],
)
def test_a_template_is_filled_in(template: Any, given: Any) -> None:
    assert step_input(node(template), CONTEXT) == given


def test_without_a_template_a_step_is_given_inputs_and_results() -> None:
    given = step_input(Node("n", {}), CONTEXT)
    assert given == {"inputs": CONTEXT["inputs"], "results": CONTEXT["results"]}


def test_a_pointer_that_finds_nothing_is_named() -> None:
    with pytest.raises(NothingFound, match="'/inputs/night' matches no value"):
        step_input(node({"deep": [{"$from": "/inputs/night"}]}), CONTEXT)
    with pytest.raises(ConditionError):
        step_input(node({"$from": "inputs"}), CONTEXT)


@pytest.mark.parametrize(
    ("template", "read"),
    [
        ({"a": {"$from": "/results/fetch/rows"}, "b": [{"$from": "/results/x~1y"}]}, {"fetch", "x/y"}),
        ({"a": {"$from": "/inputs/results"}}, set()),
        ({"a": {"$from": "/results"}}, None),
        ({"a": {"$from": ""}}, None),
    ],
)
def test_only_what_a_template_names_is_read(template: Any, read: set[str] | None) -> None:
    assert results_read(node(template)) == read


def test_a_step_without_a_template_reads_all_before_it() -> None:
    assert results_read(Node("n", {})) is None
    edges = (Edge("a", "b"), Edge("b", "d"), Edge("c", "d"), Edge("d", "e"))
    needs = {name: tuple(edge.source for edge in edges if edge.target == name) for name in "abcde"}
    compiled = CompiledWorkflow(
        WorkflowDefinition("w", 1, tuple(Node(name, {}, needs[name]) for name in "abcde"), edges)
    )
    assert compiled.ancestors(compiled.places["d"]) == {0, 1, 2}
    assert compiled.ancestors(0) == set()
