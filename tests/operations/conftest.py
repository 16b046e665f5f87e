"""The resources of every operations test, once on each database."""

from __future__ import annotations

import pytest
from operations.desks import Office

from horarium.platform.database import Database


@pytest.fixture
def office(database: Database) -> Office:
    return Office.on(database)
