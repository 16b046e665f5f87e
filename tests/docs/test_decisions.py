"""Every decision has its three parts and its line in the list."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from docs.pages import ROOT

FOLDER = ROOT / "docs" / "decisions"
DECISIONS = sorted(FOLDER.glob("[0-9]*.md"))


@pytest.mark.parametrize("page", DECISIONS, ids=lambda page: page.stem)
def test_a_decision_has_context_decision_and_consequences(page: Path) -> None:
    headings = re.findall(r"^## (.+)$", page.read_text("utf-8"), flags=re.MULTILINE)
    assert headings == ["Context", "Decision", "Consequences"]


def test_the_list_has_every_decision_with_its_number_and_title() -> None:
    titles = [page.read_text("utf-8").splitlines()[0].removeprefix("# ") for page in DECISIONS]
    expected = [
        f"{number}. [{title.partition('. ')[2]}]({page.name})"
        for number, (title, page) in enumerate(zip(titles, DECISIONS, strict=True), 1)
    ]
    listed = [line for line in (FOLDER / "README.md").read_text("utf-8").splitlines() if re.match(r"\d+\. ", line)]
    assert listed == expected
    assert [title.partition(".")[0] for title in titles] == [str(n) for n in range(1, len(titles) + 1)]
