"""A run as those see it who work on it: what a launcher needs, what its life depends on, and the fence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from sqlalchemy import Connection, TextClause, bindparam, text

from horarium.instant import Instant
from horarium.life.change import Used
from horarium.schedule.run import RunState
from horarium.store.database.set_wise import select_by_ids
from horarium.store.runs.everywhere import every_by_ids, lock_archived


class Work(NamedTuple):
    """Columns of `runs` under their own names; amounts are millionths of a credit."""

    run_id: bytes
    namespace: str
    schedule_uid: bytes | None
    revision: int | None
    workflow: str | None
    kind: str
    target: str
    origin: str
    state: str
    nominal: Instant
    due: Instant
    attempt: int
    launches: int
    busy_since: Instant | None
    lease_epoch: int
    claimed_by: str | None
    lease_until: Instant | None
    deadline: Instant | None
    ends_by: Instant | None
    timeout_seconds: int
    attempt_ms: int | None
    queue: str | None
    delivery: str
    rotation_index: int | None
    trigger_number: int | None
    inputs: str | None
    reference: str | None
    stop_requested_at: Instant | None
    created_at: Instant
    started_at: Instant | None
    parent_run_id: bytes | None
    root_run_id: bytes | None
    node_id: str | None
    concurrency_key: str | None
    assignee: str | None
    reserved: int
    cost: int
    tokens: int
    tool_calls: int
    earlier_cost: int
    earlier_tokens: int
    earlier_tool_calls: int
    next_event: int
    needs_approval: bool
    approval_id: bytes | None
    workflow_version: int | None
    of_workflow: str | None
    of_version: int | None
    node_path: str | None
    fallback: bool
    assignee_type: str | None
    member: str | None
    effective: str | None
    gates_passed: int
    heard: bool
    priority: int = 0

    @property
    def used(self) -> Used:
        return Used(self.cost, self.tokens, self.tool_calls)

    @property
    def earlier(self) -> Used:
        return Used(self.earlier_cost, self.earlier_tokens, self.earlier_tool_calls)

    @property
    def allowed_ms(self) -> int:
        """The time of one attempt."""
        return self.timeout_seconds * 1_000 if self.attempt_ms is None else self.attempt_ms


COLUMNS = ", ".join(Work._fields)
_BY_ID = f"SELECT {COLUMNS} FROM runs WHERE run_id"


def select_works(connection: Connection, where: str, values: Mapping[str, Any]) -> list[Work]:
    return run_works(connection, f"SELECT {COLUMNS} FROM runs WHERE {where}", values)


def find_works(connection: Connection, run_ids: Sequence[bytes]) -> list[Work]:
    """As they are now; whoever changes one of them locks it first, and judges it again."""
    return as_works(every_by_ids(connection, _BY_ID, run_ids)) if run_ids else []


def states_of(connection: Connection, run_ids: Sequence[bytes]) -> dict[bytes, RunState]:
    found = every_by_ids(connection, "SELECT run_id, state FROM runs WHERE run_id", run_ids) if run_ids else []
    return {run_id: RunState(state) for run_id, state in found}


def lock_works(connection: Connection, run_ids: Sequence[bytes]) -> list[Work]:
    """Ours until the transaction ends, in sorted order, so that two who want the same never wait for each other."""
    tail = "ORDER BY run_id FOR UPDATE" if connection.dialect.name == "postgresql" else ""
    return as_works(select_by_ids(connection, _BY_ID, run_ids, tail)) if run_ids else []


def lock_any_works(connection: Connection, run_ids: Sequence[bytes]) -> list[Work]:
    """Also those that are over, and have moved to the archive: somebody may have a word to say about them yet."""
    live = lock_works(connection, run_ids)
    known = {run.run_id for run in live}
    return [*live, *as_works(lock_archived(connection, _BY_ID, [each for each in run_ids if each not in known]))]


def run_works(connection: Connection, sql: str, values: Mapping[str, Any]) -> list[Work]:
    """A statement that answers with works. LOCK in it is what each database has for that; lists are for IN."""
    lists = tuple(name for name, value in values.items() if isinstance(value, list))
    return as_works(connection.execute(_statement(sql, connection.dialect.name, lists), values))


def as_works(rows: Iterable[Sequence[Any]]) -> list[Work]:
    return [Work._make(row) for row in rows]


@lru_cache(maxsize=64)
def _statement(sql: str, dialect: str, lists: tuple[str, ...]) -> TextClause:
    """Rows that others have locked are passed over; on SQLite there are no others."""
    locked = sql.replace(" LOCK", " FOR UPDATE SKIP LOCKED" if dialect == "postgresql" else "")
    return text(locked).bindparams(*(bindparam(name, expanding=True) for name in lists))
