"""How a batch of decisions becomes rows: three set-based statements in the transaction of the claim.

One UPDATE of positions, then the new rows of runs and history. SQLite gets each as an `executemany`.
PostgreSQL gets the update as columns in JSON, and the rows by binary COPY: of the ways to hand five
hundred rows to it these cost the least (ten times less than arrays as the driver writes them).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import orjson
from sqlalchemy import Connection

from horarium.decision.ledger import Entry, NewEvent, NewRun, first_stored_event
from horarium.instant import Instant
from horarium.schedule.planning import Planning
from horarium.schedule.position import Status
from horarium.schedule.run import Origin
from horarium.store.postgres import copy_rows

MILLIONTHS = 1_000_000


class Page(NamedTuple):
    """One schedule's share of a batch."""

    schedule_uid: bytes
    namespace: str
    revision: int
    planning: Planning
    entry: Entry


_POSITION = {
    "schedule_uid": "bytea",
    "status": "text",
    "next_due": "int8",
    "decided_until": "int8",
    "next_sequence": "int8",
    "active": "int4",
    "held": "int4",
    "runs_born": "int8",
    "fires_count": "int8",
    "skipped_count": "int8",
    "rotation_index": "int8",
    "last_fired_at": "int8",
    "last_run_id": "bytea",
    "last_skip_reason": "text",
    "last_skipped_at": "int8",
    "last_dispatch_status": "text",
}
_RUN = {
    "run_id": "bytea",
    "namespace": "text",
    "schedule_uid": "bytea",
    "revision": "int4",
    "origin": "text",
    "state": "text",
    "nominal": "int8",
    "due": "int8",
    "ready_at": "int8",
    "rotation_index": "int4",
    "trigger_number": "int8",
    "covers_first": "int8",
    "covers_last": "int8",
    "covers_count": "int8",
    "created_at": "int8",
    "next_event": "int4",
    "workflow": "text",
    "kind": "text",
    "timeout_seconds": "int4",
    "priority": "int4",
    "queue": "text",
    "delivery": "text",
    "needs_approval": "bool",
    "concurrency_key": "text",
    "assignee": "text",
    "reserved": "int8",
}
_RUN_CONSTANTS = {
    "attempt": 0,
    "launches": 0,
    "lease_epoch": 0,
    "cost": 0,
    "tokens": 0,
    "tool_calls": 0,
}
_HISTORY = {
    "schedule_uid": "bytea",
    "sequence": "int8",
    "namespace": "text",
    "event_type": "text",
    "recorded_at": "int8",
    "nominal": "int8",
    "nominal_last": "int8",
    "run_id": "bytea",
    "payload": "text",
}


def write(connection: Connection, pages: Sequence[Page], *, now: Instant, origin: Origin = Origin.SCHEDULED) -> None:
    """The caller has locked the positions; nothing here decides anything."""
    position_rows = [_position_row(page) for page in pages]
    run_rows = [_run_row(page, run, now, origin.value) for page in pages for run in page.entry.runs]
    history_rows = [_history_row(page, event, now) for page in pages for event in page.entry.events]
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql(_UPDATE_SQLITE, [(*row[1:], row[0]) for row in position_rows])
        if run_rows:
            connection.exec_driver_sql(_RUNS_SQLITE, run_rows)
        if history_rows:
            connection.exec_driver_sql(_HISTORY_SQLITE, history_rows)
    else:
        columns = zip(_POSITION.values(), zip(*position_rows, strict=True), strict=True)
        connection.exec_driver_sql(_UPDATE_POSTGRES, tuple(_json_column(kind, values) for kind, values in columns))
        if run_rows:
            copy_rows(connection, _COPY_RUNS, [*_RUN.values(), *_CONSTANT_KINDS], run_rows, _CONSTANT_VALUES)
        if history_rows:
            copy_rows(connection, _COPY_HISTORY, [*_HISTORY.values()], history_rows)
    _mark_deleted(connection, pages, now)


def encode(value: object) -> str:
    """JSON text for a column; keys keep their order, so equal payloads are equal texts."""
    try:
        return orjson.dumps(value, default=_plain).decode()
    except TypeError:  # an integer beyond 64 bits, half of a surrogate pair: JSON all the same
        return json.dumps(value, default=_plain, separators=(",", ":"))


def _plain(value: object) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, frozenset | set | tuple):
        return list(value)
    return str(value)


def _position_row(page: Page) -> tuple[Any, ...]:
    position, counts = page.entry.position, page.entry.counts
    return (
        page.schedule_uid,
        position.status.value,
        position.next_due,
        position.decided_until,
        counts.next_sequence,
        counts.active,
        counts.held,
        position.runs_born,
        counts.fires_count,
        counts.skipped_count,
        position.rotation_index,
        counts.last_fired_at,
        counts.last_run_id,
        counts.last_skip_reason,
        counts.last_skipped_at,
        counts.last_dispatch_status,
    )


def _run_row(page: Page, run: NewRun, now: Instant, origin: str) -> tuple[Any, ...]:
    covers = run.covers
    first, last, count = (None, None, None) if covers is None else (covers.first, covers.last, covers.count)
    return (
        run.run_id,
        page.namespace,
        page.schedule_uid,
        page.revision,
        origin,
        run.state.value,
        run.nominal,
        run.due,
        run.ready_at,
        run.rotation_index,
        run.trigger_number,
        first,
        last,
        count,
        now,
        first_stored_event(run.state),
        *_run_constants(page.planning),
    )


@lru_cache(maxsize=65_536)
def _run_constants(planning: Planning) -> tuple[Any, ...]:
    """What all runs of one planning have in common, in the order of the last columns."""
    return (
        planning.workflow,
        planning.kind.value,
        planning.timeout_seconds,
        planning.priority,
        planning.queue,
        planning.delivery.value,
        planning.needs_approval,
        planning.concurrency_key,
        planning.assignee,
        int(planning.reserve * MILLIONTHS),
    )


def _history_row(page: Page, event: NewEvent, now: Instant) -> tuple[Any, ...]:
    return (
        page.schedule_uid,
        event.sequence,
        page.namespace,
        event.event_type.value,
        now,
        event.nominal,
        event.nominal_last,
        event.run_id,
        encode(event.payload),
    )


def _json_column(kind: str, values: Sequence[Any]) -> str:
    return encode([value and value.hex() for value in values] if kind == "bytea" else values)


def _mark_deleted(connection: Connection, pages: Iterable[Page], now: Instant) -> None:
    """A schedule whose runs are used up is deleted by the transaction that bore the last one."""
    gone = [page.schedule_uid for page in pages if page.entry.position.status is Status.DELETED]
    mark = "?" if connection.dialect.name == "sqlite" else "%s"
    for uid in gone:
        connection.exec_driver_sql(
            f"UPDATE schedules SET deleted_at = {mark}, updated_at = {mark}, version = version + 1 "
            f"WHERE schedule_uid = {mark}",
            (now, now, uid),
        )


# ── the statements ───────────────────────────────────────────────────────────────────────────────────


def _names(columns: Mapping[str, str]) -> str:
    return ", ".join(columns)


def _from_text(number: int, kind: str) -> str:
    return f"decode(c{number}, 'hex')" if kind == "bytea" else f"c{number}::{kind}"


_SET = [name for name in _POSITION if name != "schedule_uid"]
_UPDATE_SQLITE = f"UPDATE positions SET {', '.join(f'{name} = ?' for name in _SET)} WHERE schedule_uid = ?"
_RUNS_SQLITE = (
    f"INSERT INTO runs ({_names(_RUN)}, {', '.join(_RUN_CONSTANTS)}) "
    f"VALUES ({', '.join('?' * len(_RUN))}, {', '.join(map(str, _RUN_CONSTANTS.values()))})"
)
_HISTORY_SQLITE = f"INSERT INTO history ({_names(_HISTORY)}) VALUES ({', '.join('?' * len(_HISTORY))})"

_CONSTANT_KINDS = ["int4", "int4", "int4", "int8", "int8", "int8"]
_CONSTANT_VALUES = tuple(_RUN_CONSTANTS.values())
_COPY_RUNS = f"COPY runs ({_names(_RUN)}, {', '.join(_RUN_CONSTANTS)}) FROM STDIN (FORMAT BINARY)"
_COPY_HISTORY = f"COPY history ({_names(_HISTORY)}) FROM STDIN (FORMAT BINARY)"
_UPDATE_POSTGRES = f"""
UPDATE positions SET {", ".join(f"{name} = new.{name}" for name in _SET)}
FROM (
  SELECT {", ".join(f"{_from_text(i, kind)} AS {name}" for i, (name, kind) in enumerate(_POSITION.items()))}
  FROM ROWS FROM ({", ".join(["json_array_elements_text(%s::json)"] * len(_POSITION))})
    AS columns ({", ".join(f"c{i}" for i in range(len(_POSITION)))})
) AS new
WHERE positions.schedule_uid = new.schedule_uid
"""
