"""CONTRIBUTING.md describes the test folders that exist."""

from __future__ import annotations

from docs.pages import ROOT, first_cells, section


def test_the_list_of_test_folders_is_complete() -> None:
    # A folder that git no longer has may keep its bytecode.
    files = [each.relative_to(ROOT / "tests") for kind in ("*.py", "*.json") for each in (ROOT / "tests").rglob(kind)]
    here = sorted({each.parts[0] for each in files if len(each.parts) > 1})
    assert first_cells(section(ROOT / "CONTRIBUTING.md", "Test folders")) == here
