"""SQL of tasks at agents: how many prompts each may be sent, and tasks to cancel there.

Prompts under way are counted in the database, since any process may send to any agent. A claim locks the agent's row
until its runs are visible to others; a claim that finds it locked skips the agent, and tries again soon.

A task of a run that is over is stored until its agent or worker has been notified. Its row is taken for as long as that
may take, and comes back without a result. After a few tries it is dropped: an agent that cannot be reached loses
nothing but its own time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final, NamedTuple

import sqlalchemy as sa
from sqlalchemy import Connection, text
from sqlalchemy.dialects import postgresql, sqlite

from horarium.core.document.definition import agent_in
from horarium.core.document.states import RunState
from horarium.features.agents.definition import AgentDefinition
from horarium.features.agents.policy_rows import read_agent
from horarium.features.runs.work_rows import ClaimCandidate, ReadyTarget, TargetPlaces
from horarium.instant import SECOND, Instant
from horarium.platform.database.run_states import PROMPT_OUT, PROMPT_UNMARKED
from horarium.platform.database.statements import event_text, rows_with
from horarium.platform.database.tables import agents, runs, unwanted_tasks


def read_places(connection: Connection, targets: Collection[ReadyTarget]) -> dict[ReadyTarget, TargetPlaces]:
    """Each is that of prompts to one agent."""
    capacities = _capacities(connection, targets, lock=False)
    out = _out(connection, targets)
    return {each: TargetPlaces(capacities.get(each), *out[each]) for each in targets}


def lock_places(connection: Connection, targets: Collection[ReadyTarget]) -> dict[ReadyTarget, TargetPlaces]:
    """Ours until the transaction ends; those that somebody else holds just now are missing."""
    if not targets:
        return {}
    # The counting comes after the lock: only so does it see what the one before us has taken.
    capacities = _capacities(connection, targets, lock=True)
    out = _out(connection, capacities.keys())
    return {each: TargetPlaces(capacity, *out[each]) for each, capacity in capacities.items()}


def _capacities(connection: Connection, targets: Iterable[ReadyTarget], *, lock: bool) -> dict[ReadyTarget, int | None]:
    named = {(each.namespace, agent_in(each.target) or ""): each for each in targets}
    columns = (agents.c.namespace, agents.c.agent_id)
    rows = sa.select(*columns, agents.c.document).order_by(*columns)
    found: dict[ReadyTarget, int | None] = {}
    for namespace, agent_id, document in rows_with(
        connection, rows.with_for_update(skip_locked=True) if lock else rows, columns, named.keys()
    ):
        agent = read_agent(agent_id, document)
        found[named[namespace, agent_id]] = agent.capacity if isinstance(agent, AgentDefinition) else None
    return found


# Of one target, as each database names it.
_OF_ONE = "namespace = {namespace} AND target = {target}"
_OF_REQUESTED = _OF_ONE.format(namespace="asked.namespace", target="asked.target")
_GIVEN = _OF_ONE.format(namespace="?", target="?")

_OUT = f"SELECT state, count(*) FROM runs WHERE {PROMPT_OUT} AND {{of_one}} GROUP BY state"
_OUT_POSTGRES = text(f"""
SELECT asked.namespace, asked.target, found.state, found.count
FROM json_to_recordset(CAST(:asked AS json)) AS asked(namespace text, target text)
CROSS JOIN LATERAL ({_OUT.format(of_one=_OF_REQUESTED)}) AS found
""")
_OUT_SQLITE = _OUT.format(of_one=_GIVEN)


def _out(connection: Connection, targets: Collection[ReadyTarget]) -> defaultdict[ReadyTarget, tuple[int, int]]:
    """All that are out, and of them those that are followed."""
    rows: Iterable[Any]
    if connection.dialect.name == "postgresql":
        rows = connection.execute(_OUT_POSTGRES, {"asked": _targets_text(targets)})
    else:
        rows = ((*each, *row) for each in targets for row in connection.exec_driver_sql(_OUT_SQLITE, tuple(each)))
    found: defaultdict[ReadyTarget, tuple[int, int]] = defaultdict(lambda: (0, 0))
    for namespace, target, state, count in rows:
        out, followed = found[ReadyTarget(namespace, target)]
        is_followed = state == RunState.READY
        found[ReadyTarget(namespace, target)] = out + count, followed + (count if is_followed else 0)
    return found


def _targets_text(targets: Iterable[ReadyTarget]) -> str:
    return event_text([each._asdict() for each in targets])


# ── what the agent may have already ──────────────────────────────────────────────────────────────────

_FOLLOWED = f"""
  SELECT namespace, target, -priority, ready_at, run_id, heard FROM runs
  WHERE {PROMPT_OUT} AND state = 'ready' AND {{of_one}} AND ready_at <= {{now}} AND stop_requested_at IS NULL
  ORDER BY ready_at LIMIT {{most}}
"""
_FOLLOWED_POSTGRES = text(f"""
SELECT ready.* FROM json_to_recordset(CAST(:asked AS json)) AS asked(namespace text, target text)
CROSS JOIN LATERAL (
  {_FOLLOWED.format(of_one=_OF_REQUESTED, now=":now", most=":most")}
  FOR UPDATE SKIP LOCKED
) AS ready
""")
_FOLLOWED_SQLITE = _FOLLOWED.format(of_one=_GIVEN, now="?", most="?")


def followed(connection: Connection, targets: Collection[ReadyTarget], now: Instant, most: int) -> list[ClaimCandidate]:
    """Lock the followed runs of each target: taking one over sends nothing, so it needs no place."""
    if not targets:
        return []
    if connection.dialect.name == "postgresql":
        rows = connection.execute(_FOLLOWED_POSTGRES, {"asked": _targets_text(targets), "now": now, "most": most})
        return [ClaimCandidate(*row) for row in rows]
    return [
        ClaimCandidate(*row)
        for each in targets
        for row in connection.exec_driver_sql(_FOLLOWED_SQLITE, (*each, now, most))
    ]


# ── waiting for a place ──────────────────────────────────────────────────────────────────────────────

# Not what the agent has begun: neither what is only followed, nor the answer that somebody gave to its question.
_UNMARKED = (
    f"{PROMPT_UNMARKED} AND {{of_one}} AND ready_at <= {{now}} AND NOT heard AND gates_passed = 0 "
    "AND stop_requested_at IS NULL"
)
_UNMARKED_POSTGRES = _UNMARKED.format(of_one=_OF_REQUESTED, now=":now")
_UNMARKED_SQLITE = _UNMARKED.format(of_one=_GIVEN, now="?")
_MARK_POSTGRES = text(f"""
UPDATE runs SET busy_since = :now WHERE run_id = ANY(ARRAY(
  SELECT ready.run_id FROM json_to_recordset(CAST(:asked AS json)) AS asked(namespace text, target text)
  CROSS JOIN LATERAL (
    SELECT run_id FROM runs WHERE {_UNMARKED_POSTGRES} LIMIT :most FOR UPDATE SKIP LOCKED
  ) AS ready
))
""")
_ANY_POSTGRES = text(f"""
SELECT asked.namespace, asked.target FROM json_to_recordset(CAST(:asked AS json)) AS asked(namespace text, target text)
WHERE EXISTS (SELECT 1 FROM runs WHERE {_UNMARKED_POSTGRES})
""")
_ANY_SQLITE = f"SELECT 1 FROM runs WHERE {_UNMARKED_SQLITE} LIMIT 1"
_MARK_SQLITE = f"""
UPDATE runs SET busy_since = ? WHERE run_id IN (SELECT run_id FROM runs WHERE {_UNMARKED_SQLITE} LIMIT ?)
"""


def with_unmarked(connection: Connection, targets: Collection[ReadyTarget], now: Instant) -> list[ReadyTarget]:
    """Those with runs that wait for a place, and of which nobody has written down since when."""
    if not targets:
        return []
    if connection.dialect.name == "postgresql":
        return [
            ReadyTarget(*row)
            for row in connection.execute(_ANY_POSTGRES, {"asked": _targets_text(targets), "now": now})
        ]
    return [each for each in targets if connection.exec_driver_sql(_ANY_SQLITE, (*each, now)).first() is not None]


def mark_waiting(connection: Connection, targets: Collection[ReadyTarget], now: Instant, most: int) -> None:
    """Once for each run: since when its agent has had no place for it. Of each target `most` at a time."""
    if connection.dialect.name == "postgresql":
        connection.execute(_MARK_POSTGRES, {"asked": _targets_text(targets), "now": now, "most": most})
        return
    for each in targets:
        connection.exec_driver_sql(_MARK_SQLITE, (now, *each, now, most))


# Seconds from one try to the next; after the last there is none.
PAUSES: Final = (1, 5, 30, 120)
MOST_TRIES: Final = len(PAUSES) + 1
_AT_ONCE = 500


class UnwantedTask(NamedTuple):
    """`reference` is the agent's own name for the task; `tries` how often it was told before.

    `agent_id` is the target where a broker has the task; no agent's id holds a slash.
    """

    run_id: bytes
    reference: str
    namespace: str
    agent_id: str
    tries: int = 0


def add_unwanted(connection: Connection, tasks: Sequence[UnwantedTask], now: Instant) -> None:
    """To be told at once; one that is there already stays as it is."""
    insert = sqlite.insert if connection.dialect.name == "sqlite" else postgresql.insert
    for first in range(0, len(tasks), _AT_ONCE):
        rows = [{**task._asdict(), "next_at": now} for task in tasks[first : first + _AT_ONCE]]
        connection.execute(insert(unwanted_tasks).values(rows).on_conflict_do_nothing())


def is_any_due(connection: Connection, now: Instant) -> bool:
    return bool(connection.execute(sa.select(sa.exists().where(unwanted_tasks.c.next_at <= now))).scalar_one())


def take_unwanted(connection: Connection, now: Instant, limit: int, patience_seconds: int) -> list[UnwantedTask]:
    """Those whose time has come, for as long as telling may take; namespaces take turns, one task a turn."""
    found = [UnwantedTask(bytes(row[0]), *row[1:]) for row in connection.execute(_due(now, limit))]
    wanted = _wanted_again(connection, found)
    for task in found:
        if task.tries >= MOST_TRIES or (task.run_id, task.reference) in wanted:
            delete_unwanted(connection, task)
        else:
            _move(connection, task, task.tries + 1, now + patience_seconds * SECOND)
    return [
        task._replace(tries=task.tries + 1)
        for task in found
        if task.tries < MOST_TRIES and (task.run_id, task.reference) not in wanted
    ]


def _due(now: Instant, limit: int) -> sa.Select[Any]:
    """Locked. A crowd that agents of one tenant do not hear of stands in nobody else's way."""
    table = unwanted_tasks.c
    is_due = table.next_at <= now
    turn = sa.func.row_number().over(partition_by=table.namespace, order_by=(table.next_at, table.run_id))
    waiting = sa.select(table.run_id, table.reference, table.next_at, turn.label("turn")).where(is_due).subquery()
    first = (
        sa.select(waiting.c.run_id, waiting.c.reference).order_by(waiting.c.turn, waiting.c.next_at).limit(limit)
    ).subquery()
    chosen = sa.tuple_(table.run_id, table.reference).in_(sa.select(first.c.run_id, first.c.reference))
    columns = (table[name] for name in UnwantedTask._fields)
    return sa.select(*columns).where(is_due, chosen).order_by(table.next_at).with_for_update(skip_locked=True)


def _wanted_again(connection: Connection, tasks: Sequence[UnwantedTask]) -> set[tuple[bytes, str]]:
    """An agent may know a message again that is repeated, and go on with the task that it made of it."""
    if not tasks:
        return set()
    going_on = sa.select(runs.c.run_id, runs.c.reference).where(
        runs.c.run_id.in_([task.run_id for task in tasks]), runs.c.reference.is_not(None), runs.c.finished_at.is_(None)
    )
    return {(bytes(row.run_id), row.reference) for row in connection.execute(going_on)}


def postpone(connection: Connection, task: UnwantedTask, now: Instant) -> None:
    """It could not be told; after the last try nobody tries again."""
    if task.tries >= MOST_TRIES:
        delete_unwanted(connection, task)
    else:
        _move(connection, task, task.tries, now + PAUSES[task.tries - 1] * SECOND)


def delete_unwanted(connection: Connection, task: UnwantedTask) -> None:
    connection.execute(sa.delete(unwanted_tasks).where(*_same(task)))


def _move(connection: Connection, task: UnwantedTask, tries: int, next_at: Instant) -> None:
    connection.execute(sa.update(unwanted_tasks).where(*_same(task)).values(tries=tries, next_at=next_at))


def _same(task: UnwantedTask) -> tuple[sa.ColumnElement[bool], ...]:
    return unwanted_tasks.c.run_id == task.run_id, unwanted_tasks.c.reference == task.reference
