"""The drawing of a workflow, with the states of a run.

A state has a sign and a word, because colours alone are not accessible.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from horarium.cli.graph_drawing import DrawnNode, draw_graph
from horarium.cli.present import compact, printable
from horarium.core.document.states import RunState, attempt_number

_NARROWEST, _MOST_CONDITIONS, _MAX_CONDITION = 40, 50, 200
NOT_YET = "not started"

SIGNS: Mapping[str, tuple[str, str]] = {
    RunState.HELD: ("‖", "="),
    RunState.AWAITING_APPROVAL: ("?", "?"),
    RunState.READY: ("○", "o"),
    RunState.LAUNCHING: ("○", "o"),
    RunState.QUEUED: ("○", "o"),
    RunState.RUNNING: ("▶", ">"),
    RunState.SUCCEEDED: ("✓", "+"),
    RunState.FAILED: ("✗", "x"),
    RunState.TIMED_OUT: ("✗", "x"),
    RunState.LAUNCH_FAILED: ("✗", "x"),
    RunState.REJECTED: ("✗", "x"),
    RunState.EXPIRED: ("✗", "x"),
    RunState.UNKNOWN: ("!", "!"),
    RunState.CANCELLED: ("■", "#"),
    RunState.TERMINATED: ("■", "#"),
    RunState.SKIPPED: ("–", "-"),
    NOT_YET: (" ", " "),
}
"""The sign of each state, in Unicode and in ASCII."""


def workflow_lines(document: Mapping[str, Any], steps: Sequence[Mapping[str, Any]] | None = None) -> list[str]:
    """Draw a workflow, with the states of `steps` if given, and list the conditions of its edges."""
    size = shutil.get_terminal_size()
    return drawn_workflow(document, steps, width=max(_NARROWEST, size.columns), unicode=speaks_unicode())


def speaks_unicode() -> bool:
    encoding = getattr(sys.stdout, "encoding", None) or "ascii"
    return encoding.lower().replace("-", "").replace("_", "") == "utf8"


def drawn_workflow(
    document: Mapping[str, Any], steps: Sequence[Mapping[str, Any]] | None, *, width: int, unicode: bool
) -> list[str]:
    body = document.get("document") or document
    needs = _needs(body)
    by_node = None if steps is None else {str(step.get("node_id")): step for step in steps}
    nodes = [
        DrawnNode(name, tuple(needs[name]), *_told(name, node, by_node, unicode)) for name, node in _nodes(body).items()
    ]
    lines = draw_graph(nodes, width=width, unicode=unicode)
    asked = list(_conditions(body, "→" if unicode else "->"))
    return [*lines, *([""] if asked else []), *asked]


def _nodes(body: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    return {str(node.get("id", node.get("node_id"))): node for node in body.get("nodes") or ()}


def _ends(edge: Mapping[str, Any]) -> tuple[str, str]:
    return str(edge.get("from", edge.get("source"))), str(edge.get("to", edge.get("target")))


def _needs(body: Mapping[str, Any]) -> dict[str, list[str]]:
    needs = {name: [str(each) for each in node.get("needs") or ()] for name, node in _nodes(body).items()}
    for edge in body.get("edges") or ():
        source, target = _ends(edge)
        needs.setdefault(target, []).append(source)
    return needs


def _told(
    name: str, node: Mapping[str, Any], steps: Mapping[str, Mapping[str, Any]] | None, unicode: bool
) -> tuple[str, tuple[str, ...]]:
    """Return the first line of a node and the lines under it."""
    if steps is None:
        return printable(name), tuple(map(printable, _defined(node)))
    step = steps.get(name, {})
    state = str(step.get("state") or NOT_YET)
    sign = SIGNS.get(state, ("?", "?"))[0 if unicode else 1]
    return f"{sign} {printable(name)}".strip(), tuple(map(printable, _stood(state, step)))


def _defined(node: Mapping[str, Any]) -> Iterator[str]:
    action = node.get("action") or {}
    target = next((action[key] for key in ("workflow_id", "task", "command", "workflow_type") if action.get(key)), "")
    yield f"{action.get('kind') or 'workflow'} {target}".rstrip()
    if node.get("assignee_id"):
        yield f"by {node.get('assignee_type') or 'agent'} {node['assignee_id']}"
    if node.get("gates"):
        yield f"gates: {', '.join(map(str, node['gates']))}"


def _stood(state: str, step: Mapping[str, Any]) -> Iterator[str]:
    counted = step.get("attempt")
    attempt = attempt_number(state, counted) if isinstance(counted, int) else 1
    yield state + (f" (attempt {attempt})" if attempt > 1 else "")
    cause = step.get("cause") or step.get("error_class")
    if cause:
        yield str(cause)
    elif state == RunState.AWAITING_APPROVAL and isinstance(approval := step.get("approval"), Mapping):
        yield f"for {', '.join(map(str, approval.get('gates') or ())) or 'approval'}"


def _conditions(body: Mapping[str, Any], arrow: str) -> Iterator[str]:
    asked = [edge for edge in body.get("edges") or () if edge.get("condition")]
    for edge in asked[:_MOST_CONDITIONS]:
        source, target = _ends(edge)
        yield printable(f"{source} {arrow} {target} if {compact(edge['condition'])[:_MAX_CONDITION]}")
    if len(asked) > _MOST_CONDITIONS:
        yield f"and {len(asked) - _MOST_CONDITIONS} more conditions"
