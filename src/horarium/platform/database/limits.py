"""Limits on what a namespace keeps: ages after which rows are deleted, and numbers of rows.

The settings give an age for all namespaces, and a namespace may have its own.

A row limit holds for each table whose rows live until a request deletes them. Secrets and subscriptions are limited by
settings (`secrets_per_namespace`, `subscriptions_per_namespace`), schedules and runs by quotas. Retention deletes
stored responses, and every row counts as at least 400 bytes of `bytes_stored`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, TypeAlias

import sqlalchemy as sa
from sqlalchemy import ColumnElement, Connection

from horarium.core.policy.limits import FOR_EVER, MAX_DAYS, RetentionSubject
from horarium.instant import DAY, Instant
from horarium.platform.database.partitions import FIRST_MONDAY, WEEK, week_of
from horarium.platform.database.tables import agents, assignments, calendars, namespaces, teams, tokens, workflows

# Before all time: nothing is older.
_NEVER: Instant = -(2**62)


Weeks: TypeAlias = tuple[Instant, Instant]


@dataclass(frozen=True, slots=True)
class Cutoffs:
    """`usual` is for whoever has no days of its own; None = for ever. Nobody's is after `latest`.

    `weeks` begin and end at these instants: what lies in one goes with the whole of it, and not row by row.
    """

    kept: RetentionSubject
    usual: Instant | None
    now: Instant
    latest: Instant
    weeks: Weeks | None = None


Before: TypeAlias = Instant | Cutoffs
"""The same for all, or by namespace."""


def read_cutoffs(connection: Connection, kept: RetentionSubject, days: int | None, now: Instant) -> Cutoffs | None:
    """`days` are those of the settings. None = nobody wants anything forgotten."""
    own = namespaces.c[kept.value]
    fewest = connection.execute(sa.select(sa.func.min(own)).where(own > FOR_EVER)).scalar_one()
    usual = now - days * DAY if days else None
    latest = max(
        (each for each in (usual, fewest and now - min(fewest, MAX_DAYS) * DAY) if each is not None), default=None
    )
    return None if latest is None else Cutoffs(kept, usual, now, latest)


def own_days(connection: Connection, kept: RetentionSubject) -> dict[str, int]:
    """Retention days of the namespaces that set their own."""
    own = namespaces.c[kept.value]
    rows = connection.execute(sa.select(namespaces.c.namespace, own).where(own.is_not(None)))
    return {row[0]: min(row[1], MAX_DAYS) for row in rows}


def cutoffs_of_single_rows(before: Cutoffs, weeks: Weeks | None) -> Cutoffs:
    """The same for whoever deletes row by row, where there are tables by weeks: each is dropped before."""
    if weeks is None:
        return before
    usual = None if before.usual is None else row_by_row(before.usual, weeks)
    return replace(before, usual=usual, latest=row_by_row(before.latest, weeks), weeks=weeks)


def row_by_row(before: Instant, weeks: Weeks) -> Instant:
    """Not within a week, and of one that is over for a day: whoever drops it whole comes first."""
    first, last = weeks
    if before < first or before - DAY >= last:
        return before
    return max(first, week_of(before - DAY).start)


def _row_by_row(before: ColumnElement[int], weeks: Weeks) -> ColumnElement[int]:
    first, last = (sa.literal(each, sa.BigInteger) for each in weeks)
    yesterday = before - DAY
    monday = yesterday - sa.func.mod(yesterday - FIRST_MONDAY, WEEK)
    start = sa.case((monday > first, monday), else_=first)
    return sa.case((sa.or_(before < first, yesterday >= last), before), else_=start)


def cutoff(before: Before, namespace: ColumnElement[str]) -> ColumnElement[int]:
    """For rows whose namespace stands in that column."""
    if not isinstance(before, Cutoffs):
        return sa.literal(before, sa.BigInteger)
    usual = _NEVER if before.usual is None else before.usual
    days_kept = namespaces.c[before.kept.value]
    # More than anybody may ask for is damage, and would overflow below.
    own = sa.cast(sa.case((days_kept > MAX_DAYS, MAX_DAYS), else_=days_kept), sa.BigInteger)
    since = sa.literal(before.now, sa.BigInteger) - own * DAY
    days = sa.case(
        (own.is_(None), sa.literal(usual, sa.BigInteger)),
        (own == FOR_EVER, sa.literal(_NEVER, sa.BigInteger)),
        else_=since if before.weeks is None else _row_by_row(since, before.weeks),
    )
    mine = sa.select(days).where(namespaces.c.namespace == namespace).correlate_except(namespaces).scalar_subquery()
    return sa.func.coalesce(mine, sa.literal(usual, sa.BigInteger))


def latest(before: Before) -> Instant:
    return before.latest if isinstance(before, Cutoffs) else before


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


def limit_of_table(table: sa.Table) -> RowLimit:
    """Find the limit of a table that has one."""
    return _BY_TABLE[table]


def is_full(connection: Connection, rows: RowLimit, namespace: str) -> bool:
    """Look whether the last permitted row is there: an index is read no further than that."""
    last = sa.select(sa.literal(1)).select_from(rows.table).where(rows.table.c.namespace == namespace)
    return connection.execute(last.offset(rows.most - 1).limit(1)).first() is not None
