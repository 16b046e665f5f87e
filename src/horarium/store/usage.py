"""What namespaces add: runs born, schedules made, bytes written; sums that only grow.

A sum lies in a few rows, and each thread adds to one of them, so that tickers and callers of one tenant do not wait
for each other. It is added last in a transaction and in the order of the names: two never wait in a circle.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterable, Mapping
from itertools import count
from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy import Connection
from sqlalchemy.dialects import postgresql, sqlite

from horarium.ids import new_id
from horarium.instant import MINUTE, Instant
from horarium.policy.quotas import BYTES_OF_A_RUN
from horarium.store.tables import namespace_usage

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
    add(
        connection,
        {name: Growth(births=number, bytes=rendered.get(name, 0)) for name, number in births.items() if number},
        now,
    )


def add(connection: Connection, growth: Mapping[str, Growth], now: Instant) -> None:
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
