"""A Celery app whose worker reports to a service behind a real door."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from world import serving

from horarium.celery import install
from horarium.life.outcome import Outcome
from horarium.testing import Accepted, TestService


@pytest.fixture
def answer() -> Outcome:
    """Published, and nobody has begun."""
    return Accepted(reference="celery", queued=True)


@pytest.fixture
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
