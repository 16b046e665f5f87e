"""A service on a clock that stands still; every target says `answer`, and time begins at `start`."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from seeds.door import Door

from horarium.life.outcome import Outcome
from horarium.testing import Finished, TestService, service


@pytest.fixture
def start() -> str:
    return "2026-04-10T00:00:00Z"


@pytest.fixture
def answer() -> Outcome:
    return Finished()


@pytest.fixture
def horarium(start: str, answer: Outcome, sqlite_template: Path, tmp_path: Path) -> Iterator[TestService]:
    """On a copy of a migrated database, which is three times as fast as migrating one."""
    database = shutil.copy(sqlite_template, tmp_path / "horarium.db")
    with service(at=start, answer=answer, database=f"sqlite:///{database}") as running:
        yield running


@pytest.fixture
def door(horarium: TestService) -> Door:
    return Door(horarium)
