"""How workers outside take runs from a pull queue, in any language: claim, heartbeat, then report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from horarium.errors import InvalidDefinition
from horarium.ids import id_text
from horarium.instant import SECOND, Instant
from horarium.operations.caller import Caller
from horarium.operations.errors import Forbidden
from horarium.operations.resources import Resources
from horarium.operations.runs import Run, find_held, lease_over, view
from horarium.policy.names import MAX_TEXT_LENGTH
from horarium.schedule.damage import damage_of
from horarium.schedule.event import RunEventType
from horarium.schedule.storable import is_storable
from horarium.store import assignees
from horarium.store.database import Connection
from horarium.store.database.page_bytes import fitting
from horarium.store.runs import claims
from horarium.store.runs import read as runs_read
from horarium.store.runs.events import add_event
from horarium.store.runs.newest_approvals import approved_gates
from horarium.store.runs.node_gates import node_gates
from horarium.wire.roles import Permission

MAX_CLAIM = 100
MAX_TYPES = 100
"""Maximum names in one claim, because each needs a separate query."""


@dataclass(frozen=True, slots=True)
class Claimed:
    """`lease_epoch` goes back with every heartbeat and with the report; `report_token` may speak for it."""

    run: Run
    lease_epoch: int
    lease_until: Instant
    lease_seconds: int
    report_url: str | None
    report_token: str
    node_gates: tuple[str, ...] = ()
    approved_gates: tuple[str, ...] = ()


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

    Fewer, where more would not fit in one answer. `workflow_types` are those that the worker knows: runs of
    others stay for a worker that does. None = any. An agent is given what is assigned to it or to nobody. What is
    said of a claimed run is heard of this caller only.
    """
    caller.require(Permission.WORK)
    if not caller.takes_from(queue):
        raise Forbidden("this token is not valid for this queue")
    if not 1 <= limit <= MAX_CLAIM:
        raise InvalidDefinition({"limit": [f"must be between 1 and {MAX_CLAIM}"]})
    types = None if workflow_types is None else _checked_types(workflow_types)
    owner = (worker or caller.principal or "worker")[:MAX_TEXT_LENGTH]
    wish = _Wish(caller, queue, owner, limit, types)
    while True:
        try:
            claimed = resources.database.write(partial(_claim, resources, wish))
            break
        except _TooLarge as beyond:  # nothing is claimed then; fewer are asked for each time
            wish = replace(wish, limit=beyond.fit)
    for each in claimed:
        resources.telemetry.launched(fired_at=each.run.row.created_at, started_at=each.run.row.started_at or 0)
    return claimed


@dataclass(frozen=True, slots=True)
class _Wish:
    caller: Caller
    queue: str
    owner: str
    limit: int
    types: list[str] | None


class _TooLarge(Exception):
    """Raised when claimed runs do not fit in one response; `fit` of them do."""

    def __init__(self, fit: int) -> None:
        super().__init__(f"{fit} fit")
        self.fit = fit


def _claim(resources: Resources, wish: _Wish, connection: Connection) -> list[Claimed]:
    now, seconds = resources.clock.now(), resources.settings.lease_seconds
    if wish.caller.agent_id:
        assignees.see(connection, wish.caller.namespace, wish.caller.agent_id, now)
    taken = claims.claim_queued(
        connection,
        namespace=wish.caller.namespace,
        queue=wish.queue,
        owner=wish.owner,
        now=now,
        lease_seconds=seconds,
        limit=wish.limit,
        types=wish.types,
        claimed_by=wish.caller.principal,
        agent=wish.caller.agent_id,
    )
    run_ids = [each.run_id for each in taken]
    # An answer shows inputs and, in the action, what they were made of.
    fit = fitting(2 * size for size in runs_read.sizes(connection, run_ids)) if len(taken) > 1 else len(taken)
    if fit < len(taken):
        raise _TooLarge(fit)
    for each in taken:
        if each.parent_run_id is not None:
            continue  # a step has told so itself
        add_event(connection, each.run_id, RunEventType.RUN_STARTED, now, {"worker": wish.owner})
    rows = runs_read.find_all(connection, run_ids)
    for row in rows:
        if (why := damage_of(row.inputs)) is not None:
            raise ValueError(f"the inputs of the run {id_text(row.run_id)} cannot be read: {why}")
    declared = node_gates(connection, taken)
    approved = approved_gates(connection, [each.run_id for each in taken if each.approval_id is not None])
    return [
        replace(
            _claimed(resources, run, now, seconds),
            node_gates=declared.get(run.row.run_id, ()),
            approved_gates=approved.get(run.row.run_id, ()),
        )
        for run in view(resources, connection, rows)
    ]


def _checked_types(types: Sequence[object]) -> list[str]:
    """Each once; raises InvalidDefinition."""
    if not isinstance(types, list | tuple) or not 1 <= len(types) <= MAX_TYPES:
        raise InvalidDefinition({"workflow_types": [f"must be an array of 1 to {MAX_TYPES} names"]})
    known: dict[str, None] = {}
    for each in types:
        if not isinstance(each, str) or not 0 < len(each) <= MAX_TEXT_LENGTH or not is_storable(each):
            raise InvalidDefinition({"workflow_types": [f"a name must have 1 to {MAX_TEXT_LENGTH} characters"]})
        known[each] = None
    return list(known)


def _claimed(resources: Resources, run: Run, now: Instant, seconds: int) -> Claimed:
    row = run.row
    token = resources.tokens.make(row.run_id, row.attempt, row.gates_passed)
    url = resources.tokens.report_url(id_text(row.run_id))
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
