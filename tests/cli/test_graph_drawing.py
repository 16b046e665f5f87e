"""How a workflow is drawn: a table of drawings, and a reader that follows the lines of any of them."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horarium.errors import CycleDetected
from horarium.features.workflows.graph_drawing import MOST_BOXES, DrawnNode, draw_graph

Needs = dict[str, list[str]]


def drawn(needs: Needs, *, width: int = 100, unicode: bool = True, below: tuple[str, ...] = ()) -> list[str]:
    nodes = [DrawnNode(node, tuple(sources), node, below) for node, sources in needs.items()]
    return draw_graph(nodes, width=width, unicode=unicode)


DRAWINGS: dict[str, tuple[Needs, str]] = {
    "one": (
        {"only": []},
        """
┌───────┐
│ only  │
└───────┘
""",
    ),
    "a chain": (
        {"fetch": [], "write": ["fetch"]},
        """
┌───────┐
│ fetch │
└───┬───┘
    ▼
┌───────┐
│ write │
└───────┘
""",
    ),
    "a diamond": (
        {"a": [], "b": ["a"], "c": ["a"], "d": ["b", "c"]},
        """
    ┌───┐
    │ a │
    └─┬─┘
  ┌───┴───┐
  ▼       ▼
┌───┐   ┌───┐
│ b │   │ c │
└─┬─┘   └─┬─┘
  └───┬───┘
      ▼
    ┌───┐
    │ d │
    └───┘
""",
    ),
    "all to all": (
        {"a": [], "b": [], "c": ["a", "b"], "d": ["a", "b"]},
        """
┌───┐   ┌───┐
│ a │   │ b │
└─┬─┘   └─┬─┘
  ├───────┤
  ▼       ▼
┌───┐   ┌───┐
│ c │   │ d │
└───┘   └───┘
""",
    ),
}


@pytest.mark.parametrize(("needs", "picture"), DRAWINGS.values(), ids=DRAWINGS.keys())
def test_a_small_graph_is_drawn_in_boxes(needs: Needs, picture: str) -> None:
    assert "\n".join(drawn(needs)) == picture.strip("\n")


def test_a_terminal_without_unicode_gets_ascii() -> None:
    lines = drawn(DRAWINGS["a diamond"][0], unicode=False, below=("x · y …",))
    assert "\n".join(lines).isascii()
    assert [len(line) for line in lines] == [len(line) for line in drawn(DRAWINGS["a diamond"][0], below=("x · y …",))]


def test_what_is_too_wide_is_a_list_by_layer() -> None:
    needs: Needs = {"start": [], **{f"node{n}": ["start"] for n in range(9)}, "end": [f"node{n}" for n in range(9)]}
    lines = drawn(needs, width=40)
    assert lines[:4] == ["layer 1", "  start", "layer 2", "  node0  after start"]
    assert lines[-2:] == ["layer 3", "  end    after node0, node1, node2, nod…"]
    assert max(map(len, lines)) <= 40


def test_a_thousand_nodes_are_a_list_in_good_time() -> None:
    needs: Needs = {f"n{n}": [f"n{m}" for m in range(max(0, n - 10), n)] for n in range(1_000)}
    begin = time.process_time()
    lines = drawn(needs, width=80)
    assert time.process_time() - begin < 10
    assert (len(lines), lines[-1][:40]) == (2_000, "  n999  after n989, n990, n991, n992, n9")
    assert "and 2 more" in drawn(needs, width=200)[-1]
    assert max(map(len, lines)) <= 80


def test_long_and_wide_texts_are_cut_and_keep_their_box() -> None:
    from rich.cells import cell_len

    nodes = [DrawnNode("a", (), "x" * 128), DrawnNode("b", ("a",), "日本" * 40, ("日本語",))]
    lines = draw_graph(nodes, width=80, unicode=True)
    assert max(map(cell_len, lines)) <= 40
    boxes = [line for line in lines if line.lstrip().startswith(("│", "┌", "└"))]
    assert len({cell_len(line) for line in boxes[:3]}) == 1


def test_a_name_that_is_no_node_is_left_out_and_a_cycle_is_an_error() -> None:
    assert drawn({"a": ["gone"]}) == drawn({"a": []})
    assert drawn({}) == []
    with pytest.raises(CycleDetected):
        drawn({"a": ["b"], "b": ["a"]})


# ── a reader ──────────────────────────────────────────────────────────────────────────────────────────

_WAYS = {"│": "NS", "─": "EW", "┌": "SE", "┐": "SW", "└": "NE", "┘": "NW", "├": "NSE", "┤": "NSW", "┬": "SEW",
         "┴": "NEW", "┼": "NESW", "▼": "NS"}  # fmt: skip
_MOVES = {"N": (-1, 0), "S": (1, 0), "E": (0, 1), "W": (0, -1)}
_BACK = {"N": "S", "S": "N", "E": "W", "W": "E"}


def read_edges(lines: list[str], needs: Needs) -> set[tuple[str, str]]:
    """Follows every line from the bottom of its box; a line that meets one which runs across it passes under it."""
    wide = max(map(len, lines))
    grid = [line.ljust(wide) for line in lines]
    tops: dict[tuple[int, int], str] = {}
    starts: dict[str, tuple[int, int]] = {}
    for node in needs:
        row, column = next((r, line.index(f"│ {node} ")) for r, line in enumerate(grid) if f"│ {node} " in line)
        end = grid[row].index("│", column + 1)
        tops |= {(row - 1, each): node for each in range(column, end + 1)}
        if "┬" in (foot := grid[row + 1][column : end + 1]):
            starts[node] = (row + 1, column + foot.index("┬"))
    return {(node, found) for node, at in starts.items() for found in _followed(grid, tops, at)}


def _followed(grid: list[str], tops: dict[tuple[int, int], str], at: tuple[int, int]) -> set[str]:
    found, seen, left = set(), set(), [(at, "S")]
    while left:
        (row, column), way = left.pop()
        if ((row, column), way) in seen:
            continue
        seen.add(((row, column), way))
        down, right = _MOVES[way]
        row, column = row + down, column + right
        if (row, column) in tops and way == "S":
            found.add(tops[row, column])
            continue
        here = _WAYS[grid[row][column]]
        # Nothing flows upwards: a line that comes from above is another source of the same line.
        on = [way] if _BACK[way] not in here else [each for each in here if each not in (_BACK[way], "N")]
        left += [((row, column), each) for each in on]
    return found


@st.composite
def graphs(draw: st.DrawFn) -> Needs:
    names = [f"n{number}" for number in range(draw(st.integers(1, 9)))]
    return {
        name: draw(st.lists(st.sampled_from(names[:number]), unique=True, max_size=4)) if number else []
        for number, name in enumerate(names)
    }


@given(graphs())
def test_the_lines_of_a_drawing_say_exactly_which_nodes_are_joined(needs: Needs) -> None:
    lines = drawn(needs, width=300)
    if lines[0] != "layer 1":
        assert read_edges(lines, needs) == {(source, node) for node, sources in needs.items() for source in sources}


@given(graphs(), st.integers(10, 60))
def test_no_line_is_wider_than_it_may_be(needs: Needs, width: int) -> None:
    assert max(map(len, drawn(needs, width=width))) <= width


def test_as_many_boxes_as_are_drawn_at_most() -> None:
    def chain(length: int) -> Needs:
        return {f"n{n}": [f"n{n - 1}"] if n else [] for n in range(length)}

    assert drawn(chain(MOST_BOXES))[0].startswith("┌")
    assert drawn(chain(MOST_BOXES + 1))[0] == "layer 1"
