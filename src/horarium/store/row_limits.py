"""Limit the rows that one namespace may have of each table whose rows live until a request deletes them.

Secrets and subscriptions are limited by settings (`secrets_per_namespace`, `subscriptions_per_namespace`), schedules
and runs by quotas. Retention deletes stored responses, and every row counts as at least 400 bytes of `bytes_stored`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import sqlalchemy as sa
from sqlalchemy import Connection

from horarium.store.tables import agents, assignments, calendars, teams, tokens, workflows


@dataclass(frozen=True, slots=True)
class RowLimit:
    """`what` names the rows in an error."""

    table: sa.Table
    most: int
    what: str


_DOCUMENTS = 50_000
CALENDARS: Final = RowLimit(calendars, _DOCUMENTS, "calendars")
WORKFLOWS: Final = RowLimit(workflows, 5 * _DOCUMENTS, "workflow versions")
TOKENS: Final = RowLimit(tokens, _DOCUMENTS, "tokens")
LIMITS: Final = (
    RowLimit(agents, _DOCUMENTS, "agents"),
    RowLimit(teams, _DOCUMENTS, "teams"),
    RowLimit(assignments, _DOCUMENTS, "assignments"),
    CALENDARS,
    WORKFLOWS,
    TOKENS,
)
_BY_TABLE = {each.table: each for each in LIMITS}


def of_table(table: sa.Table) -> RowLimit:
    """Find the limit of a table that has one."""
    return _BY_TABLE[table]


def is_full(connection: Connection, rows: RowLimit, namespace: str) -> bool:
    """Look whether the last permitted row is there: an index is read no further than that."""
    last = sa.select(sa.literal(1)).select_from(rows.table).where(rows.table.c.namespace == namespace)
    return connection.execute(last.offset(rows.most - 1).limit(1)).first() is not None
