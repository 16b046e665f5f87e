"""The drawing of a workflow in a terminal: boxes in layers with lines between them, with the states of a run.

A drawing that does not fit becomes a list. Edges go downwards. A line that crosses another one interrupts it;
connected lines have a corner or a branch.

A state has a sign and a word, because colours alone are not accessible.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from horarium.core.document.states import RunState, attempt_number
from horarium.features.workflows.graph_layout import Item, Placed, depths, place
from horarium.platform.cli.streams import compact, printable

MOST_BOXES = 40
_MAX_TEXT = 32
_MOST_NAMED = 8

_N, _E, _S, _W = 1, 2, 4, 8
_LINES = {_N | _S: "│", _E | _W: "─", _S | _E: "┌", _S | _W: "┐", _N | _E: "└", _N | _W: "┘", _N | _S | _E: "├",
          _N | _S | _W: "┤", _S | _E | _W: "┬", _N | _E | _W: "┴", _N | _E | _S | _W: "┼"}  # fmt: skip
_ARROW = "▼"
_PLAIN = {ord(each): "+" for each in "┌┐└┘├┤┬┴┼"} | {
    ord("│"): "|",
    ord("─"): "-",
    ord("▼"): "v",
    ord("…"): "~",
    ord("·"): "-",
    ord("→"): ">",
}


@dataclass(frozen=True, slots=True)
class DrawnNode:
    """`head` is its name, with a sign of its state if it has one; `below` are lines under it. All are printable."""

    id: str
    needs: tuple[str, ...]
    head: str
    below: tuple[str, ...] = ()


def draw_graph(nodes: Sequence[DrawnNode], *, width: int, unicode: bool) -> list[str]:
    """Lines of at most `width` columns; without `unicode` lines are drawn in ASCII."""
    if not nodes:
        return []
    known = {node.id: node for node in nodes}
    needs = {node.id: [each for each in dict.fromkeys(node.needs) if each in known] for node in nodes}
    drawn = _boxes(known, needs, width) if len(nodes) <= MOST_BOXES else None
    lines = drawn if drawn is not None else _list(nodes, needs, width)
    return lines if unicode else [line.translate(_PLAIN) for line in lines]


def _cut(text: str, width: int) -> str:
    """Measured in columns: some characters take two."""
    from rich.cells import cell_len, set_cell_size

    return text if cell_len(text) <= width else set_cell_size(text, max(0, width - 1)) + "…"


def _padded(text: str, width: int) -> str:
    from rich.cells import cell_len

    return text + " " * (width - cell_len(text))


# ── a list ────────────────────────────────────────────────────────────────────────────────────────────


def _list(nodes: Sequence[DrawnNode], needs: Mapping[str, Sequence[str]], width: int) -> list[str]:
    """Layer by layer; nodes of one layer do not wait for each other."""
    from rich.cells import cell_len

    depth = depths(needs)
    heads = {node.id: _cut(node.head, _MAX_TEXT) for node in nodes}
    widest = max(map(cell_len, heads.values()))
    lines, layer = [], -1
    for node in sorted(nodes, key=lambda each: depth[each.id]):
        if depth[node.id] != layer:
            layer = depth[node.id]
            lines.append(f"layer {layer + 1}")
        told = list(node.below)
        told += [f"after {_names(needs[node.id])}"] if needs[node.id] else []
        lines.append(_cut(f"  {_padded(heads[node.id], widest)}  {'; '.join(told)}".rstrip(), width))
    return lines


def _names(sources: Sequence[str]) -> str:
    more = len(sources) - _MOST_NAMED
    return ", ".join(sources[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


# ── boxes ─────────────────────────────────────────────────────────────────────────────────────────────


def _boxes(known: Mapping[str, DrawnNode], needs: Mapping[str, Sequence[str]], width: int) -> list[str] | None:
    """None = it does not fit, or its lines could not be told apart."""
    from rich.cells import cell_len

    texts = {node.id: [_cut(text, _MAX_TEXT) for text in (node.head, *node.below)] for node in known.values()}
    inner = {node: max(map(cell_len, lines)) | 1 for node, lines in texts.items()}  # odd, for a middle
    placed = place(needs, {node: columns + 4 for node, columns in inner.items()})
    if placed.width > width:
        return None
    feeds = {source for sources in needs.values() for source in sources}
    lines: list[str] = []
    for number, layer in enumerate(placed.layers):
        if number:
            between = _between(placed, number - 1)
            if between is None:
                return None
            lines += between
        lines += _layer(layer, placed.centres[number], texts, feeds)
    return [line.rstrip() for line in lines]


def _layer(
    layer: Sequence[Item], centres: Sequence[int], texts: Mapping[str, Sequence[str]], feeds: set[str]
) -> list[str]:
    height = max([2 + len(texts[item.node]) for item in layer if not item.passing], default=0)
    rows = [""] * height
    for item, centre in zip(layer, centres, strict=True):
        start = centre - item.width // 2
        parts = ["│"] * height if item.passing else _box(texts[item.node], item.width, height, item.node in feeds)
        rows = [_padded(row, start) + part for row, part in zip(rows, parts, strict=True)]
    return rows


def _box(texts: Sequence[str], width: int, height: int, feeds: bool) -> list[str]:
    inside = [*texts, *[""] * (height - 2 - len(texts))]
    half = "─" * ((width - 3) // 2)
    return [
        "┌" + "─" * (width - 2) + "┐",
        *(f"│ {_padded(text, width - 4)} │" for text in inside),
        "└" + half + ("┬" if feeds else "─") + half + "┘",
    ]


@dataclass(frozen=True, slots=True)
class _Net:
    """Sources that lead to the same targets, all of them, share one line; both are columns."""

    sources: tuple[int, ...]
    targets: tuple[int, ...]

    @property
    def straight(self) -> bool:
        return len(self.targets) == 1 and self.sources == self.targets

    @property
    def span(self) -> tuple[int, int]:
        return min(self.sources + self.targets), max(self.sources + self.targets)


def _between(placed: Placed, number: int) -> list[str] | None:
    nets = _nets(placed, number)
    tracks = _tracks(nets)
    if tracks is None:
        return None
    below = zip(placed.layers[number + 1], placed.centres[number + 1], strict=True)
    passing = {centre for item, centre in below if item.passing}
    rows = [_track_row(nets, tracks, row, placed.width) for row in range(max(tracks.values(), default=-1) + 1)]
    ends = {target for net in nets for target in net.targets}
    arrows = ["│" if c in passing else _ARROW if c in ends else " " for c in range(placed.width)]
    return [*rows, "".join(arrows)]


def _nets(placed: Placed, number: int) -> list[_Net]:
    """Each net arrives at a target in a column of its own: where lines met, one could not say who leads where."""
    above, below = placed.centres[number], placed.centres[number + 1]
    targets: dict[int, list[int]] = {}
    for upper, lower in placed.links[number]:
        targets.setdefault(upper, []).append(lower)
    groups: dict[tuple[int, ...], list[int]] = {}
    for source, lowers in sorted(targets.items()):
        groups.setdefault(tuple(sorted(lowers)), []).append(source)
    arriving: dict[int, list[tuple[float, tuple[int, ...]]]] = {}
    for found, sources in groups.items():
        middle = sum(above[source] for source in sources) / len(sources)
        for target in found:
            arriving.setdefault(target, []).append((middle, found))
    columns = {
        (target, found): below[target] + 2 * place - (len(nets) - 1)
        for target, nets in arriving.items()
        for place, (_, found) in enumerate(sorted(nets))
    }
    return [
        _Net(tuple(above[source] for source in sources), tuple(columns[target, found] for target in found))
        for found, sources in groups.items()
    ]


def _tracks(nets: Sequence[_Net]) -> dict[int, int] | None:
    """The row of each net that bends; None if two of them would each have to be above the other.

    Where one comes from above in the column in which another goes on downwards, the first must have bent before.
    """
    bent = [number for number, net in enumerate(nets) if not net.straight]
    after = {
        number: {other for other in bent if other != number and set(nets[other].sources) & set(nets[number].targets)}
        for number in bent
    }
    rows: dict[int, int] = {}
    while len(rows) < len(bent):
        ready = [number for number in bent if number not in rows and after[number] <= rows.keys()]
        if not ready:
            return None
        for number in ready:
            low, high = nets[number].span
            row = max((rows[other] + 1 for other in after[number]), default=0)
            while any(rows[o] == row and nets[o].span[0] <= high and low <= nets[o].span[1] for o in rows):
                row += 1
            rows[number] = row
    return rows


def _track_row(nets: Sequence[_Net], tracks: Mapping[int, int], row: int, width: int) -> str:
    cells = [0] * width
    here = [net for number, net in enumerate(nets) if tracks.get(number) == row]
    for net in here:
        low, high = net.span
        for column in range(low, high + 1):
            cells[column] |= (_E if column < high else 0) | (_W if column > low else 0)
        for column in net.sources:
            cells[column] |= _N
        for column in net.targets:
            cells[column] |= _S
    for number, net in enumerate(nets):
        if net in here:
            continue
        bends_later = net.straight or tracks[number] > row
        for column in net.sources if bends_later else net.targets:
            cells[column] = _N | _S
    return "".join(_LINES.get(cell, " ") for cell in cells)


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
        DrawnNode(name, tuple(needs[name]), *_node_lines(name, node, by_node, unicode))
        for name, node in _nodes(body).items()
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


def _node_lines(
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
