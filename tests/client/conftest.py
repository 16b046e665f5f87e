"""A real service, and each driver in front of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from client.drivers import Driver

from horarium.core.lifecycle.outcome import Outcome
from horarium.testing import Accepted, TestService
from horarium.testing.service import TOKEN

DRIVERS = ("sync", "async")


@pytest.fixture
def answer() -> Outcome:
    """What every target says: a run waits in its queue until a worker comes."""
    return Accepted(queued=True)


@pytest.fixture(params=DRIVERS)
def make_driver(request: pytest.FixtureRequest) -> Iterator[Callable[..., Driver]]:
    made: list[Driver] = []

    def make(**options: Any) -> Driver:
        made.append(Driver(request.param, **options))
        return made[-1]

    yield make
    for driver in made:
        driver.close()


@pytest.fixture
def driver(make_driver: Callable[..., Driver], horarium: TestService) -> Driver:
    return make_driver(app=horarium.parts.api, token=TOKEN)
