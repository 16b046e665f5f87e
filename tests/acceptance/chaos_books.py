"""Whether the books are right after all has come to rest: every count is counted again from the rows, by plain SQL.

Each rule is a query that finds what breaks it; a sound database gives no rows at all.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import Connection, text

from horarium.core.document.states import FINAL, RunState
from horarium.platform.database import Database

_SHOWN = 10


def _states(states: frozenset[RunState]) -> str:
    return ", ".join(sorted(f"'{state}'" for state in states))


_OPEN = _states(frozenset(RunState) - FINAL)
_ACTIVE = _states(frozenset(RunState) - FINAL - {RunState.HELD})
# The event that ends a run is named after its state, but for success.
_ENDS = ", ".join(sorted(f"'run.{'completed' if state is RunState.SUCCEEDED else state}'" for state in FINAL))

OPEN_RUNS = f"SELECT kind, state, count(*) FROM runs WHERE state IN ({_OPEN}) GROUP BY kind, state"

RULES: Mapping[str, str] = {
    "every run has ended": f"SELECT kind, state, origin, launches, error FROM runs WHERE state IN ({_OPEN})",
    "what has ended says when, and nobody holds it": f"""
        SELECT state, finished_at, lease_owner FROM runs
        WHERE state NOT IN ({_OPEN}) AND (finished_at IS NULL OR lease_owner IS NOT NULL OR lease_until IS NOT NULL)
    """,
    "active and held are the open runs of a schedule": f"""
        SELECT p.schedule_id, p.active, count(*) FILTER (WHERE r.state IN ({_ACTIVE})) AS really_active,
          p.held, count(*) FILTER (WHERE r.state = 'held') AS really_held
        FROM positions p LEFT JOIN runs r ON r.schedule_uid = p.schedule_uid AND r.parent_run_id IS NULL
        GROUP BY p.schedule_uid
        HAVING p.active <> count(*) FILTER (WHERE r.state IN ({_ACTIVE}))
          OR p.held <> count(*) FILTER (WHERE r.state = 'held')
    """,
    "runs_born are the runs of a schedule": """
        SELECT p.schedule_id, p.runs_born, count(r.run_id) FROM positions p
        LEFT JOIN runs r ON r.schedule_uid = p.schedule_uid AND r.parent_run_id IS NULL
        GROUP BY p.schedule_uid HAVING p.runs_born <> count(r.run_id)
    """,
    "fires_count are the fires that history tells of": """
        SELECT p.schedule_id, p.fires_count, count(h.sequence) FROM positions p
        LEFT JOIN history h ON h.schedule_uid = p.schedule_uid AND h.event_type = 'ScheduleTriggered'
        GROUP BY p.schedule_uid HAVING p.fires_count <> count(h.sequence)
    """,
    "skipped_count are the skips that history tells of": """
        SELECT p.schedule_id, p.skipped_count, COALESCE(sum(h.skips), 0) FROM positions p
        LEFT JOIN (
          SELECT schedule_uid, COALESCE((payload::json->>'count')::bigint, 1) AS skips FROM history
          WHERE event_type = 'ScheduleTriggerSkipped'
            OR event_type = 'ScheduleMissed' AND payload::json->>'reason' NOT IN ('missed', 'catchup_cap', 'superseded',
              'remaining_actions_exhausted')
        ) h ON h.schedule_uid = p.schedule_uid
        GROUP BY p.schedule_uid HAVING p.skipped_count <> COALESCE(sum(h.skips), 0)
    """,
    "a concurrency key counts the active runs that hold it": f"""
        SELECT c.owner, c.value, count(r.run_id) FROM counters c
        LEFT JOIN runs r ON 'key:' || r.namespace || ' ' || r.concurrency_key = c.owner
          AND r.state IN ({_ACTIVE}) AND r.parent_run_id IS NULL
        WHERE c.kind = 'key' GROUP BY c.owner, c.value HAVING c.value <> count(r.run_id)
    """,
    "history is numbered from 1 without gaps": """
        SELECT p.schedule_id, p.next_sequence, min(h.sequence), max(h.sequence), count(*) FROM positions p
        LEFT JOIN history h ON h.schedule_uid = p.schedule_uid AND h.sequence IS NOT NULL GROUP BY p.schedule_uid
        HAVING min(h.sequence) <> 1 OR max(h.sequence) <> count(*) OR p.next_sequence <> count(*) + 1
          OR count(h.sequence) = 0
    """,
    "the events of a run have no gaps": """
        SELECT r.state, r.next_event, min(e.sequence), max(e.sequence), count(*) FROM runs r
        JOIN run_events e ON e.run_id = r.run_id GROUP BY r.run_id
        HAVING max(e.sequence) - min(e.sequence) + 1 <> count(*) OR r.next_event <> max(e.sequence) + 1
    """,
    "a run ends once, and as its last state says": f"""
        SELECT r.state, count(e.sequence), string_agg(e.event_type, ' ') FROM runs r
        LEFT JOIN run_events e ON e.run_id = r.run_id AND e.event_type IN ({_ENDS})
        WHERE r.state NOT IN ({_OPEN}) GROUP BY r.run_id
        HAVING count(e.sequence) <> 1
          OR min(e.event_type) <> 'run.' || CASE r.state WHEN 'succeeded' THEN 'completed' ELSE r.state END
    """,
    "an occurrence has one run": """
        SELECT schedule_uid, nominal, count(*) FROM runs WHERE origin IN ('scheduled', 'backfill')
        GROUP BY schedule_uid, nominal HAVING count(*) > 1
    """,
}


def problems(database: Database) -> list[str]:
    def look(connection: Connection) -> list[str]:
        return [
            f"not true: {rule}: {len(rows)} rows, such as {rows[:_SHOWN]}"
            for rule, query in RULES.items()
            if (rows := [tuple(row) for row in connection.execute(text(query))])
        ]

    return database.read(look)


def open_runs(database: Database) -> dict[tuple[str, str], int]:
    """By kind and state, how many have not ended."""
    return _by_kind_and_state(database, OPEN_RUNS)


def succeeded(database: Database, kind: str) -> set[bytes]:
    query = text("SELECT run_id FROM runs WHERE kind = :kind AND state = 'succeeded'")
    return set(database.read(lambda connection: connection.execute(query, {"kind": kind}).scalars().all()))


def summary(database: Database) -> dict[tuple[str, str], int]:
    """For a person: how many runs of each kind ended how."""
    return _by_kind_and_state(database, "SELECT kind, state, count(*) FROM runs GROUP BY kind, state")


def _by_kind_and_state(database: Database, query: str) -> dict[tuple[str, str], int]:
    rows = database.read(lambda connection: connection.execute(text(query)).all())
    return {(kind, state): count for kind, state, count in sorted(tuple(row) for row in rows)}
