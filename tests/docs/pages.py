"""The pages of the documentation, and the fenced blocks in them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_STAGE = re.compile(r"^<!-- stage: (.+) -->$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Block:
    """`line` is where its fence opens, so that a failure says where to look."""

    page: Path
    line: int
    language: str
    text: str

    @property
    def name(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def stage_of(page: Path) -> str | None:
    """What a page needs around it to be read from top to bottom; None: its blocks stand alone."""
    found = _STAGE.search(page.read_text("utf-8"))
    return found[1] if found else None


def blocks_of(page: Path, text: str) -> list[Block]:
    return [Block(page, text.count("\n", 0, m.start()) + 1, m[1], m[2]) for m in _FENCE.finditer(text)]


def section(page: Path, heading: str) -> str:
    """What stands under a heading, up to the next one of any level."""
    parts = re.split(r"^#+ (.+)$", page.read_text("utf-8"), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))[heading]


def first_cells(text: str) -> list[str]:
    """The code in the first column of the first table: `| `name` | … |`."""
    table = re.search(r"(?:^\|.*\n)+", text, flags=re.MULTILINE)
    return re.findall(r"^\| `([^`]+)`[^|]*\|", table[0], flags=re.MULTILINE) if table else []
