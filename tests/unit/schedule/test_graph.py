"""Graphs: one cycle is found and shown in order, or the nodes are put in an order that works."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from horarium.core.document.workflow_parts import components, find_cycle, topological_order
from horarium.errors import CycleDetected


def pairs(text: str) -> list[tuple[str, str]]:
    return [(word[0], word[1]) for word in text.split()]


@pytest.mark.parametrize(
    ("edges", "cycle"),
    [
        ("", None),
        ("ab bc cd", None),
        ("ab ac bd cd", None),
        ("aa", ("a",)),
        ("ab ba", ("a", "b")),
        ("ab bc cb cd", ("b", "c")),
        ("ab cd dc", ("c", "d")),
        ("ab bc ca", ("a", "b", "c")),
        ("ad ab bc ca", ("a", "b", "c")),
    ],
    ids=["no edge", "chain", "diamond", "self", "two", "tail and head", "apart", "ring", "a dead end first"],
)
def test_a_cycle_is_its_members_in_order_and_nothing_else(edges: str, cycle: tuple[str, ...] | None) -> None:
    assert find_cycle("abcd", pairs(edges)) == cycle


@pytest.mark.parametrize(
    ("nodes", "edges", "order"),
    [
        ("abcd", "", "abcd"),
        ("dcba", "", "dcba"),
        ("abcd", "dc cb ba", "dcba"),
        ("abcd", "ac bc cd", "abcd"),
        ("cabd", "ac", "acbd"),
        ("ab", "ab bz", "abz"),
    ],
    ids=["as given", "as given, reversed", "backwards", "join", "freed nodes keep their place", "unlisted node"],
)
def test_the_order_respects_edges_and_then_the_order_given(nodes: str, edges: str, order: str) -> None:
    assert "".join(topological_order(nodes, pairs(edges))) == order


def test_a_cycle_has_no_order() -> None:
    with pytest.raises(CycleDetected) as refused:
        topological_order("abcd", pairs("ab bc cb"))
    assert refused.value.nodes == ("b", "c")


NODES = "abcdefg"


@settings(derandomize=True, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(NODES), st.sampled_from(NODES)), max_size=14))
def test_a_graph_has_either_a_cycle_or_an_order(edges: list[tuple[str, str]]) -> None:
    cycle = find_cycle(NODES, edges)
    if cycle is None:
        order = topological_order(NODES, edges)
        assert sorted(order) == sorted(NODES)
        assert all(order.index(before) < order.index(after) for before, after in edges)
    else:
        assert len(set(cycle)) == len(cycle)
        assert all(step in edges for step in zip(cycle, cycle[1:] + cycle[:1], strict=True))
        with pytest.raises(CycleDetected):
            topological_order(NODES, edges)


@settings(derandomize=True, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(NODES), st.sampled_from(NODES)), max_size=14))
def test_components_are_nodes_that_reach_each_other_in_the_order_of_their_edges(edges: list[tuple[str, str]]) -> None:
    reached = {name: {name} for name in NODES}
    for _ in NODES:
        for source, target in edges:
            for each in reached.values():
                each |= {target} if source in each else set()
    found = list(components(NODES, edges))
    assert sorted(name for members in found for name in members) == sorted(NODES)
    for members in found:
        for name in members:
            assert {other for other in reached[name] if name in reached[other]} == {*members}
    place = {name: index for index, members in enumerate(found) for name in members}
    assert all(place[source] <= place[target] for source, target in edges)


def test_long_chains_and_dense_graphs_are_quick_and_do_not_overflow() -> None:
    names = [f"n{n}" for n in range(20_000)]
    chain = list(pairwise(names))
    assert find_cycle(names, chain) is None
    assert find_cycle(names, [*chain, (names[-1], names[0])]) == tuple(names)
    assert topological_order(reversed(names), chain) == tuple(names)
    assert [len(each) for each in components(names, [*chain, (names[-1], names[0])])] == [len(names)]
    some = names[:140]
    dense = [(a, b) for position, a in enumerate(some) for b in some[position + 1 :]]
    started = time.process_time()
    assert find_cycle(some, dense) is None
    assert time.process_time() - started < 1
