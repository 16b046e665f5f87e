"""SQL of quotas: the limits of a namespace, what it has, and sums of what it adds.

New runs are summed exactly, in `namespace_usage`. Open runs and live schedules were counted once; since then they can
only have grown by what was added. Only where that upper bound comes near the limit they are counted again, and large
numbers not more often than every few seconds.

A sum is spread over a few rows, and each thread adds to one of them, so that tickers and callers of one tenant do not
wait for each other. It is added last in a transaction and in the order of the names, so that no two deadlock.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy import Connection
from sqlalchemy.dialects import postgresql, sqlite

from horarium.core.policy.limits import BYTES_OF_A_RUN, NamespaceUsage, QuotaRoom, Quotas, room_for_runs
from horarium.instant import MINUTE, SECOND, Instant
from horarium.platform.database.columns import from_text
from horarium.platform.database.run_states import OPEN_ROOT
from horarium.platform.database.tables import namespace_usage, namespaces, runs, schedules
from horarium.platform.ids import new_id

# A batch of a tick bears no more than this.
_NEAR = 1_000
_COUNTED_A_SECOND = 100_000
_MOST_REMEMBERED = 10_000


@dataclass(frozen=True, slots=True)
class QuotaUsage:
    """The limits of a namespace, and what it has."""

    limits: Quotas
    usage: NamespaceUsage


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

    def rooms(self, connection: Connection, names: Iterable[str], now: Instant) -> dict[str, QuotaRoom]:
        """For births. What nobody limits is not counted."""
        sums = self._sums(connection, list(names), now)
        opened = self._open.read(
            connection, {name: (each.limits.open_runs, each.births) for name, each in sums.items()}, now
        )
        return {
            name: room_for_runs(each.limits, NamespaceUsage(0, each.born, opened[name], each.bytes_stored))
            for name, each in sums.items()
        }

    def standing(
        self, connection: Connection, name: str, now: Instant, *, new: int = 1, exact: bool = False
    ) -> QuotaUsage | None:
        """For whoever writes `new` schedules, or with `exact` wants to know; None = there is no such namespace."""
        sums = self._sums(connection, [name], now).get(name)
        if sums is None:
            return None
        limits, near = sums.limits, max(_NEAR, new)
        live = self._live.read(connection, {name: (limits.schedules, sums.schedules)}, now, near=near, exact=exact)
        opened = {name: 0}
        if exact:
            opened = self._open.read(connection, {name: (limits.open_runs, sums.births)}, now, exact=True)
        return QuotaUsage(limits, NamespaceUsage(live[name], sums.born, opened[name], sums.bytes_stored))

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


SHARDS = 8


class Growth(NamedTuple):
    births: int = 0
    schedules: int = 0
    bytes: int = 0


class _Shards(threading.local):
    """Threads of one process have different rows, and processes begin anywhere."""

    _next = count(0)
    _begin: int | None = None

    def __init__(self) -> None:
        if _Shards._begin is None:
            _Shards._begin = new_id()[-1]
        self.number = (_Shards._begin + next(_Shards._next)) % SHARDS


_SHARDS = _Shards()


def add_births(
    connection: Connection, born: Iterable[tuple[str, int]], now: Instant, rendered: Mapping[str, int]
) -> None:
    """`rendered` are the bytes of the texts that were rendered for them, by namespace."""
    births: dict[str, int] = defaultdict(int)
    for namespace, number in born:
        births[namespace] += number
    add_growth(
        connection,
        {name: Growth(births=number, bytes=rendered.get(name, 0)) for name, number in births.items() if number},
        now,
    )


def add_growth(connection: Connection, growth: Mapping[str, Growth], now: Instant) -> None:
    """A run takes some bytes by itself, beside those that are told."""
    if not growth:
        return
    is_sqlite = connection.dialect.name == "sqlite"
    shard, minute = 0 if is_sqlite else _SHARDS.number, now // MINUTE
    rows = [
        {
            "namespace": namespace,
            "shard": shard,
            "minute": minute,
            "born": each.births,
            "births": each.births,
            "schedules": each.schedules,
            "bytes": each.bytes + each.births * BYTES_OF_A_RUN,
        }
        for namespace, each in sorted(growth.items())
    ]
    connection.execute(_ADD["sqlite" if is_sqlite else "postgresql"], rows)


def _upsert(insert: sqlite.Insert | postgresql.Insert) -> sa.Executable:
    old, new = namespace_usage.c, insert.excluded
    # A clock that is some seconds behind must not wipe out what the others have counted in the next minute already.
    behind = old.minute == new.minute + 1
    same = sa.or_(old.minute == new.minute, behind)
    return insert.on_conflict_do_update(
        index_elements=["namespace", "shard"],
        set_={
            "born": sa.case((same, old.born + new.born), else_=new.born),
            "minute": sa.case((behind, old.minute), else_=new.minute),
            **{name: old[name] + new[name] for name in ("births", "schedules", "bytes")},
        },
    )


_ADD = {"sqlite": _upsert(sqlite.insert(namespace_usage)), "postgresql": _upsert(postgresql.insert(namespace_usage))}
