"""Before which instant something is old: the settings say it for all, and a namespace may say it for itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import sqlalchemy as sa
from sqlalchemy import ColumnElement, Connection

from horarium.instant import DAY, Instant
from horarium.policy.retention import FOR_EVER, Kept
from horarium.store.tables import namespaces

# Before all time: nothing is older.
_NEVER: Instant = -(2**62)


@dataclass(frozen=True, slots=True)
class Cutoffs:
    """`usual` is for whoever has no days of its own; None = for ever. Nobody's is after `latest`."""

    kept: Kept
    usual: Instant | None
    now: Instant
    latest: Instant


Before: TypeAlias = Instant | Cutoffs
"""The same for all, or by namespace."""


def look(connection: Connection, kept: Kept, days: int | None, now: Instant) -> Cutoffs | None:
    """`days` are those of the settings. None = nobody wants anything forgotten."""
    own = namespaces.c[kept.value]
    fewest = connection.execute(sa.select(sa.func.min(own)).where(own > FOR_EVER)).scalar_one()
    usual = now - days * DAY if days else None
    latest = max((each for each in (usual, fewest and now - fewest * DAY) if each is not None), default=None)
    return None if latest is None else Cutoffs(kept, usual, now, latest)


def cutoff(before: Before, namespace: ColumnElement[str]) -> ColumnElement[int]:
    """For rows whose namespace stands in that column."""
    if not isinstance(before, Cutoffs):
        return sa.literal(before, sa.BigInteger)
    usual = _NEVER if before.usual is None else before.usual
    own = sa.cast(namespaces.c[before.kept.value], sa.BigInteger)
    days = sa.case(
        (own.is_(None), sa.literal(usual, sa.BigInteger)),
        (own == FOR_EVER, sa.literal(_NEVER, sa.BigInteger)),
        else_=sa.literal(before.now, sa.BigInteger) - own * DAY,
    )
    mine = sa.select(days).where(namespaces.c.namespace == namespace).correlate_except(namespaces).scalar_subquery()
    return sa.func.coalesce(mine, sa.literal(usual, sa.BigInteger))


def latest(before: Before) -> Instant:
    return before.latest if isinstance(before, Cutoffs) else before
