"""How the row of a run is closed: its last state, its last event, and what it gives back to the counters.

Whoever calls holds the lock on the rows. What an end means for the schedule is told in `ends.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, bindparam, update

from horarium.instant import DAY, SECOND, Instant
from horarium.schedule.event import final_event
from horarium.schedule.run import FINAL, RunState
from horarium.store import facts
from horarium.store.jsontext import kept_text
from horarium.store.record import encode
from horarium.store.runs import MAX_ERROR
from horarium.store.tables import run_events, runs

OPEN_STATES = tuple(sorted(state.value for state in frozenset(RunState) - FINAL))
_WORKED = frozenset({RunState.SUCCEEDED, RunState.FAILED})


@dataclass(frozen=True, slots=True)
class End:
    """How a run ended, as somebody reported it."""

    state: RunState
    result: Any = None
    error: str | None = None
    error_class: str | None = None
    cause: str | None = None
    cost: int | None = None
    tokens: int | None = None
    tool_calls: int | None = None
    detail: dict[str, Any] = field(default_factory=dict)

    @property
    def kept_error(self) -> str | None:
        return None if self.error is None else kept_text(self.error, MAX_ERROR)


def close(connection: Connection, ended: Sequence[tuple[Any, End]], now: Instant) -> None:
    """Each with the whole row of its run, as it was."""
    if not ended:
        return
    connection.execute(_CLOSE, [{"id": row.run_id, **_named(_closed(row, end, now))} for row, end in ended])
    connection.execute(run_events.insert(), [_last_event(row, end, now) for row, end in ended])
    freed = Counter[facts.Counter]()
    for row, end in ended:
        freed.update(_freed(row, end))
    facts.add_to_counters(connection, freed)


def _closed(row: Any, end: End, now: Instant) -> dict[str, Any]:
    started_at = row.started_at
    if started_at is None and row.deadline is not None and end.state in _WORKED:
        # Answered at once: it began when it was handed out, which is when its time began to run.
        started_at = row.deadline - row.timeout_seconds * SECOND
    return {
        "state": end.state.value,
        "started_at": started_at,
        "finished_at": now,
        "lease_owner": None,
        "lease_until": None,
        # Whoever still works on it has lost his lease and may not answer any more.
        "lease_epoch": row.lease_epoch + 1,
        "result": row.result if end.result is None else encode(end.result),
        "error": end.kept_error,
        "error_class": end.error_class,
        "cause": end.cause,
        "cost": row.cost if end.cost is None else end.cost,
        "tokens": row.tokens if end.tokens is None else end.tokens,
        "tool_calls": row.tool_calls if end.tool_calls is None else end.tool_calls,
        "next_event": row.next_event + 1,
    }


_COLUMNS = (
    "state", "started_at", "finished_at", "lease_owner", "lease_until", "lease_epoch", "result", "error",
    "error_class", "cause", "cost", "tokens", "tool_calls", "next_event",
)  # fmt: skip
_CLOSE = (
    update(runs).where(runs.c.run_id == bindparam("id")).values({name: bindparam(f"new_{name}") for name in _COLUMNS})
)


def _named(values: dict[str, Any]) -> dict[str, Any]:
    """Under the names that an UPDATE of many rows needs, which must not be those of its columns."""
    return {f"new_{name}": value for name, value in values.items()}


def _last_event(row: Any, end: End, now: Instant) -> dict[str, Any]:
    said = {"error": end.kept_error, "error_class": end.error_class, "cause": end.cause, **end.detail}
    return {
        "run_id": row.run_id,
        "sequence": row.next_event,
        "event_type": final_event(end.state, is_step=row.parent_run_id is not None).value,
        "recorded_at": now,
        "payload": encode({name: value for name, value in said.items() if value is not None}),
    }


def _freed(row: Any, end: End) -> dict[facts.Counter, int]:
    """A step counts with its root, and a run of no schedule with nobody."""
    if row.schedule_uid is None or row.parent_run_id is not None:
        return {}
    changes: dict[facts.Counter, int] = {}
    if row.concurrency_key is not None and row.state != RunState.HELD:
        changes["key", facts.key_owner(row.namespace, row.concurrency_key), 0] = -1
    # What a run cost takes the place of what was reserved for it on the day of its birth.
    spent = (row.cost if end.cost is None else end.cost) - row.reserved
    if spent:
        day = row.created_at // DAY
        changes["spent", facts.schedule_owner(row.schedule_uid), day] = spent
        if row.assignee is not None:
            changes["spent", facts.assignee_owner(row.namespace, row.assignee), day] = spent
    return changes
