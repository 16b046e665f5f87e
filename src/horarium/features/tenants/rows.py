"""SQL of namespaces, tokens and quotas.

Only the hash of a token is stored, so that a stolen database grants no access.

New runs are summed exactly, in `namespace_usage`. Open runs and live schedules were counted once; since then they can
only have grown by what was added. Only where that upper bound comes near the limit they are counted again, and large
numbers not more often than every few seconds.

A sum is spread over a few rows, and each thread adds to one of them, so that tickers and callers of one tenant do not
wait for each other. It is added last in a transaction and in the order of the names, so that no two deadlock.
"""

from __future__ import annotations

import hmac
import secrets
import threading
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import count
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy import Connection
from sqlalchemy.dialects import postgresql, sqlite

from horarium.core.policy.limits import BYTES_OF_A_RUN, NamespaceUsage, Overrides, QuotaRoom, Quotas, room_for_runs
from horarium.instant import MINUTE, SECOND, Instant
from horarium.platform.database import audit_chain
from horarium.platform.database.run_states import OPEN_ROOT
from horarium.platform.database.schema import DEFAULT_NAMESPACE
from horarium.platform.database.statements import TypedRows, from_text, to_text
from horarium.platform.database.tables import namespace_usage, namespaces, runs, schedules, tokens
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
_CREATED_RUNS = sa.case((namespace_usage.c.minute.between(_MINUTE, _MINUTE + 1), namespace_usage.c.born), else_=0)
_NAMESPACE_COLUMNS = (namespaces.c.namespace, namespaces.c.quotas, namespaces.c.bytes_stored, namespaces.c.bytes_base)
_SUMS = (
    sa.select(
        *_NAMESPACE_COLUMNS,
        sa.func.coalesce(sa.func.sum(_CREATED_RUNS), 0).label("born"),
        _sum(namespace_usage.c.births),
        _sum(namespace_usage.c.schedules),
        _sum(namespace_usage.c.bytes),
    )
    .outerjoin_from(namespaces, namespace_usage, namespace_usage.c.namespace == namespaces.c.namespace)
    .where(namespaces.c.namespace.in_(sa.bindparam("names", expanding=True)))
    .group_by(*_NAMESPACE_COLUMNS)
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


@dataclass(frozen=True, slots=True)
class NamespaceRow:
    """`quotas` are limits of its own; days that are None are those of the settings."""

    namespace: str
    description: str
    created_at: Instant
    quotas: Overrides = field(default_factory=dict)
    keep_runs_days: int | None = None
    keep_history_days: int | None = None


_NAMESPACE_ROWS = TypedRows(NamespaceRow, namespaces, quotas=lambda text: from_text(text) or {})
_LIVE = namespaces.c.deleted_at.is_(None)
_BY_NAME = _NAMESPACE_ROWS.select.where(namespaces.c.namespace == sa.bindparam("name"), _LIVE)
_HELD = sa.select(namespaces.c.namespace).where(namespaces.c.namespace == sa.bindparam("name"), _LIVE)
_TWO = sa.select(sa.literal(1)).select_from(namespaces).where(_LIVE).limit(2)


def insert_namespace(connection: Connection, namespace: str, description: str, *, now: Instant) -> None:
    """Raises Conflict(`namespaces_pkey`) if there is one of that name, or its rows are still on their way out."""
    connection.execute(sa.insert(namespaces).values(namespace=namespace, description=description, created_at=now))
    audit_chain.begin_anew(connection, namespace)


def update_namespace(connection: Connection, row: NamespaceRow) -> None:
    """As it is to be from now on; the caller has locked it."""
    connection.execute(
        sa.update(namespaces)
        .where(namespaces.c.namespace == row.namespace)
        .values(
            description=row.description,
            quotas=to_text(dict(row.quotas)) if row.quotas else None,
            keep_runs_days=row.keep_runs_days,
            keep_history_days=row.keep_history_days,
        )
    )


def find_namespace(connection: Connection, namespace: str) -> NamespaceRow | None:
    return _NAMESPACE_ROWS.one(connection, _BY_NAME, {"name": namespace})


def lock_namespace(connection: Connection, namespace: str) -> bool:
    """Lock a namespace until the transaction ends, and tell whether it exists.

    On SQLite the write transaction is the lock.
    """
    own = _HELD.with_for_update(key_share=True)
    return connection.execute(own, {"name": namespace}).scalar_one_or_none() is not None


def hold_namespace(connection: Connection, namespace: str) -> bool:
    """Keep a namespace from deletion until the transaction ends, and tell whether it exists. Holders share it."""
    shared = _HELD.with_for_update(read=True, key_share=True)
    return connection.execute(shared, {"name": namespace}).scalar_one_or_none() is not None


def has_several_namespaces(connection: Connection) -> bool:
    return len(connection.execute(_TWO).all()) > 1


def all_namespaces(connection: Connection) -> list[NamespaceRow]:
    return _NAMESPACE_ROWS.all_listed(connection, _NAMESPACE_ROWS.select.where(_LIVE).order_by(namespaces.c.namespace))


def first_namespaces(connection: Connection, limit: int) -> list[str]:
    """In their order, at most so many."""
    names = sa.select(namespaces.c.namespace).where(_LIVE).order_by(namespaces.c.namespace).limit(limit)
    return list(connection.execute(names).scalars())


# Scanners for leaked secrets know tokens by such a beginning.
PREFIX = "hor_"
_SECRET_BYTES = 32


@dataclass(frozen=True, slots=True)
class TokenRow:
    """The hash stays inside this module. `queues` None = it is good for all."""

    token_id: bytes
    namespace: str
    name: str
    role: str
    subject: str | None
    created_at: Instant
    expires_at: Instant | None
    revoked_at: Instant | None
    last_used_at: Instant | None
    previous_until: Instant | None
    queues: frozenset[str] | None

    def is_live(self, now: Instant) -> bool:
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)


@dataclass(frozen=True, slots=True, repr=False)
class NewToken:
    """`secret` is shown to its owner once and kept nowhere; not even a traceback prints it."""

    token_id: bytes
    secret: str

    def __repr__(self) -> str:
        return f"IssuedToken({self.token_id!r}, secret=…)"


def _queues(text: str | None) -> frozenset[str] | None:
    return None if text is None else frozenset(from_text(text))


_TOKEN_ROWS = TypedRows(TokenRow, tokens, queues=_queues)
_BY_HASH = _TOKEN_ROWS.select.add_columns(tokens.c.sha256).where(tokens.c.sha256 == sa.bindparam("wanted"))
_BY_PREVIOUS = _TOKEN_ROWS.select.add_columns(tokens.c.previous_sha256).where(
    tokens.c.previous_sha256.is_not(None),
    tokens.c.previous_sha256 == sa.bindparam("wanted"),
    tokens.c.previous_until > sa.bindparam("now"),
)


def issue_token(
    connection: Connection,
    *,
    namespace: str,
    name: str,
    role: str,
    now: Instant,
    subject: str | None = None,
    expires_at: Instant | None = None,
    queues: Collection[str] | None = None,
) -> NewToken:
    """Raises DataError if there is no such namespace."""
    issued = NewToken(new_id(), _new_secret())
    connection.execute(
        sa.insert(tokens).values(
            token_id=issued.token_id,
            namespace=namespace,
            sha256=_hash(issued.secret),
            name=name,
            role=role,
            subject=subject,
            created_at=now,
            expires_at=expires_at,
            queues=None if queues is None else to_text(sorted(queues)),
        )
    )
    return issued


def find_token_by_secret(connection: Connection, secret: str, *, now: Instant) -> TokenRow | None:
    """None for what was never issued, is revoked or has expired: the caller learns no more than that."""
    wanted = _hash(secret)
    found = connection.execute(_BY_HASH, {"wanted": wanted}).one_or_none()
    if found is None:  # most are not rotated, and nobody pays for those that are
        found = connection.execute(_BY_PREVIOUS, {"wanted": wanted, "now": now}).one_or_none()
    if found is None or not hmac.compare_digest(found[-1], wanted):
        return None
    row = _TOKEN_ROWS.read(found[:-1])
    return row if row.is_live(now) else None


def find_token(connection: Connection, namespace: str, token_id: bytes) -> TokenRow | None:
    return _TOKEN_ROWS.one(connection, _TOKEN_ROWS.select.where(*_named(namespace, token_id)))


def all_tokens(connection: Connection, namespace: str) -> list[TokenRow]:
    """Oldest first; revoked and expired ones too."""
    return _TOKEN_ROWS.all_listed(
        connection, _TOKEN_ROWS.select.where(tokens.c.namespace == namespace).order_by(tokens.c.token_id)
    )


# More than a question about single principals needs.
_MOST_PRINCIPALS = 1_000


def principals(connection: Connection, namespace: str, roles: Collection[str], now: Instant) -> list[tuple[str, str]]:
    """Subjects of live tokens with one of the roles, and the roles. Admins of the default namespace are everywhere."""
    everywhere = sa.and_(tokens.c.namespace == DEFAULT_NAMESPACE, tokens.c.role == "admin")
    live = sa.and_(tokens.c.revoked_at.is_(None), sa.or_(tokens.c.expires_at.is_(None), tokens.c.expires_at > now))
    who = sa.func.coalesce(tokens.c.subject, tokens.c.name)
    found = sa.select(who, tokens.c.role).where(
        sa.or_(tokens.c.namespace == namespace, everywhere), tokens.c.role.in_(list(roles)), live
    )
    return [(each[0], each[1]) for each in connection.execute(found.distinct().limit(_MOST_PRINCIPALS))]


def rotate_token(
    connection: Connection, namespace: str, token_id: bytes, *, now: Instant, previous_until: Instant
) -> NewToken | None:
    """A new secret; the one before it is good until then, and the one before that no more. None if it is not live."""
    secret = _new_secret()
    changed = connection.execute(
        sa.update(tokens)
        .where(
            *_named(namespace, token_id),
            tokens.c.revoked_at.is_(None),
            sa.or_(tokens.c.expires_at.is_(None), tokens.c.expires_at > now),
        )
        .values(sha256=_hash(secret), previous_sha256=tokens.c.sha256, previous_until=previous_until)
    )
    return NewToken(token_id, secret) if changed.rowcount == 1 else None


def revoke_token(connection: Connection, namespace: str, token_id: bytes, *, now: Instant) -> bool:
    """Revoke a token and tell whether it was active; the first revocation stays on record."""
    changed = connection.execute(
        sa.update(tokens).where(*_named(namespace, token_id), tokens.c.revoked_at.is_(None)).values(revoked_at=now)
    )
    return changed.rowcount == 1


def revoke_named_token(connection: Connection, namespace: str, name: str, *, now: Instant) -> int:
    """All that have this name; how many were live until now."""
    named = tokens.c.namespace == namespace, tokens.c.name == name, tokens.c.revoked_at.is_(None)
    return connection.execute(sa.update(tokens).where(*named).values(revoked_at=now)).rowcount


def revoke_tokens_of_subject(connection: Connection, namespace: str, subject: str, role: str, *, now: Instant) -> int:
    """All whose bearer it is in this role; how many were live until now."""
    is_bearer = sa.func.coalesce(tokens.c.subject, tokens.c.name) == subject
    mine = tokens.c.namespace == namespace, is_bearer, tokens.c.role == role, tokens.c.revoked_at.is_(None)
    return connection.execute(sa.update(tokens).where(*mine).values(revoked_at=now)).rowcount


def touch_token(connection: Connection, token_id: bytes, *, now: Instant) -> None:
    """For people who wonder whether a token is still in use; callers do this now and then, not each time."""
    connection.execute(sa.update(tokens).where(tokens.c.token_id == token_id).values(last_used_at=now))


def _named(namespace: str, token_id: bytes) -> tuple[sa.ColumnElement[bool], ...]:
    return tokens.c.namespace == namespace, tokens.c.token_id == token_id


def _new_secret() -> str:
    return PREFIX + secrets.token_urlsafe(_SECRET_BYTES)


def _hash(secret: str) -> str:
    """Plain SHA-256 is enough for 256 random bits; there is nothing to guess."""
    return sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
