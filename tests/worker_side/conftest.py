"""A Celery app whose worker reports to a service behind a real door."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from world import serving

from horarium.celery import install
from horarium.testing import Accepted, TestService, service


@pytest.fixture(scope="module")
def horarium() -> Iterator[TestService]:
    """One for all: each test has schedules of its own. What is published waits for a worker."""
    with service(at="2026-03-01T00:00:00Z", answer=Accepted(reference="celery", queued=True)) as running:
        yield running


@pytest.fixture(scope="module")
def url(horarium: TestService) -> Iterator[str]:
    with serving(horarium.parts) as address:
        yield address


@pytest.fixture
def spool(tmp_path: Path) -> Iterator[Path]:
    """Where reports wait; afterwards nobody listens any more."""
    place = tmp_path / "spool"
    yield place
    listener = install.LISTENER
    if listener.reporter is not None:
        listener.reporter.stop()
        listener.reporter = None
