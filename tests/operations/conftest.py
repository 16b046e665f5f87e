"""The resources of every operations test, on SQLite; the mark `both_databases` adds PostgreSQL."""

from __future__ import annotations

import pytest
from api.both_databases import pytest_configure, pytest_generate_tests
from operations.desks import Office

from horarium.platform.database import Database

__all__ = ["office", "pytest_configure", "pytest_generate_tests"]


@pytest.fixture
def office(database: Database) -> Office:
    return Office.on(database)
