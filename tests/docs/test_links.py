"""Links inside the documentation lead somewhere, and every page can be reached."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from docs.pages import PAGES, ROOT

_LINK = re.compile(r"\]\((?!https?://)([^)#\s]*)(?:#([^)\s]+))?\)")


def links(page: Path) -> list[tuple[Path, str | None]]:
    found = []
    for target, anchor in _LINK.findall(page.read_text("utf-8")):
        path = (page.parent / target).resolve() if target else page
        found.append((path / "README.md" if path.is_dir() else path, anchor or None))
    return found


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", page.read_text("utf-8"), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_to_a_file_and_a_heading(page: Path) -> None:
    for path, anchor in links(page):
        assert path.exists(), f"{page.name} links to {path}"
        assert anchor is None or anchor in anchors(path), f"{page.name} links to {path.name}#{anchor}"


def test_every_page_can_be_reached_from_the_readme() -> None:
    seen, ahead = set(), [ROOT / "README.md"]
    while ahead:
        page = ahead.pop()
        if page not in seen and page.suffix == ".md":
            seen.add(page)
            ahead += [path for path, _ in links(page)]
    assert set(PAGES) - seen == set()
