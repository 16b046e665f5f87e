"""A service on a clock that stands still; every target says `answer`, and time begins at `start`."""

from __future__ import annotations

import pytest
from seeds.door import Door

from horarium.core.lifecycle.outcome import Outcome
from horarium.testing import Finished, TestService


@pytest.fixture
def start() -> str:
    return "2026-04-10T00:00:00Z"


@pytest.fixture
def answer() -> Outcome:
    return Finished()


@pytest.fixture
def door(horarium: TestService) -> Door:
    return Door(horarium)
