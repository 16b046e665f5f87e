"""A service behind its real HTTP application, on both databases."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from horarium.life.outcome import Outcome
from horarium.testing import Accepted, TestService, service


@pytest.fixture
def answer() -> Outcome:
    """What every target says: runs stay open until a test ends them. Parametrise it to hear something else."""
    return Accepted()


@pytest.fixture
def horarium(database_url: str, answer: Outcome) -> Iterator[TestService]:
    with service(at="2026-03-01T00:00:00Z", answer=answer, database=database_url) as running:
        yield running


@pytest.fixture
def http(horarium: TestService) -> httpx.Client:
    return horarium.http()
