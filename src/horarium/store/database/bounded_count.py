"""Counts that end at a bound, so that their cost does not grow with what is stored."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection


def count_up_to(connection: Connection, rows: sa.Select[Any], most: int) -> int:
    """Count rows; `most` means at least so many."""
    some = rows.limit(most).subquery()
    found: int = connection.execute(sa.select(sa.func.count()).select_from(some)).scalar_one()
    return found
