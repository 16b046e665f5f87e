"""Count the bytes that each namespace stores: texts by their length, and a constant for the rest of each row.

It is counted in pieces in the order of the keys, since a whole table may take longer than the statement timeout.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import sqlalchemy as sa
from sqlalchemy import ColumnElement, Connection

from horarium.platform.database import run_archive
from horarium.platform.database.tables import (
    agents,
    approvals,
    assignments,
    audit,
    calendars,
    dead_letters,
    history,
    idempotency,
    namespace_usage,
    namespaces,
    run_definitions,
    run_events,
    run_logs,
    runs,
    runs_archive,
    schedule_revisions,
    schedules,
    secrets,
    standing_approvals,
    subscriptions,
    teams,
    tokens,
    workflows,
)

_PIECE = 2_000
_TEXTS_OF_A_RUN = ("inputs", "result", "error", "effective", "progress")
# What a row takes beside its texts, with its part of the indexes.
_OF_A_RUN, _OF_AN_EVENT, _OF_A_DECISION, _OF_A_REVISION = 600, 60, 150, 400


class CountedPart(Enum):
    """In the order in which they are counted."""

    RUNS = "runs"
    ARCHIVE = "archive"
    HISTORY = "history"
    DEFINITIONS = "definitions"
    CALENDARS = "calendars"
    WORKFLOWS = "workflows"
    AGENTS = "agents"
    TEAMS = "teams"
    ASSIGNMENTS = "assignments"
    STANDING_APPROVALS = "standing_approvals"
    IDEMPOTENCY = "idempotency"
    AUDIT = "audit"
    SECRETS = "secrets"
    SUBSCRIPTIONS = "subscriptions"
    DEAD_LETTERS = "dead_letters"
    TOKENS = "tokens"


@dataclass(frozen=True, slots=True)
class CountPosition:
    """Where to go on: after this key of this part."""

    part: CountedPart
    after: tuple[Any, ...]


BEGIN = CountPosition(CountedPart.RUNS, (b"",))


@dataclass(frozen=True, slots=True)
class Piece:
    """`after` None = this was the last."""

    bytes: Mapping[str, int]
    after: CountPosition | None


def sums(connection: Connection) -> dict[str, int]:
    """Sum of all bytes ever added, by namespace. A count in progress subtracts it to find concurrent growth."""
    added = sa.func.coalesce(sa.func.sum(namespace_usage.c.bytes), 0)
    rows = connection.execute(sa.select(namespace_usage.c.namespace, added).group_by(namespace_usage.c.namespace))
    return {namespace: int(number) for namespace, number in rows}


def save(connection: Connection, found: Mapping[str, int], base: Mapping[str, int]) -> None:
    names = connection.execute(sa.select(namespaces.c.namespace).order_by(namespaces.c.namespace)).scalars().all()
    rows = [{"name": name, "bytes": found.get(name, 0), "added": base.get(name, 0)} for name in names]
    if rows:
        connection.execute(_SAVE, rows)


_SAVE = (
    sa.update(namespaces)
    .where(namespaces.c.namespace == sa.bindparam("name"))
    .values(bytes_stored=sa.bindparam("bytes"), bytes_base=sa.bindparam("added"))
)


def count_some(connection: Connection, place: CountPosition) -> Piece:
    if place.part is CountedPart.ARCHIVE and not run_archive.has_archive(connection):
        place = CountPosition(CountedPart.HISTORY, _first(_PARTS[CountedPart.HISTORY][0]))
    key, count = _PARTS[place.part]
    within = _whole(key) > _values(place.after)
    keys = sa.select(*key).where(within).order_by(*key).offset(_PIECE - 1).limit(1)
    last = connection.execute(keys).one_or_none()
    if last is not None:
        within = sa.and_(within, _whole(key) <= _values(tuple(last)))
    counted = count(connection, within)
    if last is not None:
        return Piece(counted, CountPosition(place.part, tuple(last)))
    order = list(CountedPart)
    following = order[order.index(place.part) + 1 :]
    return Piece(counted, CountPosition(following[0], _first(_PARTS[following[0]][0])) if following else None)


def _whole(key: Sequence[ColumnElement[Any]]) -> ColumnElement[Any]:
    return key[0] if len(key) == 1 else sa.tuple_(*key)


def _values(key: Sequence[Any]) -> Any:
    return key[0] if len(key) == 1 else sa.tuple_(*map(sa.literal, key))


def _size(connection: Connection, *columns: ColumnElement[Any]) -> ColumnElement[int]:
    """In bytes; of a long text PostgreSQL tells it without reading the text."""

    def of_one(column: ColumnElement[Any]) -> ColumnElement[int]:
        if connection.dialect.name == "postgresql":
            return sa.func.octet_length(column)
        return sa.func.length(sa.cast(column, sa.LargeBinary))

    return sum((sa.func.coalesce(of_one(each), 0) for each in columns), sa.literal(0))


def _add(connection: Connection, counted: Counter[str], statement: sa.Select[Any]) -> None:
    for namespace, number in connection.execute(statement):
        counted[namespace] += int(number)


def _runs_of(table: sa.Table) -> tuple[tuple[ColumnElement[Any], ...], _Count]:
    """The key of a table of runs, and how they are counted with all that hangs on them."""

    def count(connection: Connection, within: ColumnElement[bool]) -> Counter[str]:
        counted: Counter[str] = Counter()
        own = _size(connection, *(table.c[name] for name in _TEXTS_OF_A_RUN)) + _OF_A_RUN
        mine = sa.select(table.c.namespace, sa.func.sum(own)).where(within).group_by(table.c.namespace)
        _add(connection, counted, mine)
        for other, size in _beside_runs(connection):
            joined = sa.select(table.c.namespace, sa.func.sum(size))
            joined = joined.join_from(table, other, other.c.run_id == table.c.run_id)
            _add(connection, counted, joined.where(within).group_by(table.c.namespace))
        return counted

    return (table.c.run_id,), count


def _beside_runs(connection: Connection) -> Sequence[tuple[sa.Table, ColumnElement[int]]]:
    asked = (approvals.c.proposed, approvals.c.approvers, approvals.c.requesters)
    return (
        (run_events, _size(connection, run_events.c.payload) + _OF_AN_EVENT),
        (run_definitions, _size(connection, run_definitions.c.document)),
        (run_logs, run_logs.c.bytes + _OF_AN_EVENT),
        # With its votes, which are a few short texts.
        (approvals, _size(connection, *asked) + _OF_A_RUN),
    )


def _history(connection: Connection, within: ColumnElement[bool]) -> Counter[str]:
    counted: Counter[str] = Counter()
    size = sa.func.sum(_size(connection, history.c.payload) + _OF_A_DECISION)
    _add(connection, counted, sa.select(history.c.namespace, size).where(within).group_by(history.c.namespace))
    return counted


def _definitions(connection: Connection, within: ColumnElement[bool]) -> Counter[str]:
    """Size of schedules, selected by uid, with all their revisions, by namespace."""
    counted: Counter[str] = Counter()
    size = sa.func.sum(_size(connection, schedule_revisions.c.document) + _OF_A_REVISION)
    _add(
        connection,
        counted,
        sa.select(schedules.c.namespace, size)
        .join_from(schedules, schedule_revisions, schedule_revisions.c.schedule_uid == schedules.c.schedule_uid)
        .where(within)
        .group_by(schedules.c.namespace),
    )
    return counted


def _rows_of(table: sa.Table, *texts: ColumnElement[Any]) -> tuple[tuple[ColumnElement[Any], ...], _Count]:
    """The key of a table whose rows are whole documents, and how they are counted."""

    def count(connection: Connection, within: ColumnElement[bool]) -> Counter[str]:
        counted: Counter[str] = Counter()
        size = sa.func.sum(_size(connection, *texts) + _OF_A_REVISION)
        _add(connection, counted, sa.select(table.c.namespace, size).where(within).group_by(table.c.namespace))
        return counted

    return tuple(table.primary_key.columns), count


_Count = Callable[[Connection, ColumnElement[bool]], Counter[str]]
_PARTS: Mapping[CountedPart, tuple[tuple[ColumnElement[Any], ...], _Count]] = {
    CountedPart.RUNS: _runs_of(runs),
    CountedPart.ARCHIVE: _runs_of(runs_archive),
    CountedPart.HISTORY: ((history.c.feed_id,), _history),
    CountedPart.DEFINITIONS: ((schedules.c.schedule_uid,), _definitions),
    CountedPart.CALENDARS: _rows_of(calendars, calendars.c.document),
    CountedPart.WORKFLOWS: _rows_of(workflows, workflows.c.document),
    CountedPart.AGENTS: _rows_of(agents, agents.c.document),
    CountedPart.TEAMS: _rows_of(teams, teams.c.document),
    CountedPart.ASSIGNMENTS: _rows_of(assignments, assignments.c.document),
    CountedPart.STANDING_APPROVALS: _rows_of(
        standing_approvals, standing_approvals.c.gates, standing_approvals.c.reason
    ),
    CountedPart.IDEMPOTENCY: _rows_of(idempotency, idempotency.c.answer, idempotency.c.key),
    CountedPart.AUDIT: _rows_of(audit, audit.c.detail),
    CountedPart.SECRETS: _rows_of(secrets, secrets.c.sealed, secrets.c.hosts),
    CountedPart.SUBSCRIPTIONS: _rows_of(
        subscriptions, subscriptions.c.kinds, subscriptions.c.filter, subscriptions.c.url
    ),
    CountedPart.DEAD_LETTERS: _rows_of(dead_letters, dead_letters.c.body, dead_letters.c.error),
    CountedPart.TOKENS: _rows_of(tokens),
}

NOT_COUNTED: Mapping[str, str] = {
    "run_definitions": "part of its run",
    "run_events": "part of its run",
    "run_logs": "part of its run",
    "approvals": "part of its run",
    "approval_votes": "part of its run: at most one per approver",
    "schedule_revisions": "part of its schedule",
    "schedule_attributes": "included in the size of a revision, because labels and search attributes are limited",
    "plannings": "shared by schedules with equal definitions, and shorter than their documents",
    "positions": "one per schedule",
    "unwell_schedules": "at most one per schedule",
    "checkpoints": "at most one per schedule",
    "counters": "one per schedule and day, deleted by retention",
    "step_changes": "one per ended step, until its workflow has processed it",
    "unwanted_tasks": "at most one per open prompt, until the agent has been notified",
    "releases": "one per release of an application, started by the operator",
    "namespaces": "created only by an operator",
    "namespace_usage": "a few per namespace",
    "audit_heads": "one per namespace",
    "feed_epochs": "one per database server",
    "leases": "belongs to processes, not to tenants",
    "installation": "belongs to the installation, not to tenants",
}
"""The tables that no part counts by themselves, each with the reason."""


def _first(key: Sequence[ColumnElement[Any]]) -> tuple[Any, ...]:
    """Before every key."""
    return tuple({bytes: b"", str: "", int: 0}[column.type.python_type] for column in key)
