"""Workflows: a graph without cycles, read from either way of writing its edges."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from horarium.condition import compile_condition
from horarium.core.document.assignee import Assignee, AssigneeType
from horarium.core.document.workflow import (
    MAX_EDGES,
    MAX_NODES,
    MAX_TRIGGERS,
    Edge,
    Node,
    TriggerKind,
    WorkflowDefinition,
    WorkflowTrigger,
    edges_into,
    find_cycle,
    parse_workflow,
    template_schedule_id,
    topological_order,
)
from horarium.core.policy.approval import RetryCause
from horarium.errors import CycleDetected, InvalidWorkflow

ACTION = {"kind": "http", "url": "https://example.test/hook"}


def step(name: str, **more: object) -> dict[str, object]:
    return {"id": name, "action": ACTION, **more}


def document(*nodes: dict[str, object], **more: object) -> dict[str, object]:
    return {"workflow_id": "report", "nodes": list(nodes), **more}


def pairs(workflow: WorkflowDefinition) -> list[tuple[str, str]]:
    return [(edge.source, edge.target) for edge in workflow.edges]


# ── edges, in every spelling ──────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "source",
    [
        document(step("a"), step("b", needs=["a"])),
        document(step("a"), step("b", dependsOn=["a", "a"])),
        document(step("a"), step("b"), edges=[{"from": "a", "to": "b"}]),
        document(step("a"), step("b"), edges=[{"source": "a", "target": "b", "condition": None}]),
        document(step("a"), step("b", needs=["a"]), edges=[{"from": "a", "to": "b"}]),
    ],
    ids=["needs", "dependsOn", "from/to", "source/target", "both agree"],
)
def test_needs_and_edges_are_two_ways_to_say_the_same(source: dict[str, object]) -> None:
    workflow = parse_workflow(source)
    assert workflow.edges == (Edge("a", "b"),)
    assert [node.needs for node in workflow.nodes] == [(), ("a",)]


def test_edges_and_needs_of_different_nodes_unite() -> None:
    workflow = parse_workflow(
        document(step("a"), step("b"), step("c", needs=["a", "b"]), edges=[{"from": "b", "to": "c"}])
    )
    assert pairs(workflow) == [("b", "c"), ("a", "c")]
    assert workflow.nodes[2].needs == ("b", "a")


def test_a_condition_on_an_edge_is_compiled_and_wins_over_a_plain_need() -> None:
    condition = {"/status": {"eq": "completed"}}
    workflow = parse_workflow(
        document(step("a"), step("b", needs=["a"]), edges=[{"from": "a", "to": "b", "condition": condition}])
    )
    assert workflow.edges == (Edge("a", "b", compile_condition(condition)),)
    edge = workflow.edges[0]
    assert edge.condition is not None
    assert edge.condition.evaluate({"status": "completed"})
    assert not edge.condition.evaluate({"status": "failed"})


def test_the_edges_into_a_node_are_found_by_its_name() -> None:
    workflow = parse_workflow(document(step("a"), step("b", needs=["a"]), step("c", needs=["a", "b"])))
    assert edges_into(workflow) == {
        "a": (),
        "b": (Edge("a", "b"),),
        "c": (Edge("a", "c"), Edge("b", "c")),
    }
    assert topological_order([node.id for node in workflow.nodes], pairs(workflow)) == ("a", "b", "c")


# ── the whole document ────────────────────────────────────────────────────────────────────────────


def test_every_field_of_a_workflow_is_read_in_camel_case_too() -> None:
    workflow = parse_workflow(
        {
            "workflowId": "report",
            "version": 3,
            "name": "The report",
            "description": "Two lines\nof text",
            "owner": "ada",
            "nodes": [
                {
                    "nodeId": "write",
                    "name": "Write it",
                    "action": {"kind": "prompt", "prompt": "…"},
                    "gates": ["publish", "spend"],
                    "retryPolicy": {"maxRetries": 2, "retryOn": ["timeout"]},
                    "timeoutSeconds": 60,
                    "assigneeType": "team",
                    "assigneeId": "ops",
                }
            ],
        }
    )
    assert (workflow.workflow_id, workflow.version, workflow.owner) == ("report", 3, "ada")
    assert (workflow.name, workflow.description) == ("The report", "Two lines\nof text")
    (node,) = workflow.nodes
    assert (node.id, node.name, node.gates, node.timeout_seconds) == ("write", "Write it", ("publish", "spend"), 60)
    assert node.assignee == Assignee(AssigneeType.TEAM, "ops")
    assert node.retry_policy is not None
    assert (node.retry_policy.max_retries, node.retry_policy.retry_on) == (2, (RetryCause.TIMEOUT,))


def test_a_small_document_has_defaults() -> None:
    workflow = parse_workflow({"id": "report", "nodes": [step("a")]})
    assert workflow == WorkflowDefinition("report", 1, (Node("a", ACTION),))


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (None, "^nodes: must be an object"),
        ({"nodes": [step("a")]}, "^workflow_id: "),
        (document(), "^nodes: a workflow has at least one node"),
        (document(step("a"), version=0), "^version: "),
        (document(step("a"), version=True), "^version: "),
        (document(step("a"), version="latest"), "^version: "),
        (document(step("a"), name=""), "^name: "),
        (document(step("a"), owner=7), "^owner: "),
        (document(step("a"), description="x" * 10_001), "^description: "),
        (document(step("a"), description="\ud800"), "^description: .*surrogate"),
        (document(step("a"), colour="red"), "^colour: unknown key"),
        (document(step("a"), workflowId="again"), "^workflow_id: is specified twice"),
        ({"id": "report", "nodes": {"a": ACTION}}, "^nodes: must be an array"),
        (document(step("a"), edges="ab"), "^edges: must be an array"),
        (document(step("a"), step("a")), "^nodes.1.id: the ID 'a' is specified twice"),
        (document(step("a"), 5), "^nodes.1: must be an object"),  # type: ignore[arg-type]  # broken on purpose
        (document(step("a"), step("b", colour=1)), "^nodes.1.colour: unknown key"),
        (document(step("a b")), "^nodes.0.id: "),
        (document({"id": "a"}), "^nodes.0.action: must be an object"),
        (document({"id": "a", "action": {"n": float("nan")}}), "^nodes.0.action.n: NaN and infinite"),
        (document(step("a", needs="b")), "^nodes.0.needs: "),
        (document(step("a", needs=["b"])), "^nodes.0.needs: 'b' is not a node"),
        (document(step("a", gates=[1])), "^nodes.0.gates: "),
        (document(step("a", timeout_seconds=0)), "^nodes.0.timeout_seconds: "),
        (document(step("a", assignee_type="agent")), "^nodes.0.assignee_id: "),
        (document(step("a", retry=3)), "^nodes.0.retry_policy: must be an object"),
        (document(step("a", retry={"max_retries": -1})), "^nodes.0.retry_policy.max_retries: "),
        (document(step("a"), edges=[{"from": "a"}]), "^edges.0.to: "),
        (document(step("a"), edges=[{"from": "a", "to": "z"}]), "^edges.0.to: 'z' is not a node"),
        (document(step("a"), edges=[{"from": "a", "to": "a"}]), "^edges.0.from: the node 'a' cannot depend on itself"),
        (document(step("a", needs=["a"])), "^nodes.0.needs: the node 'a' cannot depend on itself"),
        (document(step("a"), edges=[{"from": "a", "to": "a", "if": 1}]), "^edges.0.if: unknown key"),
        (document(step("a"), step("b"), edges=[{"from": "a", "to": "b"}] * 2), "^edges.1: a → b is specified twice"),
        (
            document(step("a"), step("b"), edges=[{"from": "a", "to": "b", "condition": {"/x": {"in": 1}}}]),
            "^edges.0.condition: ",
        ),
    ],
)
def test_a_bad_document_is_refused_with_the_path(source: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidWorkflow, match=message):
        parse_workflow(source)


def test_a_cycle_is_refused_with_its_members_in_order() -> None:
    source = document(step("a"), step("b", needs=["a", "d"]), step("c", needs=["b"]), step("d", needs=["c"]))
    with pytest.raises(CycleDetected) as refused:
        parse_workflow(source)
    assert refused.value.nodes == ("b", "c", "d")
    assert find_cycle("ab", [("a", "b"), ("b", "a")]) == ("a", "b")


# ── built by hand ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("nodes", "edges", "message"),
    [
        ((), (), "at least one node"),
        ((Node("a", {}), Node("b", {}, needs=("a",))), (), "the needs of 'b' do not match the edges"),
        ((Node("a", {}), Node("b", {})), (Edge("a", "b"),), "the needs of 'b' do not match the edges"),
        ((Node("a", {}, needs=("z",)),), (Edge("z", "a"),), "references 'z'"),
    ],
    ids=["empty", "needs without edge", "edge without needs", "unknown node"],
)
def test_a_workflow_is_valid_by_construction(nodes: tuple[Node, ...], edges: tuple[Edge, ...], message: str) -> None:
    with pytest.raises(InvalidWorkflow, match=message):
        WorkflowDefinition("report", 1, nodes, edges)


def test_versions_are_counted_from_one() -> None:
    with pytest.raises(InvalidWorkflow, match="version"):
        replace(parse_workflow(document(step("a"))), version=0)


# ── bounds ────────────────────────────────────────────────────────────────────────────────────────


def test_a_chain_of_a_thousand_nodes_is_read() -> None:
    nodes = [step("n0"), *(step(f"n{n}", needs=[f"n{n - 1}"]) for n in range(1, MAX_NODES))]
    workflow = parse_workflow(document(*nodes))
    assert len(workflow.edges) == MAX_NODES - 1
    nodes[0]["needs"] = [f"n{MAX_NODES - 1}"]
    with pytest.raises(CycleDetected) as refused:
        parse_workflow(document(*nodes))
    assert len(refused.value.nodes) == MAX_NODES


NAMES = [f"n{n}" for n in range(150)]
ALL_TO_ALL = [{"from": a, "to": b} for position, a in enumerate(NAMES) for b in NAMES[position + 1 :]]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (document(*[step("a")] * (MAX_NODES + 1)), "^nodes: 1001 nodes"),
        (document(step("a"), edges=[{"from": "a", "to": "b"}] * (MAX_EDGES + 1)), "^edges: 10001 edges"),
        (document(step("a"), triggers=[{}] * (MAX_TRIGGERS + 1)), "^triggers: 101 triggers"),
        (document(*(step(name, needs=NAMES) for name in NAMES)), "^nodes: has more than 10000 needs"),
        (document(*map(step, NAMES), edges=ALL_TO_ALL), "^edges: 11175 edges"),
    ],
    ids=["nodes", "edges", "triggers", "needs", "dense"],
)
def test_a_workflow_that_is_too_large_is_refused(source: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidWorkflow, match=message):
        parse_workflow(source)


def test_edges_and_needs_together_are_bounded_too() -> None:
    half = [{"from": edge["from"], "to": edge["to"]} for edge in ALL_TO_ALL[:6_000]]
    needs: dict[str, list[str]] = {}
    for edge in ALL_TO_ALL[6_000:]:
        needs.setdefault(edge["to"], []).append(edge["from"])
    nodes = [step(name, needs=needs.get(name, [])) for name in NAMES]
    with pytest.raises(InvalidWorkflow, match=r"^edges: 11175 edges; at most 10000 are allowed"):
        parse_workflow(document(*nodes, edges=half))


def deep(levels: int) -> dict[str, object]:
    value: dict[str, object] = {}
    for _ in range(levels):
        value = {"in": value}
    return value


@pytest.mark.parametrize(
    "source",
    [
        document(step("a" * 10_000)),
        document(step("\ud800")),
        document({"id": "a", "action": deep(50_000)}),
        document(step("a", needs=["\x00" * 10_000])),
        document(step("a"), **{"k" * 10_000: 1}),
        document(step("a"), version=10**6_000),
        document(step("a"), triggers=[{"type": "x" * 10_000}]),
        document(step("a"), triggers=[{"schedule": {}, "k" * 10_000: 1}]),
        document(step("a"), edges=[{"from": {}, "to": []}]),
    ],
    ids=["long id", "surrogate", "deep", "NULs", "long key", "huge version", "type", "trigger key", "objects as ids"],
)
def test_hostile_documents_are_refused_briefly_and_quickly(source: dict[str, object]) -> None:
    best = 1.0
    for _ in range(3):
        started = time.process_time()
        with pytest.raises(InvalidWorkflow) as refused:
            parse_workflow(source)
        best = min(best, time.process_time() - started)
    assert best < 0.01
    assert len(refused.value.message) < 400


# ── triggers ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("source", "trigger"),
    [
        (
            {"key": "nightly", "type": "schedule", "schedule": {"cron_expr": "0 2 * * *"}},
            WorkflowTrigger("nightly", TriggerKind.SCHEDULE, {"cron_expr": "0 2 * * *"}),
        ),
        (
            {"type": "schedule_based", "cron_expr": "0 2 * * *", "timezone": "UTC"},
            WorkflowTrigger("0", TriggerKind.SCHEDULE, {"cron_expr": "0 2 * * *", "timezone": "UTC"}),
        ),
        ({"cron_expr": "0 2 * * *"}, WorkflowTrigger("0", TriggerKind.SCHEDULE, {"cron_expr": "0 2 * * *"})),
        ({"type": "webhook", "path": "/in"}, WorkflowTrigger("0", TriggerKind.WEBHOOK, {"path": "/in"})),
        ({"type": "event_based"}, WorkflowTrigger("0", TriggerKind.EVENT, {})),
    ],
    ids=["nested", "flat", "no type", "webhook", "event"],
)
def test_a_trigger_is_read_nested_or_flat(source: dict[str, object], trigger: WorkflowTrigger) -> None:
    assert parse_workflow(document(step("a"), triggers=[source])).triggers == (trigger,)


@pytest.mark.parametrize(
    ("triggers", "message"),
    [
        ([5], "^triggers.0: must be an object"),
        ([{}, {"type": "tide"}], "^triggers.1.type: must be one of"),
        ([{"key": "a:b"}], "^triggers.0.key: "),
        ([{"key": 5}], "^triggers.0.key: "),
        ([{"schedule": 5}], "^triggers.0.schedule: must be an object"),
        ([{"schedule": {}, "cron_expr": "@daily"}], "^triggers.0.cron_expr: unknown key; move it"),
        ([{"key": "1"}, {}], "^triggers.1.key: the key '1' is specified twice"),
    ],
)
def test_a_bad_trigger_is_refused_with_the_path(triggers: list[object], message: str) -> None:
    with pytest.raises(InvalidWorkflow, match=message):
        parse_workflow(document(step("a"), triggers=triggers))


def test_every_trigger_kind_is_read_by_its_name() -> None:
    for kind in TriggerKind:
        workflow = parse_workflow(document(step("a"), triggers=[{"type": kind.value}]))
        assert workflow.triggers[0].kind is kind


def test_a_template_schedule_has_the_same_id_at_every_put() -> None:
    assert template_schedule_id("report", "nightly") == "workflow:report:nightly"
    assert template_schedule_id("report", 0) == "workflow:report:0"


def test_a_template_schedule_id_is_never_longer_than_an_id_may_be() -> None:
    long = "w" * 128
    ids = {template_schedule_id(long, key) for key in ("a", "b", "k" * 64)}
    assert len(ids) == 3
    assert all(len(schedule_id) <= 128 for schedule_id in ids)
    assert len(template_schedule_id("w" * 116, "ab")) == 128
    assert template_schedule_id("w" * 116, "ab").endswith(":ab")
