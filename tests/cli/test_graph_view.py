"""What is said of a workflow and of its steps in a drawing."""

from __future__ import annotations

from typing import Any

import pytest

from horarium.core.document.states import RunState
from horarium.features.workflows.graph_drawing import NOT_YET, SIGNS, drawn_workflow

BRIEF: dict[str, Any] = {
    "nodes": [
        {"id": "fetch", "action": {"kind": "http", "url": "https://example.com"}},
        {"id": "write", "needs": ["fetch"], "action": {"kind": "prompt"}, "assignee_type": "agent",
         "assignee_id": "writer"},
        {"id": "send", "needs": ["write"], "gates": ["external_message"], "action": {"kind": "http"}},
        {"id": "alert", "action": {"kind": "python", "task": "warn"}},
    ],
    "edges": [{"from": "fetch", "to": "alert", "condition": {"/result/rows": {"eq": 0}}}],
}  # fmt: skip


def texts(lines: list[str]) -> str:
    return " ".join(" ".join(lines).split())


def test_a_workflow_shows_what_each_node_does_and_what_its_edges_ask() -> None:
    told = texts(drawn_workflow(BRIEF, None, width=100, unicode=True))
    for said in ("http", "prompt", "by agent writer", "gates: external_message", "python warn"):
        assert said in told
    assert told.endswith('fetch → alert if {"/result/rows": {"eq": 0}}')


@pytest.mark.parametrize(
    ("step", "said"),
    [
        ({"state": "succeeded", "attempt": 0}, "✓ fetch │ │ succeeded"),
        ({"state": "failed", "attempt": 2, "error_class": "timeout"}, "✗ fetch │ │ failed (attempt 2) │ │ timeout"),
        ({"state": "skipped", "attempt": 0, "cause": "upstream_failed"}, "– fetch │ │ skipped │ │ upstream_failed"),
        ({"state": "awaiting_approval", "approval": {"gates": ["spend"]}}, "awaiting_approval │ │ for spend"),
        ({"state": "awaiting_approval", "attempt": 0, "approval": {"gates": []}}, "for approval"),
        ({"state": "a word of later", "attempt": 0}, "? fetch │ │ a word of later"),
        ({}, "fetch │ │ not started"),
    ],
    ids=lambda value: str(value.get("state")) if isinstance(value, dict) else "",
)  # fmt: skip
def test_a_step_has_a_sign_and_its_word(step: dict[str, Any], said: str) -> None:
    document = {"nodes": BRIEF["nodes"][:1]}
    assert said in texts(drawn_workflow(document, [{"node_id": "fetch", **step}], width=100, unicode=True))


def test_every_state_has_a_sign() -> None:
    assert set(SIGNS) == {*RunState, NOT_YET}
    assert all(plain.isascii() and len(plain) == len(sign) == 1 for sign, plain in SIGNS.values())


def test_without_unicode_everything_is_ascii() -> None:
    steps = [{"node_id": "fetch", "state": state} for state in RunState]
    for step in steps:
        assert "\n".join(drawn_workflow(BRIEF, [step], width=100, unicode=False)).isascii()


def test_what_others_wrote_cannot_move_the_cursor() -> None:
    hostile = {"nodes": [{"id": "a", "gates": ["\x1b[2J"], "action": {"kind": "x\n"}}],
               "edges": [{"from": "a", "to": "b", "condition": {"\x07": 1}}]}  # fmt: skip
    assert all(line.isprintable() for line in drawn_workflow(hostile, None, width=80, unicode=True))


def test_more_conditions_than_anybody_reads_are_counted() -> None:
    edges = [{"source": "a", "target": f"b{n}", "condition": {"/x": {"eq": "y" * 900}}} for n in range(60)]
    document = {
        "nodes": [{"id": "a", "action": {}}, *({"id": f"b{n}", "action": {}} for n in range(60))],
        "edges": edges,
    }
    lines = drawn_workflow(document, None, width=100, unicode=True)
    assert lines[-1] == "and 10 more conditions"
    assert max(map(len, lines)) < 300
