"""What no dispatcher can beat: loops that claim ready runs and write the same rows, with no thought in between.

Each goes set by set: claim 32 runs, do what is to be done with them, and write all that changes, one statement
for each table. A claim and an end are one transaction each, as with us.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeAlias

import httpx
from sqlalchemy import Connection, text

from horarium.platform.database import Database

TICK_THREADS = 32
Tell: TypeAlias = Callable[[int], None]
Rows: TypeAlias = list[dict[str, Any]]

_CLAIM = f"""
UPDATE runs SET state = 'launching', lease_epoch = lease_epoch + 1, lease_owner = 'bench', lease_until = 1,
  launches = launches + 1, deadline = 1
WHERE run_id IN (
  SELECT run_id FROM runs WHERE state = 'ready'
  ORDER BY namespace, target, priority DESC, ready_at, run_id LIMIT {TICK_THREADS}
)
RETURNING run_id, schedule_uid, next_event
"""
_DOCUMENTS = """
SELECT runs.run_id, runs.nominal, document FROM runs
JOIN schedule_revisions ON schedule_revisions.schedule_uid = runs.schedule_uid
  AND schedule_revisions.revision = runs.revision
WHERE lease_owner = 'bench'
"""
_END = """
UPDATE runs SET state = 'succeeded', lease_epoch = lease_epoch + 1, lease_owner = NULL, lease_until = NULL,
  started_at = 1, finished_at = 1, result = :result, next_event = :sequence + 1
WHERE run_id = :run
"""
_EVENT = """
INSERT INTO run_events (run_id, sequence, event_type, recorded_at, payload)
VALUES (:run, :sequence, 'run.completed', 1, '{}')
"""
_POSITION = """
UPDATE positions SET active = active - 1, last_completed_at = 1, last_completed_run_id = :run
WHERE schedule_uid = :schedule
"""
_QUEUE = "UPDATE runs SET state = 'queued', lease_owner = NULL, lease_until = NULL, queue = 'herd' WHERE run_id = :run"


def end(opened: Database, tell: Tell) -> float:
    """Claims runs and ends them."""
    return asyncio.run(_loop(opened, tell, _nothing, (_END, _EVENT, _POSITION)))


def queue(opened: Database, tell: Tell) -> float:
    """Claims runs and puts them on a queue: the run's row is all that changes."""
    return asyncio.run(_loop(opened, tell, _nothing, (_QUEUE,)))


def call(opened: Database, tell: Tell) -> float:
    """Claims runs, calls their URLs, all of a set at once, and ends them with the answers."""

    async def work() -> float:
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=0)
        async with httpx.AsyncClient(limits=limits, trust_env=False) as client:

            async def call_all(rows: Rows) -> Rows:
                found = await asyncio.to_thread(opened.read, _documents)
                return list(await asyncio.gather(*(_call(client, row, *found[row["run"]]) for row in rows)))

            return await _loop(opened, tell, call_all, (_END, _EVENT, _POSITION))

    return asyncio.run(work())


async def _loop(
    opened: Database, tell: Tell, work: Callable[[Rows], Awaitable[Rows]], statements: Sequence[str]
) -> float:
    """Seconds until nothing is left."""
    started, done = time.perf_counter(), 0
    while claimed := await asyncio.to_thread(opened.write, _claim):
        answered = await work(claimed)

        def settle(connection: Connection, rows: Rows = answered) -> None:
            for statement in statements:
                connection.execute(text(statement), rows)

        await asyncio.to_thread(opened.write, settle)
        done += len(answered)
        tell(done)
    return time.perf_counter() - started


def _claim(connection: Connection) -> Rows:
    found = connection.execute(text(_CLAIM))
    return [{"run": run, "schedule": schedule, "sequence": sequence} for run, schedule, sequence in found]


def _documents(connection: Connection) -> dict[bytes, tuple[int, dict[str, Any]]]:
    return {run: (nominal, json.loads(document)) for run, nominal, document in connection.execute(text(_DOCUMENTS))}


async def _nothing(rows: Rows) -> Rows:
    return [{**row, "result": "3"} for row in rows]


async def _call(client: httpx.AsyncClient, row: dict[str, Any], nominal: int, document: dict[str, Any]) -> Any:
    action = document["action"]
    body = {"id": row["run"].hex(), "schedule": row["schedule"].hex(), "nominal": nominal, "inputs": action["input"]}
    answer = await client.post(action["url"], json=body, headers={"idempotency-key": row["run"].hex()})
    answer.raise_for_status()
    return {**row, "result": answer.text}
