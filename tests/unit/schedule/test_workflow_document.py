"""The canonical document of a workflow: what means the same is written alike, and read back as it was."""

from __future__ import annotations

import time
from typing import Any

import pytest

from horarium.core.document.reader import SHIPPED
from horarium.core.document.stored_workflow import (
    MAX_DEPTH,
    NodeOrder,
    StoredUses,
    SubWorkflow,
    WorkflowUse,
    check_sub_workflows,
    graph_of,
    sub_workflows,
    workflow_document,
)
from horarium.core.document.workflow import MAX_NODES, WorkflowDefinition, WorkflowTrigger, parse_workflow
from horarium.errors import CycleDetected, InvalidWorkflow

CALL = {"kind": "http", "url": "https://example.test/hook"}
WHOLE: dict[str, Any] = {
    "name": "Daily brief",
    "description": "Two lines\nof text",
    "owner": "ada",
    "approvalPolicy": {"requiresApproval": True, "gates": ["spend", "publish"]},
    "task_queue": "briefs",
    "connection": "news",
    "nodes": [
        {"id": "fetch", "action": {"url": CALL["url"]}, "retry": {"max_retries": 2, "backoff_ms": 100}},
        {
            "id": "write",
            "name": "Write it",
            "needs": ["fetch"],
            "action": {"prompt": "Summarise", "input": {"rows": {"$from": "/results/fetch/rows", "default": []}}},
            "assignee_type": "agent",
            "assignee_id": "writer",
            "timeout": 120,
        },
        {"id": "alert", "action": {"kind": "pull", "workflow_type": "alert"}},
        {"id": "part", "action": {"workflow_id": "other", "version": 3}, "input": {"day": {"$from": "/run/nominal"}}},
        {"id": "send", "depends_on": ["write"], "gates": ["external_message"], "action": CALL},
    ],
    "edges": [
        {"source": "fetch", "target": "alert", "condition": {"/result/rows": {"eq": 0}}},
        {"from": "alert", "to": "send"},
    ],
    "triggers": [{"key": "nightly", "schedule": {"cron_expr": "0 2 * * *"}}, {"type": "webhook", "path": "/in"}],
}


def read(document: dict[str, Any], **more: Any) -> WorkflowDefinition:
    return parse_workflow({"workflow_id": "brief", **document, **more}, kinds=SHIPPED)


def problems(document: dict[str, Any]) -> dict[str, list[str]]:
    with pytest.raises(InvalidWorkflow) as refused:
        read(document)
    return refused.value.errors


def test_what_is_written_is_read_back_as_it_was() -> None:
    workflow = read(WHOLE)
    written = workflow_document(workflow)
    assert read(written) == workflow
    assert parse_workflow({"workflow_id": "brief", **written}) == workflow
    assert workflow_document(read(written)) == written
    assert written["approval_policy"] == {"requires_approval": True, "gates": ["publish", "spend"]}
    assert (written["queue"], written["connection"]) == ("briefs", "news")


def test_a_plain_edge_is_written_as_a_need_and_a_guessed_kind_in_full() -> None:
    nodes = {node["id"]: node for node in workflow_document(read(WHOLE))["nodes"]}
    assert nodes["send"]["needs"] == ["alert", "write"]
    assert nodes["fetch"]["action"] == {**CALL, "method": "POST"}
    assert nodes["write"]["action"] == {"kind": "prompt", "prompt": "Summarise"}
    assert nodes["write"]["input"] == {"rows": {"$from": "/results/fetch/rows", "default": []}}
    # The queue of the workflow is for those that name none; it is not made the node's own.
    assert nodes["alert"]["action"] == {"kind": "pull", "workflow_type": "alert"}


def test_the_graph_tells_order_and_both_ends() -> None:
    order = ("fetch", "write", "alert", "part", "send")
    assert graph_of(read(WHOLE)) == NodeOrder(order, ("fetch", "part"), ("part", "send"))


def test_sub_workflows_are_named_with_their_version() -> None:
    assert sub_workflows(read(WHOLE)) == (SubWorkflow("nodes.3.action", "other", 3),)


# ── all that is wrong, at once ────────────────────────────────────────────────────────────────────


def test_every_problem_is_told_under_its_path() -> None:
    found = problems(
        {
            "name": 5,
            "colour": "red",
            "approval_policy": {"mode": "sometimes", "requires_approval": "yes"},
            "nodes": [
                {"id": "a", "action": {"kind": "http", "url": "nowhere", "prompt": "x"}, "needs": ["d", "ghost"]},
                {"id": "b", "action": {"kind": "sorcery"}, "needs": ["a"], "timeout_seconds": 0},
                {"id": "b", "action": CALL, "retry_policy": {"max_retries": -1, "backoff_ms": "x"}},
                {"id": "d", "action": CALL, "needs": ["b"], "input": {"x": [{"$from": "/results/ghost/x"}]}},
                "no node",
            ],
            "edges": [{"from": "a", "to": "nobody"}, {"from": "a"}],
            "triggers": [{"key": "a:b"}, {"type": "tide"}],
        }
    )
    assert set(found) == {
        *("name", "colour", "approval_policy.mode", "approval_policy.requires_approval"),
        *("nodes.0.action.url", "nodes.0.action.prompt", "nodes.0.needs"),
        *("nodes.1.action.kind", "nodes.1.timeout_seconds"),
        *("nodes.2.id", "nodes.2.retry_policy.max_retries", "nodes.2.retry_policy.backoff_ms"),
        *("nodes.3.input.x.0", "nodes.4", "edges.0.to", "edges.1.to", "edges"),
        *("triggers.0.key", "triggers.1.type"),
    }
    assert "cycle" in found["edges"][0]


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ({"$from": "/results/after/x"}, "'after', which does not run before 'here'"),
        ({"$from": "/results/here/x"}, "'here', which does not run before 'here'"),
        ({"$from": "/results/ghost"}, "'ghost', which is not a node"),
        ({"$from": "/secrets/x"}, "must begin with /inputs, /results or /run"),
        ({"$from": ""}, "must begin with"),
        ({"$from": "/run/colour"}, "does not exist; /run has run_id"),
        ({"$from": "inputs"}, 'starts with "/"'),
        ({"$from": "/inputs/~2"}, "must be written"),
        ({"$from": 5}, "must be a JSON pointer"),
        ({"$from": "/inputs/a", "otherwise": 1}, "unknown key 'otherwise'"),
    ],
)
def test_a_pointer_to_what_cannot_be_there_is_refused(template: object, message: str) -> None:
    nodes = [
        {"id": "before", "action": CALL},
        {"id": "here", "needs": ["before"], "action": CALL, "input": {"deep": [{"in": template}]}},
        {"id": "after", "needs": ["here"], "action": CALL},
    ]
    [(path, [said])] = problems({"nodes": nodes}).items()
    assert (path, message in said) == ("nodes.1.input.deep.0.in", True), said


@pytest.mark.parametrize(
    "template",
    [
        {"$from": "/results/before"},
        {"$from": "/results/before/a~1b/0", "default": {"$from": "data"}},
        {"$from": "/results"},
        {"$from": "/inputs"},
        {"$from": "/run/schedule_id"},
        {"from": "/anything"},
        [1, "two", None],
    ],
)
def test_a_pointer_to_what_is_known_by_then_is_good(template: object) -> None:
    nodes = [
        {"id": "before", "action": CALL},
        {"id": "between", "needs": ["before"], "action": CALL},
        {"id": "here", "needs": ["between"], "action": CALL, "input": {"value": template}},
    ]
    assert read({"nodes": nodes}).nodes[2].input == {"value": template}


@pytest.mark.parametrize(
    ("node", "path", "message"),
    [
        ({"action": {**CALL, "input": [1]}, "input": {"a": 1}}, "action.input", "send only one of them"),
        ({"action": {"kind": "command", "command": "x"}, "input": [1]}, "input", "at most 1000 strings"),
        ({"action": CALL, "input": "text"}, "input", "must be an array or an object"),
        ({"action": {"kind": "python", "task": "t"}, "input": {"$secret": "x"}}, "input", "references a secret"),
        ({"action": {**CALL, "headers": {"X": {"$secret": "a b"}}}}, "action.headers", "not a valid secret reference"),
        ({"action": {"kind": "pull", "workflow_type": "t"}}, "action.queue", "is required"),
        ({"action": None}, "action", "is required"),
        ({"action": []}, "action", "is required"),
        ({"action": {"workflow_id": "w", "version": 0}}, "action.version", ""),
    ],
)
def test_what_a_node_does_is_read_as_the_action_of_a_schedule_is(node: dict[str, Any], path: str, message: str) -> None:
    found = problems({"nodes": [{"id": "a", **node}]})
    [(where, [said])] = found.items()
    assert where.startswith(f"nodes.0.{path}"), found
    assert message in said


def test_the_schedule_of_a_trigger_is_checked_by_whoever_knows_schedules() -> None:
    def wrong(trigger: WorkflowTrigger) -> dict[str, list[str]]:
        return {} if "good" in trigger.settings else {"spec.timezone": [f"{trigger.key} is nowhere"], "": ["no"]}

    triggers = [{"schedule": {"good": 1}}, {"key": "k", "schedule": {}}, {"bad": 1}, {"type": "event"}]
    with pytest.raises(InvalidWorkflow) as refused:
        parse_workflow({"id": "w", "nodes": [{"id": "a", "action": CALL}], "triggers": triggers}, check_trigger=wrong)
    assert refused.value.errors == {
        "triggers.1.schedule.spec.timezone": ["k is nowhere"],
        "triggers.1.schedule": ["no"],
        "triggers.2.spec.timezone": ["2 is nowhere"],
        "triggers.2": ["no"],
    }


@pytest.mark.repeats
def _chained(count: int) -> list[dict[str, Any]]:
    names = [f"n{n}" for n in range(count)]
    return [
        {
            "id": name,
            "action": {**CALL, "headers": {"X-Node": name}},
            "needs": names[max(0, place - 10) : place],
            "input": {"all": [{"$from": f"/results/{each}/rows"} for each in names[max(0, place - 3) : place]]},
        }
        for place, name in enumerate(names)
    ]


def test_a_thousand_nodes_cost_what_they_are_and_not_their_square() -> None:
    spent = {}
    for count in (MAX_NODES // 10, MAX_NODES):
        nodes, tries = _chained(count), []
        for _ in range(3):
            started = time.process_time()
            workflow = read({"nodes": nodes})
            tries.append(time.process_time() - started)
        assert len(workflow_document(workflow)["nodes"]) == count
        spent[count] = min(tries)
    assert spent[MAX_NODES] < 40 * spent[MAX_NODES // 10]  # ten times as many; their square would be a hundred


# ── workflows of workflows ────────────────────────────────────────────────────────────────────────


def uses(*names: str) -> tuple[WorkflowUse, ...]:
    return tuple(WorkflowUse(name, None) for name in names)


def subs(*names: str) -> list[SubWorkflow]:
    return [SubWorkflow(f"nodes.{place}.action", name, None) for place, name in enumerate(names)]


def chain(length: int) -> dict[WorkflowUse, StoredUses]:
    """c0 → c1 → …: so many of them."""
    return {
        WorkflowUse(f"c{n}", None): StoredUses(1, uses(f"c{n + 1}") if n + 1 < length else ()) for n in range(length)
    }


def test_a_workflow_that_comes_back_to_itself_is_refused() -> None:
    known = {WorkflowUse("b", None): StoredUses(2, uses("c", "task")), WorkflowUse("c", None): StoredUses(1, uses("a"))}
    with pytest.raises(CycleDetected) as refused:
        check_sub_workflows(WorkflowUse("a", 7), subs("task", "b"), known)
    assert (refused.value.nodes, list(refused.value.errors)) == (("a", "b", "c"), ["nodes.1.action"])
    with pytest.raises(CycleDetected):
        check_sub_workflows(WorkflowUse("a", 1), subs("a"), {})


def test_an_older_version_of_itself_is_no_cycle() -> None:
    known = {WorkflowUse("b", None): StoredUses(2, (WorkflowUse("a", 1),)), WorkflowUse("a", 1): StoredUses(1, ())}
    check_sub_workflows(WorkflowUse("a", 2), subs("b"), known)


def test_workflows_may_be_eight_levels_deep() -> None:
    check_sub_workflows(WorkflowUse("a", 1), subs("c0"), chain(MAX_DEPTH))
    with pytest.raises(InvalidWorkflow) as refused:
        check_sub_workflows(WorkflowUse("a", 1), subs("nobody", "c0"), chain(MAX_DEPTH + 1))
    assert refused.value.errors == {"nodes.1.action": ["nests workflows 9 levels deep; at most 8 are allowed"]}


def test_many_ways_to_the_same_workflows_are_walked_once() -> None:
    """Seven layers of twenty that all name all of the next: more ways than anybody could count one by one."""
    layers = [[f"l{layer}-{n}" for n in range(20)] for layer in range(MAX_DEPTH)]
    known = {
        WorkflowUse(name, None): StoredUses(1, uses(*following))
        for layer, following in zip(layers, [*layers[1:], []], strict=True)
        for name in layer
    }
    check_sub_workflows(WorkflowUse("a", 1), subs(*layers[0]), known)
