"""A service behind its real HTTP application, on SQLite; the mark `both_databases` adds PostgreSQL."""

from __future__ import annotations

import pytest
from api.both_databases import pytest_configure, pytest_generate_tests

__all__ = ["pytest_configure", "pytest_generate_tests", "service_url"]


@pytest.fixture
def service_url(database_url: str) -> str:
    return database_url
