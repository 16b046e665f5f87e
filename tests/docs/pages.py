"""The pages of the documentation, and the fenced blocks in them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


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


def blocks(language: str) -> list[Block]:
    return [block for page in PAGES for block in blocks_of(page, page.read_text("utf-8")) if block.language == language]


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
