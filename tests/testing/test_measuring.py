"""Where coverage is measured."""

from __future__ import annotations

import pytest
from measuring import is_measured


@pytest.mark.parametrize(
    ("folder", "repeats", "database", "measured"),
    [
        ("unit", False, None, True),
        ("unit", True, None, False),
        ("store", False, "postgresql", True),
        ("api", False, "sqlite", True),
        ("api", False, "postgresql", False),
        ("operations", False, "postgresql", False),
        ("acceptance", False, "sqlite", False),
    ],
)
def test_coverage_is_measured_once_where_a_room_has_a_floor(
    folder: str, repeats: bool, database: str | None, measured: bool
) -> None:
    assert is_measured(folder, repeats=repeats, database=database) is measured
