"""The actions of the CI workflows are pinned by commit: a tag can be moved to other code."""

from __future__ import annotations

import re
from pathlib import Path

WORKFLOWS = Path(__file__).parents[2] / ".github" / "workflows"


def test_every_action_is_pinned_by_commit() -> None:
    used = [
        line.strip() for file in WORKFLOWS.glob("*.y*ml") for line in file.read_text().splitlines() if "uses:" in line
    ]
    assert used
    assert [each for each in used if not re.fullmatch(r"- uses: [\w./-]+@[0-9a-f]{40}  # v\d+\.\d+\.\d+", each)] == []
