"""How a single run is started that no schedule asked for: once for each idempotency key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from horarium.decision.births import Settled
from horarium.ids import id_text, new_id
from horarium.instant import DAY, SECOND, Instant, to_rfc3339
from horarium.operations.bypasses import bypass_on_record, refuse_skipping_again
from horarium.operations.caller import Caller
from horarium.operations.credentials import keep_credentials
from horarium.operations.decisions import births_exceed
from horarium.operations.drafts import Draft, check_draft, signed
from horarium.operations.errors import KeyReused, WorkflowNotFound
from horarium.operations.resources import Resources
from horarium.operations.started_policies import settle_start
from horarium.operations.triggers import check_key
from horarium.policy.approval import NO_SKIPPING
from horarium.policy.quotas import ROOM_WITHOUT_END
from horarium.schedule.credentials import of_run
from horarium.schedule.definition import Definition, SpecText
from horarium.schedule.document import Parsed, parse_definition
from horarium.schedule.kinds import WORKFLOW
from horarium.schedule.run import Origin, RunState
from horarium.schedule.sub_workflows import Use
from horarium.schedule.target import of_worker
from horarium.store import usage, workflows
from horarium.store.counters import to_millionths
from horarium.store.database import Connection
from horarium.store.database.channels import READY
from horarium.store.database.json_text import to_text
from horarium.store.errors import Conflict
from horarium.store.runs import approvals, open_runs
from horarium.store.runs import read as runs_read
from horarium.store.runs.read import RunRow
from horarium.store.workflow_graphs import newest_versions
from horarium.wire.bodies import StartBody
from horarium.wire.outcomes import StartOutcome
from horarium.wire.roles import Permission


@dataclass(frozen=True, slots=True)
class Started:
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
) -> Started:
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

    def work(connection: Connection) -> Started:
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
        open_runs.set_requested_by(connection, [started.run_id], caller.context())
        if started.state is RunState.AWAITING_APPROVAL and approvals.request(connection, [run_id], now):
            return replace(started, state=RunState.READY)  # somebody had said yes beforehand
        return started

    try:
        with bypass_on_record(resources, caller):
            started = resources.database.write(work)
    except Conflict as taken:
        if taken.constraint != "runs_by_callers_key":
            raise
        with bypass_on_record(resources, caller):
            started = resources.database.write(work)  # another request was faster; now the run is there
    if started.outcome is StartOutcome.STARTED:
        resources.telemetry.born(Origin.API)
    return started


def _parsed(resources: Resources, caller: Caller, said: Mapping[str, Any], run_id: bytes, now: Instant) -> Parsed:
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


def _again(run: RunRow, workflow: str | None) -> Started:
    if run.workflow != workflow or run.origin is not Origin.API:
        raise KeyReused("this idempotency key was used to start another run")
    return Started(run.run_id, StartOutcome.ALREADY_STARTED, run.state, run.workflow_version)


def _check_room(resources: Resources, connection: Connection, namespace: str) -> None:
    now = resources.clock.now()
    room = resources.quotas.rooms(connection, [namespace], now).get(namespace, ROOM_WITHOUT_END)
    if not room.births:
        raise births_exceed(namespace, room.exceeded(0), now)


def _start(
    resources: Resources, connection: Connection, draft: Draft, run_id: bytes, key: str | None, nominal: Instant
) -> Started:
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
    open_runs.insert_unscheduled(connection, values, document)
    resources.database.notify(connection, READY)
    usage.add(connection, {draft.definition.namespace: usage.Growth(births=1, bytes=len(to_text(document)))}, now)
    return Started(run_id, StartOutcome.STARTED, state, version)


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
    if not workflows.uses_of(connection, definition.namespace, [Use(name, wanted)]):
        raise WorkflowNotFound(name, f"version {wanted} does not exist")
    return wanted


def _settled_columns(settled: Settled, target: str) -> dict[str, Any]:
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
