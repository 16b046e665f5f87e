"""One service for the tests of a file that only need some service; each has agents and schedules of its own.

It ends with the file: tests that change the process they run in must not meet an engine at work there.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from agents.house import House, living


@pytest.fixture(scope="module")
def house(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    folder = tmp_path_factory.mktemp("house")
    path = shutil.copy(sqlite_template, folder / "horarium.db")
    # Whoever holds a run hears of a stop when it renews its lease, three times in that time.
    with living(folder, f"sqlite:///{path}", janitor_seconds=0.2, lease_seconds=6) as running:
        yield running
