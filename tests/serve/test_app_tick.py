"""An application that another scheduler wakes: one pass decides what is due, runs it, and tells what it did."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from horarium import Horarium


def test_one_pass_decides_and_does_what_is_due(tmp_path: Path) -> None:
    app, done = Horarium(data_dir=tmp_path, log_level="error"), []

    @app.schedule(schedule_id="often", intervals=[{"every": "PT1S"}])
    def often() -> None:
        done.append("often")

    first: list[dict[str, Any]] = []
    while not first:  # the first pass puts the schedule in place; a second later it is due
        first = app.tick(limit=1)
    assert [(row["schedule_id"], row["outcome"]) for row in first[:1]] == [("often", "triggered")]
    assert done == ["often"]
