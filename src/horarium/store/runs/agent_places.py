"""How many prompts an agent may be sent now: what it takes at a time, without what is under way there.

That is counted in the database, since any process may send to any agent. Whoever takes places holds the agent's row
until what it takes can be seen by others; who finds it locked passes the agent over, and looks again soon.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy import Connection, text

from horarium.instant import Instant
from horarium.schedule.agent import Agent
from horarium.schedule.run import RunState
from horarium.schedule.target import agent_in
from horarium.store.database.found import rows_with
from horarium.store.database.json_text import event_text
from horarium.store.policies import read_agent
from horarium.store.runs.claims import Candidate, ReadyTarget
from horarium.store.runs.states import PROMPT_OUT, PROMPT_UNMARKED
from horarium.store.tables import agents


class AgentPlaces(NamedTuple):
    """`capacity` None = there is nobody, or nobody who can be read: whoever takes the run says so.

    `out`: sent and not answered for good. `followed`: those of them that wait for somebody who goes on with them.
    """

    capacity: int | None
    out: int = 0
    followed: int = 0

    @property
    def free(self) -> int | None:
        return None if self.capacity is None else max(0, self.capacity - self.out)


def look(connection: Connection, targets: Collection[ReadyTarget]) -> dict[ReadyTarget, AgentPlaces]:
    """Each is that of prompts to one agent."""
    capacities = _capacities(connection, targets, lock=False)
    out = _out(connection, targets)
    return {each: AgentPlaces(capacities.get(each), *out[each]) for each in targets}


def lock(connection: Connection, targets: Collection[ReadyTarget]) -> dict[ReadyTarget, AgentPlaces]:
    """Ours until the transaction ends; those that somebody else holds just now are missing."""
    if not targets:
        return {}
    # The counting comes after the lock: only so does it see what the one before us has taken.
    capacities = _capacities(connection, targets, lock=True)
    out = _out(connection, capacities.keys())
    return {each: AgentPlaces(capacity, *out[each]) for each, capacity in capacities.items()}


def _capacities(connection: Connection, targets: Iterable[ReadyTarget], *, lock: bool) -> dict[ReadyTarget, int | None]:
    named = {(each.namespace, agent_in(each.target) or ""): each for each in targets}
    columns = (agents.c.namespace, agents.c.agent_id)
    rows = sa.select(*columns, agents.c.document).order_by(*columns)
    found: dict[ReadyTarget, int | None] = {}
    for namespace, agent_id, document in rows_with(
        connection, rows.with_for_update(skip_locked=True) if lock else rows, columns, named.keys()
    ):
        agent = read_agent(agent_id, document)
        found[named[namespace, agent_id]] = agent.capacity if isinstance(agent, Agent) else None
    return found


# Of one target, as each database names it.
_OF_ONE = "namespace = {namespace} AND target = {target}"
_ASKED = _OF_ONE.format(namespace="asked.namespace", target="asked.target")
_GIVEN = _OF_ONE.format(namespace="?", target="?")

_OUT = f"SELECT state, count(*) FROM runs WHERE {PROMPT_OUT} AND {{of_one}} GROUP BY state"
_OUT_POSTGRES = text(f"""
SELECT asked.namespace, asked.target, found.state, found.count
FROM json_to_recordset(CAST(:asked AS json)) AS asked(namespace text, target text)
CROSS JOIN LATERAL ({_OUT.format(of_one=_ASKED)}) AS found
""")
_OUT_SQLITE = _OUT.format(of_one=_GIVEN)


def _out(connection: Connection, targets: Collection[ReadyTarget]) -> defaultdict[ReadyTarget, tuple[int, int]]:
    """All that are out, and of them those that are followed."""
    rows: Iterable[Any]
    if connection.dialect.name == "postgresql":
        rows = connection.execute(_OUT_POSTGRES, {"asked": _asked(targets)})
    else:
        rows = ((*each, *row) for each in targets for row in connection.exec_driver_sql(_OUT_SQLITE, tuple(each)))
    found: defaultdict[ReadyTarget, tuple[int, int]] = defaultdict(lambda: (0, 0))
    for namespace, target, state, count in rows:
        out, followed = found[ReadyTarget(namespace, target)]
        is_followed = state == RunState.READY
        found[ReadyTarget(namespace, target)] = out + count, followed + (count if is_followed else 0)
    return found


def _asked(targets: Iterable[ReadyTarget]) -> str:
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
  {_FOLLOWED.format(of_one=_ASKED, now=":now", most=":most")}
  FOR UPDATE SKIP LOCKED
) AS ready
""")
_FOLLOWED_SQLITE = _FOLLOWED.format(of_one=_GIVEN, now="?", most="?")


def followed(connection: Connection, targets: Collection[ReadyTarget], now: Instant, most: int) -> list[Candidate]:
    """Lock the followed runs of each target: taking one over sends nothing, so it needs no place."""
    if not targets:
        return []
    if connection.dialect.name == "postgresql":
        rows = connection.execute(_FOLLOWED_POSTGRES, {"asked": _asked(targets), "now": now, "most": most})
        return [Candidate(*row) for row in rows]
    return [
        Candidate(*row) for each in targets for row in connection.exec_driver_sql(_FOLLOWED_SQLITE, (*each, now, most))
    ]


# ── waiting for a place ──────────────────────────────────────────────────────────────────────────────

# Not what the agent has begun: neither what is only followed, nor the answer that somebody gave to its question.
_UNMARKED = (
    f"{PROMPT_UNMARKED} AND {{of_one}} AND ready_at <= {{now}} AND NOT heard AND gates_passed = 0 "
    "AND stop_requested_at IS NULL"
)
_UNMARKED_POSTGRES = _UNMARKED.format(of_one=_ASKED, now=":now")
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
        return [ReadyTarget(*row) for row in connection.execute(_ANY_POSTGRES, {"asked": _asked(targets), "now": now})]
    return [each for each in targets if connection.exec_driver_sql(_ANY_SQLITE, (*each, now)).first() is not None]


def mark_waiting(connection: Connection, targets: Collection[ReadyTarget], now: Instant, most: int) -> None:
    """Once for each run: since when its agent has had no place for it. Of each target `most` at a time."""
    if connection.dialect.name == "postgresql":
        connection.execute(_MARK_POSTGRES, {"asked": _asked(targets), "now": now, "most": most})
        return
    for each in targets:
        connection.exec_driver_sql(_MARK_SQLITE, (now, *each, now, most))
