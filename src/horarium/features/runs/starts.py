"""Start a single run without a schedule, once for each idempotency key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from horarium.core.decision.run_policies import CreationPolicies, RunColumns, payer, payers, settle
from horarium.core.document.checks import of_run
from horarium.core.document.definition import Definition, SpecText, of_worker
from horarium.core.document.document import ParsedDefinition, parse_definition
from horarium.core.document.effective_policies import Effective
from horarium.core.document.reader import WORKFLOW
from horarium.core.document.states import Origin, RunState
from horarium.core.document.stored_workflow import WorkflowUse
from horarium.core.policy.approval import NO_SKIPPING
from horarium.core.policy.limits import ROOM_WITHOUT_END, Budget, budget_allows, daily_allows
from horarium.features.agents.policy_rows import move_turns
from horarium.features.approvals import request_rows
from horarium.features.resources import Resources
from horarium.features.runs import open_rows
from horarium.features.runs import rows as runs_read
from horarium.features.runs.rows import RunRow
from horarium.features.schedules.creation import keep_credentials
from horarium.features.schedules.decisions import births_exceed, bypass_on_record, refuse_skipping_again
from horarium.features.schedules.drafts import Draft, check_draft, signed
from horarium.features.schedules.next_run_rows import Birth, gather_policies
from horarium.features.schedules.triggers import check_key
from horarium.features.tenants import rows as tenant_rows
from horarium.features.workflows import graph_rows
from horarium.features.workflows import rows as workflow_rows
from horarium.features.workflows.graph_rows import newest_versions
from horarium.instant import DAY, SECOND, Instant, to_rfc3339
from horarium.platform.bodies import StartBody
from horarium.platform.caller import Caller
from horarium.platform.database import Connection
from horarium.platform.database.errors import UniqueConflict
from horarium.platform.database.statements import (
    add_to_counters,
    assignee_owner,
    lock_counters,
    to_credits,
    to_millionths,
    to_text,
)
from horarium.platform.database.wakeups import READY
from horarium.platform.errors import DailyBudgetExceeded, IdempotencyKeyReused, OperationRefused, WorkflowNotFound
from horarium.platform.ids import id_text, new_id
from horarium.platform.wire import Permission, StartOutcome


def settle_start(connection: Connection, draft: Draft, run_id: bytes, now: Instant) -> RunColumns | None:
    """Return columns from the defaults of others, or None if only its own definition sets any.

    Raises DailyBudgetExceeded, and OperationRefused for unreadable rows. The turn of a team moves, and the run is
    counted for its assignees; its own cost is counted when it ends.
    """
    definition, planning = draft.definition, draft.planning
    namespace, name = definition.namespace, planning.workflow
    stored = planning.kind == WORKFLOW.name and name is not None
    newest = graph_rows.newest_versions(connection, [(namespace, name or "")]) if stored else {}
    version = newest.get((namespace, name or ""))
    if planning.assigned is None and planning.assignment is None and version is None:
        return None
    own = Effective(definition.approval, definition.retry, definition.failure, definition.limits)
    birth = Birth(run_id, namespace, replace(planning, own_policies=own), version)
    gathered = gather_policies(connection, [birth], lock=True)
    policies = gathered.policies[run_id]
    if not isinstance(policies, CreationPolicies):
        raise OperationRefused(f"the run cannot be started: {policies.why}")
    team = None if policies.team is None else (namespace, policies.team.team_id)
    member = policies.member(0 if team is None else gathered.turns[team])
    settled = settle(planning, policies, member)
    if team is not None:
        move_turns(connection, {team: 1})
    budgets = {} if policies.assignee is None else {payer(policies.assignee): gathered.budgets[run_id]}
    if member is not None:
        budgets[member] = policies.bundle(member).budget
    _count(connection, namespace, settled, budgets, now)
    return settled


def _count(
    connection: Connection, namespace: str, settled: RunColumns, budgets: dict[str, Budget], now: Instant
) -> None:
    day, reserve = now // DAY, settled.reserve
    owners = {who: assignee_owner(namespace, who) for who in payers(settled.assignee, settled.member)}
    counted = lock_counters(connection, [(kind, owner, day) for owner in owners.values() for kind in ("runs", "spent")])
    for who, owner in owners.items():
        spent, runs = to_credits(counted["spent", owner, day]), counted["runs", owner, day]
        limit, most = budgets[who].spending_limit_credits, budgets[who].max_daily_runs
        if not budget_allows(limit, spent=spent, reserve=reserve):
            raise DailyBudgetExceeded(
                f"the daily budget of {who} is {limit} credits, of which {spent} are spent or reserved"
            )
        if not daily_allows(most, runs_today=runs):
            raise DailyBudgetExceeded(f"the daily limit of {who} is {most} runs, of which {runs} are used")
    changes = {("runs", owner, day): 1 for owner in owners.values()}
    add_to_counters(
        connection, {**changes, **{("spent", owner, day): to_millionths(reserve) for owner in owners.values()}}
    )


@dataclass(frozen=True, slots=True)
class StartedRun:
    run_id: bytes
    outcome: StartOutcome
    state: RunState
    version: int | None = None
    """Of the stored workflow that it runs, where it runs one."""


def start_run(
    resources: Resources,
    caller: Caller,
    action: object,
    *,
    key: str | None,
    scheduled_for: Instant | None = None,
    user_id: str | None = None,
    beside: Mapping[str, Any] | None = None,
) -> StartedRun:
    """`action` is that of a schedule. The same key again names the same run; for other work it is refused.

    `user_id` is whom the run is for; only an admin may name somebody else. `beside` is what a schedule could say of
    its runs beside their action.
    """
    caller.require(Permission.WRITE)  # what it does is the caller's own words, as in a schedule
    check_key(key)
    now, run_id = resources.clock.now(), new_id()
    said = {**(beside or {}), "action": action, "user_id": user_id}
    parsed = _parsed(resources, caller, said, run_id, now)
    nominal = now if scheduled_for is None else scheduled_for
    # The moment it is for may be past or a fraction of a second, which a schedule could not say.
    whole = to_rfc3339(nominal // SECOND * SECOND)
    definition = replace(signed(parsed.definition, caller), spec=SpecText(at=(whole,)))

    def work(connection: Connection) -> StartedRun:
        earlier = None if key is None else runs_read.find_by_callers_key(connection, caller.namespace, key)
        if earlier is not None:
            refuse_skipping_again(connection, caller, earlier, definition.approval)
            return _again(earlier, definition.action.workflow)
        keep_credentials(resources, connection, caller, parsed)
        draft = check_draft(resources, connection, caller, definition)
        _check_room(resources, connection, caller.namespace)
        started = _start(resources, connection, draft, run_id, key, nominal)
        if caller.skipping != NO_SKIPPING:
            row = runs_read.find(connection, caller.namespace, run_id)
            assert row is not None  # it was inserted above
            refuse_skipping_again(connection, caller, row, definition.approval, is_new=True)
        open_rows.set_requested_by(connection, [started.run_id], caller.context())
        if started.state is RunState.AWAITING_APPROVAL and request_rows.request(connection, [run_id], now):
            return replace(started, state=RunState.READY)  # somebody had said yes beforehand
        return started

    try:
        with bypass_on_record(resources, caller):
            started = resources.database.write(work)
    except UniqueConflict as taken:
        if taken.constraint != "runs_by_callers_key":
            raise
        with bypass_on_record(resources, caller):
            started = resources.database.write(work)  # another request was faster; now the run is there
    if started.outcome is StartOutcome.STARTED:
        resources.telemetry.created(Origin.API)
    return started


def _parsed(
    resources: Resources, caller: Caller, said: Mapping[str, Any], run_id: bytes, now: Instant
) -> ParsedDefinition:
    """As a schedule that says nothing but this."""
    document = {**said, "schedule_id": "start", "spec": {"at": [to_rfc3339((now // DAY + 2) * DAY)]}}
    return parse_definition(
        document,
        now=now,
        namespace=caller.namespace,
        defaults=resources.defaults(),
        kinds=resources.kinds_for(caller.namespace),
        secrets_of=of_run(id_text(run_id)),
    )


def _again(run: RunRow, workflow: str | None) -> StartedRun:
    if run.workflow != workflow or run.origin is not Origin.API:
        raise IdempotencyKeyReused("this idempotency key was used to start another run")
    return StartedRun(run.run_id, StartOutcome.ALREADY_STARTED, run.state, run.workflow_version)


def _check_room(resources: Resources, connection: Connection, namespace: str) -> None:
    now = resources.clock.now()
    room = resources.quotas.rooms(connection, [namespace], now).get(namespace, ROOM_WITHOUT_END)
    if not room.births:
        raise births_exceed(namespace, room.exceeded(0), now)


def _start(
    resources: Resources, connection: Connection, draft: Draft, run_id: bytes, key: str | None, nominal: Instant
) -> StartedRun:
    """No schedule asked for it: its definition is kept with the run itself."""
    now, planning = resources.clock.now(), draft.planning
    version = _version(connection, draft.definition)
    settled = settle_start(connection, draft, run_id, now)
    waits = planning.needs_approval if settled is None else settled.needs_approval
    state = RunState.AWAITING_APPROVAL if waits else RunState.READY
    values: dict[str, Any] = {
        "run_id": run_id,
        "namespace": draft.definition.namespace,
        "workflow": planning.workflow,
        "kind": planning.kind,
        "origin": Origin.API.value,
        "state": state.value,
        "nominal": nominal,
        "due": nominal,
        "ready_at": now,
        "timeout_seconds": planning.timeout_seconds,
        "priority": planning.priority,
        "queue": planning.queue,
        "delivery": planning.delivery.value,
        "needs_approval": waits,
        "assignee": None,
        "reserved": 0,  # no schedule's budget pays for it
        "target": planning.target,
        "attempt_ms": planning.attempt_ms,
        "runtime_seconds": planning.runtime_seconds,
        "external_key": key,
        "created_at": now,
        "workflow_version": version,
        **({} if settled is None else _settled_columns(settled, planning.target)),
    }
    document = draft.revision(1).document
    open_rows.insert_unscheduled(connection, values, document)
    resources.database.notify(connection, READY)
    tenant_rows.add_growth(
        connection, {draft.definition.namespace: tenant_rows.Growth(births=1, bytes=len(to_text(document)))}, now
    )
    return StartedRun(run_id, StartOutcome.STARTED, state, version)


def _version(connection: Connection, definition: Definition) -> int | None:
    """Version of the stored workflow that the definition names; None = it names none.

    Raises WorkflowNotFound for a version that does not exist.
    """
    name, wanted = definition.action.workflow, definition.action.target.get("version")
    if definition.action.kind != WORKFLOW.name or name is None:
        return None
    newest = newest_versions(connection, [(definition.namespace, name)]).get((definition.namespace, name))
    if newest is None or not isinstance(wanted, int):
        return newest
    if not workflow_rows.uses_of(connection, definition.namespace, [WorkflowUse(name, wanted)]):
        raise WorkflowNotFound(name, f"version {wanted} does not exist")
    return wanted


def _settled_columns(settled: RunColumns, target: str) -> dict[str, Any]:
    """Columns from policies outside of the definition; the assignees pay for the run."""
    who = settled.assignee
    return {
        "assignee": None if who is None else who.id,
        "assignee_type": None if who is None else who.type.value,
        "member": settled.member,
        "effective": settled.effective,
        "reserved": 0 if who is None else to_millionths(settled.reserve),
        "attempt_ms": settled.attempt_ms,
        "runtime_seconds": settled.runtime_seconds,
        "target": of_worker(target, who, settled.member),
    }


def action_of_start(asked: StartBody) -> dict[str, Any]:
    action: dict[str, Any] = {"workflow_id": asked.workflow_id, "version": asked.version, "input": asked.inputs}
    return {name: value for name, value in action.items() if value is not None}
