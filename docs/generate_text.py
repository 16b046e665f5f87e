"""How a generated page is spelled: tables, code, and prose that fits the width of a line."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence

WIDTH = 120
_NOTICE = "<!-- Written by docs/generate.py from the code. Edit the code, then run it again. -->"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def code(text: object) -> str:
    return f"`{text}`"


def codes(names: Iterable[str]) -> str:
    return " ".join(code(name) for name in names)


def page(title: str, *parts: str) -> str:
    """Prose is filled to the width of a line; tables, headings and blocks are left alone."""
    return "\n\n".join([f"# {title}", _NOTICE, *(_filled(part) for part in parts if part)]) + "\n"


def _filled(part: str) -> str:
    prose = not part.startswith(("|", "#", "```", "<"))
    return textwrap.fill(part, WIDTH, break_long_words=False, break_on_hyphens=False) if prose else part


def clean(text: str) -> str:
    """One line, with single blanks."""
    return " ".join(text.split())
