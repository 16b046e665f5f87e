"""What is read to answer for a run: its steps in order, the newest question about it, and the events of all."""

from __future__ import annotations

import json
from typing import Any

import pytest
from run_rows import add_approval, add_event, add_run, add_step

from horarium.core.document.states import RunState
from horarium.features.approvals.rows import approved_gates, newest_approvals, outcomes
from horarium.features.runs import merged_event_rows
from horarium.features.runs.merged_event_rows import EventPlace
from horarium.features.runs.rows import StepRow, steps_of, steps_that_fit
from horarium.platform.database import Database
from horarium.platform.database.statements import MAX_PAGE_BYTES
from horarium.platform.database.tables import workflows

NOTHING = {"kind": "http", "url": "https://example.com"}
NODES = [
    {"id": "send", "needs": ["write"], "action": NOTHING},
    {"id": "fetch", "action": NOTHING},
    {"id": "write", "needs": ["fetch"], "action": NOTHING},
]


def put(database: Database, nodes: list[dict[str, Any]]) -> None:
    document = json.dumps({"workflow_id": "brief", "nodes": nodes})
    row = {"namespace": "default", "workflow_id": "brief", "version": 1, "document": document, "created_at": 1}
    database.write(lambda c: c.execute(workflows.insert().values(**row)))


def steps(database: Database, run_id: bytes) -> list[StepRow]:
    found = database.read(lambda c: steps_of(c, run_id, "default", "brief", 1))
    return [step for step in found if isinstance(step, StepRow)]


def test_steps_come_after_those_they_need_and_a_fallback_after_what_failed(database: Database) -> None:
    put(database, NODES)
    root = add_run(database, workflow="brief", workflow_version=1)
    for node in ("send", "write"):
        add_step(database, root, node, state="skipped", cause="upstream_failed")
    add_step(database, root, "fetch", fallback=True, state="running", assignee="b", assignee_type="agent")
    add_step(database, root, "fetch", state="failed", error="no" * 1_000, error_class="timeout", attempt=2)
    add_step(database, add_run(database), "fetch")
    found = steps(database, root)
    assert [(step.node_id, step.fallback) for step in found] == [
        ("fetch", False), ("fetch", True), ("write", False), ("send", False),
    ]  # fmt: skip
    assert (found[0].state, found[0].attempt, found[0].error_class) == (RunState.FAILED, 2, "timeout")
    assert len(found[0].error or "") == 1_000
    assert (found[1].assignee, found[3].cause) == ("b", "upstream_failed")


def test_steps_of_a_workflow_that_is_gone_come_in_the_order_of_their_birth(database: Database) -> None:
    root = add_run(database)
    for node in "ba":
        add_step(database, root, node)
    assert [step.node_id for step in steps(database, root)] == ["b", "a"]


def test_results_are_listed_as_far_as_they_fit(database: Database) -> None:
    root = add_run(database)
    large = json.dumps("x" * (MAX_PAGE_BYTES // 2))
    for node, result in {"a": large, "b": large, "c": '{"n":1}', "d": None, "e": large}.items():
        add_step(database, root, node, state="succeeded", result=result)
    found = {step.node_id: step for step in steps(database, root)}
    assert [name for name, step in found.items() if step.omitted] == ["b", "e"]
    assert len(found["a"].result) == MAX_PAGE_BYTES // 2
    assert (found["b"].result, found["c"].result, found["d"].result) == (None, {"n": 1}, None)


@pytest.mark.parametrize(
    ("sizes", "fit"),
    [
        ([], []),
        ([10], [True]),
        ([11], [False]),
        ([6, 5, 4, 1], [True, False, True, False]),
        ([0, 10, 0], [True, True, True]),
    ],
)
def test_what_fits_is_chosen_from_the_first_on(sizes: list[int], fit: list[bool]) -> None:
    assert steps_that_fit(sizes, 10) == fit


def test_the_newest_question_about_each_run_is_the_one_that_is_told(database: Database) -> None:
    first, second, unasked = (add_run(database) for _ in range(3))
    add_approval(database, first, decision="approved", decided_at=4, decider="ann")
    newest = add_approval(database, first, gates='["publish"]', requested_at=5, expires_at=9)
    refused = add_approval(database, second, decision="rejected", decided_at=3, decider="bob", reason="no")
    found = database.read(lambda c: newest_approvals(c, [first, second, unasked]))
    assert found.keys() == {first, second}
    asked = found[first]
    assert (asked.approval_id, asked.status, asked.gates, asked.expires_at) == (newest, "pending", ("publish",), 9)
    assert (found[second].decided_by, found[second].decided_at, found[second].reason) == ("bob", 3, "no")
    assert database.read(lambda c: newest_approvals(c, [])) == {}
    assert database.read(lambda c: outcomes(c, [refused, newest])) == {refused: "rejected", newest: "pending"}


def test_what_a_run_has_a_yes_for_is_told_of_it_and_of_no_other(database: Database) -> None:
    first, second = add_run(database), add_run(database)
    for run_id, decision, gates in (
        (first, "approved", ["spend"]), (first, "modified", ["publish"]), (first, "pending", ["delete"]),
        (second, "rejected", ["spend"]), (second, "approved", []),
    ):  # fmt: skip
        add_approval(database, run_id, decision=decision, gates=json.dumps(gates))
    assert database.read(lambda c: approved_gates(c, [first, second])) == {first: ("publish", "spend")}


def test_events_of_all_steps_are_merged_in_the_order_of_recording(database: Database) -> None:
    root = add_run(database)
    child = add_step(database, root, "sub", created_at=14)
    below = add_step(database, child, "c1", root=root, created_at=18)
    add_event(database, add_run(database), 1, 1)
    for run_id, sequence, at in ((root, 3, 10), (below, 2, 20), (child, 2, 15), (child, 3, 20), (root, 4, 30)):
        add_event(database, run_id, sequence, at)

    def told(run_id: bytes, is_root: bool, after: EventPlace | None = None, limit: int = 10) -> list[tuple[Any, ...]]:
        rows = database.read(
            lambda c: merged_event_rows.merged_events(c, run_id, is_root=is_root, after=after, limit=limit)
        )
        return [(row.node_id, row.sequence, row.recorded_at) for row in rows]

    everything = [
        (None, 3, 10),
        ("sub", 1, 14),
        ("sub", 2, 15),
        ("c1", 1, 18),
        ("sub", 3, 20),
        ("c1", 2, 20),
        (None, 4, 30),
    ]
    assert told(root, True) == everything
    assert told(root, True, EventPlace(20, child, 3), 1) == [("c1", 2, 20)]
    assert told(child, False) == [("sub", 2, 15), ("c1", 1, 18), ("sub", 3, 20), ("c1", 2, 20)]
    assert told(below, False) == [("c1", 2, 20)]
