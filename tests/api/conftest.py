"""A service behind its real HTTP application, on both databases."""

from __future__ import annotations

import pytest


@pytest.fixture
def service_url(database_url: str) -> str:
    return database_url
