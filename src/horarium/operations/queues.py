"""How workers outside take runs from a pull queue, in any language: claim, heartbeat, then report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from horarium.errors import InvalidDefinition
from horarium.ids import id_text
from horarium.instant import SECOND, Instant
from horarium.operations.caller import Caller
from horarium.operations.errors import Forbidden
from horarium.operations.resources import Resources
from horarium.operations.runs import Run, find_held, lease_over, view
from horarium.policy.names import MAX_TEXT_LENGTH
from horarium.schedule.event import RunEventType
from horarium.schedule.storable import is_storable
from horarium.store.database import Connection
from horarium.store.runs import claims
from horarium.store.runs import read as runs_read
from horarium.store.runs.events import add_event
from horarium.wire.roles import Permission

MAX_CLAIM = 100
MAX_TYPES = 100
"""Names in one claim, at most: each is a look of its own."""


@dataclass(frozen=True, slots=True)
class Claimed:
    """`lease_epoch` goes back with every heartbeat and with the report; `report_token` may speak for it."""

    run: Run
    lease_epoch: int
    lease_until: Instant
    lease_seconds: int
    report_url: str | None
    report_token: str


@dataclass(frozen=True, slots=True)
class Beat:
    """`stop_requested`: somebody wants the run to end; the worker should stop and report `cancelled`."""

    lease_until: Instant
    stop_requested: bool


def claim(
    resources: Resources,
    caller: Caller,
    queue: str,
    *,
    worker: str | None = None,
    limit: int = 1,
    workflow_types: Sequence[str] | None = None,
) -> list[Claimed]:
    """Up to `limit` runs, the highest priority first and then the oldest; an empty list means that nothing waits.

    `workflow_types` are those that the worker knows: runs of others stay for a worker that does. None = any.
    An agent is given what is assigned to it or to nobody. What is said of a claimed run is heard of this caller only.
    """
    caller.require(Permission.WORK)
    if not caller.takes_from(queue):
        raise Forbidden("this token is not good for this queue")
    if not 1 <= limit <= MAX_CLAIM:
        raise InvalidDefinition({"limit": [f"must be between 1 and {MAX_CLAIM}"]})
    types = None if workflow_types is None else _checked_types(workflow_types)
    owner = (worker or caller.principal or "worker")[:MAX_TEXT_LENGTH]
    seconds = resources.settings.lease_seconds

    def work(connection: Connection) -> list[Claimed]:
        now = resources.clock.now()
        taken = claims.claim_queued(
            connection,
            namespace=caller.namespace,
            queue=queue,
            owner=owner,
            now=now,
            lease_seconds=seconds,
            limit=limit,
            types=types,
            claimed_by=caller.principal,
            agent=caller.agent_id,
        )
        for each in taken:
            add_event(connection, each.run_id, RunEventType.RUN_STARTED, now, {"worker": owner})
        rows = runs_read.find_all(connection, [each.run_id for each in taken])
        return [_claimed(resources, run, now, seconds) for run in view(resources, connection, rows)]

    claimed = resources.database.write(work)
    for each in claimed:
        resources.telemetry.launched(fired_at=each.run.row.created_at, started_at=each.run.row.started_at or 0)
    return claimed


def _checked_types(types: Sequence[object]) -> list[str]:
    """Each once; raises InvalidDefinition."""
    if not isinstance(types, list | tuple) or not 1 <= len(types) <= MAX_TYPES:
        raise InvalidDefinition({"workflow_types": [f"must be a list of 1 to {MAX_TYPES} names"]})
    known: dict[str, None] = {}
    for each in types:
        if not isinstance(each, str) or not 0 < len(each) <= MAX_TEXT_LENGTH or not is_storable(each):
            raise InvalidDefinition({"workflow_types": [f"a name has 1 to {MAX_TEXT_LENGTH} characters"]})
        known[each] = None
    return list(known)


def _claimed(resources: Resources, run: Run, now: Instant, seconds: int) -> Claimed:
    row = run.row
    token, url = resources.tokens.make(row.run_id, row.attempt), resources.tokens.report_url(id_text(row.run_id))
    return Claimed(run, row.lease_epoch, now + seconds * SECOND, seconds, url, token)


def heartbeat(resources: Resources, caller: Caller, run_id: str, lease_epoch: int) -> Beat:
    """Raises RunNotHeld when the run was given to somebody else, or has ended: the worker should stop."""
    caller.require(Permission.WORK)

    def work(connection: Connection) -> Beat:
        held = find_held(connection, caller, run_id, lease_epoch)
        until = resources.clock.now() + resources.settings.lease_seconds * SECOND
        renewed = claims.renew(connection, [held], until).get((held.run_id, lease_epoch))
        if renewed is None:
            raise lease_over(lease_epoch)
        return Beat(until, renewed.stop_requested)

    return resources.database.write(work)
