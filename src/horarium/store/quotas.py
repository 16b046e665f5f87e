"""How much room a namespace has: its limits, and what it has now, without counting everything each time.

Births are summed exactly, in `namespace_usage`. What is open or live was counted once; since then it can only have
grown by what was added, whatever has ended meanwhile. Only where that upper bound comes near the limit it is counted
again, and of a large number not more often than every few seconds.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy import Connection

from horarium.instant import MINUTE, SECOND, Instant
from horarium.policy.quotas import Quotas, Room, Usage, room_for_runs
from horarium.store.database.json_text import from_text
from horarium.store.runs.states import OPEN_ROOT
from horarium.store.tables import namespace_usage, namespaces, runs, schedules

# A batch of a tick bears no more than this.
_NEAR = 1_000
_COUNTED_A_SECOND = 100_000
_MOST_REMEMBERED = 10_000


@dataclass(frozen=True, slots=True)
class Standing:
    """The limits of a namespace, and what it has."""

    limits: Quotas
    usage: Usage


class _Sums(NamedTuple):
    """Usage and limits of a namespace, read in one query."""

    limits: Quotas
    born: int
    births: int
    schedules: int
    bytes_stored: int


class _Counted(NamedTuple):
    """`sum` is what had been added when it was counted."""

    number: int
    sum: int
    at: Instant


class _Gauge:
    """One number that ends and deletions lower: counted by `query`, else known from above."""

    def __init__(self, query: sa.Select[Any]) -> None:
        self._query = query
        self._known: dict[str, _Counted] = {}

    def read(
        self,
        connection: Connection,
        wanted: Mapping[str, tuple[int | None, int]],
        now: Instant,
        *,
        near: int = _NEAR,
        exact: bool = False,
    ) -> dict[str, int]:
        """By namespace; each is wanted with its limit and its sum."""
        stale = [
            name for name, (limit, added) in wanted.items() if exact or self._is_stale(name, limit, added, now, near)
        ]
        if stale:
            self._count(connection, stale, wanted, now)
        found = {name: self._known.get(name) for name in wanted}
        return {
            name: 0 if (known := found[name]) is None else known.number + added - known.sum
            for name, (_, added) in wanted.items()
        }

    def _is_stale(self, name: str, limit: int | None, added: int, now: Instant, near: int) -> bool:
        if limit is None:
            return False
        known = self._known.get(name)
        if known is None or added < known.sum or now < known.at:
            return True
        if limit - (known.number + added - known.sum) >= near:
            return False
        # What there is may be far more than the limit: there were no limits once, and they can be lowered.
        return now - known.at >= max(limit, known.number) // _COUNTED_A_SECOND * SECOND

    def _count(
        self, connection: Connection, names: list[str], wanted: Mapping[str, tuple[int | None, int]], now: Instant
    ) -> None:
        if len(self._known) + len(names) > _MOST_REMEMBERED:
            self._known.clear()
        counted = {row[0]: row[1] for row in connection.execute(self._query, {"names": names})}
        for name in names:
            self._known[name] = _Counted(counted.get(name, 0), wanted[name][1], now)


def _grouped(table: sa.Table, condition: sa.ColumnElement[bool] | sa.TextClause) -> sa.Select[Any]:
    mine = table.c.namespace.in_(sa.bindparam("names", expanding=True))
    return sa.select(table.c.namespace, sa.func.count()).where(mine, condition).group_by(table.c.namespace)


class QuotaBook:
    """Usage of tenants as this process last read it. Threads may share it: at worst a count is made twice."""

    def __init__(self, defaults: Quotas | None = None) -> None:
        self.defaults = defaults or Quotas()
        # As text, so that both databases see which partial index holds just these.
        self._open = _Gauge(_grouped(runs, sa.text(OPEN_ROOT)))
        self._live = _Gauge(_grouped(schedules, schedules.c.deleted_at.is_(None)))

    def rooms(self, connection: Connection, names: Iterable[str], now: Instant) -> dict[str, Room]:
        """For births. What nobody limits is not counted."""
        sums = self._sums(connection, list(names), now)
        opened = self._open.read(
            connection, {name: (each.limits.open_runs, each.births) for name, each in sums.items()}, now
        )
        return {
            name: room_for_runs(each.limits, Usage(0, each.born, opened[name], each.bytes_stored))
            for name, each in sums.items()
        }

    def standing(
        self, connection: Connection, name: str, now: Instant, *, new: int = 1, exact: bool = False
    ) -> Standing | None:
        """For whoever writes `new` schedules, or with `exact` wants to know; None = there is no such namespace."""
        sums = self._sums(connection, [name], now).get(name)
        if sums is None:
            return None
        limits, near = sums.limits, max(_NEAR, new)
        live = self._live.read(connection, {name: (limits.schedules, sums.schedules)}, now, near=near, exact=exact)
        opened = {name: 0}
        if exact:
            opened = self._open.read(connection, {name: (limits.open_runs, sums.births)}, now, exact=True)
        return Standing(limits, Usage(live[name], sums.born, opened[name], sums.bytes_stored))

    def _sums(self, connection: Connection, names: Collection[str], now: Instant) -> dict[str, _Sums]:
        rows = connection.execute(_SUMS, {"names": names, "minute": now // MINUTE})
        return {
            row.namespace: _Sums(
                self.defaults if row.quotas is None else self.defaults.with_own(from_text(row.quotas)),
                int(row.born),
                int(row.births),
                int(row.schedules),
                max(0, row.bytes_stored + int(row.bytes) - row.bytes_base),
            )
            for row in rows
        }


def _sum(column: sa.ColumnElement[int]) -> sa.ColumnElement[int]:
    return sa.func.coalesce(sa.func.sum(column), 0).label(column.key)


_MINUTE = sa.bindparam("minute", type_=sa.BigInteger)
# Also those of the next one: whose clock is behind sees what others bear in it.
_BORN = sa.case((namespace_usage.c.minute.between(_MINUTE, _MINUTE + 1), namespace_usage.c.born), else_=0)
_KEPT = (namespaces.c.namespace, namespaces.c.quotas, namespaces.c.bytes_stored, namespaces.c.bytes_base)
_SUMS = (
    sa.select(
        *_KEPT,
        sa.func.coalesce(sa.func.sum(_BORN), 0).label("born"),
        _sum(namespace_usage.c.births),
        _sum(namespace_usage.c.schedules),
        _sum(namespace_usage.c.bytes),
    )
    .outerjoin_from(namespaces, namespace_usage, namespace_usage.c.namespace == namespaces.c.namespace)
    .where(namespaces.c.namespace.in_(sa.bindparam("names", expanding=True)))
    .group_by(*_KEPT)
)
